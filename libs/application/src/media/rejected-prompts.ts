/**
 * Limits how many prompts of a payer providers may reject per hour: a rejected prompt costs the payer nothing, but the
 * provider may invoice it. Concurrent requests are limited too: to the same number, plus one for each request that
 * succeeded in that hour.
 */
import type { Clock } from '../clock.ts';
import { toUpstreamError, UpstreamError } from '../errors.ts';

const HOUR_MS = 60 * 60_000;
const RETRY_WHEN_BUSY_SECONDS = 5;
/** Beyond this number of payers, those whose hour has ended and that have no running request are evicted. */
const EVICTION_THRESHOLD = 10_000;

/** Counts of a payer since its hour started; `running` includes older requests. */
interface HourlyCounts {
  since: number;
  rejected: number;
  delivered: number;
  running: number;
}

/** Each gateway counts separately, so the total limit is up to this limit times the number of gateways. */
export class RejectedPrompts {
  private readonly hours = new Map<string, HourlyCounts>();

  constructor(
    private readonly clock: Clock,
    private readonly perHour: number,
  ) {}

  /**
   * Calls `serve`, and counts its outcome.
   * @param payer id of the payer
   * @throws UpstreamError `rate_limited` if a limit is reached; any error that `serve` throws
   */
  async runWithinLimit<A>(payer: string, serve: () => Promise<A>): Promise<A> {
    const hour = this.getHour(payer);
    this.assertWithinLimit(hour);
    hour.running += 1;
    try {
      const result = await serve();
      hour.delivered += 1;
      return result;
    } catch (error) {
      if (toUpstreamError(error).code === 'content_policy_violation') hour.rejected += 1;
      throw error;
    } finally {
      hour.running -= 1;
    }
  }

  private assertWithinLimit({ since, rejected, delivered, running }: HourlyCounts): void {
    const { perHour } = this;
    if (rejected >= perHour) {
      const retryAfterSeconds = Math.ceil((since + HOUR_MS - this.clock.nowMs()) / 1_000);
      const message = `Providers rejected ${rejected} prompts of this account within an hour; retry later`;
      throw new UpstreamError('rate_limited', message, { retryAfterSeconds });
    }
    if (running < perHour + delivered) return;
    const message =
      'Too many concurrent requests for an account with few generated images; retry when a request has finished';
    throw new UpstreamError('rate_limited', message, { retryAfterSeconds: RETRY_WHEN_BUSY_SECONDS });
  }

  private getHour(payer: string): HourlyCounts {
    const now = this.clock.nowMs();
    if (this.hours.size > EVICTION_THRESHOLD) this.evictExpired(now);
    const hour = this.hours.get(payer) ?? { since: now, rejected: 0, delivered: 0, running: 0 };
    if (now - hour.since >= HOUR_MS) Object.assign(hour, { since: now, rejected: 0, delivered: 0 });
    this.hours.set(payer, hour);
    return hour;
  }

  private evictExpired(now: number): void {
    for (const [payer, { since, running }] of this.hours)
      if (running === 0 && now - since >= HOUR_MS) this.hours.delete(payer);
  }
}
