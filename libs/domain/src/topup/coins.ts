/** What top-ups are paid in. Amounts of a coin are whole numbers of its smallest unit. */
import { money, type PicoUsd } from '#kernel';

/** The code of a coin: `BTC`. A card is paid in `USD`, whose smallest unit is a cent. */
export type Coin = string;

/** A coin as data. Once it has been paid in, it stays in the list, and its decimals stay as they are. */
export interface CoinTerms {
  readonly code: Coin;
  readonly name: string;
  /** How many decimals of a coin its smallest unit stands for. */
  readonly decimals: number;
  /** What is asked for is a multiple of this many units: a satoshi is 1,000 millisatoshis. */
  readonly step: number;
  /** Currencies that stand for amounts of the coin, by how many of their decimals a smallest unit stands for. */
  readonly currencies: Readonly<Record<string, number>>;
  /** What its wallets count in, and how many of its decimals a smallest unit stands for: for finance. */
  readonly unit?: { readonly name: string; readonly decimals: number };
  /** The coin whose exchange rate counts, for one that is another under a different name. */
  readonly ratedAs?: Coin;
  /** USD for one, for what has no market. */
  readonly fixedRate?: string;
  /** Its names at the sources of exchange rates. */
  readonly rates?: RateNames;
  /** How a payment link asks for an amount in whole coins: BIP 21, and its like for the other coins. */
  readonly link?: PaymentLink;
}

export interface PaymentLink {
  readonly scheme: string;
  /** The name of its parameter for the amount. */
  readonly amount: string;
  /** What else it must say: a chain of many assets wants to know which. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** The names of a coin's price in USD. A source that is missing does not quote it. */
export interface RateNames {
  /** As it is asked for, and as it is answered. */
  readonly kraken?: readonly [requestName: string, responseName: string];
  readonly coinbase?: string;
  readonly coingecko?: string;
}

/** What an amount of a coin is worth at a rate of USD for one coin, rounded down to a pico-USD. */
export function convertToUsd(units: bigint, coin: CoinTerms, rate: string): PicoUsd {
  return ((units * money.parseUsd(rate)) / getUnitsPerCoin(coin)) as PicoUsd;
}

/** How many units of a coin an amount costs at a rate, rounded up to what can be paid. */
export function convertToUnits(amount: PicoUsd, coin: CoinTerms, rate: string): bigint {
  const step = BigInt(coin.step);
  return money.divideRoundingUp(amount * (getUnitsPerCoin(coin) / step), money.parseUsd(rate)) * step;
}

/** Whole coins as a plain decimal. */
export function formatCoins(units: bigint, { decimals }: CoinTerms): string {
  return money.formatScaled(units, decimals);
}

/**
 * Reads an amount of one of a coin's currencies, such as BTC or SATS, as units of the coin.
 * @throws RangeError when it is no amount of it, or finer than what can be paid
 */
export function parseCoinAmount(amount: string, currency: string, { code, currencies, step }: CoinTerms): bigint {
  const decimals = Object.hasOwn(currencies, currency) ? currencies[currency] : undefined;
  if (decimals === undefined) throw new RangeError(`${currency} is no currency of ${code}`);
  const units = money.parseScaled(amount, decimals);
  if (units % BigInt(step) !== 0n) throw new RangeError(`${amount} ${currency} is finer than what can be paid`);
  return units;
}

function getUnitsPerCoin({ decimals }: CoinTerms): bigint {
  return 10n ** BigInt(decimals);
}
