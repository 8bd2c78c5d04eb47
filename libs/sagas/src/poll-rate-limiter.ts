import type { Clock } from '#application';

/** How long a vendor that could not be reached is left alone. */
const BACKOFF_MS = 5_000;

/**
 * How often a vendor is asked what has become of its jobs. A look that would be too many is left out and not put off: its
 * job is looked at again anyway, and nothing piles up.
 */
export class PollRateLimiter {
  private tokens: number;
  private refilledAt: number;
  private backOffUntil = 0;

  constructor(
    private readonly perSecond: number,
    private readonly clock: Pick<Clock, 'nowMs'>,
  ) {
    this.tokens = perSecond;
    this.refilledAt = clock.nowMs();
  }

  /** Whether it may be asked now. @param isUrgent something has happened: that is not too many */
  tryAcquire(isUrgent: boolean): boolean {
    const now = this.clock.nowMs();
    this.tokens = Math.min(this.perSecond, this.tokens + ((now - this.refilledAt) / 1_000) * this.perSecond);
    this.refilledAt = now;
    if (now < this.backOffUntil) return false;
    if (isUrgent) return true;
    if (this.tokens < 1) return false;
    this.tokens -= 1;
    return true;
  }

  backOff(): void {
    this.backOffUntil = this.clock.nowMs() + BACKOFF_MS;
  }
}
