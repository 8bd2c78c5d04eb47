/** An exact amount of pico-USD, in lowest terms. */
export interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

export function reduceFraction(over: bigint, under: bigint): Fraction {
  let [a, b] = [over < 0n ? -over : over, under];
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 0n ? { over, under } : { over: over / a, under: under / a };
}

export function sumFractions(fractions: readonly Fraction[]): Fraction {
  return fractions.reduce(
    (sum, { over, under }) => reduceFraction(sum.over * under + over * sum.under, sum.under * under),
    {
      over: 0n,
      under: 1n,
    },
  );
}

/** The next whole number, where it is none. */
export function roundUpToInteger({ over, under }: Fraction): bigint {
  return over <= 0n ? over / under : (over + under - 1n) / under;
}
