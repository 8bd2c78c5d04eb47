/** The tables of the read models, and what is in them. */
import pg from 'pg';
import { eventStoreMigrations } from '#eventstore';
import { migrate } from '#foundation';
import type { EventBatch } from '#kernel';
import {
  type Projection,
  projectionMigrations,
  projections,
  READ_MODEL_CONNECTION_OPTIONS,
  type ReadModelRow,
  TEXT_TYPE_PARSERS,
} from '#projections';
import type { HistoryEvent } from '../scenarios/histories.ts';
import { createTestDatabase } from './test-database.ts';

/** Rows as text, sorted, so that those that were computed and those that were read are equal when they say the same. */
export type Printed = readonly string[];
export type Tables = Readonly<Record<string, Printed>>;

export class Books {
  private constructor(
    readonly url: string,
    readonly pool: pg.Pool,
    private readonly opened: AsyncDisposableStack,
  ) {}

  static async open(): Promise<Books> {
    const opened = new AsyncDisposableStack();
    const database = await createTestDatabase();
    opened.defer(() => database.drop());
    await migrate(database.url, [...eventStoreMigrations, ...projectionMigrations]);
    const pool = new pg.Pool({
      connectionString: database.url,
      options: READ_MODEL_CONNECTION_OPTIONS,
      max: projections.length,
    });
    opened.defer(() => pool.end());
    return new Books(database.url, pool, opened);
  }

  close(): Promise<void> {
    return this.opened.disposeAsync();
  }

  /** As before the first fact. */
  async clear(): Promise<void> {
    const tables = ['checkpoints', 'es.skipped', ...projections.map(({ name }) => name)];
    await this.pool.query(tables.map((table) => `delete from ${table}`).join(';'));
  }

  async table(projection: Projection): Promise<Printed> {
    const { name, columns } = projection;
    const { rows } = await this.pool.query({
      text: `select ${columns.join(', ')} from ${name}`,
      types: TEXT_TYPE_PARSERS,
    });
    return rows.map((row) => printed(projection, row)).toSorted();
  }

  async tables(): Promise<Tables> {
    const read = projections.map(async (each) => [each.name, await this.table(each)] as const);
    return Object.fromEntries(await Promise.all(read));
  }

  /** How far a projection has come, by the table; undefined when it was never asked. */
  async checkpoint({ name }: Projection): Promise<bigint | undefined> {
    const { rows } = await this.pool.query('select position from checkpoints where projection = $1', [name]);
    return rows[0] && BigInt(rows[0].position);
  }
}

/** What a table must have in it, by the projection's own function and without a database. */
export function tableOf(projection: Projection, facts: readonly HistoryEvent[]): Printed {
  if (projection.kind === 'log') {
    return facts.flatMap((fact) => projection.toRows(fact).map((row) => printed(projection, row))).toSorted();
  }
  const rows = new Map<string, ReadModelRow>();
  for (const fact of facts) {
    const key = projection.getKey(fact);
    if (key === undefined) continue;
    const after = projection.evolve(rows.get(key), fact);
    if (after === null) rows.delete(key);
    else rows.set(key, after);
  }
  return [...rows.values()].map((row) => printed(projection, row)).toSorted();
}

export function tablesOf(facts: readonly HistoryEvent[]): Tables {
  return Object.fromEntries(projections.map((each) => [each.name, tableOf(each, facts)]));
}

/** Cuts facts into batches behind the facts with these numbers. */
export function batchesOf(facts: readonly HistoryEvent[], cuts: readonly number[] = []): EventBatch[] {
  const ends = [...new Set([...cuts.map((cut) => cut % facts.length), facts.length])].toSorted((a, b) => a - b);
  const parts = ends.map((end, i) => facts.slice(ends[i - 1] ?? 0, end)).filter(({ length }) => length > 0);
  return parts.map((events) => ({ events, position: (events.at(-1) as HistoryEvent).position }));
}

function printed({ columns }: Projection, row: ReadModelRow): string {
  return columns.map((column) => `${column}=${textOf(row[column])}`).join(' ');
}

function textOf(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? null);
}
