import { shareEventLoop } from '#application';
import { nodeTimers } from '#runtime';

/**
 * Counts how often other work can run before a promise settles: 0 if its work holds the event loop until the end.
 * Until then `performance.now` advances by 1 ms whenever it is read, so that no host is too fast for a pause.
 */
export async function countPauses<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly pauses: number }> {
  shareEventLoop(nodeTimers);
  const { now } = performance;
  let advanced = 0;
  performance.now = () => now.call(performance) + ++advanced;
  let pauses = 0;
  const count = () => {
    pauses++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  try {
    const result = await work();
    return { result, pauses };
  } finally {
    clearImmediate(next);
    performance.now = now;
  }
}
