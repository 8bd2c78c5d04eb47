/**
 * The state of an account: its available money, its holds, and its API keys with their limits. Every decision sees all
 * of it. So balance, limits, expiry and revocation are enforced in one conditional append, with any number of gateways.
 *
 * Spending has two phases: a hold, and exactly one end of the hold (settled, released or expired).
 */
import { Map as ImmutableMap } from 'immutable';
import { money, type PicoUsd, throwUnknownEvent, ZERO_USD } from '#kernel';
import type { AccountEvent, BalanceAdjusted, ChargeReversed, FundsHeld, HoldExtended, Instant } from '../events.ts';
import {
  estimateHoldsBytes,
  getHoldResolution,
  type Holds,
  markAbsorbed,
  markReversed,
  NO_RECENT_IDS,
  type OpenHold,
  removeHold,
  transferHold,
} from '../holds.ts';
import {
  type ApiKeyState,
  advanceKeyWindow,
  calculateRemainingLimit,
  createKeyState,
  measureAccess,
  reverseKeyCharge,
  toCounterId,
  updateKeyState,
} from '../keys.ts';
import { type AbsorbedLosses, addChargeToLosses, addLoss } from './absorbed-losses.ts';
import { NO_UNHELD, parseHoldPrices, type UnheldSums, updateUnheld } from './exposure.ts';

export interface AccountState extends Holds, UnheldSums {
  readonly status: 'none' | 'open';
  readonly available: PicoUsd;
  readonly held: PicoUsd;
  readonly keys: ImmutableMap<string, ApiKeyState>;
  /** Number of characters of the models and tags of all keys. */
  readonly accessLength: number;
  /** Amounts by credit id, in pico-USD. */
  readonly credits: ImmutableMap<string, string>;
  /** Amounts by reversal id, in pico-USD; negative if a credit was reversed, positive if it was restored. */
  readonly reversals: ImmutableMap<string, string>;
  /** By adjustment id. */
  readonly adjustments: ImmutableMap<string, AdjustmentState>;
  /** Undefined before the first loss. A charge without a loss clears this if the hour has ended. */
  readonly losses?: AbsorbedLosses | undefined;
}

/** A credit or debit by the operator. */
export interface AdjustmentState {
  /** Pico-USD; negative for a debit. */
  readonly amount: string;
  /** Id of the adjustment that this one reverses. */
  readonly reverses?: string | undefined;
  /** Id of the adjustment that reversed this one. */
  readonly reversedBy?: string | undefined;
}

export const INITIAL_ACCOUNT: AccountState = {
  status: 'none',
  available: ZERO_USD,
  held: ZERO_USD,
  ...NO_UNHELD,
  holds: ImmutableMap(),
  keys: ImmutableMap(),
  accessLength: 0,
  credits: ImmutableMap(),
  reversals: ImmutableMap(),
  adjustments: ImmutableMap(),
  resolved: NO_RECENT_IDS,
  expired: NO_RECENT_IDS,
};

/** Heap size of an entry of a map of credits or reversals, and of the map of keys, measured with Node 24. */
const CREDIT_BYTES = 245;
const KEY_BYTES = 650;
/** Of the models and tags of a key, including the headers of the texts; measured in the same way. */
const ACCESS_CHARACTER_BYTES = 2;

/** Estimates the memory of an account in bytes. */
export function estimateAccountBytes(account: AccountState): number {
  const { keys, accessLength, credits, reversals, adjustments } = account;
  const creditBytes = CREDIT_BYTES * (credits.size + reversals.size + adjustments.size);
  return estimateHoldsBytes(account) + KEY_BYTES * keys.size + ACCESS_CHARACTER_BYTES * accessLength + creditBytes;
}

/** Whether an account was ever credited, by a payment or by the operator. */
export function isFunded({ credits, adjustments }: Pick<AccountState, 'credits' | 'adjustments'>): boolean {
  return credits.size > 0 || adjustments.some(({ amount }) => money.parseJsonAmount(amount) > ZERO_USD);
}

/**
 * Returns what can be spent now within the limit of a key, at least zero: after a reversal the balance can be negative,
 * and only free requests are possible then.
 */
