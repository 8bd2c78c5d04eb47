/**
 * Events that a read model cannot apply. If an upcaster, its fold or its table rejects an event, the read model is
 * blocked; the event and the reason are stored with its checkpoint. The read model continues when the event can be
 * applied, or when an operator has approved the skip. An event of a newer build is skipped at once. Skipped events are
 * stored outside the read models; a rebuild tries to apply them.
 */
import pg from 'pg';
import { EVENT_SCHEMA } from '#domain';
import {
  type BlockedByEventError,
  type EventBatch,
  isKnownEvent,
  type StoredEvent,
  UnknownEventError,
  type UnreadableEvent,
} from '#kernel';

type Queryable = Pick<pg.Pool, 'query'>;

/** Maximum number of stored characters of an error message. */
const MAX_REASON_LENGTH = 500;

export const skipMigrations = [
  {
    id: 'skips-1',
    sql: `create table es.skipped (
            reader     text collate "C" not null,
            position   bigint not null,
            stream     text collate "C" not null,
            type       text collate "C" not null,
            version    integer not null,
            why        text not null,
            skipped_by text, -- null: the reader itself, since a newer program wrote the fact
            skipped_at timestamptz not null default clock_timestamp(),
            mended_at  timestamptz, -- a rebuild has applied it
            primary key (reader, position)
          );
          create index on es.skipped (stream) where mended_at is null;
          alter table books.checkpoints add column stopped_at bigint, add column stopped_why text`,
  },
] as const;

/** The fold of a read model threw, or an event could not be read. */
export class FoldError extends Error {
  override readonly name = 'FoldError';
}

/** Runs a part of a fold. @throws FoldError if `fold` throws */
export function runFold<T>(fold: () => T): T {
  try {
    return fold();
  } catch (cause) {
    throw new FoldError(toReason(cause), { cause });
  }
}

/**
 * SQLSTATE classes of errors that the written data causes, not the server: cardinality violation, data exception,
 * integrity constraint violation, program limit exceeded.
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
const DATA_ERROR_SQLSTATE = /^(21|22|23|54)/;

/** Whether the events of a batch caused its failure, so that a retry would not help. */
export function isCausedByEvents(error: unknown): boolean {
  return (
    error instanceof FoldError || (error instanceof pg.DatabaseError && DATA_ERROR_SQLSTATE.test(error.code ?? ''))
  );
}

export function toReason(error: unknown): string {
  return String(error instanceof Error ? error.message : error).slice(0, MAX_REASON_LENGTH);
}

/** Returns the events of a batch that a newer build wrote. */
export function findNewerEvents({ unreadable: unread = [] }: EventBatch): readonly UnreadableEvent[] {
  return unread.filter(({ error }) => error instanceof UnknownEventError);
}

/** Splits a batch into two halves; undefined if it has fewer than two events. */
export function splitBatch({
  events,
  unreadable: unread = [],
  position,
}: EventBatch): readonly [EventBatch, EventBatch] | undefined {
  const positions = [...events, ...unread.map(({ event }) => event)].map((event) => event.position);
  const sorted = positions.toSorted((a, b) => (a < b ? -1 : 1));
  const last = sorted[Math.floor(sorted.length / 2) - 1];
  if (last === undefined) return undefined;
  const upTo = (event: StoredEvent) => event.position <= last;
  return [
    { events: events.filter(upTo), unreadable: unread.filter(({ event }) => upTo(event)), position: last },
    {
      events: events.filter((event) => !upTo(event)),
      unreadable: unread.filter(({ event }) => !upTo(event)),
      position,
    },
  ];
}

/**
 * Returns a CTE that records the events of a newer build as skipped, for a statement that has the CTE `fence`. The
 * events are passed as JSON in parameter `parameterIndex`.
 */
export function createRecordNewerSql(reader: string, parameterIndex: number): string {
  return `, skipped as (insert into es.skipped (reader, position, stream, type, version, why)
    select '${reader}', position, stream, type, version, why
      from json_to_recordset($${parameterIndex}::json) as s(position bigint, stream text, type text, version integer, why text)
     where exists (select from fence)
    on conflict (reader, position) do update set mended_at = null, skipped_at = excluded.skipped_at)`;
}

export function toSkippedJson(newer: readonly UnreadableEvent[]): string {
  const rows = newer.map(({ event: { position, stream, type, metadata }, error }) => {
    return { position: position.toString(), stream, type, version: metadata.version ?? 1, why: toReason(error) };
  });
  return JSON.stringify(rows);
}

