/**
 * The query history in pages, also of accounts with millions of records. A page begins where the one before it ended, if
 * that is remembered, and looks at a bounded number of records, whatever is asked for.
 */
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { money, type PicoUsd } from '#kernel';
import { TEXT_TYPE_PARSERS } from './projection.ts';
import type { QueryRow } from './queries.ts';

/** Records that are looked at for one page at most: some milliseconds. */
export const MAX_HISTORY_SCAN = 10_000;
/** Records behind a page that are counted. */
export const MAX_COUNTED_AFTER_PAGE = 1_000;
/** Ends of pages that are remembered, and how long: what has come meanwhile does not move the page behind. */
const PAGE_END_CACHE_OPTIONS = { max: 20_000, ttl: 60_000 };
/** So many pages before the wanted one an end is looked for. */
const MAX_PAGES_BEFORE = 20;

export interface HistoryFilter {
  readonly accountId: string;
  readonly keyId?: string;
  readonly from?: string;
  readonly to?: string;
  readonly model?: string;
  readonly source?: string;
  readonly type?: string;
}

export interface HistoryRecord {
  readonly at: string;
  readonly keyId: string | null;
  readonly model: string;
  readonly inputCount: number;
  readonly outputCount: number;
  readonly price: PicoUsd;
  readonly type: string;
  readonly source: string;
  readonly online: boolean;
  readonly free: boolean;
  readonly estimated: boolean;
  readonly errorCode: string | null;
  readonly requestId: string;
}

export interface HistoryPage {
  readonly records: readonly HistoryRecord[];
  /** Records on all pages, as far as they were counted: up to `MAX_COUNTED_AFTER_PAGE` behind the page. */
  readonly total: number;
  /** Whether there are no more. */
  readonly isTotalExact: boolean;
  /** When the first record was made that was not looked at, where older ones might match, too. */
  readonly searchedBackTo: string | null;
}

/** A page that lies more than `MAX_HISTORY_SCAN` records behind any that was shown lately. */
export class PageOutOfRangeError extends Error {
  override readonly name = 'PageOutOfRangeError';
}

/** The last record of a page; its time as PostgreSQL prints it. */
interface PageEnd {
  readonly at: string;
  readonly position: string;
}

/** Where the rows of a page are looked for. */
interface PageLocation {
  /** Behind which record; undefined for the newest. */
  readonly end: PageEnd | undefined;
  /** Matching records in between. */
  readonly skipped: number;
  readonly pageSize: number;
}

type PageRow = QueryRow & { readonly end_at: string; readonly matching: string };

/** Reads the query history, newest first. */
export class QueryHistory {
  private readonly pageEnds = new LRUCache<string, PageEnd>(PAGE_END_CACHE_OPTIONS);

  /** @param pool of its own, so that nobody else waits for a connection */
  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  /**
   * A page of the records. Pages count from 1.
   * @throws PageOutOfRangeError
   */
  async read(filter: HistoryFilter, page: number, pageSize: number): Promise<HistoryPage> {
    const cacheKey = JSON.stringify([filter, pageSize]);
    const before = this.findClosestPageEnd(page, cacheKey);
    const location = { end: before.end, skipped: (page - 1 - before.page) * pageSize, pageSize };
    const isFar = location.skipped > MAX_HISTORY_SCAN;
    const query = new HistoryQuery(filter, location.end);
    const rows = isFar ? [] : await this.loadRows(query, location);
    const last = rows.at(-1);
    if (last && rows.length === pageSize)
      this.pageEnds.set(toPageEndKey(page, cacheKey), { at: last.end_at, position: last.position });
    const matchCount = last
      ? location.skipped + Number(last.matching)
      : await this.countUpTo(query, Math.min(location.skipped, MAX_HISTORY_SCAN + 1));
    if (isFar && matchCount > MAX_HISTORY_SCAN) throw new PageOutOfRangeError();
    const isCountLimited = matchCount >= location.skipped + pageSize + MAX_COUNTED_AFTER_PAGE;
    const searchedBackTo = isCountLimited || !query.requiresScan ? null : await this.findFirstUnsearchedAt(query);
    return {
      records: rows.map(toRecord),
      total: before.page * pageSize + matchCount,
      isTotalExact: !isCountLimited && searchedBackTo === null,
      searchedBackTo,
    };
  }

  /** The nearest page before this one whose end is remembered. */
  private findClosestPageEnd(page: number, name: string): { readonly page: number; readonly end: PageEnd | undefined } {
    for (let before = page - 1; before >= Math.max(1, page - MAX_PAGES_BEFORE); before--) {
      const end = this.pageEnds.get(toPageEndKey(before, name));
      if (end) return { page: before, end };
    }
    return { page: 0, end: undefined };
  }

