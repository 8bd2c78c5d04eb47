import { withStoreTimeout } from '#kernel';

/** How long a caller waits for a response of the store. */
const CALLER_TIMEOUT_MS = 4_000;

/**
 * Limits a read that a caller waits for. Subscriptions are not limited in this way, because no caller waits for them.
 * @throws StoreUnavailableError if the read takes longer than `CALLER_TIMEOUT_MS`
 */
export function withCallerTimeout<Result>(promise: Promise<Result>): Promise<Result> {
  return withStoreTimeout(CALLER_TIMEOUT_MS, promise);
}
