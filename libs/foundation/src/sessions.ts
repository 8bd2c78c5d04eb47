/**
 * Whether the database keeps a session to its connection: what a connection is opened with and what is set on it lasts, and so
 * do its locks and its wish to be notified. A pooler in between may drop all of it, silently: rows would then be looked for in
 * the wrong schema, two processes would hold one lock, and nobody would be told of new facts.
 */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import type pg from 'pg';
import { createClient } from '#postgres';
import { StartError } from './start-error.ts';

const RESPONSE_TIMEOUT_MS = 5_000;
const NOTIFICATION_TIMEOUT_MS = 2_000;
const MAX_LOCK_ID = 2 ** 47;

/** What PgBouncer refuses by itself, and what comes of having fewer connections than clients: one is lent for a transaction. */
const REJECTIONS = [
  [/startup parameter/, 'start-up options are refused'],
  [/pooling mode/, 'transactions are refused'],
  [/^Query read timeout$/, 'two are not answered at once'],
] as const;

/** Databases that have passed. */
const verifiedDatabases = new Set<string>();

/**
 * Looks at two connections side by side, once for each database in a process.
 * @throws StartError that says what to connect to; anything else where the database cannot be reached
 */
export async function assertSessionPooling(
  connectionString: string,
  notificationTimeoutMs = NOTIFICATION_TIMEOUT_MS,
): Promise<void> {
  if (verifiedDatabases.has(connectionString)) return;
  const lost = await findLostFeature(connectionString, notificationTimeoutMs);
  if (lost !== undefined)
    throw new StartError(
      `DATABASE_URL leads to a pooler that does not keep a session to its connection (${lost}): connect to PostgreSQL itself, or to a pooler in session mode that passes start-up options on.`,
    );
  verifiedDatabases.add(connectionString);
}

/** What is lost first; undefined where nothing is. */
async function findLostFeature(connectionString: string, notificationTimeoutMs: number): Promise<string | undefined> {
  const mark = String(randomInt(MAX_LOCK_ID));
  const options = `-c countinghouse.opened=${mark}`;
  const [one, other] = [createSessionClient(connectionString, options), createSessionClient(connectionString)];
  try {
    await one.connect();
    await other.connect();
    return (
      (await findLostSessionState(one, other, mark)) ??
      (await findLostNotification(one, other, mark, notificationTimeoutMs))
    );
  } catch (error) {
    const rejection = REJECTIONS.find(([pattern]) => error instanceof Error && pattern.test(error.message));
    if (rejection) return rejection[1];
    throw error;
  } finally {
    for (const connection of [one, other]) await connection.end().catch(() => {});
  }
}

async function findLostSessionState(one: pg.Client, other: pg.Client, mark: string): Promise<string | undefined> {
  await one.query(`set countinghouse.set = '${mark}'`);
  const locked = `select pg_try_advisory_lock(${mark}) as locked, pg_backend_pid() as pid`;
  const { pid } = await queryFirstRow(one, locked);
  await other.query('begin'); // while it lasts, a pooler can lend what it is on to nobody else
  const second = await queryFirstRow(other, locked);
  const after = await queryFirstRow(
    one,
    `select current_setting('countinghouse.set', true) as set, pg_backend_pid() as pid`,
  );
  await other.query('commit');
  if (second.pid === pid || second.locked || after.pid !== pid) return 'locks do not outlive a transaction';
  if (after.set !== mark) return 'what is set on it does not outlive a transaction';
  const { opened } = await queryFirstRow(one, `select current_setting('countinghouse.opened', true) as opened`);
  return opened === mark ? undefined : 'start-up options are dropped';
}

async function findLostNotification(
  one: pg.Client,
  other: pg.Client,
  mark: string,
  timeoutMs: number,
): Promise<string | undefined> {
  await one.query(`listen countinghouse_${mark}`);
  const notification = once(one, 'notification', { signal: AbortSignal.timeout(timeoutMs) });
  notification.catch(() => {});
  await other.query(`notify countinghouse_${mark}`);
  return notification.then(
    () => undefined,
    () => 'notifications do not arrive',
  );
}

// biome-ignore lint/suspicious/noExplicitAny: a row of whatever is asked for
async function queryFirstRow(from: pg.Client, sql: string): Promise<any> {
  return (await from.query(sql)).rows[0];
}

function createSessionClient(connectionString: string, options?: string): pg.Client {
  return createClient({
    connectionString,
    name: 'start',
    connectTimeoutMs: RESPONSE_TIMEOUT_MS,
    queryTimeoutMs: RESPONSE_TIMEOUT_MS,
    ...(options === undefined ? {} : { options }),
  });
}
