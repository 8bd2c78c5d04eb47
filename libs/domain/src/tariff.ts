/**
 * Costs and prices of everything that is sold. A usage is a set of quantities by unit, such as tokens, images, seconds,
 * characters, searches and lookups. Prices of all units have the same form. All functions are pure, so that every
 * charge can be calculated again from its event and its price list.
 */
import type { PicoUsd } from '#kernel';
import { addMultiple, type MoneyFraction, roundUp, ZERO_FRACTION } from './fraction.ts';
import type { Amount } from './value-types.ts';

/**
 * The units of usage. A unit with `of` falls back to the price of that unit if none of its own applies. To add a unit,
 * add an entry here.
 */
const UNITS = {
  input: {},
  cacheRead: { of: 'input' },
  cacheWrite: { of: 'input' },
  cacheWriteHour: { of: 'cacheWrite' }, // cached for an hour instead of minutes
  /** Tokens of images in the input. */
  imageInput: { of: 'input' },
  output: {},
  reasoning: { of: 'output' },
  /** Tokens of generated images. */
  imageOutput: { of: 'output' },
  /** One call of a model. */
  request: {},
  search: {},
  result: {},
  page: {},
  lookup: {},
  image: {},
  videoSecond: {},
  /** One video of any length. */
  clip: {},
  audioMillisecond: {},
  character: {},
} as const satisfies Readonly<Record<string, { readonly of?: string }>>;

export type Unit = keyof typeof UNITS;

/**
 * Integer quantities by unit; events have the same form. Units are disjoint: `{ input: 100, cacheRead: 20 }` is 120
 * tokens. A missing unit is 0.
 */
export type Usage = Readonly<Partial<Record<Unit, number>>>;

/**
 * What a price depends on: `{ resolution: '1080p' }`, `{ tier: 'flex' }`. Sizes, such as `inputTokens`, are per call.
 */
export type PriceTerms = Readonly<Record<string, string | number>>;

/** A term must equal a string; with `above`, it must be a greater number. */
export type PriceCondition = string | { readonly above: number };
export type PriceConditions = Readonly<Record<string, PriceCondition>>;

/**
 * Cost and price of `per` units, in pico-USD. One may be missing: a provider can bill tokens for a model that is sold
 * by the image. The cost is that of the unit's first line with a cost whose conditions are satisfied; so is the price.
 */
export interface Price {
  readonly unit: Unit;
  readonly per: bigint;
  readonly cost?: bigint;
  readonly price?: bigint;
  readonly when?: PriceConditions;
}

export interface PriceJson {
  readonly unit: Unit;
  readonly per: number;
  readonly cost?: Amount;
  readonly price?: Amount;
  readonly when?: PriceConditions;
}

export interface CostAndPrice {
  readonly cost: PicoUsd;
  readonly price: PicoUsd;
}

/** No price or cost applies to a unit that is or may be used. */
export class UnpricedUnitError extends Error {
  override readonly name = 'UnpricedUnitError';

  constructor(readonly unit: Unit) {
    super(`no price for the unit ${unit}`);
  }
}

export const NO_USAGE: Usage = {};

/**
 * Returns the cost and the price of a usage, each rounded up once to an integer of pico-USD.
 * @throws UnpricedUnitError if no price line applies to a used unit
 */
export function calculateCostAndPrice(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): CostAndPrice {
  const rates = getRates(prices);
  const sizedTerms = addSizeTerms(terms, usage, rates);
  return {
    cost: calculateAmount(usage, rates.cost, sizedTerms),
    price: calculateAmount(usage, rates.price, sizedTerms),
  };
}

/** Returns only the cost of a usage. @throws UnpricedUnitError if no price line applies to a used unit */
export function calculateCost(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): PicoUsd {
  const rates = getRates(prices);
  return calculateAmount(usage, rates.cost, addSizeTerms(terms, usage, rates));
}

/** Returns only the price of a usage. @throws UnpricedUnitError if no price line applies to a used unit */
export function calculatePrice(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): PicoUsd {
  const rates = getRates(prices);
  return calculateAmount(usage, rates.price, addSizeTerms(terms, usage, rates));
}

/**
 * Returns the maximum price of a usage within upper bounds. A bound also covers the units that fall back to its unit;
 * one of `cacheWriteHour` covers all input, and no other bound covers that unit. A missing term can have any value in
 * the response, and a numeric term can be smaller there.
 * @throws UnpricedUnitError if a usage within the bounds could have no price
 */
export function calculateMaxPrice(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): PicoUsd {
  const rates = getRates(prices);
  return roundUp(sumMaxPrices(usage, rates, addSizeTerms(terms, usage, rates)));
}

/**
 * Returns how many additional units the amount pays for at their maximum price, on top of the usage `beside`.
 * @returns -1 if the amount does not pay for that usage; at most `Number.MAX_SAFE_INTEGER`, also for a free unit
 * @throws UnpricedUnitError if the unit, or a unit of `beside`, could have no price
 */
