/** An exact number, such as pico-USD per unit or USD per coin. */
export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

export function reduceFraction(numerator: bigint, denominator: bigint): Fraction {
  let [a, b] = [numerator < 0n ? -numerator : numerator, denominator];
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 0n ? { numerator, denominator } : { numerator: numerator / a, denominator: denominator / a };
}

export function sumFractions(fractions: readonly Fraction[]): Fraction {
  return fractions.reduce(
    (sum, { numerator, denominator }) =>
      reduceFraction(sum.numerator * denominator + numerator * sum.denominator, sum.denominator * denominator),
    {
      numerator: 0n,
      denominator: 1n,
    },
  );
}

export function roundUpToInteger({ numerator, denominator }: Fraction): bigint {
  return numerator <= 0n ? numerator / denominator : (numerator + denominator - 1n) / denominator;
}
