/**
 * One tariff for everything that is sold. A use is a set of quantities, each in its unit, and one kind of price line says
 * what any unit costs and what it is sold for: tokens, images, seconds, characters, searches, lookups. Pure, so that every
 * charge can be computed again from its facts.
 */
import type { PicoUsd } from '#kernel';
import { addMultiple, type MoneyFraction, roundUp, ZERO_FRACTION } from './fraction.ts';
import type { Amount } from './value-types.ts';

/**
 * What is counted. A unit `of` another falls back to that one's price where it has none of its own, and is covered by
 * that one's bound. Adding a unit is one entry.
 */
const UNITS = {
  input: {},
  cacheRead: { of: 'input' },
  cacheWrite: { of: 'input' },
  /** Kept in the cache for an hour instead of minutes. */
  cacheWriteHour: { of: 'cacheWrite' },
  /** Pictures that were brought, counted in tokens. */
  imageInput: { of: 'input' },
  output: {},
  reasoning: { of: 'output' },
  /** Pictures that were made, counted in tokens. */
  imageOutput: { of: 'output' },
  /** A call of a model, whatever it is about. */
  request: {},
  search: {},
  result: {},
  page: {},
  lookup: {},
  image: {},
  videoSecond: {},
  /** A whole video, whatever its length. */
  clip: {},
  audioMillisecond: {},
  character: {},
} as const satisfies Readonly<Record<string, { readonly of?: string }>>;

export type Unit = keyof typeof UNITS;

/**
 * Whole numbers by unit, also as they stand in facts. Units are disjoint: `{ input: 100, cacheRead: 20 }` is 120 tokens.
 * A unit that is left out is 0.
 */
export type Usage = Readonly<Partial<Record<Unit, number>>>;

/** What else decides about a price: `{ resolution: '1080p' }`, `{ tier: 'flex' }`. Sizes are those of one call. */
export type PriceTerms = Readonly<Record<string, string | number>>;

/** A text must be the term; of a number there must be more than `above`. */
export type PriceCondition = string | { readonly above: number };
export type PriceConditions = Readonly<Record<string, PriceCondition>>;

/**
 * What `per` units cost and are sold for, in pico-USD. Of the lines of a unit, the first whose conditions are all met applies.
 * One of the amounts may be missing: a model may be billed by tokens and sold by the image.
 */
export interface Price {
  readonly unit: Unit;
  readonly per: bigint;
  readonly cost?: bigint;
  readonly price?: bigint;
  readonly when?: PriceConditions;
}

/** A price as it stands in facts. */
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

/** A unit is used, or might be, that the prices do not have: refused when it is quoted, an alarm when it is settled. */
export class UnpricedUnitError extends Error {
  override readonly name = 'UnpricedUnitError';

  constructor(readonly unit: Unit) {
    super(`There is no price for the unit ${unit}`);
  }
}

export const NO_USAGE: Usage = {};

/** Cost and price of a use, each rounded once, up to the next pico-USD. @throws UnpricedUnitError */
export function calculateCostAndPrice(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): CostAndPrice {
  const rates = getRates(prices);
  const sizedTerms = addSizeTerms(terms, usage, rates);
  return {
    cost: calculateAmount(usage, rates.cost, sizedTerms),
    price: calculateAmount(usage, rates.price, sizedTerms),
  };
}

/** What a use costs us, alone. @throws UnpricedUnitError */
export function calculateCost(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): PicoUsd {
  const rates = getRates(prices);
  return calculateAmount(usage, rates.cost, addSizeTerms(terms, usage, rates));
}

/** The price of a use alone. @throws UnpricedUnitError */
export function calculatePrice(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): PicoUsd {
  const rates = getRates(prices);
  return calculateAmount(usage, rates.price, addSizeTerms(terms, usage, rates));
}

/**
 * The most that a use can be sold for that has at most so much of each unit, or of what falls back to it. Each term that is
 * missing may turn out to be anything, and each that is a number may turn out to be less.
 * @throws UnpricedUnitError when a use within these bounds could have no price
 */
