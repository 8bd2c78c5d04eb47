/** What an account may do. A command that is already fulfilled yields no facts. */
import { type Decider, money, type PicoUsd } from '#kernel';
import { ACCOUNT, type AccountEvent, type Instant } from '../events.ts';
import { decideHold, getHoldResolution, type OpenHold } from '../holds.ts';
import {
  type ApiKeyState,
  advanceKeyWindow,
  assertValidKey,
  calculateRemainingLimit,
  toCounterId,
  updateKeyState,
} from '../keys.ts';
import { assertBalanced, toPostings } from '../postings.ts';
import { reject } from '../rejections.ts';
import { assertWithinLossLimit } from './absorbed-losses.ts';
import type { AccountCommand, HoldLimits } from './commands.ts';
import { type AccountState, calculateSpendable, emptyAccount, evolveAccount } from './state.ts';

// decide ------------------------------------------------------------------------------------------------------------

function decide(command: AccountCommand, account: AccountState): readonly AccountEvent[] {
  if (command.type === 'OpenAccount') return openAccount(command.data, account);
  if (account.status === 'none') return reject('account_not_found', 'There is no such account');
  switch (command.type) {
    case 'CreateKey':
      return createKey(command.data, account);
    case 'UpdateKey':
      return updateKey(command.data, account);
    case 'RevokeKey':
      return revokeKey(command.data, account);
    case 'AddCredit':
      return balanced(addCredit(command.data, account));
    case 'ReverseCredit':
      return balanced(reverseCredit(command.data, account));
    case 'HoldFunds':
      return balanced(holdFunds(command.data, account));
    case 'ExtendHold':
      return balanced(extendHold(command.data, account));
    case 'KeepHold':
    case 'SettleHold':
    case 'ReleaseHold':
    case 'ExpireHolds':
    case 'AbandonHolds':
      return balanced(decideHold(command, account));
    default:
      return command satisfies never;
  }
}

type DataOf<Type extends AccountCommand['type']> = Extract<AccountCommand, { type: Type }>['data'];

function openAccount({ key, at }: DataOf<'OpenAccount'>, account: AccountState): readonly AccountEvent[] {
  if (account.status === 'open')
    return account.keys.has(key.keyId) ? [] : reject('account_exists', 'The account exists already');
  return [
    { type: 'AccountOpened', data: { at } },
    { type: 'KeyCreated', data: { ...key, at } },
  ];
}

function createKey({ key, at }: DataOf<'CreateKey'>, account: AccountState): readonly AccountEvent[] {
  const known = account.keys.get(key.keyId);
  if (known) return known.name === key.name ? [] : reject('key_exists', 'Another key has this id');
  assertNameFree(key.name, key.keyId, account);
  assertValidKey({ ...key, limit: key.limit === null ? null : money.parseJsonAmount(key.limit) }, at);
  return [{ type: 'KeyCreated', data: { ...key, at } }];
}

function updateKey({ keyId, changes, at }: DataOf<'UpdateKey'>, account: AccountState): readonly AccountEvent[] {
  const key = activeKey(keyId, account);
  if (changes.name !== undefined) assertNameFree(changes.name, keyId, account);
  // A reset period is a cap's. It does not go by itself: only what is named changes.
  if (changes.limit === null && changes.resetPeriod === undefined && key.resetPeriod !== null)
    reject('invalid_key_settings', 'usage_limit_usd cannot be removed alone: reset_period must be null as well');
  const after = updateKeyState(key, { keyId, ...changes, at });
  // An expiry that has passed meanwhile stays as it is unless the change names it.
  assertValidKey({ ...after, expireAt: changes.expireAt ?? null }, at);
  const same =
    after.name === key.name &&
    after.limit === key.limit &&
    after.resetPeriod === key.resetPeriod &&
    after.expireAt === key.expireAt;
  return same ? [] : [{ type: 'KeyUpdated', data: { keyId, ...changes, at } }];
}

function revokeKey({ keyId, at }: DataOf<'RevokeKey'>, account: AccountState): readonly AccountEvent[] {
  activeKey(keyId, account);
  return [{ type: 'KeyRevoked', data: { keyId, at } }];
}

function activeKey(keyId: string, account: AccountState): ApiKeyState {
  const key = account.keys.get(keyId);
  return key && !key.revoked ? key : reject('key_not_found', 'There is no such active key');
}

function assertNameFree(name: string, keyId: string, account: AccountState): void {
  for (const [id, key] of account.keys.entries()) {
    if (id !== keyId && !key.revoked && key.name === name)
      reject('key_name_taken', `An active key is named "${name}" already`);
  }
}

function addCredit(
  { creditId, method, amount, bonus, at }: DataOf<'AddCredit'>,
  account: AccountState,
): AccountEvent[] {
  const known = account.credits.get(creditId);
  if (known !== undefined) {
    return known === money.toJsonAmount(money.add(amount, bonus))
      ? []
      : reject('credit_conflict', `Credit ${creditId} was added with another amount`);
  }
  const data = { creditId, method, amount: money.toJsonAmount(amount), bonus: money.toJsonAmount(bonus), at };
  return [{ type: 'CreditAdded', data }];
}

