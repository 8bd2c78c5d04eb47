import type pg from 'pg';
import type { DomainEvent } from '#domain';
import type { StoredEvent } from '#kernel';
import {
  type FoldProjection,
  type LogProjection,
  type Projection,
  type ReadModelRow,
  TEXT_TYPE_PARSERS,
} from '#projections';

/** Rows fetched at once. */
const PAGE = 5_000;

type Fact = StoredEvent<DomainEvent>;
type Report = (difference: string) => void;

/** Compares one read model with what the facts say. */
export interface ReadModelComparison {
  readonly name: string;
  compared: number;
  /** Facts behind the read model's checkpoint. */
  unseen: number;
  /** Only waits where rows must be fetched. */
  see(fact: Fact): Promise<void> | undefined;
  finish(): Promise<void>;
}

export function createComparison(projection: Projection, client: pg.Client, report: Report): ReadModelComparison {
  return projection.kind === 'log'
    ? new LogComparison(projection, client, report)
    : new FoldComparison(projection, client, report);
}

/** A log is compared row by row: its rows come in the order of the facts. */
class LogComparison implements ReadModelComparison {
  readonly name: string;
  compared = 0;
  unseen = 0;
  private readonly kept: RowCursor;

  constructor(
    private readonly projection: LogProjection,
    client: pg.Client,
    private readonly report: Report,
  ) {
    this.name = projection.name;
    const order = projection.columns.includes('line') ? 'position, line' : 'position';
    this.kept = new RowCursor(client, projection, order);
  }

  see(fact: Fact): Promise<void> | undefined {
    const expected = this.projection.toRows(fact);
    return expected.length > 0 ? this.compare(expected) : undefined;
  }

  async finish(): Promise<void> {
    for (let row = await this.kept.current(); row; row = await this.kept.current()) this.surplus(row);
    await this.kept.close();
  }

  private async compare(expected: readonly ReadModelRow[]): Promise<void> {
    for (const each of expected) {
      let row = await this.kept.current();
      for (; row && isBefore(row, each); row = await this.kept.current()) this.surplus(row);
      const wanted = printed(this.projection, each);
      if (!row || isBefore(each, row)) {
        this.report(`${this.name} lacks ${wanted}`);
        continue;
      }
      const found = printed(this.projection, row);
      if (found !== wanted) this.report(`${this.name} has ${found} instead of ${wanted}`);
      this.compared++;
      this.kept.advance();
    }
  }

  private surplus(row: ReadModelRow): void {
    this.report(`${this.name} has ${printed(this.projection, row)}, which no fact explains`);
    this.kept.advance();
  }
}

/** Whether a row of a log comes before another: by its position, and by its line where a fact has several. */
function isBefore(a: ReadModelRow, b: ReadModelRow): boolean {
  const [first, second] = [BigInt(a.position as string), BigInt(b.position as string)];
  return first === second ? Number(a.line ?? 0) < Number(b.line ?? 0) : first < second;
}

/** A fold is compared at the end: its rows are folded in memory. */
class FoldComparison implements ReadModelComparison {
  readonly name: string;
  compared = 0;
  unseen = 0;
  private readonly expected = new Map<string, ReadModelRow>();

  constructor(
    private readonly projection: FoldProjection,
    private readonly client: pg.Client,
    private readonly report: Report,
  ) {
    this.name = projection.name;
  }

  see(fact: Fact): undefined {
    const key = this.projection.getKey(fact);
    if (key === undefined) return;
    const after = this.projection.evolve(this.expected.get(key), fact);
    if (after === null) this.expected.delete(key);
    else this.expected.set(key, after);
  }

  async finish(): Promise<void> {
    const { projection, expected, report, name } = this;
    const kept = new RowCursor(this.client, projection, projection.key);
    for (let row = await kept.current(); row; row = await kept.current()) {
      const key = row[projection.key] as string;
      const wanted = expected.get(key);
      const found = printed(projection, row);
      if (!wanted) report(`${name} has ${found}, which no fact explains`);
      else if (printed(projection, wanted) !== found)
        report(`${name} has ${found} instead of ${printed(projection, wanted)}`);
      expected.delete(key);
      this.compared++;
      kept.advance();
    }
    for (const row of expected.values()) report(`${name} lacks ${printed(projection, row)}`);
    await kept.close();
  }
}

/** The rows of a table in order, a page at a time. */
class RowCursor {
  private rows: ReadModelRow[] = [];
  private at = 0;
  private opened = false;
  private ended = false;

  constructor(
    private readonly client: pg.Client,
    private readonly projection: Projection,
    private readonly order: string,
  ) {}

  /** The next row; undefined after the last. */
  async current(): Promise<ReadModelRow | undefined> {
    if (this.at >= this.rows.length && !this.ended) await this.fetch();
    return this.rows[this.at];
  }

  advance(): void {
    this.at++;
  }

  async close(): Promise<void> {
    if (this.opened) await this.client.query(`close verify_${this.projection.name}`);
  }

  private async fetch(): Promise<void> {
    const { name, columns } = this.projection;
    if (!this.opened) {
      await this.client.query(
        `declare verify_${name} no scroll cursor for select ${columns.join(', ')} from ${name} order by ${this.order}`,
      );
      this.opened = true;
    }
    const { rows } = await this.client.query({ text: `fetch ${PAGE} from verify_${name}`, types: TEXT_TYPE_PARSERS });
    this.rows = rows;
    this.at = 0;
    this.ended = rows.length < PAGE;
  }
}

/** A row as text, column by column, the same for rows that were computed and rows that were read. */
function printed({ columns }: Projection, row: ReadModelRow): string {
  return columns.map((column) => `${column}=${value(row[column])}`).join(' ');
}

function value(each: unknown): string {
  return typeof each === 'object' && each !== null ? JSON.stringify(each) : String(each ?? null);
}
