/**
 * The reset windows of an API key's spending limit, and the charges that count in them. The decisions of the account
 * and the read model use these functions, so the decisions and the read model agree.
 */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import type { ChargeReversed, Instant, ResetPeriod } from './events.ts';

/** The window of a limit without a reset period: it never ends. */
const NO_RESET_WINDOW_ID = '-';
const DAY_MS = 86_400_000;

export interface LimitWindow {
  readonly resetPeriod: ResetPeriod | null;
  /** The reset window in which `used` was charged. */
  readonly window: string;
  /** Charged in the window. A charge belongs to the window in which its hold was counted. */
  readonly used: PicoUsd;
}

/** Returns the window that contains `at`, with nothing used. */
export function startWindow(resetPeriod: ResetPeriod | null, at: Instant): LimitWindow {
  return { resetPeriod, window: getWindowId(resetPeriod, at), used: ZERO_USD };
}

/** Returns the window that contains `at`, or the current window if that is later: windows never move backwards. */
export function advanceWindow(at: Instant, limitWindow: LimitWindow): LimitWindow {
  return getWindowId(limitWindow.resetPeriod, at) > limitWindow.window
    ? startWindow(limitWindow.resetPeriod, at)
    : limitWindow;
}

/**
 * Returns the window in which the charge of a hold counts that was counted at `countedAt`, unless its event states the
 * window.
 * @param countsFrom creation of the key or last change of its reset period: earlier holds count in no window
 * @returns null if it counts in no window
 */
export function deriveChargeWindow(
  { resetPeriod, countsFrom }: { readonly resetPeriod: ResetPeriod | null; readonly countsFrom: Instant },
  countedAt: Instant,
): string | null {
  return countedAt < countsFrom ? null : getWindowId(resetPeriod, countedAt);
}

/**
 * Returns the window in which a reversed charge is subtracted: that of the charge. After a change of the key's settings
 * it is subtracted in none, because the counters may have been restarted without the charge.
 * @returns null if it is subtracted in no window
 */
export function deriveReversalWindow(
  { resetPeriod, updatedAt }: { readonly resetPeriod: ResetPeriod | null; readonly updatedAt: Instant },
  { heldAt, countedAt = heldAt, countedIn }: ChargeReversed['data'],
): string | null {
  if (countedAt < updatedAt) return null;
  return countedIn === undefined ? getWindowId(resetPeriod, countedAt) : countedIn;
}

/** Adds a charge that counts in the window with this id. Ignores a charge that belongs to an earlier window. */
export function addChargeToWindow(limitWindow: LimitWindow, window: string, amount: PicoUsd): LimitWindow {
  if (window < limitWindow.window) return limitWindow;
  const used = window > limitWindow.window ? ZERO_USD : limitWindow.used;
  return { ...limitWindow, window, used: money.add(used, amount) };
}

/** Returns the id of the window that contains `at`: a UTC day, week (from Monday) or month. */
export function getWindowId(period: ResetPeriod | null, at: Instant): string {
  return period === null ? NO_RESET_WINDOW_ID : `${period}:${getWindowStart(period, at).toISOString().slice(0, 10)}`;
}

/** Returns the end of the window that contains `at`; null without a reset period. */
export function getNextReset(period: ResetPeriod | null, at: Instant): Instant | null {
  if (period === null) return null;
  const start = getWindowStart(period, at);
  if (period === 'monthly') start.setUTCMonth(start.getUTCMonth() + 1);
  else start.setUTCDate(start.getUTCDate() + (period === 'weekly' ? 7 : 1));
  return start.toISOString();
}

function getWindowStart(period: ResetPeriod, at: Instant): Date {
  const day = new Date(`${at.slice(0, 10)}T00:00:00.000Z`);
  switch (period) {
    case 'daily':
      return day;
    case 'weekly':
      return new Date(day.getTime() - ((day.getUTCDay() + 6) % 7) * DAY_MS);
    case 'monthly':
      return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth(), 1));
    default:
      return period satisfies never;
  }
}
