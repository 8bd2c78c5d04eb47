/**
 * The decisions that hold money of an account. The money is limited twice: by the balance, and by the limit of the API
 * key if it has one. Both limit what is held, and what providers may bill beyond that.
 */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import type { FundsHeld, HoldExtended, Instant } from '../events.ts';
import { getHoldResolution, type OpenHold } from '../holds.ts';
import {
  type ApiKeyState,
  advanceKeyWindow,
  assertDedupeKnown,
  assertModelAllowed,
  calculateRemainingLimit,
  calculateUnspentLimit,
  toCounterId,
} from '../keys.ts';
import { reject, rejectForNow } from '../rejections.ts';
import { assertWithinLossLimit, calculateRemainingLoss, getUnheldLoss } from './absorbed-losses.ts';
import type { HoldExtension, HoldExtensionTerms, HoldLimits } from './commands.ts';
import {
  calculateExposure,
  calculateReserve,
  calculateTolerance,
  type HoldPrices,
  type RiskLimits,
  toStoredPrices,
  type UnheldSums,
} from './exposure.ts';
import type { AccountState } from './state.ts';

/**
 * A process knows only the requests that wait at itself, and more may arrive a moment later. So the share of a request
 * that may be billed in full is calculated for this many times the known number, itself included. With a lower factor,
 * the last request in a line leaves too little for those at other processes.
 */
const WAITING_FACTOR = 8n;

/** The money within one limit: the balance of the account, or the limit of a key. */
interface MoneyLimit extends UnheldSums {
  readonly code: 'insufficient_balance' | 'key_limit_exceeded';
  readonly message: string;
  /** What is available now, at least zero. */
  readonly available: PicoUsd;
  readonly held: PicoUsd;
  /** What would be available without any hold, at least zero. */
  readonly total: PicoUsd;
  /** Exposure that is tolerated beyond the available money; unlimited if undefined. */
  readonly tolerance: PicoUsd | undefined;
}

/** The limit of the key comes first. */
type MoneyLimits = readonly [MoneyLimit, ...MoneyLimit[]];

interface IncreaseRequest {
  readonly min: PicoUsd;
  readonly max: PicoUsd;
  readonly isFinal: boolean;
  readonly stopPrice?: PicoUsd;
}

type Limited<Data> = Data & { readonly riskLimits?: RiskLimits | undefined; readonly at: Instant };

/**
 * @throws Rejection `key_limit_exceeded` or `insufficient_balance` if too little money is available, `key_revoked`,
 *   `key_expired`, `key_blocked`, `model_not_allowed`, `dedupe_changed`, `too_much_borne`, `hold_conflict`,
 *   `hold_resolved`
 */
export function holdFunds(data: Limited<HoldLimits>, account: AccountState): readonly FundsHeld[] {
  const { holdId, keyId, owner, expiresAt, query, at, minAmount, maxAmount, partialHold, riskLimits } = data;
  const models = [query.model, ...(data.fallbackModels ?? [])];
  const existing = account.holds.get(holdId);
  if (existing)
    return existing.amount <= maxAmount
      ? []
      : reject('hold_conflict', `Hold ${holdId} already exists with a different amount`);
  if (getHoldResolution(holdId, account)) reject('hold_resolved', `Hold ${holdId} has ended`);
  const key = keyId === null ? undefined : advanceKeyWindow(getUsableKey(keyId, at, account), at);
  if (key) for (const model of models) assertModelAllowed(model, key);
  if (key && data.dedupeSeconds !== undefined) assertDedupeKnown(key, data.dedupeSeconds);
  const moneyLimits = createMoneyLimits(account, key, { riskLimits, at });
  const spendable = money.min(...mapLimits(moneyLimits, ({ available }) => available));
  for (const moneyLimit of moneyLimits) assertFirstPart(data, moneyLimit, spendable);
  if (riskLimits?.lossPerHour !== undefined) {
    const tolerated = calculateTolerance(riskLimits, money.add(money.max(account.available), account.held));
    assertWithinLossLimit(account.losses, { perHour: riskLimits.lossPerHour, tolerated }, at);
  }
  const requested = partialHold
    ? money.max(minAmount, partialHold.minAmount, (spendable / partialHold.divisor) as PicoUsd)
    : maxAmount;
  const amount = money.min(requested, maxAmount, spendable);
  const prices = partialHold?.extension
    ? choosePrices(partialHold.extension, { amount, spendable }, data, moneyLimits)
    : { amount };
  for (const moneyLimit of moneyLimits) assertCapacityForOthers(prices, moneyLimit, spendable);
  const owned = owner === undefined ? {} : { owner };
  return [
    {
      type: 'FundsHeld',
      data: {
        holdId,
        keyId,
        amount: money.toJsonAmount(amount),
        ...toStoredPrices(prices),
        ...owned,
        expiresAt,
        query,
        at,
      },
    },
  ];
}

