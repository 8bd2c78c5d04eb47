import { type Runtime, StoreUnavailableError } from './ports.ts';

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 2_000;

/**
 * Writes what is known here alone, also where the store is away for longer than one command is tried: as long as `mayGoOn`, with
 * growing waits. `write` may have been stored before, so once more must be the same.
 * @throws what `write` last threw
 */
export async function retryWhileUnavailable<T>(
  write: () => Promise<T>,
  sleep: (milliseconds: number) => ReturnType<Runtime['sleep']>,
  mayGoOn: () => boolean,
): Promise<T> {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || !mayGoOn()) throw error;
      await sleep(wait);
    }
  }
}