export function calculateMaxPrice(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): PicoUsd {
  const rates = getRates(prices);
  return roundUp(sumMaxPrices(usage, rates, addSizeTerms(terms, usage, rates)));
}

/**
 * How many more of a `unit` an amount affords at their bound, beside a use that is there already; -1 when not even that.
 * @throws UnpricedUnitError
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

/** Two uses as one. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: Partial<Record<Unit, number>> = { ...a };
  for (const unit in b) sum[unit as Unit] = (a[unit as Unit] ?? 0) + (b[unit as Unit] ?? 0);
  return sum;
}

/** How much was used of a unit and of all that falls back to it. */
export function getQuantity(unit: Unit, usage: Usage): number {
  return UNIT_FAMILIES[unit].reduce((sum, member) => sum + (usage[member] ?? 0), 0);
}

/** A use as it stands in facts: what is 0 is left out. @throws RangeError for what is no whole number from 0 */
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
/** Each unit, what it falls back to, and so on. */
const FALLBACK_CHAINS = mapUnits(getFallbackChain);
/** Each unit, and all that fall back to it. */
const UNIT_FAMILIES = mapUnits((unit) => ALL_UNITS.filter((candidate) => FALLBACK_CHAINS[candidate].includes(unit)));
/** Terms that follow from how much of a unit one call has used. */
const SIZE_TERMS: Readonly<Record<string, Unit>> = { inputTokens: 'input' };

type ConditionMatch = 'yes' | 'no' | 'perhaps';

/** What one of a unit costs or is sold for, by one line. */
interface Rate extends MoneyFraction {
  readonly when: PriceConditions | undefined;
}

/** What one of a unit may cost, or be sold for: the first rate whose conditions are met applies. */
interface UnitRates {
  /** By its own lines, and then by those of what it falls back to. */
  readonly rates: readonly Rate[];
  /** Only the other amount is known for it: billed, or sold, by another unit. */
  readonly isFreeOtherwise: boolean;
}

/** What follows from prices alone. A request asks for it about ten times, so it is put together once. */
interface Rates {
  readonly cost: Readonly<Record<Unit, UnitRates>>;
  readonly price: Readonly<Record<Unit, UnitRates>>;
  /** As what a unit may be sold: itself, and what falls back to it and has lines of its own. */
  readonly billableUnits: Readonly<Record<Unit, readonly Unit[]>>;
  readonly isConditional: boolean;
}

/** For as long as the prices themselves are there. */
const ratesCache = new WeakMap<readonly Price[], Rates>();

function getRates(prices: readonly Price[]): Rates {
  const cached = ratesCache.get(prices);
  if (cached) return cached;
  const rates: Rates = {
    cost: mapUnits((unit) => toUnitRates(unit, 'cost', prices)),
    price: mapUnits((unit) => toUnitRates(unit, 'price', prices)),
    billableUnits: mapUnits((unit) =>
      UNIT_FAMILIES[unit].filter((candidate) => candidate === unit || prices.some((line) => line.unit === candidate)),
    ),
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

/** Undefined where only the other amount is known. @throws UnpricedUnitError when no condition is met */
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
 * The most that one of a unit, or of what falls back to it, may be sold for; undefined when it is not what is sold.
 * @throws UnpricedUnitError when it could have no price
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

/** Whether conditions are met when a missing term may be anything, and a number is the most that it may be. */
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
 * Sizes follow from the usage itself, so that no caller can forget them; a vendor's own count overrides them.
 * @param variableUnit the unit of which there will be more
 */
function addSizeTerms(terms: PriceTerms, usage: Usage, { isConditional }: Rates, variableUnit?: Unit): PriceTerms {
  if (!isConditional) return terms;
  const sizes: Record<string, string | number> = {};
  for (const [name, unit] of Object.entries(SIZE_TERMS))
    if (variableUnit === undefined || !FALLBACK_CHAINS[variableUnit].includes(unit))
      sizes[name] = getQuantity(unit, usage);
  return { ...sizes, ...terms };
}
