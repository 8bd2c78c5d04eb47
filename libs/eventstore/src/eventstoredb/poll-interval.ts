import { START_POSITION } from '#kernel';
import type { LogPage } from '../pages.ts';

/** Interval between polls if no caller waits. A call costs this process and the server more than many events. */
const POLL_INTERVAL_MS = 100;
/** Interval between polls if a caller waits. It is not zero, so that successive events are read together. */
const FAST_POLL_INTERVAL_MS = 15;

/** Limits how often a server is polled for events after the last known position of its log. */
export class PollInterval {
  /** The highest position that was read. */
  private lastPosition = START_POSITION;
  /** Whether more events probably follow `lastPosition`. */
  private hasMore = true;
  private polledAt = Number.NEGATIVE_INFINITY;
  private isUrgent = false;
  private readonly waiters = new Set<() => void>();

  constructor(private readonly now = () => performance.now()) {}

  /** Resolves when it is time to poll for events after a position, or when `signal` aborts. */
  async waitUntilDue(after: bigint, signal: AbortSignal): Promise<void> {
    if (after < this.lastPosition || this.hasMore) return;
    while (!signal.aborted) {
      const wait = this.polledAt + (this.isUrgent ? FAST_POLL_INTERVAL_MS : POLL_INTERVAL_MS) - this.now();
      if (wait <= 0) break;
      await this.pause(wait, signal);
    }
    this.isUrgent = false;
    this.polledAt = this.now();
  }

  /** Shortens the current interval, because a caller waits for new events. */
  pollNow(): void {
    this.isUrgent = true;
    for (const wake of this.waiters) wake();
  }

  /** Records a page that was read: after a full page the next poll does not wait. */
  record(page: LogPage): LogPage {
    if (page.position >= this.lastPosition) {
      this.lastPosition = page.position;
      this.hasMore = page.isFull;
    }
    return page;
  }

  private pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.waiters.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, milliseconds);
      this.waiters.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}
