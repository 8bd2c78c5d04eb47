import { setTimeout as delay } from 'node:timers/promises';
import type { Clock, FileStore } from '#application';

/** Deletion is not urgent: files expire at a full hour, and the signed URLs that open them expire earlier. */
const SWEEP_INTERVAL_MS = 5 * 60_000;
/** Delay after a failed sweep. */
const RETRY_DELAY_MS = 30_000;

export interface FileExpiryDependencies {
  readonly files: FileStore;
  readonly clock: Clock;
  reportError(problem: string, error: unknown): void;
}

/** Deletes expired files until `signal` is aborted. */
export async function expireFiles(
  { files, clock, reportError }: FileExpiryDependencies,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const swept = await files.removeExpired(clock.nowMs()).then(
      () => true,
      (error) => {
        reportError('expired files could not be deleted; retrying', error);
        return false;
      },
    );
    await delay(swept ? SWEEP_INTERVAL_MS : RETRY_DELAY_MS, undefined, { signal }).catch(() => {}); // aborted
  }
}
