/** Spreads work that cannot be interrupted over time, so that the event loop serves other requests in between. */
import { setTimeout as delay } from 'node:timers/promises';
import { OwnerQueue } from '#application';

/** After each unit of work, other requests have the event loop for this many times as long as the work took. */
const PAUSE_FACTOR = 3;
/** Long enough for a request to get several turns of the event loop. */
const MIN_PAUSE_MS = 10;

export class HeavyWorkQueue {
  private readonly owners = new OwnerQueue();
  private last: Promise<unknown> = Promise.resolve();

  /**
   * Runs `work` when its turn comes. Each owner has one turn at a time, and after each turn there is a pause. So another
   * owner waits for one unit of work of each owner at most, and any other request for one unit in total.
   * @throws what the work throws
   */
  run<T>(owner: string, work: () => T): Promise<T> {
    return this.owners.run(owner, () => this.runNext(work));
  }

  private runNext<T>(work: () => T): Promise<T> {
    let elapsedMs = 0;
    const result = this.last.then(() => {
      const startedAt = performance.now();
      try {
        return work();
      } finally {
        elapsedMs = performance.now() - startedAt;
      }
    });
    this.last = result.catch(() => {}).then(() => delay(Math.max(elapsedMs * PAUSE_FACTOR, MIN_PAUSE_MS)));
    return result;
  }
}
