/**
 * One tariff for everything that is sold. A use is a set of quantities, each in its unit, and one kind of price line says
 * what any unit costs and what it is sold for: tokens, images, seconds, characters, searches, lookups. Pure, so that every
 * charge can be computed again from its facts.
 */
import type { PicoUsd } from '#kernel';
import { addMultiple, type Fraction, roundUp, ZERO_FRACTION } from './fraction.ts';
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
  const rates = ratesOf(prices);
  const known = withSizes(terms, usage, rates);
  return { cost: amountOf(usage, rates.cost, known), price: amountOf(usage, rates.price, known) };
}

/** What a use costs us, alone. @throws UnpricedUnitError */
export function calculateCost(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): PicoUsd {
  const rates = ratesOf(prices);
  return amountOf(usage, rates.cost, withSizes(terms, usage, rates));
}

/** The price of a use alone. @throws UnpricedUnitError */
export function calculatePrice(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): PicoUsd {
  const rates = ratesOf(prices);
  return amountOf(usage, rates.price, withSizes(terms, usage, rates));
}

/**
 * The most that a use can be sold for that has at most so much of each unit, or of what falls back to it. Each term that is
 * missing may turn out to be anything, and each that is a number may turn out to be less.
 * @throws UnpricedUnitError when a use within these bounds could have no price
 */
export function calculateMaxPrice(usage: Usage, prices: readonly Price[], terms: PriceTerms = {}): PicoUsd {
  const rates = ratesOf(prices);
  return roundUp(boundedSum(usage, rates, withSizes(terms, usage, rates)));
}

/**
 * How many more of a `unit` an amount affords at their bound, beside a use that is there already; -1 when not even that.
 * @throws UnpricedUnitError
 */
export function countAffordableUnits(
  amount: PicoUsd,
  { unit, beside }: { readonly unit: Unit; readonly beside: Usage },
  prices: readonly Price[],
  terms: PriceTerms = {},
): number {
  const rates = ratesOf(prices);
  const known = withSizes(terms, beside, rates, unit);
  const { over, under } = boundedSum(beside, rates, known);
  const each = dearestOf(unit, rates, known);
  const left = amount * under - over;
  if (left < 0n) return -1;
  if (each === undefined || each.over === 0n) return Number.MAX_SAFE_INTEGER;
  const most = (left * each.under) / (under * each.over);
  return most > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(most);
}

/** Two uses as one. */
export function addUsage(a: Usage, b: Usage): Usage {
  const sum: Partial<Record<Unit, number>> = { ...a };
  for (const unit in b) sum[unit as Unit] = (a[unit as Unit] ?? 0) + (b[unit as Unit] ?? 0);
  return sum;
}

/** How much was used of a unit and of all that falls back to it. */
export function getQuantity(unit: Unit, usage: Usage): number {
  return FAMILIES[unit].reduce((sum, each) => sum + (usage[each] ?? 0), 0);
}

/** A use as it stands in facts: what is 0 is left out. @throws RangeError for what is no whole number from 0 */
export function usageToJson(usage: Usage): Usage {
  const json: Partial<Record<Unit, number>> = {};
  for (const unit of ALL_UNITS) {
    const quantity = usage[unit] ?? 0;
    if (!Number.isSafeInteger(quantity) || quantity < 0) throw new RangeError(`not a quantity of ${unit}: ${quantity}`);
    if (quantity > 0) json[unit] = quantity;
  }
  return json;
}

export function priceToJson({ unit, per, cost, price, when }: Price): PriceJson {
  return {
    unit,
    per: Number(per),
    ...(cost === undefined ? {} : { cost: cost.toString() }),
    ...(price === undefined ? {} : { price: price.toString() }),
    ...(when === undefined ? {} : { when }),
  };
}

