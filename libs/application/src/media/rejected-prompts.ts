/**
 * Prompts that vendors refuse cost their callers nothing, though vendors may invoice them: so an account may have only so
 * many of them in an hour, and only so many requests at once before any of its prompts was good.
 */
import type { Clock } from '../clock.ts';
import { toUpstreamError, UpstreamError } from '../errors.ts';

const HOUR_MS = 60 * 60_000;
const RETRY_WHEN_BUSY_SECONDS = 5;
/** Accounts that are counted before those are forgotten whose hour has passed. */
const EVICTION_THRESHOLD = 10_000;

/** What an account did since an hour of its began. */
interface HourlyCounts {
  since: number;
  rejected: number;
  delivered: number;
  running: number;
}

/** Each gateway counts for itself: a limit that is a few times as high with a few gateways still is one. */
export class RejectedPrompts {
  private readonly hours = new Map<string, HourlyCounts>();

  constructor(
    private readonly clock: Clock,
    private readonly perHour: number,
  ) {}

  /**
   * @param payer whose request it is
   * @throws UpstreamError `rate_limited` when it is one too many, and what `serve` throws
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
      const message = `Vendors refused ${rejected} prompts of this account within an hour, and no more are taken`;
      throw new UpstreamError('rate_limited', message, { retryAfterSeconds });
    }
    if (running < perHour + delivered) return;
    const message = 'Too many requests at once for an account that has had few images; wait for some of them';
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
