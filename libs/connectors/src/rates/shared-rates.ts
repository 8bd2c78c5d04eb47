/**
 * The quotes and consensus rates that all processes share, in PostgreSQL. One process at a time fetches the quote of a
 * source, and all processes measure ages by the clock of the database.
 */
import type pg from 'pg';
import type { ConsensusRate } from '#domain';
import type { PicoUsd } from '#kernel';
import type { TimedPrice } from './rate-sources.ts';

/** A claim ends after this time, so that a process that dies during a fetch does not prevent the next one. */
const CLAIM_MS = 4_000;
/** Minimum delay until a failed source is called again. It doubles with each failure, up to `MAX_RETRY_MS`. */
const MIN_RETRY_MS = 3_000;
/** Maximum time between two fetches. A later time of the next fetch means that the clock was set back. */
export const MAX_RETRY_MS = 60_000;

export const rateMigrations = [
  {
    id: 'exchange-rates-1',
    // All times are in milliseconds since 1970, by the clock of the database.
    sql: `create table public.rate_quotes (
            source        text not null,              -- name and address
            coin          text not null,
            price         numeric,                    -- pico-USD per coin
            quoted_at     bigint,                     -- the time of the price
            fetched_at    bigint,                     -- when the fetch of the price started
            failures      integer not null default 0, -- since the last price
            next_fetch_at bigint not null default 0,
            claim         uuid,                       -- the fetch in progress
            claimed_at    bigint,
            primary key (source, coin)
          ) with (fillfactor = 50);
          create table public.agreed_rates (
            coin    text primary key,
            version bigint not null,                  -- counts the changes of the history
            history jsonb not null                    -- prices in pico-USD as text with their times, oldest first
          )`,
  },
] as const;

/** The state of one coin at one source. */
export interface SourceState {
  readonly price?: PicoUsd;
  /** The time of the price. */
  readonly quotedAt: number;
  /** When the fetch of the price started. */
  readonly fetchedAt: number;
  /** Number of failed fetches since the last price. */
  readonly failures: number;
  readonly nextFetchAt: number;
  /** Whether the source can be called again, or is being called. */
  readonly isDue: boolean;
}

/** The state of one coin, at one time of the database. Times are in milliseconds since 1970. */
export interface CoinState {
  readonly now: number;
  /** By key of a source. */
  readonly sources: ReadonlyMap<string, SourceState>;
  /** Consensus rates, oldest first. */
  readonly history: readonly ConsensusRate[];
  /** The version of the history; 0 if there is none. */
  readonly version: number;
}

/** The right to fetch the quote of a coin from a source. */
export interface FetchClaim {
  readonly id: string;
  readonly source: string;
  readonly coin: string;
  readonly claimedAt: number;
}

interface CoinRow {
  readonly now: string;
  readonly sources: readonly SourceRow[];
  readonly version: string | null;
  readonly history: readonly { readonly price: string; readonly at: number }[] | null;
}

interface SourceRow {
  readonly source: string;
  readonly price: string | null;
  readonly quoted_at: number | null;
  readonly fetched_at: number | null;
  readonly failures: number;
  readonly next_fetch_at: number;
  readonly is_due: boolean;
}

/** The parameter is the time of a test, or null. */
const nowSql = (parameter: string) =>
  `coalesce(${parameter}::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint)`;

const dueSql = (row: string, now: string) =>
  `${row}.next_fetch_at <= ${now} or ${row}.next_fetch_at > ${now} + ${MAX_RETRY_MS}`;

/** Methods reject with StoreUnavailableError if the pool does while the database is unavailable. */
export class SharedRates {
  /** @param readTestTime returns the time to use instead of that of the database, in milliseconds since 1970 */
  constructor(
    private readonly pool: pg.Pool,
    private readonly readTestTime: () => number | null = () => null,
  ) {}

