import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from '../pages.ts';

/** How long facts gather until they are asked for, where some came just now. */
const GATHER_MS = 15;
/** Where nothing comes, it is asked this often at last. */
const IDLE_MS = 60;

/** How often a server is asked for what is behind the end of its log. */
export class Pace {
  private waitMs = 0;
  private askedAt = 0;

  /** Resolves when it is time to ask again, or when `signal` aborts. */
  async turn(signal: AbortSignal): Promise<void> {
    const waitMs = this.askedAt + this.waitMs - performance.now();
    if (waitMs > 0) await delay(waitMs, undefined, { signal }).catch(() => {});
    this.askedAt = performance.now();
  }

  /** What an answer says of the next one. */
  noted(page: Page, after: bigint): Page {
    if (page.full) this.waitMs = 0;
    else if (page.position > after) this.waitMs = GATHER_MS;
    else this.waitMs = Math.min(Math.max(2 * this.waitMs, GATHER_MS), IDLE_MS);
    return page;
  }
}
