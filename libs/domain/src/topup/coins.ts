/** The coins that top-ups are paid in. Amounts of a coin are whole numbers of its smallest unit. */
import { money, type PicoUsd } from '#kernel';

interface CoinTerms {
  readonly name: string;
  /** How many decimals of a coin its smallest unit stands for. */
  readonly decimals: number;
  /** What is asked for is a multiple of this many units: a satoshi is 1,000 millisatoshis. */
  readonly step: bigint;
  /** Currencies that stand for amounts of the coin, by how many of their decimals a smallest unit stands for. */
  readonly currencies: Readonly<Record<string, number>>;
  /** The coin whose exchange rate counts, for one that is another under a different name. */
  readonly ratedAs?: Coin;
  /** How a payment link asks for an amount in whole coins: BIP 21, and its like for the other coins. */
  readonly link: { readonly scheme: string; readonly amount: string };
}

export type Coin = 'BTC' | 'LBTC' | 'LTC' | 'XMR';

export const COINS: Readonly<Record<Coin, CoinTerms>> = {
  BTC: {
    name: 'Bitcoin',
    decimals: 11, // millisatoshis, which Lightning counts in
    step: 1_000n,
    currencies: { BTC: 11, SATS: 3 },
    link: { scheme: 'bitcoin', amount: 'amount' },
  },
  LBTC: {
    name: 'Liquid Bitcoin',
    decimals: 8,
    step: 1n,
    currencies: { LBTC: 8 },
    ratedAs: 'BTC',
    link: { scheme: 'liquidnetwork', amount: 'amount' },
  },
  LTC: {
    name: 'Litecoin',
    decimals: 8, // litoshis
    step: 1n,
    currencies: { LTC: 8 },
    link: { scheme: 'litecoin', amount: 'amount' },
  },
  XMR: {
    name: 'Monero',
    decimals: 12, // piconeros
    step: 1n,
    currencies: { XMR: 12 },
    link: { scheme: 'monero', amount: 'tx_amount' },
  },
};

/** What an amount of a coin is worth at a rate of USD for one coin, rounded down to a pico-USD. */
export function worth(units: bigint, coin: Coin, rate: string): PicoUsd {
  return ((units * money.usd(rate)) / unitsOf(coin)) as PicoUsd;
}

/** How many units of a coin an amount costs at a rate, rounded up to what can be paid. */
export function unitsFor(amount: PicoUsd, coin: Coin, rate: string): bigint {
  const { step } = COINS[coin];
  return money.divideUp(amount * (unitsOf(coin) / step), money.usd(rate)) * step;
}

/** Whole coins as a plain decimal. */
export function wholeCoins(units: bigint, coin: Coin): string {
  return money.unscaled(units, COINS[coin].decimals);
}

/**
 * Reads an amount of one of a coin's currencies, such as BTC or SATS, as units of the coin.
 * @throws RangeError when it is no amount of it, or finer than what can be paid
 */
export function unitsIn(amount: string, currency: string, coin: Coin): bigint {
  const { currencies, step } = COINS[coin];
  const decimals = Object.hasOwn(currencies, currency) ? currencies[currency] : undefined;
  if (decimals === undefined) throw new RangeError(`${currency} is no currency of ${coin}`);
  const units = money.scaled(amount, decimals);
  if (units % step !== 0n) throw new RangeError(`${amount} ${currency} is finer than what can be paid`);
  return units;
}

function unitsOf(coin: Coin): bigint {
  return 10n ** BigInt(COINS[coin].decimals);
}
