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

const ANSWERS_WITHIN_MS = 5_000;
const NOTIFIED_WITHIN_MS = 2_000;
const MAX_LOCK = 2 ** 47;

/** What PgBouncer refuses by itself, and what comes of having fewer connections than clients: one is lent for a transaction. */
const REFUSALS = [
  [/startup parameter/, 'start-up options are refused'],
  [/pooling mode/, 'transactions are refused'],
  [/^Query read timeout$/, 'two are not answered at once'],
] as const;

/** Databases that have passed. */
const passed = new Set<string>();

/**
 * Looks at two connections side by side, once for each database in a process.
 * @throws StartError that says what to connect to; anything else where the database cannot be reached
 */
export async function assertSessionPooling(
  connectionString: string,
  notifiedWithinMs = NOTIFIED_WITHIN_MS,
): Promise<void> {
  if (passed.has(connectionString)) return;
  const lost = await lostIn(connectionString, notifiedWithinMs);
  if (lost !== undefined)
    throw new StartError(
      `DATABASE_URL leads to a pooler that does not keep a session to its connection (${lost}): connect to PostgreSQL itself, or to a pooler in session mode that passes start-up options on.`,
    );
  passed.add(connectionString);
}

/** What is lost first; undefined where nothing is. */
async function lostIn(connectionString: string, notifiedWithinMs: number): Promise<string | undefined> {
  const mark = String(randomInt(MAX_LOCK));
  const options = `-c countinghouse.opened=${mark}`;
  const [one, other] = [client(connectionString, options), client(connectionString)];
  try {
    await one.connect();
    await other.connect();
    return (await lostBetween(one, other, mark)) ?? (await unnotified(one, other, mark, notifiedWithinMs));
  } catch (error) {
    const refusal = REFUSALS.find(([said]) => error instanceof Error && said.test(error.message));
    if (refusal) return refusal[1];
    throw error;
  } finally {
    for (const each of [one, other]) await each.end().catch(() => {});
  }
}

async function lostBetween(one: pg.Client, other: pg.Client, mark: string): Promise<string | undefined> {
  await one.query(`set countinghouse.set = '${mark}'`);
  const locked = `select pg_try_advisory_lock(${mark}) as locked, pg_backend_pid() as pid`;
  const { pid } = await first(one, locked);
  await other.query('begin'); // while it lasts, a pooler can lend what it is on to nobody else
  const second = await first(other, locked);
  const after = await first(one, `select current_setting('countinghouse.set', true) as set, pg_backend_pid() as pid`);
  await other.query('commit');
  if (second.pid === pid || second.locked || after.pid !== pid) return 'locks do not outlive a transaction';
  if (after.set !== mark) return 'what is set on it does not outlive a transaction';
  const { opened } = await first(one, `select current_setting('countinghouse.opened', true) as opened`);
  return opened === mark ? undefined : 'start-up options are dropped';
}

async function unnotified(
  one: pg.Client,
  other: pg.Client,
  mark: string,
  withinMs: number,
): Promise<string | undefined> {
  await one.query(`listen countinghouse_${mark}`);
  const arrived = once(one, 'notification', { signal: AbortSignal.timeout(withinMs) });
  arrived.catch(() => {});
  await other.query(`notify countinghouse_${mark}`);
  return arrived.then(
    () => undefined,
    () => 'notifications do not arrive',
  );
}

// biome-ignore lint/suspicious/noExplicitAny: a row of whatever is asked for
async function first(from: pg.Client, sql: string): Promise<any> {
  return (await from.query(sql)).rows[0];
}

function client(connectionString: string, options?: string): pg.Client {
  return createClient({
    connectionString,
    name: 'start',
    connectTimeoutMs: ANSWERS_WITHIN_MS,
    queryTimeoutMs: ANSWERS_WITHIN_MS,
    ...(options === undefined ? {} : { options }),
  });
}
