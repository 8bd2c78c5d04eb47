/**
 * A read model is a pure function of events. One file has its table and its fold.
 *
 * A log projection inserts rows for events; a fold projection maintains one row per key. One statement writes a batch
 * of events and advances the checkpoint, unless another writer has taken over. So rows and checkpoint always agree.
 * The checkpoints of read models without changes are advanced together.
 */
import { LRUCache } from 'lru-cache';
import pg from 'pg';
import type { DomainEvent } from '#domain';
import {
  BlockedByEventError,
  type EventBatch,
  type EventSink,
  LeaseLostError,
  limitEntries,
  START_POSITION,
  type StoredEvent,
} from '#kernel';
import { CheckpointWriter } from './checkpoint-writer.ts';
import {
  createRecordNewerSql,
  FoldError,
  findNewerEvents,
  isCausedByEvents,
  isSkipApproved,
  recordBlocked,
  runFold,
  splitBatch,
  toReason,
  toSkippedJson,
} from './skipped-events.ts';

export type ProjectedEvent = StoredEvent<DomainEvent>;

type Value = string | number | boolean | null | Readonly<Record<string, unknown>>;
export type ReadModelRow = Readonly<Record<string, Value>>;

/** As `Migration` of the foundation, which this layer cannot import. */
interface ReadModelMigration {
  readonly id: string;
  readonly sql: string;
  readonly minContract?: number;
  readonly changes?: string;
  readonly locks?: readonly {
    readonly table: string;
    readonly blocks: 'writes' | 'reads and writes';
    readonly millisecondsPerMillionRows: number;
  }[];
}

interface Table<R extends ReadModelRow> {
  /** Name of the projection and of its table. */
  readonly name: string;
  /**
   * Increase the version when events that are already applied would now result in other rows, because the fold or an
   * upcaster has changed. A table of another version is rebuilt before new events are applied.
   */
  readonly version: number;
  readonly migrations: readonly ReadModelMigration[];
  readonly columns: readonly (keyof R & string)[];
}

/** Inserts rows for events. The primary key of the table starts with the column `position`. */
export interface LogProjection<R extends ReadModelRow = ReadModelRow> extends Table<R> {
  readonly kind: 'log';
  toRows(event: ProjectedEvent): readonly R[];
}

/** Maintains one row per key. */
export interface FoldProjection<R extends ReadModelRow = ReadModelRow> extends Table<R> {
  readonly kind: 'fold';
  readonly key: keyof R & string;
  /** Type of the events that create a row, if their key never has one yet. No row is read before such an event. */
  readonly createdBy?: DomainEvent['type'];
  /** Returns the key of the row that an event changes; undefined if it changes none. */
  getKey(event: ProjectedEvent): string | undefined;
  /** Returns the row after an event; null deletes it. */
  evolve(row: R | undefined, event: ProjectedEvent): R | null;
}

export type Projection = LogProjection | FoldProjection;

/** Folds the events of one key into its row. @returns undefined if there is no row */
export function foldRow<R extends ReadModelRow>(
  projection: FoldProjection<R>,
  events: readonly ProjectedEvent[],
): R | undefined {
  const ownEvents = events.filter((event) => projection.getKey(event) !== undefined);
  return ownEvents.reduce<R | null>((row, event) => projection.evolve(row ?? undefined, event), null) ?? undefined;
}

export const checkpointMigrations = [
  {
    id: 'projections-1',
    sql: `create schema books;
          create table books.checkpoints (
            projection text primary key,
            position   bigint not null,
            writer     uuid not null
          ) with (fillfactor = 50);`,
  },
  {
    id: 'projections-2',
    sql: 'alter table books.checkpoints alter column writer type bigint using 0; -- the token of a lease',
  },
  {
    id: 'projections-3',
    sql: 'alter table books.checkpoints add column version integer not null default 1; -- of the rows',
  },
  {
    id: 'projections-4',
    sql: 'alter table books.checkpoints add column rebuilt_to bigint; -- how far a new table is filled beside this one',
  },
];

/**
 * Connection options of the writers of read models, and of commands that read them. Commits do not wait for the disk,
 * because the tables can be rebuilt: after a crash the checkpoint is as old as the rows.
 */
export const READ_MODEL_CONNECTION_OPTIONS =
  '-c search_path=books -c synchronous_commit=off -c TimeZone=UTC -c plan_cache_mode=force_generic_plan';

