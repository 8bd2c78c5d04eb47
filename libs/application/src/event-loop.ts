/** Divides long work, so that it does not hold the event loop. All such work of the process takes turns. */
import { setTimeout as delay } from 'node:timers/promises';

/** Maximum time of one part of long work. A request needs several turns of the event loop, so it is short. */
const MAX_PART_MS = 2;
/** Time for other work after each part. */
const PAUSE_MS = 4;

let lastSlot: Promise<unknown> = Promise.resolve();

/** Resolves after a pause, and after the pauses of earlier callers: so long work takes a third of the time in total. */
function waitForSlot(): Promise<void> {
  const slot = lastSlot.then(() => delay(PAUSE_MS));
  lastSlot = slot;
  return slot;
}

/** Limits the parts of one task. */
export class WorkParts {
  private startedAt = performance.now();

  /** To be awaited between two short steps of the work; undefined if there is time for another step. */
  rest(): Promise<void> | undefined {
    if (performance.now() - this.startedAt < MAX_PART_MS) return undefined;
    return waitForSlot().then(() => {
      this.startedAt = performance.now();
    });
  }
}
