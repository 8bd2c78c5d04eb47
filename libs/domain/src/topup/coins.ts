/** The coins in which top-ups are paid. Amounts of a coin are integers in its smallest unit. */
import { money, type PicoUsd } from '#kernel';

/** The code of a coin: `BTC`. Payments by card are in `USD`, whose smallest unit is a cent. */
export type Coin = string;

/** The terms of a coin. After the first payment in a coin it must stay in the list, with the same decimals. */
export interface CoinTerms {
  readonly code: Coin;
  readonly name: string;
  /** One coin is 10^`decimals` of its smallest unit. */
  readonly decimals: number;
  /** Requested amounts are multiples of this number of units: a satoshi is 1,000 millisatoshis. */
  readonly step: number;
  /** Currencies for amounts of the coin, such as `SATS`. With the value n, one of them is 10^n of the smallest unit. */
  readonly currencies: Readonly<Record<string, number>>;
  /** The unit of the coin's wallets in financial reports: 10^`decimals` of the smallest unit. */
  readonly unit?: { readonly name: string; readonly decimals: number };
  /** The coin whose exchange rate applies, if this coin represents another one. */
  readonly ratedAs?: Coin;
  /** The price of one coin in USD, if it has no market. */
  readonly fixedRate?: string;
  /** The names of the coin at the sources of exchange rates. */
  readonly rates?: RateNames;
  /** The format of a payment link with an amount in coins: BIP 21, and similar formats of other coins. */
  readonly link?: PaymentLink;
}

export interface PaymentLink {
  readonly scheme: string;
  /** The name of the link's parameter for the amount. */
  readonly amount: string;
  /** Additional parameters: a chain with many assets requires the name of the asset. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** The names of a coin's price in USD. A missing source does not quote the coin. */
export interface RateNames {
  /** The name in requests, and the name in responses. */
  readonly kraken?: readonly [requestName: string, responseName: string];
  readonly coinbase?: string;
  readonly coingecko?: string;
}

/** Converts units of a coin to USD, rounded down to a pico-USD. @param rate USD for one coin */
export function convertToUsd(units: bigint, coin: CoinTerms, rate: string): PicoUsd {
  return ((units * money.parseUsd(rate)) / getUnitsPerCoin(coin)) as PicoUsd;
}

/** Converts USD to units of a coin, rounded to a multiple of its step. @param rate USD for one coin */
export function convertToUnits(amount: PicoUsd, coin: CoinTerms, rate: string, rounding: 'up' | 'down' = 'up'): bigint {
  const step = BigInt(coin.step);
  const [dividend, divisor] = [amount * (getUnitsPerCoin(coin) / step), money.parseUsd(rate)];
  return (rounding === 'up' ? money.divideRoundingUp(dividend, divisor) : dividend / divisor) * step;
}

/** Formats an amount in coins as a decimal without an exponent. */
export function formatCoins(units: bigint, { decimals }: CoinTerms): string {
  return money.formatScaled(units, decimals);
}

/**
 * Parses an amount in one of a coin's currencies, such as BTC or SATS, to units of the coin.
 * @throws RangeError if `amount` is not a decimal, `currency` is not one of the coin's, or the result is not a multiple
 *   of the coin's step
 */
export function parseCoinAmount(amount: string, currency: string, { code, currencies, step }: CoinTerms): bigint {
  const decimals = Object.hasOwn(currencies, currency) ? currencies[currency] : undefined;
  if (decimals === undefined) throw new RangeError(`${currency} is not a currency of ${code}`);
  const units = money.parseScaled(amount, decimals);
  if (units % BigInt(step) !== 0n) throw new RangeError(`${amount} ${currency} has more decimals than can be paid`);
  return units;
}

function getUnitsPerCoin({ decimals }: CoinTerms): bigint {
  return 10n ** BigInt(decimals);
}