export function countAffordableUnits(
  amount: PicoUsd,
  { unit, beside: extraUsage }: { readonly unit: Unit; readonly beside: Usage },
  prices: readonly Price[],
  terms: PriceTerms = {},
): number {
  const rates = getRates(prices);
  const sizedTerms = addSizeTerms(terms, extraUsage, rates, unit);
  const { numerator, denominator } = sumMaxPrices(extraUsage, rates, sizedTerms);
  const maxUnitPrice = findMaxPrice(unit, rates, sizedTerms);
  const remaining = amount * denominator - numerator;
  if (remaining < 0n) return -1;
  if (maxUnitPrice === undefined || maxUnitPrice.numerator === 0n) return Number.MAX_SAFE_INTEGER;
  const maxUnits = (remaining * maxUnitPrice.denominator) / (denominator * maxUnitPrice.numerator);
  return maxUnits > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(maxUnits);
}

export function addUsage(a: Usage, b: Usage): Usage {
  const sum: Partial<Record<Unit, number>> = { ...a };
  for (const unit in b) sum[unit as Unit] = (a[unit as Unit] ?? 0) + (b[unit as Unit] ?? 0);
  return sum;
}

/** Returns the quantity of a unit, including all units that fall back to it. */
export function getQuantity(unit: Unit, usage: Usage): number {
  return UNIT_FAMILIES[unit].reduce((sum, member) => sum + (usage[member] ?? 0), 0);
}

/** Returns a usage for events, without zeros. @throws RangeError if a quantity is negative or no safe integer */
export function toUsageJson(usage: Usage): Usage {
  const json: Partial<Record<Unit, number>> = {};
  for (const unit of ALL_UNITS) {
    const quantity = usage[unit] ?? 0;
    if (!Number.isSafeInteger(quantity) || quantity < 0) throw new RangeError(`not a quantity of ${unit}: ${quantity}`);
    if (quantity > 0) json[unit] = quantity;
  }
  return json;
}

export function toPriceJson({ unit, per, cost, price, when }: Price): PriceJson {
  return {
    unit,
    per: Number(per),
    ...(cost === undefined ? {} : { cost: cost.toString() }),
    ...(price === undefined ? {} : { price: price.toString() }),
    ...(when === undefined ? {} : { when }),
  };
}

export function parsePriceJson({ unit, per, cost, price, when }: PriceJson): Price {
  return {
    unit,
    per: BigInt(per),
    ...(cost === undefined ? {} : { cost: BigInt(cost) }),
    ...(price === undefined ? {} : { price: BigInt(price) }),
    ...(when === undefined ? {} : { when }),
  };
}

// rates -------------------------------------------------------------------------------------------------------------

export const ALL_UNITS = Object.keys(UNITS) as readonly Unit[];
/** For each unit: the unit itself, the unit that it falls back to, and so on. */
const FALLBACK_CHAINS = mapUnits(getFallbackChain);
/** For each unit: the unit itself and all units that fall back to it. */
const UNIT_FAMILIES = mapUnits((unit) => ALL_UNITS.filter((candidate) => FALLBACK_CHAINS[candidate].includes(unit)));
/** Terms that are derived from the quantity of a unit in one call. */
const SIZE_TERMS: Readonly<Record<string, Unit>> = { inputTokens: 'input' };

type ConditionMatch = 'yes' | 'no' | 'perhaps';

/** The cost or price of one unit, from one price line. */
interface Rate extends MoneyFraction {
  readonly when: PriceConditions | undefined;
}

/** All costs, or all prices, of one unit. The first rate whose conditions are satisfied applies. */
interface UnitRates {
  /** From the lines of the unit, followed by those of the units that it falls back to. */
  readonly rates: readonly Rate[];
  /** The unit is free if no rate applies, because its lines have only the other amount. */
  readonly isFreeOtherwise: boolean;
}

/** Everything that is derived from prices only. It is cached, because one request uses it about ten times. */
interface Rates {
  readonly cost: Readonly<Record<Unit, UnitRates>>;
  readonly price: Readonly<Record<Unit, UnitRates>>;
  /** The units whose prices can apply to a bound of a unit: the unit, and those that it covers and that have lines. */
  readonly billableUnits: Readonly<Record<Unit, readonly Unit[]>>;
  readonly isConditional: boolean;
}

const ratesCache = new WeakMap<readonly Price[], Rates>();

function getRates(prices: readonly Price[]): Rates {
  const cached = ratesCache.get(prices);
  if (cached) return cached;
  const listCovered = (unit: Unit) => UNIT_FAMILIES[unit === 'cacheWriteHour' ? 'input' : unit];
  const isListed = (unit: Unit) => unit !== 'cacheWriteHour' && prices.some((line) => line.unit === unit);
  const rates: Rates = {
    cost: mapUnits((unit) => toUnitRates(unit, 'cost', prices)),
    price: mapUnits((unit) => toUnitRates(unit, 'price', prices)),
    billableUnits: mapUnits((unit) => listCovered(unit).filter((it) => it === unit || isListed(it))),
    isConditional: prices.some(({ when }) => when !== undefined),
  };
  ratesCache.set(prices, rates);
  return rates;
}

