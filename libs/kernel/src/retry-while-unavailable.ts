import { type Runtime, StoreUnavailableError } from './ports.ts';

const MIN_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 2_000;

/**
 * Retries `write` with increasing delays while the store is unavailable and `shouldContinue` returns true. Used for
 * data that no other process has, because the store may be unavailable for longer than one command is retried. An
 * attempt that seemed to fail may have been stored, so `write` must be idempotent.
 * @throws the last error of `write`, if `shouldContinue` returns false or the error is not StoreUnavailableError
 */
export async function retryWhileUnavailable<T>(
  write: () => Promise<T>,
  sleep: (milliseconds: number) => ReturnType<Runtime['sleep']>,
  shouldContinue: () => boolean,
): Promise<T> {
  for (let wait = MIN_BACKOFF_MS; ; wait = Math.min(2 * wait, MAX_BACKOFF_MS)) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || !shouldContinue()) throw error;
      await sleep(wait);
    }
  }
}
