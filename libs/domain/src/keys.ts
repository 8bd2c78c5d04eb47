/** An API key's spending rules: its cap, and the window of time the cap is for. */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import type { Instant, KeyCreated, KeyUpdated, ResetPeriod } from './events.ts';
import { advanceWindow, getNextReset, type LimitWindow, startWindow } from './limit-window.ts';
import { reject } from './rejections.ts';

export const MAX_KEY_NAME_LENGTH = 25;
/** 0.01 USD. */
export const MIN_KEY_LIMIT = money.parseUsd('0.01');
/** A larger limit is as good as none, and would not fit where the books are kept. */
const MAX_KEY_LIMIT = money.parseUsd(1_000_000_000);

export interface ApiKeyState extends LimitWindow {
  readonly name: string;
  readonly limit: PicoUsd | null;
  readonly expireAt: Instant | null;
  readonly revoked: boolean;
  /** How often the reset period was changed: each time the counting restarts, also in a window that has been there before. */
  readonly changes: number;
  /** Held in the window and not yet resolved. */
  readonly held: PicoUsd;
  /** Charged in all windows. */
  readonly usedInAll: PicoUsd;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
}

/** A key as its owner sees it, at some instant. */
export interface ApiKeyRecord {
  readonly keyId: string;
  readonly name: string;
  readonly limit: PicoUsd | null;
  readonly usedInPeriod: PicoUsd;
  readonly usedInAll: PicoUsd;
  readonly resetPeriod: ResetPeriod | null;
  readonly resetAt: Instant | null;
  readonly expireAt: Instant | null;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
  readonly revokedAt: Instant | null;
}

/** The record of a key that may be used. */
export function toApiKeyRecord(keyId: string, key: ApiKeyState, at: Instant): ApiKeyRecord {
  const { name, limit, usedInAll, resetPeriod, expireAt, createdAt, updatedAt } = key;
  return {
    keyId,
    name,
    limit,
    usedInPeriod: advanceWindow(at, key).used,
    usedInAll,
    resetPeriod,
    resetAt: getNextReset(resetPeriod, at),
    expireAt,
    createdAt,
    updatedAt,
    revokedAt: null,
  };
}

/** Names what `used` and `held` count, so that a hold is taken off again only where it was added. */
export function toCounterId({ changes, window }: ApiKeyState): string {
  return `${changes}:${window}`;
}

/** The key with its counters of the window that `at` falls in. */
export function advanceKeyWindow(key: ApiKeyState, at: Instant): ApiKeyState {
  const limitWindow = advanceWindow(at, key);
  return limitWindow === key ? key : { ...key, ...limitWindow, held: ZERO_USD };
}

/** What the cap still allows at `at`; null without a cap. Never below zero. */
export function calculateRemainingLimit(key: ApiKeyState, at: Instant): PicoUsd | null {
  if (key.limit === null) return null;
  const { limit, used, held } = { ...advanceKeyWindow(key, at), limit: key.limit };
  const remaining = limit - used - held;
  return remaining > 0n ? (remaining as PicoUsd) : ZERO_USD;
}

export function createKeyState(data: KeyCreated['data']): ApiKeyState {
  return {
    name: data.name,
    limit: data.limit === null ? null : money.parseJsonAmount(data.limit),
    expireAt: data.expireAt,
    revoked: false,
    ...startWindow(data.resetPeriod, data.at),
    changes: 0,
    held: ZERO_USD,
    usedInAll: ZERO_USD,
    createdAt: data.at,
    updatedAt: data.at,
  };
}

/** Changing the reset period starts a new window: what was used before no longer counts. */
export function updateKeyState(
  key: ApiKeyState,
  { name, limit, resetPeriod, expireAt, at }: KeyUpdated['data'],
): ApiKeyState {
  const period = resetPeriod === undefined ? key.resetPeriod : resetPeriod;
  return {
    ...key,
    updatedAt: at,
    ...(name === undefined ? {} : { name }),
    ...(limit === undefined ? {} : { limit: limit === null ? null : money.parseJsonAmount(limit) }),
    ...(expireAt === undefined ? {} : { expireAt }),
    ...(period === key.resetPeriod ? {} : { ...startWindow(period, at), changes: key.changes + 1, held: ZERO_USD }),
  };
}

export interface ApiKeySettings {
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
export function assertValidKey({ name, limit, resetPeriod, expireAt }: ApiKeySettings, at: Instant): void {
  const rejectSettings = (message: string) => reject('invalid_key_settings', message);
  if (!isPrintable(name)) rejectSettings('name must be text without control characters');
  const length = [...name].length;
  if (length < 1 || length > MAX_KEY_NAME_LENGTH)
    rejectSettings(`name must have 1 to ${MAX_KEY_NAME_LENGTH} characters`);
  if (limit !== null && limit < MIN_KEY_LIMIT) rejectSettings('usage_limit_usd must be at least 0.01');
  if (limit !== null && limit > MAX_KEY_LIMIT) rejectSettings('usage_limit_usd must be at most 1000000000');
  if (resetPeriod !== null && limit === null) rejectSettings('reset_period requires usage_limit_usd');
  if (expireAt !== null && expireAt <= at) rejectSettings('expire_at must be in the future');
}
