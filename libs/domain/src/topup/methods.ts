/** The configuration of payment methods, and the limits of requested amounts. */
import { money, parseUsd } from '#kernel';
import { type Coin, type CoinTerms, convertToUnits } from './coins.ts';
import type { Destination } from './events.ts';

/** A minimum and a maximum, as decimals. */
export interface AmountRange {
  readonly min: string;
  readonly max: string;
}

export interface PaymentMethod {
  /** Its name in routes and in the ledger. */
  readonly method: string;
  readonly displayName: string;
  readonly coin: Coin;
  readonly destination: Destination['kind'];
  /** The payment backends that support it. The first one that is configured is used. */
  readonly backends: readonly string[];
  /** The currencies of requested amounts: USD and currencies of the coin. */
  readonly currencies: readonly string[];
  /**
   * Limits of requested amounts, not of payments, by currency. A currency without limits has those of USD, at the
   * current exchange rate.
   */
  readonly limits: Readonly<Record<string, AmountRange>>;
  readonly expiryMinutes: number;
  /** The bonus on each payment. */
  readonly bonus: { readonly percent: number; readonly description: string } | null;
  /** The number of confirmations after which a payment is credited, if the payment backend does not decide it. */
  readonly confirmations: number;
  /** Whether the public list of methods includes it. */
  readonly listed: boolean;
}

export interface PaymentTerms {
  readonly coins: readonly CoinTerms[];
  readonly methods: readonly PaymentMethod[];
}

/**
 * Returns the limits of requested amounts in a currency of a method.
 * @param rate USD for one coin
 * @returns undefined if the rate is required and not given
 */
export function getAmountRange(
  { limits }: PaymentMethod,
  currency: string,
  coin: CoinTerms,
  rate?: string,
): AmountRange | undefined {
  if (Object.hasOwn(limits, currency)) return limits[currency];
  const usd = limits.USD;
  if (!usd || rate === undefined) return undefined;
  const format = (units: bigint) => money.formatScaled(units, coin.currencies[currency] as number);
  return {
    min: format(convertToUnits(parseUsd(usd.min), coin, rate)),
    max: format(convertToUnits(parseUsd(usd.max), coin, rate, 'down')),
  };
}