/** Extends a hold. A repetition of a command whose response was lost is not rejected. */
export function extendHold(
  { holdId, minAmount, targetAmount, knownAmount, riskLimits, at, ...data }: Limited<HoldExtension>,
  account: AccountState,
): readonly HoldExtended[] {
  const hold = account.holds.get(holdId);
  if (!hold || hold.expiresAt <= at) return reject('hold_resolved', `Hold ${holdId} is not open or has expired`);
  const isSpeedNew = hold.limitPrice !== undefined && hold.stopPrice === undefined && data.stopPrice !== undefined;
  const stopPrice = isSpeedNew ? { stopPrice: data.stopPrice as PicoUsd } : {};
  if (hold.amount >= targetAmount) return [];
  // A repetition of a command whose response was lost must not be rejected because the first attempt took everything.
  const isExtended = hold.amount > knownAmount && hold.amount >= minAmount;
  const { keyId } = hold;
  const storedKey = keyId === null ? undefined : account.keys.get(keyId);
  if (isExtended && storedKey && !isUsable(storedKey, at)) return [];
  // What was generated before its key became invalid is still paid.
  const isFinal = data.isFinal === true;
  const usableKey = keyId === null || isFinal ? storedKey : getUsableKey(keyId, at, account);
  const key = usableKey && countInWindow(hold, advanceKeyWindow(usableKey, at));
  const moneyLimits = createMoneyLimits(account, key, { riskLimits, at });
  const min = money.subtract(minAmount, hold.amount);
  const requested = { min, max: money.subtract(targetAmount, hold.amount), isFinal, ...stopPrice };
  const increases = mapLimits(moneyLimits, (moneyLimit) => limitIncrease(hold, requested, moneyLimit));
  const increase = money.min(...increases);
  const amount = money.add(hold.amount, increase);
  if (increase > ZERO_USD && amount >= minAmount) {
    return [
      {
        type: 'HoldExtended',
        data: {
          holdId,
          keyId,
          amount: money.toJsonAmount(amount),
          by: money.toJsonAmount(increase),
          ...toStoredPrices(stopPrice),
          at,
        },
      },
    ];
  }
  if (isExtended) return [];
  const { code, held } = moneyLimits[increases.lastIndexOf(increase)] as MoneyLimit;
  const heldByOthers = money.max(money.subtract(held, hold.amount));
  return reject(code, `Too little is available to extend hold ${holdId}`, { held: money.formatUsd(heldByOthers) });
}

function createMoneyLimits(
  account: AccountState,
  key: ApiKeyState | undefined,
  { riskLimits, at }: Limited<object>,
): MoneyLimits {
  const { held, losses } = account;
  const available = money.max(account.available);
  const getTolerance = (balance: PicoUsd) => {
    if (!riskLimits) return undefined;
    const tolerated = calculateTolerance(riskLimits, balance);
    const { lossPerHour: perHour } = riskLimits;
    // What was lost beyond the holds within the hour has used up a part of what is tolerated.
    const unused = money.subtract(tolerated, getUnheldLoss(losses, at));
    const remaining = perHour === undefined ? unused : calculateRemainingLoss(losses, { perHour, tolerated }, at);
    return money.max(money.min(unused, remaining));
  };
  const balance: MoneyLimit = {
    code: 'insufficient_balance',
    message: 'Insufficient balance',
    available,
    held,
    total: money.max(money.add(account.available, held)),
    exposure: account.exposure,
    reserve: account.reserve,
    tolerance: getTolerance(money.add(available, held)),
  };
  const allowed = key ? calculateRemainingLimit(key, at) : null;
  if (!key || allowed === null) return [balance];
  const limit: MoneyLimit = {
    code: 'key_limit_exceeded',
    message: 'The API key has reached its spending limit',
    available: allowed,
    held: key.held,
    total: calculateUnspentLimit(key) ?? allowed,
    exposure: key.exposure,
    reserve: key.reserve,
    tolerance: getTolerance(money.add(allowed, key.held)),
  };
  return [limit, balance];
}

