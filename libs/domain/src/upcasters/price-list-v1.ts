/**
 * Price lists of version 1 had rates for tokens, prices of media by unit, and fees. Each price except a fee had a
 * margin on its cost.
 */
import type { PriceListLine } from '../charge.ts';
import type { PriceListPublished } from '../events.ts';
import type { PriceJson, Unit } from '../tariff.ts';
import type { Amount } from '../value-types.ts';
import type { FeeV1 } from './charges-v1.ts';

interface OfferV1 {
  readonly model: string;
  readonly provider: string;
  /** The price in ten-thousandths of the cost. */
  readonly marginBasisPoints: number;
}

/** Pico-USD per million tokens of each class, and per request. */
interface RatesV1 extends OfferV1 {
  readonly input: Amount;
  readonly cacheRead: Amount;
  readonly cacheWrite: Amount;
  readonly output: Amount;
  readonly reasoning: Amount;
  readonly request: Amount;
}

/** Pico-USD per unit, such as an image or a minute. */
interface UnitPricesV1 extends OfferV1 {
  readonly unit: keyof typeof UNITS;
  /** Applies if no variant matches. */
  readonly amount: Amount;
  /** The first variant whose parameters all match applies. */
  readonly variants: readonly { readonly when: Readonly<Record<string, string>>; readonly amount: Amount }[];
}

interface PriceListV1 {
  readonly version: string;
  readonly rates: readonly RatesV1[];
  readonly units?: readonly UnitPricesV1[];
  readonly fees?: readonly FeeV1[];
  readonly at: string;
}

const TOKEN_UNITS = ['input', 'cacheRead', 'cacheWrite', 'output', 'reasoning'] as const;
const TOKENS_PER_RATE = 1_000_000;

/** The current unit for each unit of version 1, and how many current units one old unit is. */
const UNITS = {
  image: ['image', 1],
  second: ['videoSecond', 1],
  clip: ['clip', 1],
  minute: ['audioMillisecond', 60_000],
  '1k_characters': ['character', 1_000],
} as const satisfies Readonly<Record<string, readonly [Unit, number]>>;

export function upcastPriceListV1({
  version,
  rates,
  units = [],
  fees = [],
  at,
}: PriceListV1): PriceListPublished['data'] {
  return { version, lines: [...rates.map(toRatesLine), ...units.map(toUnitLine), ...fees.map(toFeeLine)], at };
}

/** Version 1 had a rate for each class of tokens, so none of its units falls back to another. */
function toRatesLine(rates: RatesV1): PriceListLine {
  const { marginBasisPoints } = rates;
  const prices = TOKEN_UNITS.map((unit) => withMargin(unit, TOKENS_PER_RATE, rates[unit], marginBasisPoints));
  return { ...toSeller(rates), prices: [...prices, withMargin('request', 1, rates.request, marginBasisPoints)] };
}

function toUnitLine({ unit, amount, variants, marginBasisPoints, ...rest }: UnitPricesV1): PriceListLine {
  const [pricedUnit, per] = UNITS[unit];
  const prices = variants.map((variant) => ({
    ...withMargin(pricedUnit, per, variant.amount, marginBasisPoints),
    when: variant.when,
  }));
  return { ...toSeller(rest), prices: [...prices, withMargin(pricedUnit, per, amount, marginBasisPoints)] };
}

function toFeeLine({ name, provider, cost, price }: FeeV1): PriceListLine {
  return { of: name, provider, creditor: provider, prices: [{ unit: 'search', per: 1, cost, price }] };
}

function toSeller({ model, provider }: Pick<OfferV1, 'model' | 'provider'>) {
  return { of: model, provider, creditor: provider };
}

const BASIS_POINTS = 10_000;

/** Multiplies the amounts and the number of units by 10,000, so that the price with its margin stays exact. */
function withMargin(unit: Unit, per: number, rate: Amount, marginBasisPoints: number): PriceJson {
  const cost = (BigInt(rate) * BigInt(BASIS_POINTS)).toString();
  const price = (BigInt(rate) * BigInt(marginBasisPoints)).toString();
  return { unit, per: per * BASIS_POINTS, cost, price };
}
