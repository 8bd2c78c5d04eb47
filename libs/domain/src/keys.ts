/** The settings of an API key: its spending limit, the reset windows of the limit, and its expiry. */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import { NO_UNHELD, type UnheldSums } from './account/exposure.ts';
import type { ChargeReversed, Instant, KeyAccess, KeyCreated, KeyUpdated, ResetPeriod } from './events.ts';
import {
  addChargeToWindow,
  advanceWindow,
  deriveReversalWindow,
  getNextReset,
  type LimitWindow,
  startWindow,
} from './limit-window.ts';
import { isModelAllowed } from './model-patterns.ts';
import { reject } from './rejections.ts';

export const MAX_KEY_NAME_LENGTH = 25;
export const MAX_KEY_MODELS = 100;
export const MAX_KEY_TAGS = 16;
/** As in the metadata of a response. */
const MAX_TAG_NAME_LENGTH = 64;
const MAX_TAG_LENGTH = 512;
const MAX_PATTERN_LENGTH = 200;
/** Clients give up and repeat a request after ten minutes at most by default. */
export const MAX_DEDUPE_SECONDS = 3_600;
/** Of all models and tags of a key together. They are in every state of the account, and in every event of the key. */
const MAX_ACCESS_LENGTH = 4_096;
/** Printable ASCII without spaces. */
const MODEL_PATTERN = new RegExp(`^[!-~]{1,${MAX_PATTERN_LENGTH}}$`);
export const MIN_KEY_LIMIT = money.parseUsd('0.01');
/** A larger limit has no effect in practice, and a much larger one would exceed the columns of the read models. */
const MAX_KEY_LIMIT = money.parseUsd(1_000_000_000);

export interface ApiKeyState extends LimitWindow, UnheldSums, KeyAccess {
  readonly name: string;
  readonly limit: PicoUsd | null;
  readonly expireAt: Instant | null;
  readonly revoked: boolean;
  /** Number of changes of the reset period. Each change restarts the counters, even a change back. */
  readonly changes: number;
  /** Sum of the open holds that count in the window. */
  readonly held: PicoUsd;
  /** Charged in all windows. */
  readonly usedInAll: PicoUsd;
  readonly createdAt: Instant;
  /** Later than the times at which all earlier holds were counted. */
  readonly updatedAt: Instant;
  /** The latest time at which a hold was counted; empty before the first. */
  readonly countedUntil: Instant;
}

