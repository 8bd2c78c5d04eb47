/**
 * The query history in pages, also for accounts with millions of records. The search for a page starts at the cached
 * end of an earlier page, if there is one, and reads a limited number of records for any filter.
 */
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { limitEntries, money, type PicoUsd } from '#kernel';
import { TEXT_TYPE_PARSERS } from './projection.ts';
import type { QueryRow } from './queries.ts';
import { countQueries } from './query-counts.ts';

/** Maximum number of records that are skipped before a page, or scanned for it. Either takes some milliseconds. */
export const MAX_HISTORY_SCAN = 10_000;
/** Maximum number of records counted after a page if their number is not known. */
export const MAX_COUNTED_AFTER_PAGE = 1_000;
/** Page ends are cached for a minute, so that new records do not shift the following page. */
const PAGE_END_CACHE_OPTIONS = { ...limitEntries(20_000), ttl: 60_000 };
/**
 * How many pages before the requested one are searched for a cached end. Each process has its own cache, so with a load
 * balancer most of these pages may have been served by other gateways.
 */
const MAX_PAGES_BEFORE = 100;

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
  /** Number of matching records; if it is not exact, counted up to `MAX_COUNTED_AFTER_PAGE` after this page. */
  readonly total: number;
  /** Whether `total` is known to include all matching records. */
  readonly isTotalExact: boolean;
  /** Time of the newest record beyond the scan limit if the search ended there; else null. */
  readonly searchedBackTo: string | null;
}

/**
 * The requested page starts more than `MAX_HISTORY_SCAN` matching records after the closest cached page end, or after
 * the start of the history if there is none.
 */
export class PageOutOfRangeError extends Error {
  override readonly name = 'PageOutOfRangeError';
}

/** The last record of a page. `at` has PostgreSQL's text format with microseconds. */
interface PageEnd {
  readonly at: string;
  readonly position: string;
}

/** Where the rows of a page start. */
interface PageLocation {
  /** The record after which the search starts; undefined to start at the newest record. */
  readonly end: PageEnd | undefined;
  /** Number of matching records between `end` and the page. */
  readonly skipped: number;
  readonly pageSize: number;
  /** Maximum number of records to count after the page. */
  readonly countedAfter: number;
}

type PageRow = QueryRow & { readonly end_at: string; readonly matching: string };

/** Reads the query history, newest first. */
export class QueryHistory {
  private readonly pageEnds = new LRUCache<string, PageEnd>(PAGE_END_CACHE_OPTIONS);

  /** @param pool a separate pool, so that slow history queries do not occupy connections of other queries */
  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  /**
   * Returns a page of matching records. Pages count from 1.
   * @throws PageOutOfRangeError if the page is too far from the closest cached page end, or from the start of the
   *   history
   */
  async read(filter: HistoryFilter, page: number, pageSize: number): Promise<HistoryPage> {
    const cacheKey = JSON.stringify([filter, pageSize]);
    const before = this.findClosestPageEnd(page, cacheKey);
    const skipped = (page - 1 - before.page) * pageSize;
    const isFar = skipped > MAX_HISTORY_SCAN;
    const query = new HistoryQuery(filter, before.end);
    const exactTotal = query.requiresScan ? undefined : await countQueries(this.pool, filter);
    const countedAfter = exactTotal === undefined ? MAX_COUNTED_AFTER_PAGE : 0;
    const rows = isFar ? [] : await this.loadRows(query, { end: before.end, skipped, pageSize, countedAfter });
    const last = rows.at(-1);
    if (last && rows.length === pageSize)
      this.pageEnds.set(toPageEndKey(page, cacheKey), { at: last.end_at, position: last.position });
    const records = rows.map(toRecord);
    const previous = (page - 1) * pageSize;
    if (exactTotal !== undefined) {
      if (isFar && exactTotal > previous) throw new PageOutOfRangeError();
      // Records that were added after they were counted may be on this page.
      const total = last ? Math.max(exactTotal, previous + rows.length) : exactTotal;
      return { records, total, isTotalExact: true, searchedBackTo: null };
    }
    const matchCount = last
      ? skipped + Number(last.matching)
      : await this.countUpTo(query, Math.min(skipped, MAX_HISTORY_SCAN + 1));
    if (isFar && matchCount > MAX_HISTORY_SCAN) throw new PageOutOfRangeError();
    const isCountLimited = matchCount >= skipped + pageSize + MAX_COUNTED_AFTER_PAGE;
    const searchedBackTo = isCountLimited || !query.requiresScan ? null : await this.findFirstUnsearchedAt(query);
    const total = before.page * pageSize + matchCount;
    return { records, total, isTotalExact: !isCountLimited && searchedBackTo === null, searchedBackTo };
  }

  /** Returns the closest page before `page` whose end is cached; page 0 without an end if there is none. */
  private findClosestPageEnd(page: number, name: string): { readonly page: number; readonly end: PageEnd | undefined } {
    for (let before = page - 1; before >= Math.max(1, page - MAX_PAGES_BEFORE); before--) {
      const end = this.pageEnds.get(toPageEndKey(before, name));
      if (end) return { page: before, end };
    }
    return { page: 0, end: undefined };
  }

  /** Loads the rows of a page. `matching` is the number of matching records from the page on, as far as they are counted. */
  private async loadRows(query: HistoryQuery, location: PageLocation): Promise<readonly PageRow[]> {
    const { skipped, pageSize, countedAfter } = location;
    const { rows } = await this.pool.query<PageRow>({
      text: `with matching as materialized (
               ${query.toMatchingSql('position, at')} limit ${pageSize + countedAfter} offset ${skipped})
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

  /** Returns the time of the first record beyond the scan limit; null if there is none. */
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

/** Builds the SQL of a filter. An index covers some conditions; the others require a scan of the records. */
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

  /** Whether records must be scanned because the index does not cover all conditions. */
  get requiresScan(): boolean {
    return this.scannedConditions.length > 0;
  }

  get indexedValues(): string[] {
    return [...this.indexedConditions.map(([, value]) => value), ...(this.end ? [this.end.at, this.end.position] : [])];
  }

  get values(): string[] {
    return [...this.indexedValues, ...this.scannedConditions.map(([, value]) => value)];
  }

  /** Selects the records that match the indexed conditions, newest first. */
  toIndexedSql(columns: string): string {
    const { length } = this.indexedConditions;
    const conditions = this.indexedConditions.map(([condition], i) => `${condition} $${i + 1}`);
    if (this.end) conditions.push(`(at, position) < ($${length + 1}::timestamptz, $${length + 2}::bigint)`);
    return `select ${columns} from books.queries where ${conditions.join(' and ')} order by at desc, position desc`;
  }

  /** Selects the records that match all conditions, newest first; within the scan limit if a scan is required. */
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