function toUnitRates(unit: Unit, kind: 'cost' | 'price', prices: readonly Price[]): UnitRates {
  const lines = FALLBACK_CHAINS[unit].flatMap((level) => prices.filter((line) => line.unit === level));
  const rates = lines.flatMap(({ per, when, [kind]: numerator }): Rate[] =>
    numerator === undefined ? [] : [{ numerator, denominator: per, when }],
  );
  return { rates, isFreeOtherwise: rates.length === 0 && lines.length > 0 };
}

function getFallbackChain(unit: Unit): readonly Unit[] {
  const { of } = UNITS[unit] as { readonly of?: Unit };
  return of === undefined ? [unit] : [unit, ...getFallbackChain(of)];
}

function mapUnits<T>(toValue: (unit: Unit) => T): Readonly<Record<Unit, T>> {
  return Object.fromEntries(ALL_UNITS.map((unit) => [unit, toValue(unit)])) as Record<Unit, T>;
}

function calculateAmount(usage: Usage, rates: Rates['cost'], terms: PriceTerms): PicoUsd {
  let sum = ZERO_FRACTION;
  for (const name in usage) {
    const unit = name as Unit;
    const quantity = usage[unit];
    const rate = quantity ? findRate(unit, rates[unit], terms) : undefined;
    if (quantity && rate) sum = addMultiple(sum, quantity, rate);
  }
  return roundUp(sum);
}

/** Returns the first rate that applies; if none does: undefined for a free unit. @throws UnpricedUnitError otherwise */
function findRate(unit: Unit, { rates, isFreeOtherwise }: UnitRates, terms: PriceTerms): Rate | undefined {
  for (const rate of rates) if (rate.when === undefined || satisfiesConditions(rate.when, terms)) return rate;
  if (!isFreeOtherwise) throw new UnpricedUnitError(unit);
  return undefined;
}

function sumMaxPrices(usage: Usage, rates: Rates, terms: PriceTerms): MoneyFraction {
  let sum = ZERO_FRACTION;
  for (const name in usage) {
    const quantity = usage[name as Unit];
    const maxPrice = quantity ? findMaxPrice(name as Unit, rates, terms) : undefined;
    if (quantity && maxPrice) sum = addMultiple(sum, quantity, maxPrice);
  }
  return sum;
}

/**
 * Returns the highest price of one unit and of those that its bound covers; undefined if their lines have only costs.
 * @throws UnpricedUnitError if one of these units could have no price
 */
function findMaxPrice(unit: Unit, { price, billableUnits }: Rates, terms: PriceTerms): MoneyFraction | undefined {
  let maxPrice: MoneyFraction | undefined;
  for (const soldUnit of billableUnits[unit]) {
    const { rates, isFreeOtherwise } = price[soldUnit];
    let match: ConditionMatch = isFreeOtherwise ? 'yes' : 'no';
    for (const rate of rates) {
      match = rate.when === undefined ? 'yes' : matchConditions(rate.when, terms);
      if (match !== 'no' && isHigher(rate, maxPrice)) maxPrice = rate;
      if (match === 'yes') break;
    }
    if (match !== 'yes') throw new UnpricedUnitError(soldUnit);
  }
  return maxPrice;
}

function isHigher(rate: MoneyFraction, than: MoneyFraction | undefined): boolean {
  return than === undefined || rate.numerator * than.denominator > than.numerator * rate.denominator;
}

function satisfiesConditions(when: PriceConditions, terms: PriceTerms): boolean {
  for (const name in when) {
    const condition = when[name] as PriceCondition;
    const term = terms[name];
    if (term === undefined) return false;
    if (typeof condition === 'string' ? String(term) !== condition : Number(term) <= condition.above) return false;
  }
  return true;
}

/** Whether conditions will be satisfied. A missing term can have any value; a number is an upper bound of the term. */
function matchConditions(when: PriceConditions, terms: PriceTerms): ConditionMatch {
  let all: ConditionMatch = 'yes';
  for (const name in when) {
    const condition = when[name] as PriceCondition;
    const term = terms[name];
    if (term === undefined) all = 'perhaps';
    else if (typeof condition === 'string') {
      if (String(term) !== condition) return 'no';
    } else {
      if (Number(term) <= condition.above) return 'no';
      all = 'perhaps';
    }
  }
  return all;
}

/**
 * Adds the sizes, which are derived from the usage so that no caller can omit them. Sizes in `terms`, counted by the
 * provider, take precedence.
 * @param variableUnit a unit whose final quantity is unknown; sizes that depend on it are not added
 */
function addSizeTerms(terms: PriceTerms, usage: Usage, { isConditional }: Rates, variableUnit?: Unit): PriceTerms {
  if (!isConditional) return terms;
  const sizes: Record<string, string | number> = {};
  for (const [name, unit] of Object.entries(SIZE_TERMS))
    if (variableUnit === undefined || !FALLBACK_CHAINS[variableUnit].includes(unit))
      sizes[name] = getQuantity(unit, usage);
  return { ...sizes, ...terms };
}
