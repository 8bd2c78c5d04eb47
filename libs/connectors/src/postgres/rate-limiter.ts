/**
 * Limits of what costs nothing, which all gateways share. What is counted is lost with a crash of the database, and counted
 * anew: rows are not worth its log. Whose they are cannot be read from them: the keys are hashed.
 */
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { RateLimiter, type RateLimitKey, type Secrets, TooManyRequestsError } from '#application';
import { StoreUnavailableError } from '#kernel';

const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 60 * MINUTE_SECONDS;
const DAY_SECONDS = 24 * HOUR_SECONDS;
const EVERYBODY = 'everybody';
/** Those who are remembered as over a limit. */
const MAX_CACHED_REJECTIONS = 100_000;

export const abuseLimitMigrations = [
  {
    id: 'challenge-limits-1',
    // Where processes of versions before count challenges.
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
    // As the limiter wants it.
    sql: `create unlogged table limits.counted (
            key    varchar(255) primary key,
            points integer not null default 0,
            expire bigint                    -- milliseconds since 1970
          );
          create index on limits.counted (expire);`,
  },
] as const;

/** How many there may be; each setting says of what. */
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
  /** What is said to who is over it. */
  readonly formatMessage: (rates: RateLimitSettings) => string;
}

const formatFreeLimit = ({ freePerMinute, freePerDay }: RateLimitSettings) =>
  `Free models take ${freePerMinute} requests a minute and ${freePerDay} a day of one account; models that are paid for have no such limit`;

const LIMITS: Readonly<Record<RateLimitKey, Limit>> = {
  'accounts of an address': {
    rate: 'accountsPerHour',
    seconds: HOUR_SECONDS,
    formatMessage: () => 'Too many accounts are created from your address',
  },
  'invoices of an address': {
    rate: 'invoicesPerHourOfAddress',
    seconds: HOUR_SECONDS,
    formatMessage: () => 'Too many invoices are created, or wallets connected, from your address',
  },
  'invoices of an account': {
    rate: 'invoicesPerHourOfAccount',
    seconds: HOUR_SECONDS,
    formatMessage: () => 'Too many invoices are created for this account',
  },
  'invoices of a key': {
    rate: 'invoicesPerHourOfKey',
    seconds: HOUR_SECONDS,
    formatMessage: () => 'Too many invoices are created with this API key',
  },
  'changes of an account': {
    rate: 'changesPerHour',
    seconds: HOUR_SECONDS,
    formatMessage: () => 'Keys and wallets of this account are changed too often',
  },
  'wrong credentials of an address': {
    rate: 'invalidCredentialsPerMinute',
    seconds: MINUTE_SECONDS,
    formatMessage: () => 'Too many wrong credentials come from your address',
  },
  'requests without payment of an address': {
    rate: 'challengesPerMinute',
    seconds: MINUTE_SECONDS,
    formatMessage: () => 'Too many requests without payment come from your address',
  },
  challenges: {
    rate: 'challengesPerMinuteInAll',
    seconds: MINUTE_SECONDS,
    formatMessage: () => 'Too many payments are asked for at the moment',
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
      `Free models take ${freePerDayOfAddress} requests a day from one address; models that are paid for have no such limit`,
  },
};

export class PostgresRateLimiter extends RateLimiter {
  private readonly limiters: ReadonlyMap<RateLimitKey, RateLimiterPostgres>;
  /** Who has asked for more, until the time is over: without a statement for each request. */
  private readonly rejected = new LRUCache<string, true>({ maxSize: MAX_CACHED_REJECTIONS, sizeCalculation: () => 1 });

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

  /** @returns for how long it is one too many; 0 where it is not */
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
      ...{ storeClient: this.pool, schemaName: 'limits', tableName: 'counted', tableCreated: true },
      ...{ keyPrefix: key, points, duration: seconds, clearExpiredByTimeout: false },
    });
  }
}
