import { setTimeout as delay } from 'node:timers/promises';
import type { Clock, FileStore } from '#application';

/** Files end at a full hour. Signed addresses of them have ended before; so nobody waits for their end. */
const SWEEP_INTERVAL_MS = 5 * 60_000;
/** After a sweep that failed. */
const RETRY_DELAY_MS = 30_000;

export interface FileExpiryDependencies {
  readonly files: FileStore;
  readonly clock: Clock;
  reportError(problem: string, error: unknown): void;
}

/** Deletes files whose time is over. */
export async function expireFiles(
  { files, clock, reportError }: FileExpiryDependencies,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const swept = await files.removeExpired(clock.nowMs()).then(
      () => true,
      (error) => {
        reportError('files whose time is over could not be deleted; trying again', error);
        return false;
      },
    );
    await delay(swept ? SWEEP_INTERVAL_MS : RETRY_DELAY_MS, undefined, { signal }).catch(() => {});
  }
}
