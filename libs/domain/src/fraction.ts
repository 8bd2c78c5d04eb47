/** Exact sums of amounts that are whole pico-USD only for so many units: they are rounded once, at the end. */
import { money, type PicoUsd, toPicoUsd } from '#kernel';

/** An exact amount of pico-USD. */
export interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

export const ZERO_FRACTION: Fraction = { over: 0n, under: 1n };

/** A sum with so many times another amount beside it. */
export function addMultiple({ over, under }: Fraction, quantity: number, each: Fraction): Fraction {
  const more = BigInt(quantity) * each.over;
  if (more === 0n || under === each.under) return { over: over + more, under };
  if (over === 0n) return { over: more, under: each.under };
  const common = (under / greatestDivisor(under, each.under)) * each.under;
  return { over: over * (common / under) + more * (common / each.under), under: common };
}

/** To the next pico-USD. */
export function roundUp({ over, under }: Fraction): PicoUsd {
  return toPicoUsd(money.divideRoundingUp(over, under));
}

function greatestDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestDivisor(b, a % b);
}
