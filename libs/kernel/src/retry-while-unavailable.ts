import { type Runtime, StoreUnavailableError } from './ports.ts';

const MIN_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 2_000;

/**
 * Writes what is known here alone, also where the store is away for longer than one command is tried: as long as `shouldContinue`, with
 * growing waits. `write` may have been stored before, so once more must be the same.
 * @throws what `write` last threw
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
