/**
 * One tariff for everything that is sold. A use is a set of quantities, each in its unit, and one kind of price line says
 * what any unit costs and what it is sold for: tokens, images, seconds, characters, searches, lookups. Pure, so that every
 * charge can be computed again from its facts.
 */
import { money, type PicoUsd, picoUsd } from '#kernel';
import type { Amount } from './values.ts';

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
  output: {},
  reasoning: { of: 'output' },
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
export type Terms = Readonly<Record<string, string | number>>;

/** A text must be the term; of a number there must be more than `above`. */
export type Condition = string | { readonly above: number };
export type Conditions = Readonly<Record<string, Condition>>;

/**
 * What `per` units cost and are sold for, in pico-USD. Of the lines of a unit, the first whose conditions are all met applies.
 * One of the amounts may be missing: a model may be billed by tokens and sold by the image.
 */
export interface Price {
  readonly unit: Unit;
  readonly per: bigint;
  readonly cost?: bigint;
  readonly price?: bigint;
  readonly when?: Conditions;
}

/** A price as it stands in facts. */
export interface PriceJson {
  readonly unit: Unit;
  readonly per: number;
  readonly cost?: Amount;
  readonly price?: Amount;
  readonly when?: Conditions;
}

export interface Amounts {
  readonly cost: PicoUsd;
  readonly price: PicoUsd;
}

/** A unit is used, or might be, that the prices do not have: refused when it is quoted, an alarm when it is settled. */
export class UnpricedUnit extends Error {
  override readonly name = 'UnpricedUnit';

  constructor(readonly unit: Unit) {
    super(`There is no price for the unit ${unit}`);
  }
}

export const NO_USAGE: Usage = {};

/** Cost and price of a use, each rounded once, up to the next pico-USD. @throws UnpricedUnit */
export function priceOf(usage: Usage, prices: readonly Price[], terms: Terms = {}): Amounts {
  const known = withSizes(terms, usage, prices);
  return { cost: amountOf('cost', usage, prices, known), price: amountOf('price', usage, prices, known) };
}

/**
 * The most that a use can be sold for that has at most so much of each unit, or of what falls back to it. Each term that is
 * missing may turn out to be anything, and each that is a number may turn out to be less.
 * @throws UnpricedUnit when a use within these bounds could have no price
 */
export function boundOf(usage: Usage, prices: readonly Price[], terms: Terms = {}): PicoUsd {
  return roundedUp(boundedSum(usage, prices, withSizes(terms, usage, prices)));
}

/**
 * How many more of a `unit` an amount affords at their bound, beside a use that is there already; -1 when not even that.
 * @throws UnpricedUnit
 */
export function affordable(
  amount: PicoUsd,
  { unit, beside }: { readonly unit: Unit; readonly beside: Usage },
  prices: readonly Price[],
  terms: Terms = {},
): number {
  const known = withSizes(terms, beside, prices, unit);
  const { over, under } = boundedSum(beside, prices, known);
  const each = dearestOf(unit, prices, known);
  const left = amount * under - over;
  if (left < 0n) return -1;
  if (each === undefined || each.over === 0n) return Number.MAX_SAFE_INTEGER;
  const most = (left * each.under) / (under * each.over);
  return most > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(most);
}

/** Two uses as one. */
export function addedUsage(a: Usage, b: Usage): Usage {
  const sum: Partial<Record<Unit, number>> = { ...a };
  for (const unit of unitsIn(b)) sum[unit] = (sum[unit] ?? 0) + (b[unit] ?? 0);
  return sum;
}

