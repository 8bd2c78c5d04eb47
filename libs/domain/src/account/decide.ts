/**
 * The decisions of an account. Most commands that are already fulfilled produce no events. A second revocation of a key
 * is rejected.
 */
import { type Decider, money, type PicoUsd, ZERO_USD } from '#kernel';
import { ACCOUNT, type AccountEvent, type HoldEvent, type Instant } from '../events.ts';
import { decideHold } from '../holds.ts';
import { type ApiKeyState, assertValidKey, getChargeWindow, hasSameSettings, updateKeyState } from '../keys.ts';
import { deriveChargeWindow } from '../limit-window.ts';
import { assertBalanced, toPostings } from '../postings.ts';
import { reject } from '../rejections.ts';
import type { AccountCommand } from './commands.ts';
import { extendHold, holdFunds } from './hold-decisions.ts';
import { type AccountState, evolveAccount, INITIAL_ACCOUNT } from './state.ts';

// decide ------------------------------------------------------------------------------------------------------------

function decide(command: AccountCommand, account: AccountState): readonly AccountEvent[] {
  if (command.type === 'OpenAccount') return openAccount(command.data, account);
  if (account.status === 'none') return reject('account_not_found', 'Account not found');
  switch (command.type) {
    case 'CreateKey':
      return createKey(command.data, account);
    case 'UpdateKey':
      return updateKey(command.data, account);
    case 'RevokeKey':
      return revokeKey(command.data, account);
    case 'AddCredit':
      return ensureBalanced(addCredit(command.data, account));
    case 'ReverseCredit':
      return ensureBalanced(reverseCredit(command.data, account));
    case 'AdjustBalance':
      return ensureBalanced(adjustBalance(command.data, account));
    case 'HoldFunds':
      return ensureBalanced(holdFunds(command.data, account));
    case 'ExtendHold':
      return ensureBalanced(extendHold(command.data, account));
    case 'SettleHold':
      return ensureBalanced(decideHold(command, account).map((event) => stateChargeWindow(event, account)));
    case 'KeepHold':
    case 'ReleaseHold':
    case 'AbsorbCharge':
    case 'ReverseCharge':
    case 'ExpireHolds':
    case 'AbandonHolds':
      return ensureBalanced(decideHold(command, account));
    default:
      return command satisfies never;
  }
}

type DataOf<Type extends AccountCommand['type']> = Extract<AccountCommand, { type: Type }>['data'];

function openAccount({ key, at }: DataOf<'OpenAccount'>, account: AccountState): readonly AccountEvent[] {
  if (account.status === 'open')
    return key && account.keys.has(key.keyId) ? [] : reject('account_exists', 'The account already exists');
  const openedEvent = { type: 'AccountOpened', data: { at } } as const;
  return key ? [openedEvent, { type: 'KeyCreated', data: { ...key, at } }] : [openedEvent];
}

function createKey({ key, at }: DataOf<'CreateKey'>, account: AccountState): readonly AccountEvent[] {
  const existing = account.keys.get(key.keyId);
  if (existing) return existing.name === key.name ? [] : reject('key_exists', 'Another API key already has this id');
  assertNameFree(key.name, key.keyId, account);
  assertValidKey({ ...key, limit: key.limit === null ? null : money.parseJsonAmount(key.limit) }, at);
  return [{ type: 'KeyCreated', data: { ...key, at } }];
}

function updateKey({ keyId, changes: sent, at }: DataOf<'UpdateKey'>, account: AccountState): readonly AccountEvent[] {
  const key = getActiveKey(keyId, account);
  if (sent.name !== undefined) assertNameFree(sent.name, keyId, account);
  // A reset period requires a limit, so it ends with the limit.
  const changes =
    sent.limit === null && key.resetPeriod !== null ? { ...sent, resetPeriod: sent.resetPeriod ?? null } : sent;
  const after = updateKeyState(key, { keyId, ...changes, at });
  // A key that has expired can be changed: its expiry is validated only if the change has one.
  assertValidKey({ ...after, expireAt: changes.expireAt ?? null }, at);
  if (hasSameSettings(after, key)) return [];
  return [{ type: 'KeyUpdated', data: { keyId, ...changes, at: toInstantAfter(key.countedUntil, at) } }];
}

/**
 * Returns the instant of a change that follows holds up to `countedUntil`: that of its command, unless the command was
 * created before, by a process whose clock lags or that was retried. Reversals of charges compare both times.
 */
function toInstantAfter(countedUntil: Instant, at: Instant): Instant {
  return at > countedUntil ? at : new Date(Date.parse(countedUntil) + 1).toISOString();
}

function revokeKey({ keyId, at }: DataOf<'RevokeKey'>, account: AccountState): readonly AccountEvent[] {
  getActiveKey(keyId, account);
  return [{ type: 'KeyRevoked', data: { keyId, at } }];
}

