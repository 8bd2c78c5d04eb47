/**
 * Limits of payment challenges that all gateways share. What is counted is lost with a crash of the database, and counted
 * anew: rows are not worth its log.
 */
import type pg from 'pg';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { ChallengeLimits, TooManyChallenges } from '#application';
import { StoreUnavailable } from '#kernel';

const MINUTE_SECONDS = 60;
const ALL = 'all';

export const challengeLimitMigrations = [
  {
    id: 'challenge-limits-1',
    // As the limiter wants it.
    sql: `create schema limits;
          create unlogged table limits.challenges (
            key    varchar(255) primary key,
            points integer not null default 0,
            expire bigint                    -- milliseconds since 1970
          );
          create index on limits.challenges (expire);`,
  },
] as const;

/** By the minute. */
export interface ChallengeRates {
  /** Requests of one address without a valid proof. */
  readonly challengesPerMinute: number;
  /** Challenges of all addresses together. */
  readonly challengesPerMinuteInAll: number;
}

export class PostgresChallengeLimits extends ChallengeLimits {
  private readonly asked: RateLimiterPostgres;
  private readonly issued: RateLimiterPostgres;

  constructor(
    private readonly pool: pg.Pool,
    { challengesPerMinute, challengesPerMinuteInAll }: ChallengeRates,
  ) {
    super();
    const limiter = (keyPrefix: string, points: number) =>
      new RateLimiterPostgres({
        ...{ storeClient: pool, schemaName: 'limits', tableName: 'challenges', tableCreated: true },
        ...{ keyPrefix, points, duration: MINUTE_SECONDS, clearExpiredByTimeout: false },
        // An address that has asked for more is refused until the minute is over, without a statement for each request.
        inMemoryBlockOnConsumed: points + 1,
      });
    this.asked = limiter('asked', challengesPerMinute);
    this.issued = limiter('issued', challengesPerMinuteInAll);
  }

  async ask(network: string): Promise<void> {
    await count(this.asked, network, 'Too many requests without payment come from your address');
  }

  async issue(): Promise<void> {
    await count(this.issued, ALL, 'Too many payments are asked for at the moment');
  }

  async removeExpired(): Promise<void> {
    await this.pool.query('delete from limits.challenges where expire < $1', [Date.now()]);
  }
}

async function count(limiter: RateLimiterPostgres, key: string, message: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (cause) {
    if (cause instanceof RateLimiterRes) throw new TooManyChallenges(message, Math.ceil(cause.msBeforeNext / 1_000));
    throw new StoreUnavailable('requests for payments cannot be counted', { cause });
  }
}