/** Whether an event is recorded as skipped: an operator has approved the skip, or a newer build wrote the event. */
export async function isSkipApproved(pool: pg.Pool, reader: string, position: bigint): Promise<boolean> {
  const { rowCount } = await pool.query(
    'select from es.skipped where reader = $1 and position = $2 and mended_at is null',
    [reader, position],
  );
  return rowCount === 1;
}

/** Records which event blocks a read model, and why. */
export async function recordBlocked(
  pool: Queryable,
  reader: string,
  { position, cause }: BlockedByEventError,
): Promise<void> {
  await pool.query('update books.checkpoints set stopped_at = $2, stopped_why = $3 where projection = $1', [
    reader,
    position,
    toReason(cause),
  ]);
}

/** A read model that is blocked by an event. */
export interface BlockedProjection {
  readonly projection: string;
  readonly position: bigint;
  readonly reason: string;
}

/** Returns the read models that are blocked by an event. */
export async function listBlockedProjections(pool: Queryable): Promise<readonly BlockedProjection[]> {
  const { rows } = await pool.query<{ projection: string; stopped_at: string; stopped_why: string }>({
    name: 'stopped-projections',
    text: 'select projection, stopped_at, stopped_why from books.checkpoints where stopped_at is not null order by projection',
  });
  return rows.map((row) => ({
    projection: row.projection,
    position: BigInt(row.stopped_at),
    reason: row.stopped_why,
  }));
}

export interface SkippedEvent {
  readonly reader: string;
  readonly position: bigint;
  readonly stream: string;
  readonly type: string;
  readonly version: number;
  readonly why: string;
  /** The operator who approved the skip; null if a newer build wrote the event and it was skipped automatically. */
  readonly by: string | null;
  readonly at: Date;
}

/** Returns the events that were skipped and not applied by a rebuild since. */
export async function listSkippedEvents(pool: Queryable): Promise<readonly SkippedEvent[]> {
  const { rows } = await pool.query<Omit<SkippedEvent, 'position'> & { readonly position: string }>(
    `select reader, position, stream, type, version, why, skipped_by as by, skipped_at as at from es.skipped
      where mended_at is null order by position, reader`,
  );
  return rows.map((row) => ({ ...row, position: BigInt(row.position) }));
}

/** `countIncompleteStreams` does not count beyond this number. */
const MAX_COUNTED_STREAMS = 1_000;

/** Counts the streams with events that were skipped and not applied by a rebuild since. */
export async function countIncompleteStreams(pool: Queryable): Promise<number> {
  const { rows } = await pool.query<{ streams: number }>({
    name: 'incomplete-streams',
    text: `select count(*)::int as streams
             from (select distinct stream from es.skipped where mended_at is null limit ${MAX_COUNTED_STREAMS}) as incomplete`,
  });
  return rows[0]?.streams ?? 0;
}

/** Whether this build can read an event that was skipped as one of a newer build. */
export async function canReadSkippedEvents(pool: Queryable, reader: string): Promise<boolean> {
  const { rows } = await pool.query<{ type: string; version: number }>(
    'select distinct type, version from es.skipped where reader = $1 and mended_at is null and skipped_by is null',
    [reader],
  );
  return rows.some(({ type, version }) => isKnownEvent(type, version, EVENT_SCHEMA));
}

/** Records that a rebuild has applied the skipped events of a read model, except those that it skipped again. */
export async function recordRepaired(
  client: Queryable,
  reader: string,
  skippedAgain: ReadonlySet<bigint>,
): Promise<void> {
  await client.query(
    `update es.skipped set mended_at = clock_timestamp()
      where reader = $1 and mended_at is null and not position = any($2::bigint[])`,
    [reader, [...skippedAgain]],
  );
}

export interface SkipRequest {
  readonly projection: string;
  readonly position: bigint;
  readonly by: string;
  readonly reason: string;
}

/**
 * Approves skipping the event that blocks a read model. The projector continues within seconds.
 * @returns false if this event does not block the read model
 */
export async function skipEvent(
  pool: Queryable,
  { projection, position, by, reason }: SkipRequest,
  event: StoredEvent,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `insert into es.skipped (reader, position, stream, type, version, why, skipped_by)
     select projection, stopped_at, $3, $4, $5, $6, $7 from books.checkpoints
      where projection = $1 and stopped_at = $2
     on conflict (reader, position) do update
        set mended_at = null, skipped_at = clock_timestamp(), why = excluded.why, skipped_by = excluded.skipped_by`,
    [projection, position, event.stream, event.type, event.metadata.version ?? 1, reason, by],
  );
  return rowCount === 1;
}
