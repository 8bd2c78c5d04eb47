/** Time and randomness of Node. Only adapters and programs import this: all other code gets a `Runtime`. */
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Randomness, Runtime, Timers } from '#kernel';

export const nodeTimers: Timers = {
  now: () => performance.now(),
  sleep: (milliseconds, { signal, isBackground = false } = {}) =>
    delay(milliseconds, undefined, { signal, ref: !isBackground }).catch(() => {}), // aborted
  startTimer(milliseconds, work, { isBackground = false } = {}) {
    const timer = setTimeout(work, milliseconds);
    if (isBackground) timer.unref();
    return () => clearTimeout(timer);
  },
};

export const nodeRandomness: Randomness = {
  chance: () => Math.random(),
  generateId: () => randomUUID(),
  generateBytes: (length) => randomBytes(length),
};

export function createNodeRuntime(reportError: Runtime['reportError']): Runtime {
  return { ...nodeTimers, ...nodeRandomness, reportError };
}
