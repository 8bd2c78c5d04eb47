import type { AsyncLocalStorage } from 'node:async_hooks';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';

/** The maximum of `setTimeout`. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

type Pause = (milliseconds: number, value?: undefined, options?: { readonly signal?: AbortSignal }) => Promise<unknown>;

/** The spec file that a task belongs to. Set by `tools/jest/runner.mjs`. */
export const specFile: AsyncLocalStorage<string> = Reflect.get(globalThis, Symbol.for('SPEC_FILE'));

/**
 * The result returns whether the task that calls it belongs to the spec file that is running now. Tasks that an earlier
 * file left running in this process must not follow a fake clock: they would repeat without end.
 */
function createOwnershipCheck(): () => boolean {
  const owner = specFile.getStore();
  return () => specFile.getStore() === owner;
}

/**
 * Replaces `setTimeout` of timers/promises by `pause`, in tasks of this spec file, until the returned function is
 * called.
 */
export function replaceDelays(pause: Pause): () => void {
  const original = timers.setTimeout;
  const isOwnTask = createOwnershipCheck();
  const pauseOwnTask: Pause = (...args) => (isOwnTask() ? pause : (original as Pause))(...args);
  setDelay(pauseOwnTask as typeof original);
  return () => setDelay(original);
}

/**
 * Replaces the global `setTimeout` and `clearTimeout` by delays of `pause`, in tasks of this spec file, until the
 * returned function is called. For timeouts that are set with a callback.
 */
export function replaceTimeouts(pause: Pause): () => void {
  const { setTimeout, clearTimeout } = globalThis;
  const isOwnTask = createOwnershipCheck();
  const start = (work: () => void, milliseconds: number) => {
    if (!isOwnTask()) return setTimeout(work, milliseconds);
    const timer = new AbortController();
    void pause(milliseconds, undefined, { signal: timer.signal }).then(work, () => {}); // cleared
    return timer;
  };
  // Timers of other spec files, and those that were set before the replacement, are cleared as usual.
  const stop = (timer?: AbortController | NodeJS.Timeout) =>
    timer instanceof AbortController ? timer.abort() : clearTimeout(timer);
  Object.assign(globalThis, { setTimeout: start, clearTimeout: stop });
  return () => void Object.assign(globalThis, { setTimeout, clearTimeout });
}

/**
 * Makes delays of timers/promises `factor` times shorter, in tasks of this spec file, until the returned function is
 * called. For tests that wait until something is tried again.
 */
export function shortenDelays(factor: number): () => void {
  const pause = timers.setTimeout as Pause;
  return replaceDelays((milliseconds, ...rest) => pause(milliseconds / factor, ...rest));
}

/** Delays that last until a test ends them. */
export interface ExtendedDelay {
  /** Resolves when the first of them has started. */
  readonly started: Promise<void>;
  /** Ends them. Later ones have their usual duration. */
  end(): void;
}

/**
 * Makes each delay of exactly `milliseconds` in this process last until `end` is called, so that what happens in the
 * meantime does not depend on the speed of the machine.
 */
export function extendDelay(milliseconds: number): ExtendedDelay {
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const pause = timers.setTimeout as Pause;
  let isEnded = false;
  const restore = replaceDelays((...args) => {
    if (isEnded || args[0] !== milliseconds) return pause(...args);
    started.resolve();
    return ended.promise;
  });
  const end = () => {
    isEnded = true;
    restore();
    ended.resolve();
  };
  return { started: started.promise, end };
}

/**
 * Makes each timeout of exactly `milliseconds` that is set with a callback in this process last until `end` is called or
 * it is cleared. So a test decides when a time limit ends something, and needs no short limit.
 */
export function extendTimeouts(milliseconds: number): ExtendedDelay {
  const { setTimeout, clearTimeout } = globalThis;
  const isOwnTask = createOwnershipCheck();
  const started = Promise.withResolvers<void>();
  const running = new Map<NodeJS.Timeout, () => void>();
  let isEnded = false;
  const start = (work: (...args: unknown[]) => void, duration?: number, ...args: unknown[]) => {
    if (isEnded || duration !== milliseconds || !isOwnTask()) return setTimeout(work, duration, ...args);
    const timer = setTimeout(() => {}, MAX_TIMEOUT_MS);
    running.set(timer, () => work(...args));
    started.resolve();
    return timer;
  };
  const stop = (timer?: NodeJS.Timeout | string | number) => {
    running.delete(timer as NodeJS.Timeout);
    clearTimeout(timer);
  };
  Object.assign(globalThis, { setTimeout: start, clearTimeout: stop });
  const end = () => {
    if (isEnded) return;
    isEnded = true;
    Object.assign(globalThis, { setTimeout, clearTimeout });
    for (const [timer, work] of running) {
      clearTimeout(timer);
      work();
    }
    running.clear();
  };
  return { started: started.promise, end };
}

function setDelay(pause: typeof timers.setTimeout): void {
  timers.setTimeout = pause;
  syncBuiltinESMExports(); // for modules that import it by name
}
