import { withTimeout } from '#kernel';
import { nodeTimers } from '#runtime';
import type { Log } from './log.ts';

/** How often a process that waits for its work says for what. */
const REPORT_INTERVAL_MS = 10_000;

export interface DrainOptions {
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** Maximum wait. */
  readonly limitMs: number;
  /** Returns what is still running, for the log. */
  describe(): Readonly<Record<string, unknown>>;
}

/**
 * Waits until the work of a process that is stopping has ended, for at most `limitMs`. Logs every 10 s what it waits
 * for, and at the limit what had not ended. `work` must be stopping already.
 * @returns whether the work has ended
 */
export async function waitForDrain(work: Promise<unknown>, { log, limitMs, describe }: DrainOptions): Promise<boolean> {
  const reportTimer = setInterval(() => log.info(describe(), 'draining: waiting for running work'), REPORT_INTERVAL_MS);
  try {
    const hasEnded = await withTimeout(
      nodeTimers,
      limitMs,
      work.then(() => true),
      () => false,
    );
    if (!hasEnded) log.warn(describe(), 'draining: the time limit was reached; stopping without the rest');
    return hasEnded;
  } finally {
    clearInterval(reportTimer);
  }
}