/** The state of an API key at some instant, as its owner sees it. */
export interface ApiKeyRecord extends KeyAccess {
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

/** Returns the record of a key that is not revoked. */
export function toApiKeyRecord(keyId: string, key: ApiKeyState, at: Instant): ApiKeyRecord {
  const { name, limit, usedInAll, resetPeriod, expireAt, models, blocked, metadata, createdAt, updatedAt } = key;
  const { dedupeSeconds = null } = key;
  return {
    keyId,
    name,
    limit,
    models,
    blocked,
    metadata,
    dedupeSeconds,
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

/**
 * Returns the id of the counters `used` and `held`: a hold is subtracted only from the counters that it was added to.
 */
export function toCounterId({ changes, window }: Pick<ApiKeyState, 'changes' | 'window'>): string {
  return `${changes}:${window}`;
}

/** Returns the key with the counters of the window that contains `at`, or of its current window if that is later. */
export function advanceKeyWindow(key: ApiKeyState, at: Instant): ApiKeyState {
  const limitWindow = advanceWindow(at, key);
  return limitWindow === key ? key : { ...key, ...limitWindow, held: ZERO_USD };
}

/** Returns what the limit still allows at `at`, at least zero; null without a limit. */
export function calculateRemainingLimit(key: ApiKeyState, at: Instant): PicoUsd | null {
  const current = advanceKeyWindow(key, at);
  const unspent = calculateUnspentLimit(current);
  return unspent === null ? null : money.max(money.subtract(unspent, current.held));
}

/** Returns what the limit would allow without holds in its current window, at least zero; null without a limit. */
export function calculateUnspentLimit({ limit, used }: Pick<ApiKeyState, 'limit' | 'used'>): PicoUsd | null {
  return limit === null ? null : money.max(money.subtract(limit, used));
}

export function createKeyState(data: KeyCreated['data']): ApiKeyState {
  return {
    name: data.name,
    limit: data.limit === null ? null : money.parseJsonAmount(data.limit),
    expireAt: data.expireAt,
    models: data.models,
    blocked: data.blocked,
    metadata: data.metadata,
    ...(data.dedupeSeconds === undefined ? {} : { dedupeSeconds: data.dedupeSeconds }),
    revoked: false,
    ...startWindow(data.resetPeriod, data.at),
    changes: 0,
    held: ZERO_USD,
    ...NO_UNHELD,
    usedInAll: ZERO_USD,
    createdAt: data.at,
    updatedAt: data.at,
    countedUntil: '',
  };
}

/** Applies changed settings. Another reset period starts a new window, in which earlier charges do not count. */
export function updateKeyState(
  key: ApiKeyState,
  { name, limit, resetPeriod, expireAt, models, blocked, metadata, dedupeSeconds, at }: KeyUpdated['data'],
): ApiKeyState {
  const period = resetPeriod === undefined ? key.resetPeriod : resetPeriod;
  return {
    ...key,
    updatedAt: at,
    ...(name === undefined ? {} : { name }),
    ...(limit === undefined ? {} : { limit: limit === null ? null : money.parseJsonAmount(limit) }),
    ...(expireAt === undefined ? {} : { expireAt }),
    ...(models === undefined ? {} : { models }),
    ...(blocked === undefined ? {} : { blocked }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(dedupeSeconds === undefined ? {} : { dedupeSeconds }),
    ...(period === key.resetPeriod ? {} : { ...startWindow(period, at), changes: key.changes + 1, held: ZERO_USD }),
  };
}

/**
 * Returns the window in which the charge of a hold counts; null if the reset period was changed since.
 * @param counter id of the counters that include the hold
 */
export function getChargeWindow({ changes }: ApiKeyState, counter: string): string | null {
  const prefix = toCounterId({ changes, window: '' });
  return counter.startsWith(prefix) ? counter.slice(prefix.length) : null;
}

/** Subtracts a reversed charge. */
export function reverseKeyCharge(key: ApiKeyState, reversed: ChargeReversed['data']): ApiKeyState {
  const amount = money.negate(money.parseJsonAmount(reversed.charged));
  const window = deriveReversalWindow(key, reversed);
  const limitWindow = window === null ? key : addChargeToWindow(key, window, amount);
  return { ...key, ...limitWindow, usedInAll: money.add(key.usedInAll, amount) };
}

/** Whether a change of settings has no effect. */
export function hasSameSettings(one: ApiKeyState, other: ApiKeyState): boolean {
  const serialize = (key: ApiKeyState) => {
    const { name, limit, resetPeriod, expireAt, models, blocked, metadata, dedupeSeconds = null } = key;
    return JSON.stringify([name, limit?.toString(), resetPeriod, expireAt, models, blocked, metadata, dedupeSeconds]);
  };
  return serialize(one) === serialize(other);
}

/** @throws Rejection `model_not_allowed` if the key has a list of models that does not include this one */
export function assertModelAllowed(model: string, { models }: Pick<KeyAccess, 'models'>): void {
  if (isModelAllowed(model, models)) return;
  reject('model_not_allowed', `The API key does not permit "${model}"`, { model });
}

/** @throws Rejection `dedupe_changed` with the current setting if a process has cached another one */
export function assertDedupeKnown({ dedupeSeconds = null }: KeyAccess, cached: number | null): void {
  if (dedupeSeconds === cached) return;
  reject('dedupe_changed', 'dedupe_seconds of the API key was changed', { dedupe_seconds: String(dedupeSeconds) });
}

export interface ApiKeySettings extends KeyAccess {
  readonly name: string;
  readonly limit: PicoUsd | null;
  readonly resetPeriod: ResetPeriod | null;
  readonly expireAt: Instant | null;
}

/** Whether every store accepts the text: it has no control characters and no lone surrogates. */
function isPrintable(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** @throws Rejection `invalid_key_settings` if a setting is invalid */
export function assertValidKey({ name, limit, resetPeriod, expireAt, ...access }: ApiKeySettings, at: Instant): void {
  const rejectSettings = (message: string) => reject('invalid_key_settings', message);
  if (!isPrintable(name)) rejectSettings('name must be well-formed text without control characters');
  const length = [...name].length;
  if (length < 1 || length > MAX_KEY_NAME_LENGTH)
    rejectSettings(`name must have 1 to ${MAX_KEY_NAME_LENGTH} characters`);
  if (limit !== null && limit < MIN_KEY_LIMIT) rejectSettings('usage_limit_usd must be at least 0.01');
  if (limit !== null && limit > MAX_KEY_LIMIT) rejectSettings('usage_limit_usd must be at most 1000000000');
  if (resetPeriod !== null && limit === null) rejectSettings('reset_period requires usage_limit_usd');
  if (expireAt !== null && expireAt <= at) rejectSettings('expire_at must be in the future');
  const problem = findModelListProblem(access.models) ?? findMetadataProblem(access.metadata);
  if (problem !== undefined) rejectSettings(problem);
  const { dedupeSeconds = null } = access;
  const isPossible = Number.isInteger(dedupeSeconds) && Number(dedupeSeconds) >= 1;
  if (dedupeSeconds !== null && !(isPossible && dedupeSeconds <= MAX_DEDUPE_SECONDS))
    rejectSettings(`dedupe_seconds must be an integer from 1 to ${MAX_DEDUPE_SECONDS}, or null`);
  if (measureAccess(access) > MAX_ACCESS_LENGTH)
    rejectSettings(`models and metadata must have at most ${MAX_ACCESS_LENGTH} characters together`);
}

/** Returns the number of characters of the models and tags of a key. */
export function measureAccess({ models, metadata }: Pick<KeyAccess, 'models' | 'metadata'>): number {
  return [...(models ?? []), ...Object.entries(metadata).flat()].reduce((length, text) => length + text.length, 0);
}

function findModelListProblem(models: KeyAccess['models']): string | undefined {
  if (models === null) return undefined;
  if (models.length < 1 || models.length > MAX_KEY_MODELS)
    return `models must be null, or a list of 1 to ${MAX_KEY_MODELS} model ids or patterns`;
  const isValid = (pattern: string) => MODEL_PATTERN.test(pattern);
  return models.every(isValid)
    ? undefined
    : `models must contain model ids, or patterns such as "openai/*", of 1 to ${MAX_PATTERN_LENGTH} characters`;
}

function findMetadataProblem(metadata: KeyAccess['metadata']): string | undefined {
  const tags = Object.entries(metadata);
  if (tags.length > MAX_KEY_TAGS) return `metadata must have at most ${MAX_KEY_TAGS} tags`;
  const isValid = (text: string, maxLength: number) => isPrintable(text) && [...text].length <= maxLength;
  return tags.every(
    ([name, value]) => name !== '' && isValid(name, MAX_TAG_NAME_LENGTH) && isValid(value, MAX_TAG_LENGTH),
  )
    ? undefined
    : `metadata must be texts without control characters: names of 1 to ${MAX_TAG_NAME_LENGTH}, values of up to ${MAX_TAG_LENGTH} characters`;
}
