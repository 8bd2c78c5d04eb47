/**
 * The reset windows of a key's cap, and what counts in them: one rule for the account, which decides by it, and for the
 * read model, which shows it.
 */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import type { Instant, ResetPeriod } from './events.ts';

/** The window of a cap without a reset period: it never ends. */
const NO_RESET_WINDOW_ID = '-';
const DAY_MS = 86_400_000;

export interface LimitWindow {
  readonly resetPeriod: ResetPeriod | null;
  /** The reset window that `used` is of. */
  readonly window: string;
  /** Charged in the window. A charge belongs to the window its hold was made in. */
  readonly used: PicoUsd;
}

/** The window that `at` falls in, with nothing used. */
export function startWindow(resetPeriod: ResetPeriod | null, at: Instant): LimitWindow {
  return { resetPeriod, window: getWindowId(resetPeriod, at), used: ZERO_USD };
}

/** The cap in the window that `at` falls in. Windows only move forward, whatever a clock says. */
export function advanceWindow(at: Instant, limitWindow: LimitWindow): LimitWindow {
  return getWindowId(limitWindow.resetPeriod, at) > limitWindow.window
    ? startWindow(limitWindow.resetPeriod, at)
    : limitWindow;
}

/** The cap after a charge for a hold that was made at `heldAt`; a charge of an earlier window does not count in this one. */
export function addChargeToWindow(limitWindow: LimitWindow, heldAt: Instant, amount: PicoUsd): LimitWindow {
  if (getWindowId(limitWindow.resetPeriod, heldAt) < limitWindow.window) return limitWindow;
  const current = advanceWindow(heldAt, limitWindow);
  return { ...current, used: money.add(current.used, amount) };
}

/** Names the reset window an instant falls in: days, weeks from Monday and months, in UTC. Later windows sort later. */
export function getWindowId(period: ResetPeriod | null, at: Instant): string {
  return period === null ? NO_RESET_WINDOW_ID : `${period}:${getWindowStart(period, at).toISOString().slice(0, 10)}`;
}

/** When the window that `at` falls in ends; null without a reset period. */
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
