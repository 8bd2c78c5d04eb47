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

/** Maximum number of rows fetched at once. */
const PAGE_SIZE = 5_000;

type StoredDomainEvent = StoredEvent<DomainEvent>;
type ReportDifference = (difference: string) => void;

/** Compares one read model with the rows that follow from the events. */
export interface ReadModelComparison {
  readonly name: string;
  comparedCount: number;
  /** Number of events after the checkpoint of the read model. */
  unappliedCount: number;
  /** Returns a promise only if rows must be compared, so that other events cost no microtask. */
  handleEvent(event: StoredDomainEvent): Promise<void> | undefined;
  finish(): Promise<void>;
}

export function createComparison(
  projection: Projection,
  client: pg.Client,
  report: ReportDifference,
): ReadModelComparison {
  return projection.kind === 'log'
    ? new LogComparison(projection, client, report)
    : new FoldComparison(projection, client, report);
}

/** Compares a log projection row by row while the events are read, since its rows are ordered by position. */
class LogComparison implements ReadModelComparison {
  readonly name: string;
  comparedCount = 0;
  unappliedCount = 0;
  private readonly storedRows: RowCursor;

  constructor(
    private readonly projection: LogProjection,
    client: pg.Client,
    private readonly report: ReportDifference,
  ) {
    this.name = projection.name;
    const order = projection.columns.includes('line') ? 'position, line' : 'position';
    this.storedRows = new RowCursor(client, projection, order);
  }

  handleEvent(event: StoredDomainEvent): Promise<void> | undefined {
    const expected = this.projection.toRows(event);
    return expected.length > 0 ? this.compare(expected) : undefined;
  }

  async finish(): Promise<void> {
    for (let row = await this.storedRows.peekRow(); row; row = await this.storedRows.peekRow())
      this.reportUnexpectedRow(row);
    await this.storedRows.close();
  }

  private async compare(expected: readonly ReadModelRow[]): Promise<void> {
    for (const expectedRow of expected) {
      let row = await this.storedRows.peekRow();
      for (; row && isBefore(row, expectedRow); row = await this.storedRows.peekRow()) this.reportUnexpectedRow(row);
      const expectedText = formatRow(this.projection, expectedRow);
      if (!row || isBefore(expectedRow, row)) {
        this.report(`${this.name} lacks ${expectedText}`);
        continue;
      }
      const actualText = formatRow(this.projection, row);
      if (actualText !== expectedText) this.report(`${this.name} has ${actualText} instead of ${expectedText}`);
      this.comparedCount++;
      this.storedRows.advance();
    }
  }

  private reportUnexpectedRow(row: ReadModelRow): void {
    this.report(`${this.name} has ${formatRow(this.projection, row)}, which no event explains`);
    this.storedRows.advance();
  }
}

/** Compares rows of a log by their position, then by their line if an event has several rows. */
function isBefore(a: ReadModelRow, b: ReadModelRow): boolean {
  const [first, second] = [BigInt(a.position as string), BigInt(b.position as string)];
  return first === second ? Number(a.line ?? 0) < Number(b.line ?? 0) : first < second;
}

/** Folds all rows of a projection in memory, and compares them after the last event. */
class FoldComparison implements ReadModelComparison {
  readonly name: string;
  comparedCount = 0;
  unappliedCount = 0;
  private readonly expected = new Map<string, ReadModelRow>();

  constructor(
    private readonly projection: FoldProjection,
    private readonly client: pg.Client,
    private readonly report: ReportDifference,
  ) {
    this.name = projection.name;
  }

  handleEvent(event: StoredDomainEvent): undefined {
    const key = this.projection.getKey(event);
    if (key === undefined) return;
    const after = this.projection.evolve(this.expected.get(key), event);
    if (after === null) this.expected.delete(key);
    else this.expected.set(key, after);
  }

  async finish(): Promise<void> {
    const { projection, expected, report, name } = this;
    const storedRows = new RowCursor(this.client, projection, projection.key);
    for (let row = await storedRows.peekRow(); row; row = await storedRows.peekRow()) {
      const key = row[projection.key] as string;
      const expectedRow = expected.get(key);
      const actualText = formatRow(projection, row);
      if (!expectedRow) report(`${name} has ${actualText}, which no event explains`);
      else if (formatRow(projection, expectedRow) !== actualText)
        report(`${name} has ${actualText} instead of ${formatRow(projection, expectedRow)}`);
      expected.delete(key);
      this.comparedCount++;
      storedRows.advance();
    }
    for (const row of expected.values()) report(`${name} lacks ${formatRow(projection, row)}`);
    await storedRows.close();
  }
}

/** Reads the rows of a table in order, one page at a time. */
class RowCursor {
  private rows: ReadModelRow[] = [];
  private rowIndex = 0;
  private isOpen = false;
  private isExhausted = false;

  constructor(
    private readonly client: pg.Client,
    private readonly projection: Projection,
    private readonly orderBy: string,
  ) {}

  /** Returns the next row without advancing; undefined after the last row. */
  async peekRow(): Promise<ReadModelRow | undefined> {
    if (this.rowIndex >= this.rows.length && !this.isExhausted) await this.fetch();
    return this.rows[this.rowIndex];
  }

  advance(): void {
    this.rowIndex++;
  }

  async close(): Promise<void> {
    if (this.isOpen) await this.client.query(`close verify_${this.projection.name}`);
  }

  private async fetch(): Promise<void> {
    const { name, columns } = this.projection;
    if (!this.isOpen) {
      await this.client.query(
        `declare verify_${name} no scroll cursor for select ${columns.join(', ')} from ${name} order by ${this.orderBy}`,
      );
      this.isOpen = true;
    }
    const { rows } = await this.client.query({
      text: `fetch ${PAGE_SIZE} from verify_${name}`,
      types: TEXT_TYPE_PARSERS,
    });
    this.rows = rows;
    this.rowIndex = 0;
    this.isExhausted = rows.length < PAGE_SIZE;
  }
}

/** Formats a row column by column. Equal computed and stored rows result in the same text. */
function formatRow({ columns }: Projection, row: ReadModelRow): string {
  return columns.map((column) => `${column}=${formatValue(row[column])}`).join(' ');
}

function formatValue(value: unknown): string {
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? null);
}