/**
 * Rejects a hold if less than its first part is available: `partialHold.minAmount` or, without a partial hold,
 * `maxAmount`, but at least `minAmount`. With less, a response could be truncated, although a later attempt could
 * succeed after running requests have ended. If the first part exceeds even the available and the held money, waiting
 * cannot help, and `minAmount` is sufficient.
 */
function assertFirstPart(
  { minAmount, maxAmount, partialHold }: HoldLimits,
  moneyLimit: MoneyLimit,
  spendable: PicoUsd,
): void {
  const { code, message, available, held, total } = moneyLimit;
  const first = money.min(partialHold?.minAmount ?? maxAmount, maxAmount);
  const required = total >= first ? money.max(first, minAmount) : minAmount;
  if (available >= required) return;
  const rejectShortage = total >= required ? rejectForNow : reject;
  rejectShortage(code, message, toShortageDetails(required, spendable, held));
}

/**
 * Chooses the output limit of a response whose hold is extended while it is generated. It is what the payer's money
 * reaches. If the provider may bill all of that before it is stopped, and the exposure is not covered or others wait,
 * the limit is a share of the money that is left, but at least a usual long response. If not even that is covered, and
 * no running request may need more money, it is what is available.
 */
function choosePrices(
  { minLimitPrice, fixedLimitPrice, longPrice, stopPrice }: HoldExtensionTerms,
  { amount, spendable }: { readonly amount: PicoUsd; readonly spendable: PicoUsd },
  { maxAmount, waiting }: HoldLimits,
  moneyLimits: MoneyLimits,
): HoldPrices {
  const createPrices = (limitPrice: PicoUsd): HoldPrices => {
    if (limitPrice <= amount) return { amount };
    const stop = stopPrice === undefined ? {} : { stopPrice };
    return { amount, limitPrice, longPrice, ...stop };
  };
  if (fixedLimitPrice !== undefined) return createPrices(fixedLimitPrice);
  const maxAvailable = money.min(maxAmount, ...mapLimits(moneyLimits, ({ total }) => total));
  const prices = createPrices(maxAvailable);
  const shares = mapLimits(moneyLimits, (moneyLimit) => calculateShare(amount, moneyLimit, waiting ?? 0));
  const reduced = createPrices(
    money.min(maxAvailable, money.max(minLimitPrice, money.add(amount, money.min(...shares)))),
  );
  const isCovered = (chosen: HoldPrices) => moneyLimits.every((limit) => calculateExcess(chosen, limit) <= 0n);
  // If the provider is stopped earlier, a lower limit hardly reduces the exposure, but truncates long responses.
  const canUseAll = amount < maxAvailable && calculateExposure(prices) === maxAvailable - amount;
  if (!isCovered(prices)) {
    const chosen = canUseAll ? reduced : prices;
    const mustWait = moneyLimits.some((limit) => isContested(limit) && calculateExcess(chosen, limit) > 0n);
    if (mustWait) return chosen;
    return isCovered(reduced) ? reduced : createPrices(money.min(maxAmount, spendable));
  }
  // If the provider may bill all of the money before it is stopped, requests that arrive at the same time would wait for
  // the end of this response. So this one waits for them first, for an instant.
  if (canUseAll && maxAvailable < maxAmount && waiting === undefined)
    rejectForLackOfCapacity(prices, moneyLimits[0], spendable);
  return waiting && canUseAll ? reduced : prices;
}

/**
 * Returns the part of the money left after a hold, and after all exposures, that one of the waiting requests may use.
 */
function calculateShare(amount: PicoUsd, moneyLimit: MoneyLimit, waiting: number): PicoUsd {
  const { available, tolerance = ZERO_USD, exposure } = moneyLimit;
  const capacity = money.max((available - amount + tolerance - exposure) as PicoUsd);
  return (capacity / ((BigInt(waiting) + 1n) * WAITING_FACTOR)) as PicoUsd;
}

/**
 * Rejects a hold for now if providers could then bill more for all running requests than is available and tolerated, or
 * if running requests could lack the money for long responses. A request is always accepted if no running one may need
 * more money than it holds.
 */
