/**
 * Checks that every connection to the database has its own session, with its startup options, settings, locks and
 * notifications. A connection pooler can silently lose all of these. Queries would then use other settings, such as
 * another schema, two processes would hold the same lock, and no process would be notified of new events.
 */
import { randomInt } from 'node:crypto';
import type pg from 'pg';
import { connectClient } from '#postgres';
import { NotReadyError } from './start-deadline.ts';
import { StartError } from './start-error.ts';

const RESPONSE_TIMEOUT_MS = 5_000;
/**
 * PostgreSQL sends a notification at the latest before the response to the next query of the session. A busy machine can
 * delay both by any time. So the check counts responses, and allows for more than one.
 */
const RESPONSES_BEFORE_NOTIFICATION = 10;
const MAX_LOCK_ID = 2 ** 47;

/** Errors of PgBouncer. */
const REJECTIONS = [
  [/startup parameter/, 'startup options are rejected'],
  [/pooling mode/, 'transactions are rejected'],
] as const;

const QUERY_TIMEOUT = /^Query read timeout$/;

/** Databases that have passed the check. */
const verifiedDatabases = new Set<string>();

/**
 * Checks two concurrent connections, once per database and process.
 * @throws StartError if sessions are not preserved; NotReadyError if it does not serve two of them at once; another error if
 *   the database is unreachable
 */
export async function assertSessionPooling(connectionString: string): Promise<void> {
  if (verifiedDatabases.has(connectionString)) return;
  const lost = await findLostFeature(connectionString);
  if (lost !== undefined)
    throw new StartError(
      `DATABASE_URL leads to a pooler that does not preserve sessions (${lost}): connect to PostgreSQL directly, or to a pooler in session mode that forwards startup options.`,
    );
  verifiedDatabases.add(connectionString);
}

/** Returns the first lost feature of a session; undefined if all work. */
async function findLostFeature(connectionString: string): Promise<string | undefined> {
  const mark = String(randomInt(MAX_LOCK_ID));
  const options = `-c countinghouse.opened=${mark}`;
  const connections: pg.Client[] = [];
  try {
    const one = await connectSession(connectionString, options);
    connections.push(one);
    const other = await connectSession(connectionString);
    connections.push(other);
    return (await findLostSessionState(one, other, mark)) ?? (await findLostNotification(one, other, mark));
  } catch (error) {
    const rejection = REJECTIONS.find(([pattern]) => error instanceof Error && pattern.test(error.message));
    if (rejection) return rejection[1];
    if (error instanceof Error && QUERY_TIMEOUT.test(error.message))
      throw new NotReadyError(
        'two connections are not served at once: it is busy, or leads to a pooler with too few connections',
        {
          cause: error,
        },
      );
    throw error;
  } finally {
    for (const connection of connections) await connection.end().catch(() => {}); // already closed
  }
}

async function findLostSessionState(one: pg.Client, other: pg.Client, mark: string): Promise<string | undefined> {
  await one.query(`set countinghouse.set = '${mark}'`);
  const locked = `select pg_try_advisory_lock(${mark}) as locked, pg_backend_pid() as pid`;
  const { pid } = await queryFirstRow(one, locked);
  await other.query('begin'); // until the commit a pooler cannot assign this server connection to another client
  const second = await queryFirstRow(other, locked);
  const after = await queryFirstRow(
    one,
    `select current_setting('countinghouse.set', true) as set, pg_backend_pid() as pid`,
  );
  await other.query('commit');
  if (second.pid === pid || second.locked || after.pid !== pid) return 'locks do not outlive a transaction';
  if (after.set !== mark) return 'settings do not outlive a transaction';
  const { opened } = await queryFirstRow(one, `select current_setting('countinghouse.opened', true) as opened`);
  return opened === mark ? undefined : 'startup options are ignored';
}

async function findLostNotification(one: pg.Client, other: pg.Client, mark: string): Promise<string | undefined> {
  let hasArrived = false;
  one.once('notification', () => {
    hasArrived = true;
  });
  await one.query(`listen countinghouse_${mark}`);
  await other.query(`notify countinghouse_${mark}`);
  for (let responses = 0; responses < RESPONSES_BEFORE_NOTIFICATION && !hasArrived; responses++)
    await one.query('select 1');
  return hasArrived ? undefined : 'notifications do not arrive';
}

// biome-ignore lint/suspicious/noExplicitAny: the type of a row depends on the query
async function queryFirstRow(from: pg.Client, sql: string): Promise<any> {
  return (await from.query(sql)).rows[0];
}

function connectSession(connectionString: string, options?: string): Promise<pg.Client> {
  return connectClient({
    connectionString,
    name: 'start',
    connectTimeoutMs: RESPONSE_TIMEOUT_MS,
    queryTimeoutMs: RESPONSE_TIMEOUT_MS,
    ...(options === undefined ? {} : { options }),
  });
}