export function calculateSpendable({ available, keys }: AccountState, keyId: string | null, at: Instant): PicoUsd {
  const key = keyId === null ? undefined : keys.get(keyId);
  const allowed = key ? calculateRemainingLimit(key, at) : null;
  return money.max(money.min(available, allowed ?? available));
}

export function evolveAccount(account: AccountState, event: AccountEvent): AccountState {
  switch (event.type) {
    case 'AccountOpened':
      return { ...account, status: 'open' };
    case 'KeyCreated':
      return addKey(account, event.data.keyId, createKeyState(event.data));
    case 'KeyUpdated':
      return withKey(account, event.data.keyId, (key) => updateKeyState(key, event.data));
    case 'KeyRevoked':
      return withKey(account, event.data.keyId, (key) => ({ ...key, revoked: true, updatedAt: event.data.at }));
    case 'CreditAdded': {
      const amount = money.add(money.parseJsonAmount(event.data.amount), money.parseJsonAmount(event.data.bonus));
      const credits = account.credits.set(event.data.creditId, money.toJsonAmount(amount));
      return { ...account, available: money.add(account.available, amount), credits };
    }
    case 'CreditReversed': {
      const amount = money.add(money.parseJsonAmount(event.data.amount), money.parseJsonAmount(event.data.bonus));
      const reversals = account.reversals.set(event.data.reversalId, money.toJsonAmount(amount));
      return { ...account, available: money.add(account.available, amount), reversals };
    }
    case 'BalanceAdjusted':
      return applyAdjustment(account, event.data);
    case 'FundsHeld':
      return applyHold(account, event.data);
    case 'HoldExtended':
      return applyExtension(account, event.data);
    case 'HoldKept':
      return { ...account, ...transferHold(event.data, account) };
    case 'HoldSettled': {
      const { holdId, charge, at } = event.data;
      const charged = money.parseJsonAmount(event.data.charged);
      return withLosses(
        applyHoldEnd(account, holdId, 'settled', charged),
        addChargeToLosses(account.losses, charge, charged, at),
      );
    }
    case 'HoldReleased':
      return applyHoldEnd(account, event.data.holdId, 'released', ZERO_USD);
    case 'HoldExpired':
      return applyHoldEnd(account, event.data.holdId, 'expired', ZERO_USD);
    case 'ChargeAbsorbed': {
      const { holdId, charge, at } = event.data;
      // A charge after the expiry of its hold is caused by a failed process or store, not by the account.
      const wasReleased = getHoldResolution(holdId, account) === 'released';
      const losses = wasReleased ? addLoss(account.losses, charge, at) : account.losses;
      return withLosses({ ...account, ...markAbsorbed(holdId, account) }, losses);
    }
    case 'ChargeReversed':
      return applyReversal(account, event.data);
    default:
      return throwUnknownEvent(event);
  }
}

function applyAdjustment(account: AccountState, { adjustmentId, amount, reverses }: BalanceAdjusted['data']) {
  const adjustments = account.adjustments.set(adjustmentId, {
    amount,
    ...(reverses === undefined ? {} : { reverses }),
  });
  const reversed = reverses === undefined ? undefined : adjustments.get(reverses);
  return {
    ...account,
    available: money.add(account.available, money.parseJsonAmount(amount)),
    adjustments: reversed
      ? adjustments.set(reverses as string, { ...reversed, reversedBy: adjustmentId })
      : adjustments,
  };
}

function applyReversal(account: AccountState, reversed: ChargeReversed['data']): AccountState {
  const { holdId, keyId } = reversed;
  const key = keyId === null ? undefined : account.keys.get(keyId);
  return {
    ...account,
    available: money.add(account.available, money.parseJsonAmount(reversed.charged)),
    ...markReversed(holdId, account),
    keys: key ? account.keys.set(keyId as string, reverseKeyCharge(key, reversed)) : account.keys,
  };
}