  /** Returns the state of a coin at sources, with one query. */
  async read(coin: string, sources: readonly string[]): Promise<CoinState> {
    const { rows } = await this.pool.query<CoinRow>({
      name: 'read-rates',
      text: `select t.now, s.sources, r.version, r.history
               from (select ${nowSql('$3')} as now) t
               left join public.agreed_rates r on r.coin = $1
               cross join lateral (
                 select coalesce(jsonb_agg(jsonb_build_object(
                          'source', q.source, 'price', q.price::text, 'quoted_at', q.quoted_at,
                          'fetched_at', q.fetched_at, 'failures', q.failures, 'next_fetch_at', q.next_fetch_at,
                          'is_due', ${dueSql('q', 't.now')})), '[]') as sources
                   from public.rate_quotes q where q.coin = $1 and q.source = any($2)) s`,
      values: [coin, sources, this.readTestTime()],
    });
    const { now, sources: stored, version, history } = rows[0] as CoinRow;
    return {
      now: Number(now),
      sources: new Map(stored.map((row) => [row.source, toSourceState(row)])),
      history: (history ?? []).map(({ price, at }) => ({ price: BigInt(price) as PicoUsd, at })),
      version: Number(version ?? 0),
    };
  }

  /** Claims the fetches that are due, except those that others have claimed. Concurrent calls get different fetches. */
  async claim(coin: string, sources: readonly string[]): Promise<readonly FetchClaim[]> {
    const { rows } = await this.pool.query<{ claim: string; source: string; claimed_at: string }>({
      name: 'claim-rates',
      // Rows in the order of their keys, because concurrent claims would otherwise wait for each other.
      text: `insert into public.rate_quotes as q (source, coin, claim, claimed_at)
             select source, $1, gen_random_uuid(), ${nowSql('$3')} from unnest($2::text[]) source order by source
             on conflict (source, coin) do update set claim = excluded.claim, claimed_at = excluded.claimed_at
               where (${dueSql('q', 'excluded.claimed_at')})
                 and (q.claim is null or excluded.claimed_at - q.claimed_at not between 0 and ${CLAIM_MS - 1})
             returning claim, source, claimed_at`,
      values: [coin, sources, this.readTestTime()],
    });
    return rows.map((row) => ({ id: row.claim, source: row.source, coin, claimedAt: Number(row.claimed_at) }));
  }

  /** Stores the price that was fetched, unless another process has taken over the claim. */
  async complete(claim: FetchClaim, { price, at }: TimedPrice, intervalMs: number): Promise<void> {
    await this.pool.query({
      name: 'complete-rates',
      text: `update public.rate_quotes
                set price = $4, quoted_at = $5, fetched_at = claimed_at, failures = 0,
                    next_fetch_at = claimed_at + $6::bigint, claim = null
              where source = $1 and coin = $2 and claim = $3`,
      values: [claim.source, claim.coin, claim.id, price.toString(), at, intervalMs],
    });
  }

  /** Stores that the fetch failed, unless another process has taken over the claim. The last price stays. */
  async fail(claim: FetchClaim): Promise<void> {
    await this.pool.query({
      name: 'fail-rates',
      text: `update public.rate_quotes
                set failures = failures + 1, claim = null,
                    next_fetch_at = claimed_at + least(${MIN_RETRY_MS} * 2 ^ least(failures, 10), ${MAX_RETRY_MS})::bigint
              where source = $1 and coin = $2 and claim = $3`,
      values: [claim.source, claim.coin, claim.id],
    });
  }

  /**
   * Replaces the history of a coin.
   * @returns false without an effect if another process has changed it since `version`
   */
  async replaceHistory(coin: string, version: number, history: readonly ConsensusRate[]): Promise<boolean> {
    const json = JSON.stringify(history.map(({ price, at }) => ({ price: price.toString(), at })));
    const { rowCount } = await this.pool.query({
      name: 'replace-rate-history',
      text: `insert into public.agreed_rates as r (coin, version, history) values ($1, 1, $3)
             on conflict (coin) do update set version = r.version + 1, history = excluded.history
               where r.version = $2`,
      values: [coin, version, json],
    });
    return rowCount === 1;
  }
}

function toSourceState({ price, ...row }: SourceRow): SourceState {
  return {
    ...(price === null ? {} : { price: BigInt(price) as PicoUsd }),
    quotedAt: row.quoted_at ?? 0,
    fetchedAt: row.fetched_at ?? 0,
    failures: row.failures,
    nextFetchAt: row.next_fetch_at,
    isDue: row.is_due,
  };
}
