/** Divides long work, so that it does not hold the event loop. All such work of the process takes turns. */
import type { Timers } from '#kernel';

/** Maximum time of one part of long work. A request needs several turns of the event loop, so it is short. */
const MAX_PART_MS = 2;
/** Time for other work after each part. */
const PAUSE_MS = 4;
/** A multiple of 3 and of 4, so that sections of bytes are complete in base64, and sections of base64 in bytes. */
const SECTION_LENGTH = 48 * 1024;

/** The timers of this process. Without them nothing else needs the event loop, and work has no pauses. */
let timers: Timers | undefined;
let lastSlot: Promise<unknown> = Promise.resolve();

/**
 * Lets long work leave time for the other work of this process. Called once, when the process starts.
 * @param processTimers undefined if there is no other work, or its time is simulated
 */
export function shareEventLoop(processTimers: Timers | undefined): void {
  timers = processTimers;
}

/** Resolves after a pause, and after the pauses of earlier callers: so long work takes a third of the time in total. */
function waitForSlot({ sleep }: Timers): Promise<void> {
  const slot = lastSlot.then(() => sleep(PAUSE_MS));
  lastSlot = slot;
  return slot;
}

/** Limits the parts of one task. */
export class WorkParts {
  private startedAt = timers?.now() ?? 0;

  /** To be awaited between two short steps of the work; undefined if there is time for another step. */
  rest(): Promise<void> | undefined {
    const current = timers;
    if (!current || current.now() - this.startedAt < MAX_PART_MS) return undefined;
    return waitForSlot(current).then(() => {
      this.startedAt = current.now();
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