function applyHold(account: AccountState, data: FundsHeld['data']): AccountState {
  const { holdId, keyId, owner, expiresAt, query, at } = data;
  const amount = money.parseJsonAmount(data.amount);
  const storedKey = keyId === null ? undefined : account.keys.get(keyId);
  const key = storedKey && advanceKeyWindow(storedKey, at);
  const counter = key ? toCounterId(key) : '';
  const owned = owner === undefined ? {} : { owner };
  const prices = parseHoldPrices(data);
  const hold: OpenHold = { amount, keyId, counter, ...owned, expiresAt, query, at, countedAt: at, ...prices };
  const updatedKey =
    key && updateUnheld({ ...countUntil(key, at), held: money.add(key.held, amount) }, undefined, hold);
  return {
    ...updateUnheld(account, undefined, hold),
    available: money.subtract(account.available, amount),
    held: money.add(account.held, amount),
    holds: account.holds.set(holdId, hold),
    keys: updatedKey ? account.keys.set(keyId as string, updatedKey) : account.keys,
  };
}

/** Records that a hold of the key was counted at this time. */
function countUntil(key: ApiKeyState, at: Instant): ApiKeyState {
  return at > key.countedUntil ? { ...key, countedUntil: at } : key;
}

/** An extension in a later reset window of the key moves the complete hold to the counters of that window. */
function applyExtension(account: AccountState, { holdId, at, ...data }: HoldExtended['data']): AccountState {
  const hold = account.holds.get(holdId);
  if (!hold) return account;
  const [amount, by] = [money.parseJsonAmount(data.amount), money.parseJsonAmount(data.by)];
  const storedKey = hold.keyId === null ? undefined : account.keys.get(hold.keyId);
  const key = storedKey && advanceKeyWindow(storedKey, at);
  const moves = key !== undefined && toCounterId(key) !== hold.counter;
  const prices = parseHoldPrices({ stopPrice: data.stopPrice });
  const extended = { ...hold, amount, ...prices, ...(moves ? { counter: toCounterId(key), countedAt: at } : {}) };
  const updatedKey =
    key && updateUnheld({ ...countUntil(key, at), held: money.add(key.held, moves ? amount : by) }, hold, extended);
  return {
    ...updateUnheld(account, hold, extended),
    available: money.subtract(account.available, by),
    held: money.add(account.held, by),
    holds: account.holds.set(holdId, extended),
    keys: updatedKey ? account.keys.set(hold.keyId as string, updatedKey) : account.keys,
  };
}

function applyHoldEnd(
  account: AccountState,
  holdId: string,
  resolution: 'settled' | 'released' | 'expired',
  charged: PicoUsd,
): AccountState {
  const hold = account.holds.get(holdId);
  if (!hold) return account;
  const key = hold.keyId === null ? undefined : account.keys.get(hold.keyId);
  return {
    ...updateUnheld(account, hold, undefined),
    available: (account.available + hold.amount - charged) as PicoUsd,
    held: money.subtract(account.held, hold.amount),
    ...removeHold(holdId, resolution, account),
    keys: key ? account.keys.set(hold.keyId as string, applyHoldEndToKey(key, hold, charged)) : account.keys,
  };
}

/** A charge counts towards the limit only in the window in which its hold was counted. */
function applyHoldEndToKey(key: ApiKeyState, hold: OpenHold, charged: PicoUsd): ApiKeyState {
  const updated = updateUnheld({ ...key, usedInAll: money.add(key.usedInAll, charged) }, hold, undefined);
  if (toCounterId(key) !== hold.counter) return updated;
  return { ...updated, held: money.subtract(key.held, hold.amount), used: money.add(key.used, charged) };
}

function withLosses(account: AccountState, losses: AbsorbedLosses | undefined): AccountState {
  return losses === account.losses ? account : { ...account, losses };
}

function addKey(account: AccountState, keyId: string, key: ApiKeyState): AccountState {
  return { ...account, keys: account.keys.set(keyId, key), accessLength: account.accessLength + measureAccess(key) };
}

function withKey(account: AccountState, keyId: string, change: (key: ApiKeyState) => ApiKeyState): AccountState {
  const key = account.keys.get(keyId);
  if (!key) return account;
  return addKey({ ...account, accessLength: account.accessLength - measureAccess(key) }, keyId, change(key));
}
