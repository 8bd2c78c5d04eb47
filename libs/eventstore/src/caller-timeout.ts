import { withStoreTimeout } from '#kernel';

/** So long somebody waits for an answer of a store, who is told then that there is none. */
const CALLER_TIMEOUT_MS = 4_000;

/** The answer to somebody who waits for it. Followers, for whom nobody waits, wait longer. @throws StoreUnavailableError */
export function withCallerTimeout<Result>(promise: Promise<Result>): Promise<Result> {
  return withStoreTimeout(CALLER_TIMEOUT_MS, promise);
}
