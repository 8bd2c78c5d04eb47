import type pg from 'pg';
import {
  type ChargeItem,
  getQuantity,
  getStreamId,
  type HoldSettled,
  type Query,
  type QueryType,
  type RequestRefused,
  type Unit,
} from '#domain';
import { money, type PicoUsd } from '#kernel';
import { type LogProjection, type ProjectedEvent } from './projection.ts';

export type QueryRow = {
  readonly position: string;
  readonly at: string;
  readonly account_id: string;
  readonly key_id: string | null;
  readonly model: string;
  readonly input_count: number;
  readonly output_count: number;
  readonly price: string;
  readonly query_type: string;
  readonly query_source: string;
  readonly is_online: boolean;
  readonly is_free: boolean;
  readonly is_estimated: boolean;
  readonly error_code: string | null;
  readonly request_id: string;
};

/**
 * The query history: one row for each ended hold, and for each recorded rejection for lack of money. A reversed charge
 * has a second row with the negative price, so that the prices add up to what was paid.
 */
export const queries: LogProjection<QueryRow> = {
  kind: 'log',
  name: 'queries',
  version: 1,
  columns: [
    'position',
    'at',
    'account_id',
    'key_id',
    'model',
    'input_count',
    'output_count',
    'price',
    'query_type',
    'query_source',
    'is_online',
    'is_free',
    'is_estimated',
    'error_code',
    'request_id',
  ],
  migrations: [
    {
      id: 'queries-1',
      sql: `create table books.queries (
              position     bigint primary key,
              at           timestamptz not null,
              account_id   uuid not null,
              key_id       text,
              model        text not null,
              input_count  bigint not null,
              output_count bigint not null,
              price        numeric(38, 0) not null,
              query_type   text not null,
              query_source text not null,
              is_online    boolean not null,
              is_free      boolean not null,
              is_estimated boolean not null,
              error_code   text,
              request_id   text not null
            );
            create index on books.queries (account_id, position);`,
    },
    {
      // Ordered by request time, so that the indexes also serve time ranges. The index on keys costs 5 µs per row.
      id: 'queries-2',
      sql: `create index queries_by_account on books.queries (account_id, at, position);
            create index queries_by_key on books.queries (key_id, at, position);`,
    },
    // Separate, because it waits for readers: if it fails, the indexes above are not created again.
    { id: 'queries-3', sql: 'drop index if exists books.queries_account_id_position_idx' },
  ],
  toRows(event) {
    switch (event.type) {
      case 'HoldSettled':
        return [{ ...toRequestColumns(event, event.data), ...toUsageColumns(event.data), price: event.data.charged }];
      case 'HoldReleased':
        return [{ ...toRequestColumns(event, event.data), ...NO_USAGE_COLUMNS, error_code: event.data.errorCode }];
      case 'HoldExpired':
        return [{ ...toRequestColumns(event, event.data), ...NO_USAGE_COLUMNS, error_code: 'expired' }];
      case 'ChargeReversed': {
        const price = `-${event.data.charged}`;
        return [{ ...toRequestColumns(event, event.data), ...NO_USAGE_COLUMNS, price, error_code: 'charge_reversed' }];
      }
      case 'RequestRefused':
        return [toRefusedRow(event, event.data)];
      default:
        return [];
    }
  },
};

interface HeldRequest {
  readonly holdId: string;
  readonly keyId: string | null;
  readonly heldAt: string;
  readonly query: Query;
}

function toRequestColumns(event: ProjectedEvent, { holdId, keyId, heldAt, query }: HeldRequest) {
  return {
    position: event.position.toString(),
    at: heldAt,
    account_id: getStreamId(event),
    key_id: keyId,
    model: query.model,
    query_type: query.type,
    query_source: query.source,
    is_online: query.online,
    is_free: query.free,
    request_id: holdId,
  };
}

function toRefusedRow(event: ProjectedEvent, data: RequestRefused['data']): QueryRow {
  const { requestId: holdId, at: heldAt, errorCode } = data;
  return {
    ...toRequestColumns(event, { ...data, holdId, heldAt }),
    ...NO_USAGE_COLUMNS,
    account_id: data.accountId,
    error_code: errorCode,
  };
}

