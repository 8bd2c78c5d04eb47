import { START_POSITION } from '#kernel';
import type { LogPage } from '../pages.ts';

/** How often it is asked for more where nobody is known to wait. Each call costs a process and the server more than many facts. */
const LOOK_EVERY_MS = 100;
/** And where somebody waits: facts that come together are read together. */
const HURRY_MS = 15;

/** How often a server is asked for what is behind the end of its log. */
export class PollInterval {
  /** How far the log is known, and whether there is surely more. */
  private seen = START_POSITION;
  private more = true;
  private askedAt = Number.NEGATIVE_INFINITY;
  private hurried = false;
  private readonly waiting = new Set<() => void>();

  constructor(private readonly now = () => performance.now()) {}

  /** Resolves when it is time to ask for what is behind a position, or when `signal` aborts. */
  async turn(after: bigint, signal: AbortSignal): Promise<void> {
    if (after < this.seen || this.more) return;
    while (!signal.aborted) {
      const wait = this.askedAt + (this.hurried ? HURRY_MS : LOOK_EVERY_MS) - this.now();
      if (wait <= 0) break;
      await this.pause(wait, signal);
    }
    this.hurried = false;
    this.askedAt = this.now();
  }

  /** Somebody waits for what has come. */
  hurry(): void {
    this.hurried = true;
    for (const wake of this.waiting) wake();
  }

  /** What an answer says of the next one. */
  noted(page: LogPage): LogPage {
    if (page.position >= this.seen) {
      this.seen = page.position;
      this.more = page.full;
    }
    return page;
  }

  private pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, milliseconds);
      this.waiting.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}
