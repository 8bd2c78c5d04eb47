import { withStoreTimeout } from '#kernel';
import { nodeTimers } from '#runtime';

/** How long a caller waits for a response of the store. */
export const CALLER_TIMEOUT_MS = 4_000;

/**
 * Limits the time of a read that a caller waits for. Subscriptions and reads of the complete log have no such limit.
 * @throws StoreUnavailableError if the read takes longer than `CALLER_TIMEOUT_MS`; any error of the read
 */
export function withCallerTimeout<Result>(promise: Promise<Result>): Promise<Result> {
  return withStoreTimeout(nodeTimers, CALLER_TIMEOUT_MS, promise);
}
