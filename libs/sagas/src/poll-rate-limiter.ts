import type { Clock } from '#application';

/** How long a vendor that could not be reached is left alone. */
const LEFT_ALONE_MS = 5_000;

/**
 * How often a vendor is asked what has become of its jobs. A look that would be too many is left out and not put off: its
 * job is looked at again anyway, and nothing piles up.
 */
export class PollRateLimiter {
  private left: number;
  private at: number;
  private awayUntil = 0;

  constructor(
    private readonly perSecond: number,
    private readonly clock: Pick<Clock, 'nowMs'>,
  ) {
    this.left = perSecond;
    this.at = clock.nowMs();
  }

  /** Whether it may be asked now. @param ahead something has happened: that is not too many */
  allows(ahead: boolean): boolean {
    const now = this.clock.nowMs();
    this.left = Math.min(this.perSecond, this.left + ((now - this.at) / 1_000) * this.perSecond);
    this.at = now;
    if (now < this.awayUntil) return false;
    if (ahead) return true;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }

  leaveAlone(): void {
    this.awayUntil = this.clock.nowMs() + LEFT_ALONE_MS;
  }
}
