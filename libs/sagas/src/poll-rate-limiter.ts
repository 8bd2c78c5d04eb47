import type { Clock } from '#application';

/** How long a provider is not polled after it was unavailable. */
const BACKOFF_MS = 5_000;

/**
 * Token bucket for status polls of one provider. A poll beyond the limit is skipped instead of delayed: the job is
 * polled again anyway, and no backlog builds up.
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

  /**
   * Returns whether the provider may be polled now.
   * @param isUrgent whether this is no routine poll, such as one after a webhook. The limit excludes urgent polls
   */
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
