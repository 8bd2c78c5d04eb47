import { START_POSITION } from '#kernel';
import type { LogPage } from '../pages.ts';

/** How often it is asked for more where nobody is known to wait. Each call costs a process and the server more than many facts. */
const POLL_INTERVAL_MS = 100;
/** And where somebody waits: facts that come together are read together. */
const FAST_POLL_INTERVAL_MS = 15;

/** How often a server is asked for what is behind the end of its log. */
export class PollInterval {
  /** How far the log is known, and whether there is surely more. */
  private lastPosition = START_POSITION;
  private hasMore = true;
  private polledAt = Number.NEGATIVE_INFINITY;
  private isUrgent = false;
  private readonly waiters = new Set<() => void>();

  constructor(private readonly now = () => performance.now()) {}

  /** Resolves when it is time to ask for what is behind a position, or when `signal` aborts. */
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

  /** Somebody waits for what has come. */
  pollNow(): void {
    this.isUrgent = true;
    for (const wake of this.waiters) wake();
  }

  /** What an answer says of the next one. */
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
