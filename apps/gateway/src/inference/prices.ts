import type { Rates } from '#domain';
import { formatUsd, money, type PicoUsd, picoUsd } from '#kernel';

const BASIS_POINTS = 10_000n;
const TOKENS_PER_RATE = 1_000_000n;

/** What is charged for a rate: the upstream's price with our margin. */
export function price(rate: bigint, { marginBasisPoints }: Pick<Rates, 'marginBasisPoints'>): PicoUsd {
  return picoUsd(money.divideUp(rate * marginBasisPoints, BASIS_POINTS));
}

/** USD per token as OpenRouter prints it: a decimal string. */
export function perToken(rate: bigint, rates: Rates): string {
  return formatUsd(picoUsd(money.divideUp(price(rate, rates), TOKENS_PER_RATE)));
}
