import { withStoreTimeout } from '#kernel';

/** So long somebody waits for an answer of a store, who is told then that there is none. */
const ANSWERED_WITHIN_MS = 4_000;

/** The answer to somebody who waits for it. Followers, for whom nobody waits, wait longer. @throws StoreUnavailableError */
export function withCallerTimeout<Answer>(answer: Promise<Answer>): Promise<Answer> {
  return withStoreTimeout(ANSWERED_WITHIN_MS, answer);
}
