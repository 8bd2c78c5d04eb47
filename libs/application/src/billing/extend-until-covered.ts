/** Extends the hold of a running response while its provider continues to generate. */
import type { Timers } from '#kernel';
import { toUpstreamError, UpstreamError } from '../errors.ts';

export type ExtensionOutcome = 'extended' | 'retry_later' | 'exhausted';

/**
 * A provider is disconnected this long after the last usage that the hold covered. What it generates in between may be
 * unpaid, so this time bounds the loss.
 */
export const MAX_UNCOVERED_MS = 500;
/** Maximum time for which a response that is already complete waits for money. Its provider bills nothing more. */
export const MAX_COMPLETE_WAIT_MS = 5_000;
/** Time between two attempts to extend the hold. Meters of unread output check as often. */
export const EXTENSION_RETRY_MS = 100;

export interface UncoveredUsage {
  isCovered(): boolean;
  extend(): Promise<ExtensionOutcome>;
  /** Until when the response waits, by `timers.now()`. It is at least tried once. */
  getDeadlineMs(): number;
  /** Aborts when the response ends for another reason. */
  readonly signal: AbortSignal;
  readonly timers: Pick<Timers, 'now' | 'sleep'>;
}

/**
 * Extends a hold until it covers a usage. Waits until the deadline for money that other requests hold, because most of
 * it is released when they end.
 * @returns false if the payer has no further money
 * @throws UpstreamError `hold_ended` if the event store responded to no attempt by the deadline; the reason of an abort; any
 *   error of `extend`
 */
export async function extendUntilCovered(usage: UncoveredUsage): Promise<boolean> {
  const { signal, timers } = usage;
  let isShort = false;
  for (let running: Promise<ExtensionOutcome> | undefined; !usage.isCovered(); ) {
    running ??= usage.extend();
    const pause = timers.sleep(getPauseMs(usage), { isBackground: true }).then(() => undefined);
    const outcome = await Promise.race([running, pause]);
    if (outcome !== undefined) running = undefined;
    if (outcome === 'extended' && usage.isCovered()) return true;
    if (outcome === 'exhausted') return false;
    if (outcome !== undefined) isShort = true;
    if (outcome === 'retry_later') await pause;
    if (signal.aborted) throw toUpstreamError(signal.reason);
    if (timers.now() < usage.getDeadlineMs()) continue;
    if (isShort) return false;
    throw new UpstreamError('hold_ended', 'No further money could be held in time');
  }
  return true;
}

/** Returns the time until the next attempt, or until the deadline if that is earlier. */
function getPauseMs({ getDeadlineMs, timers }: UncoveredUsage): number {
  return Math.min(Math.max(getDeadlineMs() - timers.now(), 1), EXTENSION_RETRY_MS);
}