export function priceFromJson({ unit, per, cost, price, when }: PriceJson): Price {
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
const CHAINS = byUnit(chainOf);
/** Each unit, and all that fall back to it. */
const FAMILIES = byUnit((unit) => ALL_UNITS.filter((each) => CHAINS[each].includes(unit)));
/** Terms that follow from how much of a unit one call has used. */
const SIZES: Readonly<Record<string, Unit>> = { inputTokens: 'input' };

type Met = 'yes' | 'no' | 'perhaps';

/** What one of a unit costs or is sold for, by one line. */
interface Rate extends Fraction {
  readonly when: PriceConditions | undefined;
}

/** What one of a unit may cost, or be sold for: the first rate whose conditions are met applies. */
interface UnitRates {
  /** By its own lines, and then by those of what it falls back to. */
  readonly rates: readonly Rate[];
  /** Only the other amount is known for it: billed, or sold, by another unit. */
  readonly otherwise: boolean;
}

/** What follows from prices alone. A request asks for it about ten times, so it is put together once. */
interface Rates {
  readonly cost: Readonly<Record<Unit, UnitRates>>;
  readonly price: Readonly<Record<Unit, UnitRates>>;
  /** As what a unit may be sold: itself, and what falls back to it and has lines of its own. */
  readonly soldAs: Readonly<Record<Unit, readonly Unit[]>>;
  readonly conditional: boolean;
}

/** For as long as the prices themselves are there. */
const RATES = new WeakMap<readonly Price[], Rates>();

function ratesOf(prices: readonly Price[]): Rates {
  const known = RATES.get(prices);
  if (known) return known;
  const rates: Rates = {
    cost: byUnit((unit) => unitRatesOf(unit, 'cost', prices)),
    price: byUnit((unit) => unitRatesOf(unit, 'price', prices)),
    soldAs: byUnit((unit) =>
      FAMILIES[unit].filter((each) => each === unit || prices.some((line) => line.unit === each)),
    ),
    conditional: prices.some(({ when }) => when !== undefined),
  };
  RATES.set(prices, rates);
  return rates;
}

function unitRatesOf(unit: Unit, kind: 'cost' | 'price', prices: readonly Price[]): UnitRates {
  const lines = CHAINS[unit].flatMap((level) => prices.filter((line) => line.unit === level));
  const rates = lines.flatMap(({ per, when, [kind]: over }): Rate[] =>
    over === undefined ? [] : [{ over, under: per, when }],
  );
  return { rates, otherwise: rates.length === 0 && lines.length > 0 };
}

function chainOf(unit: Unit): readonly Unit[] {
  const { of } = UNITS[unit] as { readonly of?: Unit };
  return of === undefined ? [unit] : [unit, ...chainOf(of)];
}

function byUnit<T>(of: (unit: Unit) => T): Readonly<Record<Unit, T>> {
  return Object.fromEntries(ALL_UNITS.map((unit) => [unit, of(unit)])) as Record<Unit, T>;
}

function amountOf(usage: Usage, rates: Rates['cost'], terms: PriceTerms): PicoUsd {
  let sum = ZERO_FRACTION;
  for (const name in usage) {
    const unit = name as Unit;
    const quantity = usage[unit];
    const rate = quantity ? rateOf(unit, rates[unit], terms) : undefined;
    if (quantity && rate) sum = addMultiple(sum, quantity, rate);
  }
  return roundUp(sum);
}

/** Undefined where only the other amount is known. @throws UnpricedUnitError when no condition is met */
function rateOf(unit: Unit, { rates, otherwise }: UnitRates, terms: PriceTerms): Rate | undefined {
  for (const rate of rates) if (rate.when === undefined || isMetBy(rate.when, terms)) return rate;
  if (!otherwise) throw new UnpricedUnitError(unit);
  return undefined;
}

function boundedSum(usage: Usage, rates: Rates, terms: PriceTerms): Fraction {
  let sum = ZERO_FRACTION;
  for (const name in usage) {
    const quantity = usage[name as Unit];
    const dearest = quantity ? dearestOf(name as Unit, rates, terms) : undefined;
    if (quantity && dearest) sum = addMultiple(sum, quantity, dearest);
  }
  return sum;
}

/**
 * The most that one of a unit, or of what falls back to it, may be sold for; undefined when it is not what is sold.
 * @throws UnpricedUnitError when it could have no price
 */
function dearestOf(unit: Unit, { price, soldAs }: Rates, terms: PriceTerms): Fraction | undefined {
  let dearest: Fraction | undefined;
  for (const each of soldAs[unit]) {
    const { rates, otherwise } = price[each];
    let met: Met = otherwise ? 'yes' : 'no';
    for (const rate of rates) {
      met = rate.when === undefined ? 'yes' : mayBeMetBy(rate.when, terms);
      if (met !== 'no' && isDearer(rate, dearest)) dearest = rate;
      if (met === 'yes') break;
    }
    if (met !== 'yes') throw new UnpricedUnitError(each);
  }
  return dearest;
}

function isDearer(rate: Fraction, than: Fraction | undefined): boolean {
  return than === undefined || rate.over * than.under > than.over * rate.under;
}

function isMetBy(when: PriceConditions, terms: PriceTerms): boolean {
  for (const name in when) {
    const condition = when[name] as PriceCondition;
    const term = terms[name];
    if (term === undefined) return false;
    if (typeof condition === 'string' ? String(term) !== condition : Number(term) <= condition.above) return false;
  }
  return true;
}

/** Whether conditions are met when a missing term may be anything, and a number is the most that it may be. */
function mayBeMetBy(when: PriceConditions, terms: PriceTerms): Met {
  let all: Met = 'yes';
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
 * @param growing the unit of which there will be more
 */
function withSizes(terms: PriceTerms, usage: Usage, { conditional }: Rates, growing?: Unit): PriceTerms {
  if (!conditional) return terms;
  const sizes: Record<string, string | number> = {};
  for (const [name, unit] of Object.entries(SIZES))
    if (growing === undefined || !CHAINS[growing].includes(unit)) sizes[name] = getQuantity(unit, usage);
  return { ...sizes, ...terms };
}
