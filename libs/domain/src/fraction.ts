/** Exact sums of fractions, because one unit can cost less than a pico-USD. A sum is rounded once, at the end. */
import { money, type PicoUsd, toPicoUsd } from '#kernel';

/** An exact amount in pico-USD. */
export interface MoneyFraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

export const ZERO_FRACTION: MoneyFraction = { numerator: 0n, denominator: 1n };

/** Returns the first amount plus `quantity` times `addend`. */
export function addMultiple(
  { numerator, denominator }: MoneyFraction,
  quantity: number,
  addend: MoneyFraction,
): MoneyFraction {
  const addedNumerator = BigInt(quantity) * addend.numerator;
  if (addedNumerator === 0n || denominator === addend.denominator)
    return { numerator: numerator + addedNumerator, denominator };
  if (numerator === 0n) return { numerator: addedNumerator, denominator: addend.denominator };
  const common = (denominator / getGreatestCommonDivisor(denominator, addend.denominator)) * addend.denominator;
  return {
    numerator: numerator * (common / denominator) + addedNumerator * (common / addend.denominator),
    denominator: common,
  };
}

/** Rounds up to an integer of pico-USD. */
export function roundUp({ numerator, denominator }: MoneyFraction): PicoUsd {
  return toPicoUsd(money.divideRoundingUp(numerator, denominator));
}

function getGreatestCommonDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : getGreatestCommonDivisor(b, a % b);
}
