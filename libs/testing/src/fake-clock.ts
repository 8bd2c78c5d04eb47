import { Clock } from '#application';

interface Sleeper {
  readonly wakesAt: number;
  wake(): void;
}

/**
 * Time that passes only while all tasks sleep, and then at once. Its `delay` stands in for `setTimeout` of
 * `node:timers/promises`; what happens between two delays must not wait for the real world.
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

  readonly delay = async (milliseconds: number, value?: unknown, { signal }: { signal?: AbortSignal } = {}) => {
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

  /** Lets so much time pass. */
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

  /** Time passes while nothing runs: who sleeps wakes up late. */
  jumpForward(milliseconds: number): void {
    this.current += milliseconds;
  }
}

/** What is left to do in memory is done before the event loop comes round. */
function waitUntilIdle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
