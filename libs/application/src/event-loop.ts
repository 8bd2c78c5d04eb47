/** Divides long work, so that it does not hold the event loop. All such work of the process takes turns. */
import { setTimeout as delay } from 'node:timers/promises';

/** Maximum time of one part of long work. A request needs several turns of the event loop, so it is short. */
const MAX_PART_MS = 2;
/** Time for other work after each part. */
const PAUSE_MS = 4;
/** A multiple of 3 and of 4, so that sections of bytes are complete in base64, and sections of base64 in bytes. */
const SECTION_LENGTH = 48 * 1024;

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

/**
 * Yields texts or bytes in short sections, and rests between them, but not if they have the length of one section in
 * total. Sections of bytes share their memory.
 */
export async function* divide<T extends string | Uint8Array>(...contents: readonly T[]): AsyncGenerator<T> {
  const parts = new WorkParts();
  let lengthSinceRest = 0;
  for (const content of contents)
    for (let start = 0; start < content.length; start += SECTION_LENGTH) {
      if (lengthSinceRest >= SECTION_LENGTH) {
        await parts.rest();
        lengthSinceRest = 0;
      }
      const end = Math.min(start + SECTION_LENGTH, content.length);
      yield (typeof content === 'string' ? content.slice(start, end) : content.subarray(start, end)) as T;
      lengthSinceRest += end - start;
    }
}