/** Maximum number of rows that a writer caches. */
const MAX_CACHED_ROWS = 20_000;

/**
 * Reads timestamps as ISO 8601 text; pg reads `bigint` and `numeric` as text by default. So the rows read are equal to
 * the rows written.
 */
export const TEXT_TYPE_PARSERS: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.TIMESTAMPTZ
      ? (value: string) => new Date(value).toISOString()
      : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser,
};

/**
 * Creates the writer of one projection's table, as a sink for `pump`. `loadCheckpoint` makes the sink the only writer,
 * so that its cached rows stay correct. Once a sink with a higher token takes over, both methods throw LeaseLostError.
 * `apply` throws BlockedByEventError at an event that cannot be applied and was not approved for skipping; all events
 * before it are applied.
 * @param token the fencing token of the lease under which the sink writes
 * @param checkpoints shared by the sinks of one process
 */
export function createProjectionSink(
  projection: Projection,
  pool: pg.Pool,
  token: number,
  checkpoints = new CheckpointWriter(pool),
): ProjectionSink {
  const { name } = projection;
  const skippedPositions = new Set<bigint>();
  const cache: RowCache = new LRUCache(limitEntries(MAX_CACHED_ROWS));
  let position = START_POSITION;

  async function loadCheckpoint(): Promise<bigint> {
    cache.clear();
    const { rows } = await pool.query<{ position: string }>(
      `insert into checkpoints as c (projection, position, writer, version) values ($1, $2, $3, $4)
       on conflict (projection) do update set writer = excluded.writer, rebuilt_to = null where c.writer <= excluded.writer
       returning c.position`,
      [name, START_POSITION, token, projection.version],
    );
    if (!rows[0]) throw createLeaseLostError();
    position = BigInt(rows[0].position);
    return position;
  }

  async function apply(batch: EventBatch): Promise<void> {
    if (batch.position <= position) return; // already applied
    try {
      await write(batch);
    } catch (error) {
      if (!isCausedByEvents(error)) throw error;
      const halves = splitBatch(batch);
      if (!halves) return skipOrBlock(batch, error);
      for (const half of halves) await apply(half);
    }
  }

  async function write(batch: EventBatch): Promise<void> {
    const newer = findNewerEvents(batch);
    const [unreadable] = (batch.unreadable ?? []).filter((entry) => !newer.includes(entry));
    if (unreadable) throw new FoldError(toReason(unreadable.error), { cause: unreadable.error });
    const events = batch.events as readonly ProjectedEvent[];
    const changes =
      projection.kind === 'log'
        ? buildLogChanges(projection, events)
        : await buildFoldChanges(projection, events, cache, pool);
    if (changes === NO_CHANGES && newer.length === 0) {
      if (!(await checkpoints.advance({ projection: name, from: position, to: batch.position, token })))
        throw createLeaseLostError();
      position = batch.position;
      return;
    }
    const values = [batch.position, name, position, token, ...changes.values];
    const { rows } = await pool.query<{ moved: number }>({
      name: `apply-${name}-${changes.statement}${newer.length > 0 ? '-newer' : ''}`,
      text: `with fence as (
               update checkpoints set position = $1, stopped_at = null, stopped_why = null
                where projection = $2 and position = $3 and writer = $4 returning true)
             ${changes.sql} ${newer.length > 0 ? createRecordNewerSql(name, values.length + 1) : ''} select count(*)::int as moved from fence`,
      values: newer.length > 0 ? [...values, toSkippedJson(newer)] : values,
    });
    if (rows[0]?.moved !== 1) throw createLeaseLostError();
    position = batch.position;
    for (const [id, row] of changes.rows) cache.set(id, { row });
    for (const { event } of newer) skippedPositions.add(event.position);
  }

  /** Skips the only event of a batch if it is recorded as skipped. @throws BlockedByEventError otherwise */
  async function skipOrBlock(
    { events, unreadable: unread = [], position: batchPosition }: EventBatch,
    error: unknown,
  ): Promise<void> {
    const event = events[0] ?? unread[0]?.event;
    if (!event) throw error;
    if (await isSkipApproved(pool, name, event.position)) {
      await write({ events: [], position: batchPosition });
      skippedPositions.add(event.position);
      return;
    }
    const problem = `${name} is blocked by the event at position ${event.position}, a ${event.type} of ${event.stream}`;
    const blocked = new BlockedByEventError(event.position, `${problem}, which cannot be applied`, error);
    await recordBlocked(pool, name, blocked);
    throw blocked;
  }

  const createLeaseLostError = () => new LeaseLostError(`another process writes ${name} now`);

  return { name, skippedPositions, loadCheckpoint, apply };
}