/** `is_online` may be known only after the request, because the model decides whether to search the web. */
function toUsageColumns({ query, charge }: HoldSettled['data']) {
  const { items, errorCode } = charge;
  const paid = items.filter(({ absorbed }) => absorbed === undefined);
  const count = (unit: Unit) => paid.reduce((sum, { usage }) => sum + getQuantity(unit, usage), 0);
  return {
    is_online: query.online || count('search') > 0,
    ...toCountColumns(query, count, paid),
    is_estimated: paid.some(({ estimated }) => estimated),
    error_code: errorCode ?? null,
  };
}

export const COUNT_UNITS = ['tokens', 'images', 'seconds', 'characters', 'lookups'] as const;
export type CountUnit = (typeof COUNT_UNITS)[number];

const TOKEN_UNITS = { input: 'tokens', output: 'tokens' } as const;

/** What `toCountColumns` counts, by the type of the query. Null if nothing is counted, so the count is always 0. */
const UNITS_BY_TYPE: Readonly<
  Record<QueryType, { readonly input: CountUnit | null; readonly output: CountUnit | null }>
> = {
  chat_completion: TOKEN_UNITS,
  completion: TOKEN_UNITS,
  response: TOKEN_UNITS,
  message: TOKEN_UNITS,
  embedding: { input: 'tokens', output: null },
  image_generation: { input: 'tokens', output: 'images' },
  image_edit: { input: 'tokens', output: 'images' },
  video_generation: { input: null, output: 'seconds' },
  speech_to_text: { input: 'seconds', output: null },
  text_to_speech: { input: 'characters', output: null },
  data_enrichment: { input: null, output: 'lookups' },
};

/** Returns the units of the counts in a record of the history. */
export function getCountUnits(type: string) {
  return UNITS_BY_TYPE[type as QueryType] ?? TOKEN_UNITS;
}

/** Counts in the units of `UNITS_BY_TYPE`. Images have input tokens only if their provider bills tokens. */
function toCountColumns(query: Query, count: (unit: Unit) => number, items: readonly ChargeItem[]) {
  switch (query.type) {
    case 'image_generation':
    case 'image_edit':
      return { input_count: count('input'), output_count: count('image') };
    case 'video_generation': {
      const clips = items.reduce((sum, { usage, terms }) => sum + (usage.clip ?? 0) * Number(terms?.duration ?? 0), 0);
      return { input_count: 0, output_count: count('videoSecond') + clips };
    }
    case 'speech_to_text':
      return { input_count: Math.ceil(count('audioMillisecond') / 1_000), output_count: 0 };
    case 'data_enrichment':
      return { input_count: 0, output_count: count('lookup') };
    case 'text_to_speech':
      return { input_count: count('character'), output_count: 0 };
    default:
      return { input_count: count('input'), output_count: count('output') };
  }
}

const NO_USAGE_COLUMNS = { input_count: 0, output_count: 0, is_estimated: false, price: '0' };

/** How many of the newest records of an account are scanned. */
const REFUSED_SAMPLE = 2_000;

/** Counts the video prompts of an account that providers have rejected since `since`, among its newest records. */
export async function countRefusedVideos(pool: pg.Pool, accountId: string, since: string): Promise<number> {
  const { rows } = await pool.query<{ refused: number }>({
    name: 'refused-videos',
    text: `select count(*)::int as refused
             from (select query_type, error_code from books.queries
                    where account_id = $1 and at >= $2 order by at desc limit ${REFUSED_SAMPLE}) as newest
            where query_type = 'video_generation' and error_code = 'content_policy_violation'`,
    values: [accountId, since],
  });
  return rows[0]?.refused ?? 0;
}

/** How many of the newest records of all accounts determine the median prices. */
const MEDIAN_SAMPLE = 20_000;

export interface MedianPrice {
  readonly price: PicoUsd;
  readonly sampleSize: number;
}

/** Returns the median price of a query by model, from the charged ones among the newest queries. */
export async function readMedianPrices(pool: pg.Pool): Promise<ReadonlyMap<string, MedianPrice>> {
  const { rows } = await pool.query<{ model: string; price: string; sample: string }>(
    `select model, percentile_disc(0.5) within group (order by price) as price, count(*) as sample
       from (select model, price from books.queries order by position desc limit ${MEDIAN_SAMPLE}) as newest
      where price > 0 group by model`,
  );
  return new Map(
    rows.map(({ model, price, sample }) => [
      model,
      { price: money.parseJsonAmount(price), sampleSize: Number(sample) },
    ]),
  );
}
