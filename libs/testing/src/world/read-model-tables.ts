/** Reads the tables of the read models, and computes their expected rows. */
import pg from 'pg';
import type { EventBatch } from '#kernel';
import {
  type Projection,
  projections,
  READ_MODEL_CONNECTION_OPTIONS,
  type ReadModelRow,
  TEXT_TYPE_PARSERS,
} from '#projections';
import type { HistoryEvent } from '../scenarios/history-builder.ts';
import { createMigratedDatabase } from './test-database.ts';

/** Sorted rows as text. Computed rows and read rows with the same content are equal. */
export type FormattedRows = readonly string[];
export type Tables = Readonly<Record<string, FormattedRows>>;

export class ReadModelTables {
  private constructor(
    readonly url: string,
    readonly pool: pg.Pool,
    private readonly resources: AsyncDisposableStack,
  ) {}

  static async open(): Promise<ReadModelTables> {
    const resources = new AsyncDisposableStack();
    const database = await createMigratedDatabase();
    resources.defer(() => database.drop());
    const pool = new pg.Pool({
      connectionString: database.url,
      options: READ_MODEL_CONNECTION_OPTIONS,
      max: projections.length,
    });
    resources.defer(() => pool.end());
    return new ReadModelTables(database.url, pool, resources);
  }

  close(): Promise<void> {
    return this.resources.disposeAsync();
  }

  /** Restores the state of the read models before the first event. */
  async clear(): Promise<void> {
    const tables = ['checkpoints', 'es.skipped', ...projections.map(({ name }) => name)];
    await this.pool.query(tables.map((table) => `delete from ${table}`).join(';'));
  }

  async readTable(projection: Projection): Promise<FormattedRows> {
    const { name, columns } = projection;
    const { rows } = await this.pool.query({
      text: `select ${columns.join(', ')} from ${name}`,
      types: TEXT_TYPE_PARSERS,
    });
    return rows.map((row) => formatRow(projection, row)).toSorted();
  }

  async readTables(): Promise<Tables> {
    const read = projections.map(async (projection) => [projection.name, await this.readTable(projection)] as const);
    return Object.fromEntries(await Promise.all(read));
  }

  /** Returns the stored checkpoint of a projection; undefined if there is none. */
  async readCheckpoint({ name }: Projection): Promise<bigint | undefined> {
    const { rows } = await this.pool.query('select position from checkpoints where projection = $1', [name]);
    return rows[0] && BigInt(rows[0].position);
  }
}

/** Computes the rows of a table with the projection's own function, without a database. */
export function computeTable(projection: Projection, events: readonly HistoryEvent[]): FormattedRows {
  if (projection.kind === 'log') {
    return events.flatMap((event) => projection.toRows(event).map((row) => formatRow(projection, row))).toSorted();
  }
  const rows = new Map<string, ReadModelRow>();
  for (const event of events) {
    const key = projection.getKey(event);
    if (key === undefined) continue;
    const after = projection.evolve(rows.get(key), event);
    if (after === null) rows.delete(key);
    else rows.set(key, after);
  }
  return [...rows.values()].map((row) => formatRow(projection, row)).toSorted();
}

export function computeTables(events: readonly HistoryEvent[]): Tables {
  return Object.fromEntries(projections.map((projection) => [projection.name, computeTable(projection, events)]));
}

/** Splits events into batches, before the events with these indexes (modulo the number of events). */
export function splitIntoBatches(events: readonly HistoryEvent[], boundaries: readonly number[] = []): EventBatch[] {
  const ends = [...new Set([...boundaries.map((boundary) => boundary % events.length), events.length])].toSorted(
    (a, b) => a - b,
  );
  const parts = ends.map((end, i) => events.slice(ends[i - 1] ?? 0, end)).filter(({ length }) => length > 0);
  return parts.map((events) => ({ events, position: (events.at(-1) as HistoryEvent).position }));
}

function formatRow({ columns }: Projection, row: ReadModelRow): string {
  return columns.map((column) => `${column}=${formatValue(row[column])}`).join(' ');
}

function formatValue(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? null);
}