export interface ProjectionSink extends EventSink {
  /** Positions of events that were skipped instead of applied. */
  readonly skippedPositions: ReadonlySet<bigint>;
}

/** Rows by key; null if the key is known to have no row. */
type RowCache = LRUCache<string, { readonly row: ReadModelRow | null }>;

interface Changes {
  readonly statement: 'none' | 'write';
  readonly sql: string;
  readonly values: readonly unknown[];
  /** The rows after the changes; null for deleted rows. */
  readonly rows: ReadonlyMap<string, ReadModelRow | null>;
}

const NO_CHANGES: Changes = { statement: 'none', sql: '', values: [], rows: new Map() };

function buildLogChanges(projection: LogProjection, events: readonly ProjectedEvent[]): Changes {
  const rows = runFold(() => events.flatMap((event) => projection.toRows(event)));
  if (rows.length === 0) return NO_CHANGES;
  const columns = projection.columns.join(', ');
  const sql = `, written as (insert into ${projection.name} (${columns})
    select ${columns} from json_populate_recordset(null::${projection.name}, $5::json) where exists (select from fence))`;
  return { statement: 'write', sql, values: [JSON.stringify(rows)], rows: new Map() };
}

async function buildFoldChanges(
  projection: FoldProjection,
  events: readonly ProjectedEvent[],
  cache: RowCache,
  pool: pg.Pool,
): Promise<Changes> {
  const { name, key, columns } = projection;
  const touched = runFold(() =>
    events.flatMap((event) => {
      const id = projection.getKey(event);
      return id === undefined ? [] : [{ id, event }];
    }),
  );
  if (touched.length === 0) return NO_CHANGES;
  const before = await loadRows(projection, touched, cache, pool);
  const rows = new Map(before);
  runFold(() => {
    for (const { id, event } of touched) rows.set(id, projection.evolve(rows.get(id) ?? undefined, event));
  });
  const ids = [...rows.keys()];
  const removed = ids.filter((id) => before.get(id) !== null && rows.get(id) === null);
  const upserted = [...rows.values()].filter((row) => row !== null);
  const list = columns.join(', ');
  const update = columns.filter((column) => column !== key).map((column) => `${column} = excluded.${column}`);
  const sql = `, removed as (delete from ${name} where ${key} = any($5::text[]::${getKeyType(projection)}[]) and exists (select from fence))
    , written as (insert into ${name} (${list})
        select ${list} from json_populate_recordset(null::${name}, $6::json) where exists (select from fence)
        on conflict (${key}) do update set ${update.join(', ')})`;
  return { statement: 'write', sql, values: [removed, JSON.stringify(upserted)], rows };
}

/** Returns the rows before the events, from the cache or the table. Rows that the events create are not read. */
async function loadRows(
  projection: FoldProjection,
  touched: readonly { readonly id: string; readonly event: ProjectedEvent }[],
  cache: RowCache,
  pool: pg.Pool,
): Promise<ReadonlyMap<string, ReadModelRow | null>> {
  const rows = new Map<string, ReadModelRow | null>();
  const unknown: string[] = [];
  for (const { id, event } of touched) {
    if (rows.has(id)) continue;
    const cached = cache.get(id);
    rows.set(id, cached?.row ?? null);
    if (!cached && event.type !== projection.createdBy) unknown.push(id);
  }
  if (unknown.length > 0) for (const [id, row] of await readRows(projection, unknown, pool)) rows.set(id, row);
  return rows;
}

async function readRows(
  projection: FoldProjection,
  ids: readonly string[],
  pool: pg.Pool,
): Promise<[string, ReadModelRow][]> {
  const { name, key, columns } = projection;
  const { rows } = await pool.query<ReadModelRow & pg.QueryResultRow>({
    name: `rows-${name}`,
    text: `select ${columns.join(', ')} from ${name} where ${key} = any($1::text[]::${getKeyType(projection)}[])`,
    values: [ids],
    types: TEXT_TYPE_PARSERS,
  });
  return rows.map((row) => [row[key] as string, row]);
}

/** Ids of accounts are UUIDs; all other keys are text. */
function getKeyType({ key }: FoldProjection): string {
  return key === 'account_id' ? 'uuid' : 'text';
}
