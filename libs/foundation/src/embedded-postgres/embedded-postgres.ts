/**
 * A private PostgreSQL for hosts that have none. The binaries come from npm, and the data is stored in the data
 * directory.
 *
 * Every process that needs the server calls `startEmbeddedPostgres`: the first one starts it, the others join it, and
 * the last one to close stops it. If all processes that use it were killed, the server still runs, and the next
 * process finds it by its pid file.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { ensureDataDirectory } from '../data-directory.ts';
import { StartError } from '../start-error.ts';
import { findUnprivilegedUser, locateBinaries } from './binaries.ts';
import { initializeCluster, readOrCreatePassword } from './cluster.ts';
import {
  IN_USE_LOCK_ID,
  isServerProcess,
  joinOrStartServer,
  POLL_INTERVAL_MS,
  PRESENCE_NAME,
  type SharedServer,
  sleep,
  stopServer,
  toConnectionUrl,
} from './server.ts';

const DATABASE = 'countinghouse';
/**
 * How long a process that leaves waits for the connections of others to end. The server takes a moment to notice that a
 * process was killed, or that a pool has ended.
 */
const HANG_UP_TIMEOUT_MS = 500;

export interface EmbeddedPostgres {
  readonly url: string;
  isRunning(): boolean;
  /** Releases the server, and stops it if no other caller uses it. Callers close their own connections first. */
  close(): Promise<void>;
  /** Releases the server and leaves it running, for a caller that stops it by other means. */
  abandon(): Promise<void>;
}

/**
 * Starts the server, or joins it if it is running.
 * @param timeoutMs how long to wait for the server to accept connections; at least 30 s
 * @throws StartError if the server or its data cannot be used
 */
export async function startEmbeddedPostgres(
  dataDir: string,
  extraOptions: readonly string[] = [],
  timeoutMs = 0,
): Promise<EmbeddedPostgres> {
  const parent = await ensureDataDirectory(dataDir);
  const dir = path.join(parent, 'postgres');
  const user = findUnprivilegedUser();
  try {
    const binaries = await locateBinaries(user);
    const password = await readOrCreatePassword(parent);
    const cluster = { dir, binaries, user, password };
    if (!existsSync(path.join(dir, 'PG_VERSION'))) await initializeCluster(cluster);
    const server = await joinOrStartServer(cluster, extraOptions, timeoutMs);
    await createDatabase(server.presence, password);
    return {
      url: toConnectionUrl(server, password, DATABASE, DATABASE),
      isRunning: () => isServerProcess(server),
      close: () => leaveServer(server),
      abandon: () => server.presence.end(),
    };
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`The embedded database in ${dir} cannot be used: ${(error as Error).message}.`);
  }
}

async function createDatabase(client: pg.Client, password: string): Promise<void> {
  const { rows } = await client.query('select 1 from pg_database where datname = $1', [DATABASE]);
  if (rows.length > 0) return;
  const ignoreExisting = (error: { code?: string }) => {
    if (!['42710', '42P04', '23505'].includes(error.code ?? '')) throw error; // another process was first
  };
  await client.query(`create role ${DATABASE} login password '${password}'`).catch(ignoreExisting);
  await client.query(`create database ${DATABASE} owner ${DATABASE}`).catch(ignoreExisting);
}

/**
 * The last caller gets the exclusive lock, and stops the server. A process that joins while that lock is held waits
 * until the server has stopped, and then starts it again.
 */
async function leaveServer({ presence, ...server }: SharedServer): Promise<void> {
  try {
    await presence.query('select pg_advisory_unlock_shared($1)', [IN_USE_LOCK_ID]);
    await presence.query(`set lock_timeout = ${HANG_UP_TIMEOUT_MS}`);
    await presence.query('select pg_advisory_lock($1)', [IN_USE_LOCK_ID]);
    await waitForOtherSessions(presence);
    await stopServer(server);
  } catch {
    // Another process uses the server, or it has already stopped.
  } finally {
    await presence.end().catch(() => {}); // already closed
  }
}

/** A pool that has ended may still be closing its connections. It would report their loss as an error. */
async function waitForOtherSessions(presence: pg.Client): Promise<void> {
  // Other processes that leave or join wait for the lock of this one.
  const otherSessionsQuery = `select from pg_stat_activity where backend_type = 'client backend' and application_name <> '${PRESENCE_NAME}'`;
  const deadline = performance.now() + HANG_UP_TIMEOUT_MS;
  while ((await presence.query(otherSessionsQuery)).rowCount !== 0 && performance.now() < deadline)
    await sleep(POLL_INTERVAL_MS);
}