  /** The rows of a page, each with how many records match from the page on, as far as they are counted. */
  private async loadRows(query: HistoryQuery, { skipped, pageSize }: PageLocation): Promise<readonly PageRow[]> {
    const { rows } = await this.pool.query<PageRow>({
      text: `with matching as materialized (
               ${query.toMatchingSql('position, at')} limit ${pageSize + MAX_COUNTED_AFTER_PAGE} offset ${skipped})
             select row.*, row.at::text as end_at, (select count(*) from matching) as matching
               from (select position from matching order by at desc, position desc limit ${pageSize}) as page
               join books.queries as row using (position)
              order by row.at desc, row.position desc`,
      values: query.values,
      types: TEXT_TYPE_PARSERS,
    });
    return rows;
  }

  private async countUpTo(query: HistoryQuery, max: number): Promise<number> {
    if (max === 0) return 0;
    const text = `select count(*) from (${query.toMatchingSql('position')} limit ${max}) as skipped`;
    const { rows } = await this.pool.query<{ count: string }>(text, [...query.values]);
    return Number(rows[0]?.count);
  }

  /** When the first record was made that is out of reach; null where there is none. */
  private async findFirstUnsearchedAt(query: HistoryQuery): Promise<string | null> {
    const text = `${query.toIndexedSql('at')} limit 1 offset ${MAX_HISTORY_SCAN}`;
    const { rows } = await this.pool.query<{ at: string }>({
      text,
      values: query.indexedValues,
      types: TEXT_TYPE_PARSERS,
    });
    return rows[0]?.at ?? null;
  }
}

type Condition = readonly [condition: string, value: string];

/** The records that are asked for, behind an end. Some conditions an index finds, for others records are looked at. */
class HistoryQuery {
  private readonly indexedConditions: readonly Condition[];
  private readonly scannedConditions: readonly Condition[];

  constructor(
    { accountId, keyId, from, to, model, source, type }: HistoryFilter,
    private readonly end: PageEnd | undefined,
  ) {
    this.indexedConditions = toConditions([
      ['account_id =', accountId],
      ['key_id =', keyId],
      ['at >=', from],
      ['at <=', to],
    ]);
    this.scannedConditions = toConditions([
      ['model =', model],
      ['query_source =', source],
      ['query_type =', type],
    ]);
  }

  /** Whether records are looked at that do not match. */
  get requiresScan(): boolean {
    return this.scannedConditions.length > 0;
  }

  get indexedValues(): string[] {
    return [...this.indexedConditions.map(([, value]) => value), ...(this.end ? [this.end.at, this.end.position] : [])];
  }

  get values(): string[] {
    return [...this.indexedValues, ...this.scannedConditions.map(([, value]) => value)];
  }

  /** What an index finds, newest first. */
  toIndexedSql(columns: string): string {
    const { length } = this.indexedConditions;
    const conditions = this.indexedConditions.map(([condition], i) => `${condition} $${i + 1}`);
    if (this.end) conditions.push(`(at, position) < ($${length + 1}::timestamptz, $${length + 2}::bigint)`);
    return `select ${columns} from books.queries where ${conditions.join(' and ')} order by at desc, position desc`;
  }

  /** What matches, newest first, among the records within reach. */
  toMatchingSql(columns: string): string {
    if (!this.requiresScan) return this.toIndexedSql(columns);
    const { length } = this.indexedValues;
    const conditions = this.scannedConditions.map(([condition], i) => `${condition} $${length + i + 1}`);
    const candidatesSql = `${this.toIndexedSql('position, at, model, query_source, query_type')} limit ${MAX_HISTORY_SCAN}`;
    return `select ${columns} from (${candidatesSql}) as within where ${conditions.join(' and ')} order by at desc, position desc`;
  }
}

function toConditions(conditions: readonly (readonly [string, string | undefined])[]): readonly Condition[] {
  return conditions.filter((condition): condition is Condition => condition[1] !== undefined);
}

function toPageEndKey(page: number, name: string): string {
  return `${page} ${name}`;
}

function toRecord(row: QueryRow): HistoryRecord {
  return {
    at: row.at,
    keyId: row.key_id,
    model: row.model,
    inputCount: Number(row.input_count),
    outputCount: Number(row.output_count),
    price: money.parseJsonAmount(row.price),
    type: row.query_type,
    source: row.query_source,
    online: row.is_online,
    free: row.is_free,
    estimated: row.is_estimated,
    errorCode: row.error_code,
    requestId: row.request_id,
  };
}
