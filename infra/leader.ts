import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

const TRY_EVERY_MS = 300;

/**
 * Runs `work` in one process at a time: in the one that holds a lock in the database; the others stand by and look
 * again. Losing the connection means losing the lock, so `work`'s signal aborts then, and it all begins anew.
 * Whoever writes must still fence its writes: the old leader may not know yet that it is none any more.
 */
export async function leadWhile(
  connectionString: string,
  name: string,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
  onProblem: (problem: string, error: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    const lost = new AbortController();
    const client = new pg.Client({ connectionString, application_name: `countinghouse-lead-${name}`, keepAlive: true });
    client.on('error', () => lost.abort());
    client.on('end', () => lost.abort());
    try {
      await client.connect();
      const until = AbortSignal.any([signal, lost.signal]);
      if (await acquire(client, name, until)) await work(until);
    } catch (error) {
      onProblem(`${name} lost its turn; trying again`, error);
    } finally {
      await client.end().catch(() => {});
    }
    if (!signal.aborted) await delay(TRY_EVERY_MS, undefined, { signal }).catch(() => {});
  }
}

/** Tries again and again instead of waiting inside the database, where a waiting query would hold back its clean-up. */
async function acquire(client: pg.Client, name: string, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    const { rows } = await client.query('select pg_try_advisory_lock(hashtextextended($1, 0)) as mine', [
      `countinghouse:${name}`,
    ]);
    if (rows[0].mine) return true;
    await delay(TRY_EVERY_MS, undefined, { signal }).catch(() => {});
  }
  return false;
}