function getActiveKey(keyId: string, account: AccountState): ApiKeyState {
  const key = account.keys.get(keyId);
  return key && !key.revoked ? key : reject('key_not_found', 'Active API key not found');
}

function assertNameFree(name: string, keyId: string, account: AccountState): void {
  for (const [id, key] of account.keys.entries()) {
    if (id !== keyId && !key.revoked && key.name === name)
      reject('key_name_taken', `An active API key named "${name}" already exists`);
  }
}

function addCredit(
  { creditId, method, amount, bonus, at }: DataOf<'AddCredit'>,
  account: AccountState,
): AccountEvent[] {
  const existing = account.credits.get(creditId);
  if (existing !== undefined) {
    return existing === money.toJsonAmount(money.add(amount, bonus))
      ? []
      : reject('credit_conflict', `Credit ${creditId} already exists with a different amount`);
  }
  const data = { creditId, method, amount: money.toJsonAmount(amount), bonus: money.toJsonAmount(bonus), at };
  return [{ type: 'CreditAdded', data }];
}

function reverseCredit(data: DataOf<'ReverseCredit'>, account: AccountState): readonly AccountEvent[] {
  const { reversalId, creditId } = data;
  const [amount, bonus] = [money.toJsonAmount(data.amount), money.toJsonAmount(data.bonus)];
  const existing = account.reversals.get(reversalId);
  if (existing !== undefined) {
    return existing === money.toJsonAmount(money.add(data.amount, data.bonus))
      ? []
      : reject('credit_conflict', `Reversal ${reversalId} already exists with a different amount`);
  }
  if (!account.credits.has(creditId)) reject('credit_conflict', `Credit ${creditId} not found`);
  return [{ type: 'CreditReversed', data: { ...data, amount, bonus } }];
}

/** The balance is never debited below zero, so a debit leaves the money that running requests hold. */
function adjustBalance(data: DataOf<'AdjustBalance'>, account: AccountState): readonly AccountEvent[] {
  const { adjustmentId, amount, reverses } = data;
  const existing = account.adjustments.get(adjustmentId);
  if (existing !== undefined) {
    return existing.amount === money.toJsonAmount(amount) && existing.reverses === reverses
      ? []
      : reject('adjustment_conflict', `The id ${adjustmentId} was used for another adjustment of this account`);
  }
  if (amount === ZERO_USD) reject('adjustment_conflict', 'An adjustment of 0 USD has no effect');
  if (reverses !== undefined) assertReversible(reverses, amount, account);
  const after = money.add(account.available, amount);
  if (amount < ZERO_USD && after < ZERO_USD)
    reject(
      'insufficient_balance',
      `The account has only ${money.formatUsd(money.max(account.available))} USD available, less than ${money.formatUsd(money.negate(amount))} USD`,
    );
  return [{ type: 'BalanceAdjusted', data: { ...data, amount: money.toJsonAmount(amount) } }];
}

function assertReversible(adjustmentId: string, amount: PicoUsd, { adjustments }: AccountState): void {
  const adjustment = adjustments.get(adjustmentId);
  if (adjustment?.reversedBy !== undefined)
    reject('adjustment_conflict', `${adjustmentId} was reversed before, by ${adjustment.reversedBy}`);
  if (!adjustment) reject('adjustment_conflict', `The account has no adjustment ${adjustmentId}`);
  else if (money.parseJsonAmount(adjustment.amount) !== money.negate(amount))
    reject('adjustment_conflict', `${adjustmentId} can only be reversed completely`);
}

/**
 * States the window in which a charge counts towards the limit of the key, unless the times show it. The account does
 * not store when the reset period was changed, so after a change the window is always stated.
 */
function stateChargeWindow(event: HoldEvent, account: AccountState): HoldEvent {
  if (event.type !== 'HoldSettled') return event;
  const { holdId, keyId } = event.data;
  const [hold, key] = [account.holds.get(holdId), keyId === null ? undefined : account.keys.get(keyId)];
  if (!hold || !key) return event;
  const countedIn = getChargeWindow(key, hold.counter);
  const { resetPeriod, changes, createdAt: countsFrom } = key;
  return changes === 0 && countedIn === deriveChargeWindow({ resetPeriod, countsFrom }, hold.countedAt)
    ? event
    : { ...event, data: { ...event.data, countedIn } };
}

function ensureBalanced(events: readonly AccountEvent[]): readonly AccountEvent[] {
  for (const event of events) assertBalanced(toPostings(ACCOUNT, event));
  return events;
}

export const accountDecider: Decider<AccountCommand, AccountState, AccountEvent> = {
  getInitialState: () => INITIAL_ACCOUNT,
  evolve: evolveAccount,
  decide,
};
