import { Clock } from '#application';
import type { Timers } from '#kernel';

interface Sleeper {
  readonly wakesAt: number;
  wake(): void;
}

/**
 * A clock that only tests advance. Its `delay` replaces `setTimeout` of `node:timers/promises`. Between two delays,
 * tasks must not wait for real I/O, because `advance` does not wait for it.
 */
export class FakeClock extends Clock {
  private current: number;
  private readonly sleepers = new Set<Sleeper>();

  /** @param start ISO 8601 */
  constructor(start: string) {
    super();
    this.current = Date.parse(start);
  }

  nowMs(): number {
    return this.current;
  }

  readonly delay = async (
    milliseconds: number,
    value?: unknown,
    { signal }: { signal?: AbortSignal | undefined } = {},
  ) => {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sleeper: Sleeper = { wakesAt: this.current + milliseconds, wake: resolve };
    const interrupt = () => reject(signal?.reason);
    this.sleepers.add(sleeper);
    signal?.addEventListener('abort', interrupt);
    try {
      await promise;
      return value;
    } finally {
      this.sleepers.delete(sleeper);
      signal?.removeEventListener('abort', interrupt);
    }
  };

  readonly timers: Timers = {
    now: () => this.current,
    sleep: (milliseconds, { signal } = {}) =>
      this.delay(milliseconds, undefined, { signal }).then(
        () => {},
        () => {},
      ), // aborted
    startTimer: (milliseconds, work) => {
      const timer = new AbortController();
      void this.delay(milliseconds, undefined, { signal: timer.signal }).then(work, () => {}); // stopped
      return () => timer.abort();
    },
  };

  /**
   * Advances the clock from delay to delay. A delay that ends on the way resolves at its own time, and one that is
   * overdue resolves at once. Then the clock stands until the task of the delay has ended or waits again.
   */
  async advance(milliseconds: number): Promise<void> {
    const until = this.current + milliseconds;
    for (await waitUntilIdle(); ; await waitUntilIdle()) {
      const next = [...this.sleepers].toSorted((a, b) => a.wakesAt - b.wakesAt)[0];
      if (!next || next.wakesAt > until) break;
      this.current = Math.max(this.current, next.wakesAt);
      next.wake();
    }
    this.current = until;
  }

  /** Advances the clock while no task runs, as on a suspended host. Delays that end by then resolve in `advance`. */
  jumpForward(milliseconds: number): void {
    this.current += milliseconds;
  }
}

/** Resolves after all pending microtasks. By then, tasks that do no I/O have ended or wait for their next delay. */
function waitUntilIdle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Returns timers of the clock that a test has when they are used, for runtimes that are created before the tests. */
export function followClock(getClock: () => FakeClock): Timers {
  return {
    now: () => getClock().timers.now(),
    sleep: (milliseconds, options) => getClock().timers.sleep(milliseconds, options),
    startTimer: (milliseconds, work, options) => getClock().timers.startTimer(milliseconds, work, options),
  };
}
