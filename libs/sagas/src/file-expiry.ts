import type { Clock, FileStore } from '#application';
import type { Runtime } from '#kernel';

/** Deletion is not urgent: files expire at a full hour, and the signed URLs that open them expire earlier. */
const SWEEP_INTERVAL_MS = 5 * 60_000;
/** Delay after a failed sweep. */
const RETRY_DELAY_MS = 30_000;

export interface FileExpiryDependencies {
  readonly files: FileStore;
  readonly clock: Clock;
  readonly runtime: Pick<Runtime, 'sleep' | 'reportError'>;
}

/** Deletes expired files until `signal` is aborted. */
export async function expireFiles(
  { files, clock, runtime }: FileExpiryDependencies,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const swept = await files.removeExpired(clock.nowMs()).then(
      () => true,
      (error) => {
        runtime.reportError('expired files could not be deleted; retrying', error);
        return false;
      },
    );
    await runtime.sleep(swept ? SWEEP_INTERVAL_MS : RETRY_DELAY_MS, { signal });
  }
}