function reverseCredit(data: DataOf<'ReverseCredit'>, account: AccountState): readonly AccountEvent[] {
  const { reversalId, creditId } = data;
  const [amount, bonus] = [money.toJsonAmount(data.amount), money.toJsonAmount(data.bonus)];
  const known = account.reversals.get(reversalId);
  if (known !== undefined) {
    return known === money.toJsonAmount(money.add(data.amount, data.bonus))
      ? []
      : reject('credit_conflict', `Reversal ${reversalId} was made with another amount`);
  }
  if (!account.credits.has(creditId)) reject('credit_conflict', `Credit ${creditId} was never added`);
  return [{ type: 'CreditReversed', data: { ...data, amount, bonus } }];
}

function holdFunds(data: DataOf<'HoldFunds'>, account: AccountState): readonly AccountEvent[] {
  const { holdId, keyId, owner, expiresAt, query, at, maxAmount: atMost, part, bearable } = data;
  const known = account.holds.get(holdId);
  if (known)
    return known.amount <= atMost ? [] : reject('hold_conflict', `Hold ${holdId} was made with another amount`);
  if (getHoldResolution(holdId, account)) reject('hold_resolved', `Hold ${holdId} has ended`);
  const left = enough(data, account);
  if (bearable !== undefined) assertWithinLossLimit(account.losses, bearable, at);
  const wanted = part ? money.max(part.first, (left / part.share) as PicoUsd) : atMost;
  const amount = money.toJsonAmount(money.min(wanted, atMost, left));
  const owned = owner === undefined ? {} : { owner };
  return [{ type: 'FundsHeld', data: { holdId, keyId, amount, ...owned, expiresAt, query, at } }];
}

/** What is left for a new hold. @throws Rejection when it is too little */
function enough(data: DataOf<'HoldFunds'>, account: AccountState): PicoUsd {
  const { keyId, at } = data;
  const key = keyId === null ? null : advanceKeyWindow(usableKey(keyId, at, account), at);
  const allowed = key && calculateRemainingLimit(key, at);
  const left = calculateSpendable(account, keyId, at);
  if (key && allowed !== null) {
    const required = needed(data, allowed, key.held);
    if (allowed < required)
      reject('key_limit_exceeded', 'The key has reached its spending limit', shortage(required, left, key.held));
  }
  const available = money.max(account.available);
  const required = needed(data, available, account.held);
  if (available < required)
    reject('insufficient_balance', 'Insufficient balance', shortage(required, left, account.held));
  return left;
}

/**
 * Where running requests hold the rest, a request waits for its first part: with less it would be cut short, and could
 * have been answered a moment later. Where there is no more at all, it takes what there is.
 */
function needed({ minAmount: atLeast, maxAmount: atMost, part }: HoldLimits, left: PicoUsd, held: PicoUsd): PicoUsd {
  const first = money.min(part?.first ?? atMost, atMost);
  return left + held >= first ? money.max(first, atLeast) : atLeast;
}

function shortage(required: PicoUsd, left: PicoUsd, held: PicoUsd): Readonly<Record<string, string>> {
  return {
    required: money.formatUsd(required),
    affordable: money.formatUsd(left),
    ...(held > 0n ? { held: money.formatUsd(held) } : {}),
  };
}

function extendHold({ holdId, atLeast, to, at }: DataOf<'ExtendHold'>, account: AccountState): readonly AccountEvent[] {
  const hold = account.holds.get(holdId);
  if (!hold || hold.expiresAt <= at) return reject('hold_resolved', `Hold ${holdId} has ended`);
  if (hold.amount >= to) return [];
  const { keyId } = hold;
  const reachable = money.add(hold.amount, money.max(account.available));
  const allowed = keyId === null ? null : reachableByKey(advanceKeyWindow(usableKey(keyId, at, account), at), hold, at);
  const amount = money.min(to, reachable, allowed ?? to);
  if (amount < atLeast || amount <= hold.amount) {
    const code = allowed !== null && allowed < reachable ? 'key_limit_exceeded' : 'insufficient_balance';
    const others = money.subtract(account.held, hold.amount);
    reject(code, `There is no more to be had for hold ${holdId}`, { held: money.formatUsd(others) });
  }
  const by = money.toJsonAmount(money.subtract(amount, hold.amount));
  return [{ type: 'HoldExtended', data: { holdId, keyId, amount: money.toJsonAmount(amount), by, at } }];
}

/** The most that a hold can come to within its key's cap: in a later reset window all of it counts anew. */
function reachableByKey(key: ApiKeyState, { amount, counter }: OpenHold, at: Instant): PicoUsd | null {
  const allowed = calculateRemainingLimit(key, at);
  return allowed === null || toCounterId(key) !== counter ? allowed : money.add(amount, allowed);
}

function usableKey(keyId: string, at: Instant, account: AccountState): ApiKeyState {
  const key = account.keys.get(keyId);
  if (!key || key.revoked) return reject('key_revoked', 'The API key was not found or has been revoked');
  if (key.expireAt !== null && key.expireAt <= at) return reject('key_expired', 'The API key has expired');
  return key;
}

function balanced(events: readonly AccountEvent[]): readonly AccountEvent[] {
  for (const event of events) assertBalanced(toPostings(ACCOUNT, event));
  return events;
}

export const accountDecider: Decider<AccountCommand, AccountState, AccountEvent> = {
  getInitialState: () => emptyAccount,
  evolve: evolveAccount,
  decide,
};