/** How much was used of a unit and of all that falls back to it. */
export function quantityOf(unit: Unit, usage: Usage): number {
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

// lines -------------------------------------------------------------------------------------------------------------

const ALL_UNITS = Object.keys(UNITS) as readonly Unit[];
/** Each unit, what it falls back to, and so on. */
const CHAINS = byUnit(chainOf);
/** Each unit, and all that fall back to it. */
const FAMILIES = byUnit((unit) => ALL_UNITS.filter((each) => CHAINS[each].includes(unit)));
/** Terms that follow from how much of a unit one call has used. */
const SIZES: Readonly<Record<string, Unit>> = { inputTokens: 'input' };

type Kind = 'cost' | 'price';
type Met = 'yes' | 'no' | 'perhaps';

function chainOf(unit: Unit): readonly Unit[] {
  const { of } = UNITS[unit] as { readonly of?: Unit };
  return of === undefined ? [unit] : [unit, ...chainOf(of)];
}

function byUnit<T>(of: (unit: Unit) => T): Readonly<Record<Unit, T>> {
  return Object.fromEntries(ALL_UNITS.map((unit) => [unit, of(unit)])) as Record<Unit, T>;
}

function amountOf(kind: Kind, usage: Usage, prices: readonly Price[], terms: Terms): PicoUsd {
  let sum = ZERO;
  for (const unit of unitsIn(usage)) {
    const [line] = linesFor(unit, kind, prices, (when) => metBy(when, terms));
    if (line) sum = plus(sum, usage[unit] ?? 0, { over: line[kind] as bigint, under: line.per });
  }
  return roundedUp(sum);
}

function boundedSum(usage: Usage, prices: readonly Price[], terms: Terms): Fraction {
  let sum = ZERO;
  for (const unit of unitsIn(usage)) {
    const dearest = dearestOf(unit, prices, terms);
    if (dearest) sum = plus(sum, usage[unit] ?? 0, dearest);
  }
  return sum;
}

/** The most that one of a unit, or of what falls back to it, may be sold for; undefined when it is not what is sold. */
function dearestOf(unit: Unit, prices: readonly Price[], terms: Terms): Fraction | undefined {
  let dearest: Fraction | undefined;
  for (const each of FAMILIES[unit]) {
    // Without lines of its own it is sold by those of what it falls back to.
    if (each !== unit && !prices.some((line) => line.unit === each)) continue;
    for (const { per, price = 0n } of linesFor(each, 'price', prices, (when) => mayBeMetBy(when, terms))) {
      if (dearest === undefined || price * dearest.under > dearest.over * per) dearest = { over: price, under: per };
    }
  }
  return dearest;
}

/**
 * The lines that may give a unit its amount, up to the first that is sure to: its own, or else those of what it falls back
 * to. None where only the other amount is known for it.
 * @throws UnpricedUnit when no line is sure to
 */
function linesFor(unit: Unit, kind: Kind, prices: readonly Price[], met: (when: Conditions) => Met): readonly Price[] {
  const lines: Price[] = [];
  let known = false;
  let other = false;
  for (const level of CHAINS[unit]) {
    for (const line of prices) {
      if (line.unit !== level) continue;
      if (line[kind] === undefined) {
        other = true;
        continue;
      }
      known = true;
      const is = line.when === undefined ? 'yes' : met(line.when);
      if (is !== 'no') lines.push(line);
      if (is === 'yes') return lines;
    }
  }
  if (known || !other) throw new UnpricedUnit(unit);
  return lines;
}

function metBy(when: Conditions, terms: Terms): Met {
  for (const name in when) {
    const condition = when[name] as Condition;
    const term = terms[name];
    if (term === undefined) return 'no';
    if (typeof condition === 'string' ? String(term) !== condition : Number(term) <= condition.above) return 'no';
  }
  return 'yes';
}

/** Whether conditions are met when a missing term may be anything, and a number is the most that it may be. */
function mayBeMetBy(when: Conditions, terms: Terms): Met {
  let all: Met = 'yes';
  for (const name in when) {
    const condition = when[name] as Condition;
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
function withSizes(terms: Terms, usage: Usage, prices: readonly Price[], growing?: Unit): Terms {
  if (!prices.some(({ when }) => when !== undefined)) return terms;
  const sizes: Record<string, string | number> = {};
  for (const [name, unit] of Object.entries(SIZES))
    if (growing === undefined || !CHAINS[growing].includes(unit)) sizes[name] = quantityOf(unit, usage);
  return { ...sizes, ...terms };
}

function unitsIn(usage: Usage): readonly Unit[] {
  const units = Object.keys(usage) as Unit[];
  return units.filter((unit) => usage[unit] !== 0);
}

// sums --------------------------------------------------------------------------------------------------------------

/** An exact amount of pico-USD. */
interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

const ZERO: Fraction = { over: 0n, under: 1n };

function plus({ over, under }: Fraction, quantity: number, each: Fraction): Fraction {
  const more = BigInt(quantity) * each.over;
  if (more === 0n || under === each.under) return { over: over + more, under };
  if (over === 0n) return { over: more, under: each.under };
  const common = (under / greatestDivisor(under, each.under)) * each.under;
  return { over: over * (common / under) + more * (common / each.under), under: common };
}

function roundedUp({ over, under }: Fraction): PicoUsd {
  return picoUsd(money.divideUp(over, under));
}

function greatestDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestDivisor(b, a % b);
}
