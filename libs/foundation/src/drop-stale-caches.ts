/**
 * Read models, snapshots and cursors are made from the facts, and lie beside them or in another database. Where the facts were
 * put back to an earlier moment, they are ahead: they show what never happened, and would pass over what happens next. So they
 * are made again.
 */
import type pg from 'pg';
import { createClient } from '#postgres';
import { projections } from '#projections';

const READ_MODEL_TABLES = projections.map(({ name }) => `books.${name}`).join(', ');

/** Everything that is made again from the facts. */
export async function dropCaches(client: Pick<pg.Client, 'query'>): Promise<void> {
  await client.query(`truncate ${READ_MODEL_TABLES}, books.checkpoints, es.snapshots, es.checkpoints, es.due`);
}

/** Where the facts are, and how far they go. */
export interface EventLogInfo {
  readonly isInPostgres: boolean;
  /** The position of the last one. */
  readEndPosition(): Promise<bigint>;
}

/**
 * Drops the caches where one of them has come further than the facts go. To be called before anything is appended.
 * @returns whether it did
 */
export async function dropCachesNewerThanLog(connectionString: string, eventLog: EventLogInfo): Promise<boolean> {
  const client = createClient({ connectionString, name: 'start', queryTimeoutMs: null });
  await client.connect();
  try {
    if (!(await hasCachesNewerThanLog(client, eventLog))) return false;
    await client.query('begin');
    await client.query('lock table books.checkpoints in access exclusive mode');
    const still = await hasCachesNewerThanLog(client, eventLog); // another process may have been here
    if (still) {
      await dropCaches(client);
      // Other facts will have these positions.
      await client.query('delete from es.skipped where position > $1', [await eventLog.readEndPosition()]);
    }
    await client.query('commit');
    return still;
  } finally {
    await client.end();
  }
}

/**
 * The caches are asked first: others append meanwhile. A checkpoint may be behind the last fact, where a position was drawn in
 * vain, but not behind the last that was drawn; in EventStoreDB it may be that of what the server has written for itself.
 */
async function hasCachesNewerThanLog(
  client: pg.Client,
  { isInPostgres, readEndPosition }: EventLogInfo,
): Promise<boolean> {
  const { rows } = await client.query<{ booked: string | null; seen: string | null }>(
    `select (select max(position) from books.journal) as booked,
            greatest((select max(position) from books.checkpoints), (select max(position) from es.checkpoints)) as seen`,
  );
  const { booked, maxCheckpoint } = {
    booked: BigInt(rows[0]?.booked ?? -1),
    maxCheckpoint: BigInt(rows[0]?.seen ?? -1),
  };
  if (booked > (await readEndPosition())) return true;
  if (!isInPostgres) return false;
  const sequence = await client.query<{ last: string }>(
    'select last_value as last from es.events_position_seq where exists (select from es.events)',
  );
  return sequence.rows[0] !== undefined && maxCheckpoint > BigInt(sequence.rows[0].last);
}
