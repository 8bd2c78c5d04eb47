/**
 * Limits of free operations, shared by all gateways. The counts are in an unlogged table, which is cheaper because it
 * has no write-ahead log; a crash of the database resets them. Callers are hashed, so a row does not reveal its caller.
 */
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { RateLimiter, type RateLimitKey, type Secrets, TooManyRequestsError } from '#application';
import { limitEntries, StoreUnavailableError } from '#kernel';

const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 60 * MINUTE_SECONDS;
const DAY_SECONDS = 24 * HOUR_SECONDS;
const EVERYBODY = 'everybody';
/** Maximum number of cached callers that have exceeded a limit. */
const MAX_CACHED_REJECTIONS = 100_000;

export const abuseLimitMigrations = [
  {
    id: 'challenge-limits-1',
    // Older builds count challenges in this table.
    sql: `create schema limits;
          create unlogged table limits.challenges (
            key    varchar(255) primary key,
            points integer not null default 0,
            expire bigint                    -- milliseconds since 1970
          );
          create index on limits.challenges (expire);`,
  },
  {
    id: 'abuse-limits-1',
    // The columns that `rate-limiter-flexible` requires.
    sql: `create unlogged table limits.counted (
            key    varchar(255) primary key,
            points integer not null default 0,
            expire bigint                    -- milliseconds since 1970
          );
          create index on limits.counted (expire);`,
  },
] as const;

/** Maximum number of operations in the window of each limit. */
export interface RateLimitSettings {
  readonly accountsPerHour: number;
  readonly invoicesPerHourOfAddress: number;
  readonly invoicesPerHourOfAccount: number;
  readonly invoicesPerHourOfKey: number;
  readonly changesPerHour: number;
  readonly invalidCredentialsPerMinute: number;
  readonly challengesPerMinute: number;
  readonly challengesPerMinuteInAll: number;
  readonly freePerMinute: number;
  readonly freePerDay: number;
  readonly freePerDayOfAddress: number;
}

interface Limit {
  readonly rate: keyof RateLimitSettings;
  readonly seconds: number;
  /** Formats the message for a caller that has exceeded the limit. */
  readonly formatMessage: (rates: RateLimitSettings) => string;
}

const formatFreeLimit = ({ freePerMinute, freePerDay }: RateLimitSettings) =>
  `Models of the free tier accept ${freePerMinute} requests per minute and ${freePerDay} per day from one account; other models have no such limit`;

const LIMITS: Readonly<Record<RateLimitKey, Limit>> = {
  'accounts of an address': {
    rate: 'accountsPerHour',
    seconds: HOUR_SECONDS,
    formatMessage: () => 'Too many accounts created from your IP address; retry later',
  },
  'invoices of an address': {
    rate: 'invoicesPerHourOfAddress',
    seconds: HOUR_SECONDS,
    formatMessage: () => 'Too many invoices created or wallets connected from your IP address; retry later',
  },
  'invoices of an account': {
    rate: 'invoicesPerHourOfAccount',
    seconds: HOUR_SECONDS,
    formatMessage: () => 'Too many invoices created for this account; retry later',
  },
  'invoices of a key': {
    rate: 'invoicesPerHourOfKey',
    seconds: HOUR_SECONDS,
    formatMessage: () => 'Too many invoices created with this API key; retry later',
  },
  'changes of an account': {
    rate: 'changesPerHour',
    seconds: HOUR_SECONDS,
    formatMessage: () => 'Too many changes to the API keys and wallets of this account; retry later',
  },
  'wrong credentials of an address': {
    rate: 'invalidCredentialsPerMinute',
    seconds: MINUTE_SECONDS,
    formatMessage: () => 'Too many invalid credentials from your IP address; retry later',
  },
  'requests without payment of an address': {
    rate: 'challengesPerMinute',
    seconds: MINUTE_SECONDS,
    formatMessage: () => 'Too many requests without payment from your IP address; retry later',
  },
  challenges: {
    rate: 'challengesPerMinuteInAll',
    seconds: MINUTE_SECONDS,
    formatMessage: () => 'Too many payments are requested at the moment; retry later',
  },
  'free requests of an account in a minute': {
    rate: 'freePerMinute',
    seconds: MINUTE_SECONDS,
    formatMessage: formatFreeLimit,
  },
  'free requests of an account in a day': { rate: 'freePerDay', seconds: DAY_SECONDS, formatMessage: formatFreeLimit },
  'free requests of an address in a day': {
    rate: 'freePerDayOfAddress',
    seconds: DAY_SECONDS,
    formatMessage: ({ freePerDayOfAddress }) =>
      `Models of the free tier accept ${freePerDayOfAddress} requests per day from one IP address; other models have no such limit`,
  },
};

export class PostgresRateLimiter extends RateLimiter {
  private readonly limiters: ReadonlyMap<RateLimitKey, RateLimiterPostgres>;
  /** Callers that have exceeded a limit, until their window ends. Their requests need no query. */
  private readonly rejected = new LRUCache<string, true>(limitEntries(MAX_CACHED_REJECTIONS));

  constructor(
    private readonly pool: pg.Pool,
    private readonly secrets: Pick<Secrets, 'hashWithOldestKey'>,
    private readonly rates: RateLimitSettings,
  ) {
    super();
    const limiters = (Object.keys(LIMITS) as RateLimitKey[]).map((key) => [key, this.createLimiter(key)] as const);
    this.limiters = new Map(limiters);
  }

  async count(key: RateLimitKey, whose = EVERYBODY): Promise<void> {
    const hashed = this.secrets.hashWithOldestKey(whose);
    const remainingMs = this.getBlockedMs(key, hashed) || (await this.consume(key, hashed));
    if (remainingMs > 0)
      throw new TooManyRequestsError(LIMITS[key].formatMessage(this.rates), Math.ceil(remainingMs / 1_000));
  }

  isExceeded(key: RateLimitKey, whose: string): boolean {
    return this.getBlockedMs(key, this.secrets.hashWithOldestKey(whose)) > 0;
  }

  async removeExpired(): Promise<void> {
    await this.pool.query('delete from limits.counted where expire < $1', [Date.now()]);
  }

  /**
   * Counts one operation.
   * @returns the milliseconds until the window ends if the limit is exceeded, else 0
   * @throws StoreUnavailableError if the operation cannot be counted
   */
  private async consume(key: RateLimitKey, hashed: string): Promise<number> {
    try {
      await this.limiters.get(key)?.consume(hashed);
      return 0;
    } catch (cause) {
      if (!(cause instanceof RateLimiterRes)) throw new StoreUnavailableError(`${key} cannot be counted`, { cause });
      const remainingMs = Math.max(1, cause.msBeforeNext);
      this.rejected.set(`${key}:${hashed}`, true, { ttl: remainingMs });
      return remainingMs;
    }
  }

  private getBlockedMs(key: RateLimitKey, hashed: string): number {
    return Math.max(0, this.rejected.getRemainingTTL(`${key}:${hashed}`));
  }

  private createLimiter(key: RateLimitKey): RateLimiterPostgres {
    const { rate, seconds } = LIMITS[key];
    const points = this.rates[rate];
    return new RateLimiterPostgres({
      storeClient: this.pool,
      storeType: 'pool',
      schemaName: 'limits',
      tableName: 'counted',
      tableCreated: true,
      keyPrefix: key,
      points,
      duration: seconds,
      clearExpiredByTimeout: false,
    });
  }
}
