/** An API key's spending rules: its cap, and the window of time the cap is for. */
import { money, type PicoUsd, ZERO } from '#kernel';
import type { Instant, KeyCreated, KeyUpdated, ResetPeriod } from './events.ts';
import { reject } from './rejections.ts';

export const MAX_KEY_NAME = 25;
/** 0.01 USD. */
export const MIN_KEY_LIMIT = money.usd('0.01');
/** A larger limit is as good as none, and would not fit where the books are kept. */
const MAX_KEY_LIMIT = money.usd(1_000_000_000);

/** The window of a key without a reset period: it never ends. */
const ALWAYS = '-';
const DAY_MS = 86_400_000;

export interface Key {
  readonly name: string;
  readonly limit: PicoUsd | null;
  readonly resetPeriod: ResetPeriod | null;
  readonly expireAt: Instant | null;
  readonly revoked: boolean;
  /** The reset window that `used` and `held` are of. */
  readonly window: string;
  /** How often the reset period was changed: each time they begin anew, also in a window that has been there before. */
  readonly changes: number;
  /** Charged in the window. A charge belongs to the window its hold was made in. */
  readonly used: PicoUsd;
  /** Held in the window and not yet resolved. */
  readonly held: PicoUsd;
}

/** Names the reset window an instant falls in: days, weeks from Monday and months, in UTC. Later windows sort later. */
export function windowAt(period: ResetPeriod | null, at: Instant): string {
  return period === null ? ALWAYS : `${period}:${windowStart(period, at).toISOString().slice(0, 10)}`;
}

function windowStart(period: ResetPeriod, at: Instant): Date {
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

/** Names what `used` and `held` count, so that a hold is taken off again only where it was added. */
export function counterOf({ changes, window }: Key): string {
  return `${changes}:${window}`;
}

/** When the cap's window that `at` falls in ends; null without a reset period. */
export function nextReset(period: ResetPeriod | null, at: Instant): Instant | null {
  if (period === null) return null;
  const start = windowStart(period, at);
  if (period === 'monthly') start.setUTCMonth(start.getUTCMonth() + 1);
  else start.setUTCDate(start.getUTCDate() + (period === 'weekly' ? 7 : 1));
  return start.toISOString();
}

/** The key with its counters of the window that `at` falls in. Windows only move forward, whatever a clock says. */
export function rolled(key: Key, at: Instant): Key {
  const window = windowAt(key.resetPeriod, at);
  return window > key.window ? { ...key, window, used: ZERO, held: ZERO } : key;
}

/** What the cap still allows at `at`; null without a cap. Never below zero. */
export function allowance(key: Key, at: Instant): PicoUsd | null {
  if (key.limit === null) return null;
  const { limit, used, held } = { ...rolled(key, at), limit: key.limit };
  const left = limit - used - held;
  return left > 0n ? (left as PicoUsd) : ZERO;
}

export function created(data: KeyCreated['data']): Key {
  return {
    name: data.name,
    limit: data.limit === null ? null : money.fromJson(data.limit),
    resetPeriod: data.resetPeriod,
    expireAt: data.expireAt,
    revoked: false,
    window: windowAt(data.resetPeriod, data.at),
    changes: 0,
    used: ZERO,
    held: ZERO,
  };
}

/** Changing the reset period starts a new window: what was used before no longer counts. */
export function updated(key: Key, { name, limit, resetPeriod, expireAt, at }: KeyUpdated['data']): Key {
  const period = resetPeriod === undefined ? key.resetPeriod : resetPeriod;
  const begunAnew = { window: windowAt(period, at), changes: key.changes + 1, used: ZERO, held: ZERO };
  return {
    ...key,
    ...(name === undefined ? {} : { name }),
    ...(limit === undefined ? {} : { limit: limit === null ? null : money.fromJson(limit) }),
    ...(expireAt === undefined ? {} : { expireAt }),
    ...(period === key.resetPeriod ? {} : { resetPeriod: period, ...begunAnew }),
  };
}

export interface KeySettings {
  readonly name: string;
  readonly limit: PicoUsd | null;
  readonly resetPeriod: ResetPeriod | null;
  readonly expireAt: Instant | null;
}

/** What every store can keep: no control characters, no half of a surrogate pair. */
function isPrintable(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** @throws Rejection `invalid_key_settings` */
export function assertValidKey({ name, limit, resetPeriod, expireAt }: KeySettings, at: Instant): void {
  const invalid = (message: string) => reject('invalid_key_settings', message);
  if (!isPrintable(name)) invalid('name must be text without control characters');
  const length = [...name].length;
  if (length < 1 || length > MAX_KEY_NAME) invalid(`name must have 1 to ${MAX_KEY_NAME} characters`);
  if (limit !== null && limit < MIN_KEY_LIMIT) invalid('usage_limit_usd must be at least 0.01');
  if (limit !== null && limit > MAX_KEY_LIMIT) invalid('usage_limit_usd must be at most 1000000000');
  if (resetPeriod !== null && limit === null) invalid('reset_period requires usage_limit_usd');
  if (expireAt !== null && expireAt <= at) invalid('expire_at must be in the future');
}
