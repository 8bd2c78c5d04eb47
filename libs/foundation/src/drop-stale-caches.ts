/**
 * Read models, snapshots and checkpoints are built from the events, and are stored with them or in another database. If
 * the event store was restored to an earlier state, they are ahead of it: they include events that no longer exist, and
 * would skip the next ones. So they are rebuilt.
 */
import type pg from 'pg';
import { connectClient } from '#postgres';
import { projections } from '#projections';

const READ_MODEL_TABLES = projections.map(({ name }) => `books.${name}`);

/** Removes all data that can be rebuilt from the events. The tables of an earlier version may lack new read models. */
export async function dropCaches(client: Pick<pg.Client, 'query'>): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    'select name from unnest($1::text[]) as name where to_regclass(name) is not null',
    [READ_MODEL_TABLES],
  );
  const readModels = rows.map(({ name }) => name);
  const tables = [...readModels, 'books.checkpoints', 'es.snapshots', 'es.checkpoints', 'es.due'];
  await client.query(`truncate ${tables.join(', ')}`);
}

export interface EventLogInfo {
  readonly isInPostgres: boolean;
  /** Returns the position of the last event. */
  readEndPosition(): Promise<bigint>;
}

/** Positions of the last event of the log, and of the last event that data built from it includes. */
export interface LostPositions {
  readonly logEnd: bigint;
  readonly cacheEnd: bigint;
}

/**
 * Drops the caches if the journal is ahead of the event log or, with the events in PostgreSQL, a checkpoint is. Must be
 * called before this process appends.
 * @returns what was found if the caches were dropped
 */
export async function dropCachesNewerThanLog(
  connectionString: string,
  eventLog: EventLogInfo,
): Promise<LostPositions | undefined> {
  const client = await connectClient({ connectionString, name: 'start', queryTimeoutMs: null });
  try {
    if (!(await findCachesNewerThanLog(client, eventLog))) return undefined;
    await client.query('begin');
    await client.query('lock table books.checkpoints in access exclusive mode');
    const lostPositions = await findCachesNewerThanLog(client, eventLog); // another process may have dropped them
    if (lostPositions) {
      await dropCaches(client);
      // Other events will get these positions.
      await client.query('delete from es.skipped where position > $1', [lostPositions.logEnd]);
    }
    await client.query('commit');
    return lostPositions;
  } finally {
    await client.end();
  }
}

/**
 * Reads the caches first, because other processes append in the meantime. In PostgreSQL some positions are never used.
 * So a checkpoint may be higher than the position of the last event, but not than the last assigned position. In
 * EventStoreDB a checkpoint may be the position of an event of the server itself, so checkpoints are not compared.
 */
async function findCachesNewerThanLog(
  client: pg.Client,
  { isInPostgres, readEndPosition }: EventLogInfo,
): Promise<LostPositions | undefined> {
  const { rows } = await client.query<{ booked: string | null; seen: string | null }>(
    `select (select max(position) from books.journal) as booked,
            greatest((select max(position) from books.checkpoints), (select max(position) from es.checkpoints)) as seen`,
  );
  const booked = BigInt(rows[0]?.booked ?? -1);
  const maxCheckpoint = BigInt(rows[0]?.seen ?? -1);
  const logEnd = await readEndPosition();
  const cacheEnd = isInPostgres && maxCheckpoint > booked ? maxCheckpoint : booked;
  if (booked > logEnd) return { logEnd, cacheEnd };
  if (!isInPostgres) return undefined;
  const sequence = await client.query<{ last: string }>(
    'select last_value as last from es.events_position_seq where exists (select from es.events)',
  );
  const isNewer = sequence.rows[0] !== undefined && maxCheckpoint > BigInt(sequence.rows[0].last);
  return isNewer ? { logEnd, cacheEnd } : undefined;
}