function assertCapacityForOthers(prices: HoldPrices, moneyLimit: MoneyLimit, spendable: PicoUsd): void {
  if (!isContested(moneyLimit) || prices.amount === ZERO_USD) return;
  const reserve = money.add(moneyLimit.reserve, calculateReserve(prices));
  const isReserved = money.subtract(moneyLimit.available, prices.amount) < reserve;
  if (isReserved || calculateExcess(prices, moneyLimit) > 0n) rejectForLackOfCapacity(prices, moneyLimit, spendable);
}

function rejectForLackOfCapacity(prices: HoldPrices, moneyLimit: MoneyLimit, spendable: PicoUsd) {
  const { code, message, available, held, reserve } = moneyLimit;
  const reserved = (prices.amount + reserve + calculateReserve(prices)) as PicoUsd;
  const required = money.max(reserved, (available + calculateExcess(prices, moneyLimit)) as PicoUsd);
  return rejectForNow(code, message, toShortageDetails(required, spendable, held));
}

/** Returns by how much the exposure would exceed the money that is available after a hold; at most 0 if it does not. */
function calculateExcess(prices: HoldPrices, { available, tolerance, exposure }: MoneyLimit): bigint {
  if (tolerance === undefined) return 0n;
  return exposure + calculateExposure(prices) - (available - prices.amount) - tolerance;
}

/** Whether running requests may need more money within the limit than they hold. */
function isContested({ exposure, reserve }: MoneyLimit): boolean {
  return exposure > ZERO_USD || reserve > ZERO_USD;
}

/**
 * Returns by how much a hold can be extended: as far as the exposure of all running requests stays covered, or the
 * extension reduces the exposure as much as the available money. Beyond the minimum, the price of a long response is
 * not exceeded if other requests then could lack the money for theirs. If no other request may need more than it holds,
 * this one can use all of the money.
 */
function limitIncrease(
  hold: OpenHold,
  { min, max, isFinal, ...stopPrice }: IncreaseRequest,
  moneyLimit: MoneyLimit,
): PicoUsd {
  const { available, tolerance, exposure, reserve } = moneyLimit;
  const ownReserve = calculateReserve(hold);
  const isContestedByOthers = exposure > calculateExposure(hold) || reserve > ownReserve;
  if (!isContestedByOthers) return money.min(max, available);
  const unreserved = money.subtract(available, money.subtract(reserve, ownReserve));
  const toLongPrice = money.subtract(hold.longPrice ?? hold.amount, hold.amount);
  const possible = isFinal
    ? money.min(max, available)
    : money.min(max, available, money.max(min, toLongPrice, unreserved));
  if (tolerance === undefined) return possible;
  const before = calculateExposure(hold);
  const extended = { ...hold, ...stopPrice, amount: money.add(hold.amount, possible) };
  const after = isFinal ? ZERO_USD : calculateExposure(extended);
  const excess = exposure - before + after - (available - possible) - tolerance;
  if (excess <= 0n || before - after >= possible) return possible;
  return money.min(possible, money.max((available + tolerance - exposure) as PicoUsd));
}

/** Returns the key with the hold counted in its current reset window: an extension moves the complete hold there. */
function countInWindow({ amount, counter }: OpenHold, key: ApiKeyState): ApiKeyState {
  return toCounterId(key) === counter ? key : { ...key, held: money.add(key.held, amount) };
}

function toShortageDetails(required: PicoUsd, remaining: PicoUsd, held: PicoUsd): Readonly<Record<string, string>> {
  return {
    required: money.formatUsd(required),
    affordable: money.formatUsd(remaining),
    ...(held > 0n ? { held: money.formatUsd(held) } : {}),
  };
}

function mapLimits(
  [first, ...rest]: MoneyLimits,
  map: (moneyLimit: MoneyLimit) => PicoUsd,
): readonly [PicoUsd, ...PicoUsd[]] {
  return [map(first), ...rest.map(map)];
}

function getUsableKey(keyId: string, at: Instant, account: AccountState): ApiKeyState {
  const key = account.keys.get(keyId);
  if (!key || key.revoked) return reject('key_revoked', 'The API key was not found or has been revoked');
  if (hasExpired(key, at)) return reject('key_expired', 'The API key has expired');
  if (key.blocked) return reject('key_blocked', 'The API key is blocked');
  return key;
}

function isUsable(key: ApiKeyState, at: Instant): boolean {
  return !key.revoked && !key.blocked && !hasExpired(key, at);
}

function hasExpired({ expireAt }: ApiKeyState, at: Instant): boolean {
  return expireAt !== null && expireAt <= at;
}
