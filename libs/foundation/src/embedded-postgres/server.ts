/** Finds the running server by its pid file, and starts, joins and stops it. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { StartError } from '../start-error.ts';
import { getDataPath, spawnAsUser } from './binaries.ts';
import type { PostgresCluster } from './cluster.ts';

/** Enough for the recovery after a crash, unless the machine is busy. */
const MIN_START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 20_000;
export const POLL_INTERVAL_MS = 10;
/** All processes that use the server hold this lock in shared mode. The number is arbitrary. */
export const IN_USE_LOCK_ID = 7_301_965;
/** Name of the connections that hold this lock or wait for it. */
export const PRESENCE_NAME = 'countinghouse-presence';
/** SQLSTATEs of a server that is starting, stopping or full: the connection can be retried. */
const TRANSIENT_SQLSTATE = /^(08|53|57)/;

/** Sized for a host that also runs all other processes. The settings for durability have their safe defaults. */
const SERVER_OPTIONS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=400',
  'shared_buffers=256MB',
  'max_wal_size=1GB',
  'checkpoint_timeout=15min',
  'jit=off',
];

export interface PostgresServer {
  readonly pid: number;
  readonly port: number;
}

export interface SharedServer extends PostgresServer {
  /** Holds the lock that marks the server as in use. */
  readonly presence: pg.Client;
}

/**
 * Joins the server of a cluster, or starts it if none is running.
 * @throws StartError if no server accepts connections in time; Error if the server cannot be run, or rejects the
 *   connection for good
 */
export async function joinOrStartServer(
  cluster: PostgresCluster,
  extraOptions: readonly string[],
  timeoutMs: number,
): Promise<SharedServer> {
  const { dir, password } = cluster;
  const log = path.join(dir, '..', 'postgres.log');
  const deadline = performance.now() + Math.max(timeoutMs, MIN_START_TIMEOUT_MS);
  let started: ChildProcess | undefined;
  try {
    while (performance.now() < deadline) {
      const server = findRunningServer(dir);
      const presence = server && (await join(server, password));
      if (presence) return { ...server, presence };
      if (!server && !(started && isRunning(started))) {
        if (started && !/lock file|shared memory/.test(getLastErrorLine(log, dir))) break;
        started = await start(cluster, log, extraOptions);
      }
      await sleep(POLL_INTERVAL_MS);
    }
    throw new StartError(`The embedded database in ${dir} does not start: ${getLastErrorLine(log, dir)}.`);
  } catch (error) {
    if (started) await stopChild(started);
    throw error;
  }
}

async function start(
  { dir, binaries, user }: PostgresCluster,
  log: string,
  extraOptions: readonly string[],
): Promise<ChildProcess> {
  const port = await findFreePort();
  const options = [...SERVER_OPTIONS, `port=${port}`, ...extraOptions].flatMap((option) => ['-c', option]);
  const out = openSync(log, 'w', 0o600);
  const command = [binaries.postgres, '-D', getDataPath(dir, user), ...options];
  const child = spawnAsUser(dir, user, command, ['ignore', out, out]);
  closeSync(out);
  child.unref();
  await once(child, 'spawn');
  return child;
}

/** Unlike `isServerProcess`, this does not read the command line, which is empty for a moment after the spawn. */
function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

/**
 * Returns the server of the pid file if it is running and serves this directory. A copied directory contains the pid
 * file of the original. If the pid belongs to another live process, the file is removed. PostgreSQL itself replaces the
 * file of a dead process.
 */
function findRunningServer(dir: string): PostgresServer | undefined {
  const file = path.join(dir, 'postmaster.pid');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  const server = { pid: Number(lines[0]), port: Number(lines[3]) };
  if (!(server.pid > 0 && server.port > 0 && isAlive(server.pid))) return undefined;
  if (isServerProcess(server) && isRunningInDirectory(dir, server, lines[1])) return server;
  rmSync(file, { force: true }); // PostgreSQL would consider the other process a running server
  return undefined;
}

/**
 * Returns whether the process is still the server. After a crash of the host or container, another process may have its
 * id. A zombie process has no command line.
 */
export function isServerProcess({ pid, port }: PostgresServer): boolean {
  if (!isAlive(pid)) return false;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(`port=${port}`);
  } catch {
    return true; // this system has no /proc
  }
}

/**
 * Compares `dir` with the working directory of the process or, on a system without /proc, the directory in the pid
 * file.
 */
function isRunningInDirectory(dir: string, { pid }: PostgresServer, recordedDir = ''): boolean {
  const statIfExists = (where: string) => statSync(where, { throwIfNoEntry: false });
  try {
    const expected = statIfExists(dir);
    const actual = statIfExists(`/proc/${pid}/cwd`) ?? statIfExists(recordedDir);
    return (
      expected === undefined || actual === undefined || (expected.dev === actual.dev && expected.ino === actual.ino)
    );
  } catch {
    return true; // the directory cannot be determined
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Opens the connection that marks the server as in use. Returns undefined while the server accepts no connections. */
async function join(server: PostgresServer, password: string): Promise<pg.Client | undefined> {
  const client = new pg.Client({
    connectionString: toConnectionUrl(server, password, 'postgres', 'postgres'),
    application_name: PRESENCE_NAME,
    keepAlive: true,
  });
  client.on('error', () => {}); // users of the server detect the loss themselves
  try {
    await client.connect();
    await client.query('select pg_advisory_lock_shared($1)', [IN_USE_LOCK_ID]);
    return client;
  } catch (error) {
    await client.end().catch(() => {}); // already closed; the error above matters
    const { code, message } = error as pg.DatabaseError;
    if (code === '28P01') throw new Error('it rejects the password in its postgres.password');
    if (error instanceof pg.DatabaseError && !TRANSIENT_SQLSTATE.test(code ?? '')) throw new Error(message);
    return undefined;
  }
}

export async function stopServer(server: PostgresServer): Promise<void> {
  if (isServerProcess(server)) process.kill(server.pid, 'SIGINT');
  await waitUntilStopped(() => isServerProcess(server));
}

async function stopChild(child: ChildProcess): Promise<void> {
  child.kill('SIGINT');
  await waitUntilStopped(() => isRunning(child));
}

async function waitUntilStopped(isStillRunning: () => boolean): Promise<void> {
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while (isStillRunning() && performance.now() < deadline) await sleep(POLL_INTERVAL_MS);
}

export function toConnectionUrl({ port }: PostgresServer, password: string, user: string, database: string): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/${database}`;
}

function getLastErrorLine(log: string, dir: string): string {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  const errorLine =
    lines.findLast((line) => /FATAL|ERROR|PANIC/.test(line)) ?? (lines.join(' ') || 'it logged no message');
  return errorLine.replace(/^.*?(FATAL|ERROR|PANIC):\s*/, '').replaceAll('/proc/self/cwd', dir);
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
