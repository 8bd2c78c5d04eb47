import { type Runtime, StoreUnavailableError } from './ports.ts';

/** How long to wait between attempts that fail in a row. */
export interface Backoff {
  /** Upper bound of the first wait. */
  readonly minMs: number;
  /** Upper bound of every wait. */
  readonly maxMs: number;
  /** How much the upper bound grows with each further failure; 2 by default. */
  readonly factor?: number;
  /** `Runtime.chance`. */
  chance(): number;
}

/**
 * Returns how long to wait before the next attempt: a random time between half of the upper bound and the upper bound.
 * Otherwise all that failed at the same moment would be repeated at the same moment.
 * @param earlierFailures number of failures in a row before the last one
 */
export function calculateBackoffMs({ minMs, maxMs, factor = 2, chance }: Backoff, earlierFailures: number): number {
  const waitMs = Math.min(minMs * factor ** earlierFailures, maxMs);
  return Math.round(waitMs * (1 - chance() / 2));
}

/** A failed attempt that may be followed by another one. */
export interface FailedAttempt {
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** How long the wait before the next attempt is. */
  readonly waitMs: number;
}

export interface RetryOptions extends Backoff {
  /** Waits. */
  sleep(milliseconds: number): Promise<unknown>;
  /** Whether another attempt may succeed. */
  shouldRetry(error: unknown, failure: FailedAttempt): boolean;
  /** Whether the result is still needed. Called before and after each wait; by default it always is. */
  shouldContinue?(): boolean;
  /** Called before each wait, for example to log the error. */
  onRetry?(error: unknown, failure: FailedAttempt): void;
}

/**
 * Repeats `attempt` until it succeeds, with increasing and random waits.
 * @param attempt gets the number of attempts that have failed; must be idempotent if a failed attempt may have had effect
 * @throws the error of the last attempt; any error that a function of `options` throws
 */
export async function retry<T>(attempt: (failures: number) => Promise<T>, options: RetryOptions): Promise<T> {
  const shouldContinue = () => options.shouldContinue?.() ?? true;
  for (let failures = 0; ; failures++) {
    try {
      return await attempt(failures);
    } catch (error) {
      const failure = { attempt: failures + 1, waitMs: calculateBackoffMs(options, failures) };
      if (!options.shouldRetry(error, failure) || !shouldContinue()) throw error;
      options.onRetry?.(error, failure);
      await options.sleep(failure.waitMs);
      if (!shouldContinue()) throw error;
    }
  }
}

const UNAVAILABLE_BACKOFF = { minMs: 250, maxMs: 2_000 };

export interface RetryWhileUnavailableOptions {
  readonly runtime: Pick<Runtime, 'sleep' | 'reportError' | 'chance'>;
  /** Reported with each error after which the write is retried. */
  readonly problem: string;
  /** Ends a wait early. */
  readonly signal?: AbortSignal;
  shouldRetry(): boolean;
}

/**
 * Retries `write` while the store is unavailable and `shouldRetry` returns true. Used for data that no other process
 * has, because the store may be unavailable for longer than one command is retried. An attempt that seemed to fail may
 * have been stored, so `write` must be idempotent.
 * @throws the last error of `write`, if `shouldRetry` returns false or the error is not StoreUnavailableError
 */
export function retryWhileUnavailable<T>(
  write: () => Promise<T>,
  { runtime, problem, signal, shouldRetry }: RetryWhileUnavailableOptions,
): Promise<T> {
  return retry(write, {
    ...UNAVAILABLE_BACKOFF,
    chance: runtime.chance,
    sleep: (milliseconds) => runtime.sleep(milliseconds, { signal }),
    shouldRetry: (error) => error instanceof StoreUnavailableError && shouldRetry(),
    onRetry: (error) => runtime.reportError(problem, error),
  });
}
