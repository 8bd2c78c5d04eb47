/**
 * Exposure: what providers may bill for the running requests of an account beyond what is held for them. A response
 * whose hold is extended while it is generated gets an output limit whose price exceeds the hold. The sum of the
 * exposures is limited in the decisions that place and extend holds, so the limit applies to all gateways together.
 */
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import type { FundsHeld } from '../events.ts';
import type { OpenHold } from '../holds.ts';

const PERCENT = 100n;

/** What the operator may lose for one account at most, see `calculateTolerance`. */
export interface RiskLimits {
  /** Maximum loss per hour, to which a part of the charges is added; unlimited if undefined. */
  readonly lossPerHour?: PicoUsd | undefined;
  /** Exposure that is tolerated beyond the available money: at least this amount. */
  readonly exposure: PicoUsd;
  /** The same as a percentage of the balance, but at most `lossPerHour`; the larger of the two applies. */
  readonly exposurePercent: bigint;
}

/** The sums over the open holds of an account, or over those of one of its keys. */
export interface UnheldSums {
  /** What providers may bill beyond what is held. */
  readonly exposure: PicoUsd;
  /** What running responses need in addition to their holds if they become long. */
  readonly reserve: PicoUsd;
}

export const NO_UNHELD: UnheldSums = { exposure: ZERO_USD, reserve: ZERO_USD };

export type HoldPrices = Pick<OpenHold, 'amount' | 'limitPrice' | 'stopPrice' | 'longPrice'>;

/** The prices of a hold besides its amount, as events and snapshots store them. */
export type StoredHoldPrices = Pick<FundsHeld['data'], 'limitPrice' | 'stopPrice' | 'longPrice'>;

export function parseHoldPrices({ limitPrice, stopPrice, longPrice }: StoredHoldPrices): Omit<HoldPrices, 'amount'> {
  return {
    ...(limitPrice === undefined ? {} : { limitPrice: money.parseJsonAmount(limitPrice) }),
    ...(stopPrice === undefined ? {} : { stopPrice: money.parseJsonAmount(stopPrice) }),
    ...(longPrice === undefined ? {} : { longPrice: money.parseJsonAmount(longPrice) }),
  };
}

export function toStoredPrices({ limitPrice, stopPrice, longPrice }: Omit<HoldPrices, 'amount'>): StoredHoldPrices {
  return {
    ...(limitPrice === undefined ? {} : { limitPrice: money.toJsonAmount(limitPrice) }),
    ...(stopPrice === undefined ? {} : { stopPrice: money.toJsonAmount(stopPrice) }),
    ...(longPrice === undefined ? {} : { longPrice: money.toJsonAmount(longPrice) }),
  };
}

/** Returns what the provider may bill for a request beyond its hold. */
export function calculateExposure({ amount, limitPrice = amount, stopPrice = limitPrice }: HoldPrices): PicoUsd {
  return money.max(money.min(money.subtract(limitPrice, amount), stopPrice), ZERO_USD);
}

/** Returns the sums after a hold was placed (`before` is undefined), changed, or ended (`after` is undefined). */
export function updateUnheld<Sums extends UnheldSums>(
  sums: Sums,
  before: HoldPrices | undefined,
  after: HoldPrices | undefined,
): Sums {
  if (before?.limitPrice === undefined && after?.limitPrice === undefined) return sums;
  const [exposureBefore, exposureAfter] = [before, after].map((hold) => (hold ? calculateExposure(hold) : ZERO_USD));
  const [reserveBefore, reserveAfter] = [before, after].map((hold) => (hold ? calculateReserve(hold) : ZERO_USD));
  return {
    ...sums,
    exposure: (sums.exposure - (exposureBefore as PicoUsd) + (exposureAfter as PicoUsd)) as PicoUsd,
    reserve: (sums.reserve - (reserveBefore as PicoUsd) + (reserveAfter as PicoUsd)) as PicoUsd,
  };
}

/**
 * Returns what a request needs in addition to its hold if its response becomes long: the price of the rest, and what is
 * then generated before the provider stops, because extensions do not reduce that. A response that is longer than that
 * already is expected to need half as much again.
 */
export function calculateReserve({ amount, limitPrice = amount, longPrice = amount, stopPrice }: HoldPrices): PicoUsd {
  const expected = money.min(limitPrice, (amount > longPrice ? amount + amount / 2n : longPrice) as PicoUsd);
  const unheld = money.subtract(limitPrice, money.max(expected, amount));
  const stop = stopPrice !== undefined && stopPrice < unheld ? stopPrice : ZERO_USD;
  return money.add(money.max(money.subtract(expected, amount)), stop);
}

/**
 * Returns the exposure that is tolerated beyond the available money.
 * @param balance the available and the held money
 */
export function calculateTolerance({ exposure, exposurePercent, lossPerHour }: RiskLimits, balance: PicoUsd): PicoUsd {
  const ofBalance = ((balance * exposurePercent) / PERCENT) as PicoUsd;
  return money.max(exposure, lossPerHour === undefined ? ofBalance : money.min(ofBalance, lossPerHour));
}
