/** What a use costs and what it is sold for. Pure, so that every charge can be computed again from its evidence. */
import { money, type PicoUsd, picoUsd } from '#kernel';
import type { Charge, Fee, PublishedRates, PublishedUnitPrices, Usage } from './events.ts';

/** Pico-USD per million tokens of each class, and per request. */
export interface Rates {
  readonly input: bigint;
  readonly cacheRead: bigint;
  readonly cacheWrite: bigint;
  readonly output: bigint;
  readonly reasoning: bigint;
  readonly request: bigint;
  /** Price = cost × this ÷ 10,000. */
  readonly marginBasisPoints: bigint;
}

const TOKENS_PER_RATE = 1_000_000n;
const BASIS_POINTS = 10_000n;

export const NO_USAGE: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

export function ratesFrom(published: PublishedRates): Rates {
  return {
    input: BigInt(published.input),
    cacheRead: BigInt(published.cacheRead),
    cacheWrite: BigInt(published.cacheWrite),
    output: BigInt(published.output),
    reasoning: BigInt(published.reasoning),
    request: BigInt(published.request),
    marginBasisPoints: BigInt(published.marginBasisPoints),
  };
}

/** Pico-USD per unit of what is not counted in tokens. */
export interface UnitPrices {
  readonly unit: string;
  readonly amount: bigint;
  readonly variants: readonly { readonly when: Readonly<Record<string, string>>; readonly amount: bigint }[];
  /** Price = cost × this ÷ 10,000. */
  readonly marginBasisPoints: bigint;
}

export function unitPricesFrom({ unit, amount, variants, marginBasisPoints }: PublishedUnitPrices): UnitPrices {
  return {
    unit,
    amount: BigInt(amount),
    variants: variants.map(({ when, amount }) => ({ when, amount: BigInt(amount) })),
    marginBasisPoints: BigInt(marginBasisPoints),
  };
}

/** Cost and price of a use that took so many calls, each rounded once, up to the next pico-USD. */
export function priceOf(usage: Usage, rates: Rates, calls = 1): { readonly cost: PicoUsd; readonly price: PicoUsd } {
  const millionths =
    BigInt(usage.input) * rates.input +
    BigInt(usage.cacheRead) * rates.cacheRead +
    BigInt(usage.cacheWrite) * rates.cacheWrite +
    BigInt(usage.output) * rates.output +
    BigInt(usage.reasoning) * rates.reasoning +
    rates.request * BigInt(calls) * TOKENS_PER_RATE;
  return {
    cost: picoUsd(money.divideUp(millionths, TOKENS_PER_RATE)),
    price: picoUsd(money.divideUp(millionths * rates.marginBasisPoints, TOKENS_PER_RATE * BASIS_POINTS)),
  };
}

/** The dearest a use can get: every input and output token at the dearest rate of its side. */
export function dearest(inputTokens: number, outputTokens: number, rates: Rates): PicoUsd {
  return priceOf({ ...NO_USAGE, input: inputTokens, output: outputTokens }, dearestOf(rates)).price;
}

/** The most output tokens whose dearest price an amount affords beside an input; negative when not even the input. */
export function affordableOutput(amount: PicoUsd, inputTokens: number, rates: Rates): number {
  const { input, output, request, marginBasisPoints } = dearestOf(rates);
  const before = (BigInt(inputTokens) * input + request * TOKENS_PER_RATE) * marginBasisPoints;
  const left = amount * TOKENS_PER_RATE * BASIS_POINTS - before;
  if (left < 0n) return -1;
  if (output === 0n) return Number.MAX_SAFE_INTEGER;
  return Number(left / (output * marginBasisPoints));
}

function dearestOf(rates: Rates): Rates {
  const side = (...each: bigint[]) => each.reduce((a, b) => (a > b ? a : b));
  const input = side(rates.input, rates.cacheRead, rates.cacheWrite);
  return { ...rates, input, output: side(rates.output, rates.reasoning) };
}

/** Two uses as one. */
export function addedUsage(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
  };
}

/** Amounts of a charge: those of the model and of the fees. */
export function withFees(
  { cost, price }: { readonly cost: PicoUsd; readonly price: PicoUsd },
  fees: readonly Fee[],
): { readonly cost: PicoUsd; readonly price: PicoUsd } {
  const all = (amount: 'cost' | 'price') => money.sum(fees.map((fee) => money.fromJson(fee[amount])));
  return { cost: money.add(cost, all('cost')), price: money.add(price, all('price')) };
}

/** True when the amounts of a charge follow from its usage, its calls, its fees and the price list it names. */
export function isExplained(charge: Charge, published: PublishedRates, fees: readonly Fee[] = []): boolean {
  const known = new Set(fees.map((fee) => JSON.stringify(fee)));
  const { cost, price } = withFees(priceOf(charge.usage, ratesFrom(published), charge.calls), charge.fees ?? []);
  const listed = (charge.fees ?? []).every((fee) => known.has(JSON.stringify(fee)));
  return listed && money.toJson(cost) === charge.cost && money.toJson(price) === charge.price;
}
