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
 * What `per` units cost and are sold for, in pico-USD. Of the lines of a unit the first counts whose conditions are all met.
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
  const cost = new Sum();
  const price = new Sum();
  for (const [unit, quantity] of entriesOf(usage)) {
    addAmount(cost, 'cost', { unit, quantity, prices, terms: known });
    addAmount(price, 'price', { unit, quantity, prices, terms: known });
  }
  return { cost: cost.roundedUp(), price: price.roundedUp() };
}

/**
 * The most that a use can be sold for that has at most so much of each unit, or of what falls back to it. Each term that is
 * missing may turn out to be anything, and each that is a number may turn out to be less.
 * @throws UnpricedUnit when a use within these bounds could have no price
 */
export function boundOf(usage: Usage, prices: readonly Price[], terms: Terms = {}): PicoUsd {
  return boundedSum(usage, prices, withSizes(terms, usage, prices)).roundedUp();
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
  const before = boundedSum(beside, prices, known);
  const each = dearestOf(unit, prices, known);
  if (before.isAbove(amount)) return -1;
  if (each === undefined || each.price === 0n) return Number.MAX_SAFE_INTEGER;
  const most = before.unitsWithin(amount, each.price, each.per);
  return most > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(most);
}

/** Two uses as one. */
export function addedUsage(a: Usage, b: Usage): Usage {
  const sum: Partial<Record<Unit, number>> = { ...a };
  for (const [unit, quantity] of entriesOf(b)) sum[unit] = (sum[unit] ?? 0) + quantity;
  return sum;
}

/** How much was used of a unit and of all that falls back to it. */
export function quantityOf(unit: Unit, usage: Usage): number {
  let quantity = 0;
  for (const [used, each] of entriesOf(usage)) if (fallsBackTo(used, unit)) quantity += each;
  return quantity;
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
/** Terms that follow from how much of a unit one call has used. */
const SIZES: Readonly<Record<string, Unit>> = { inputTokens: 'input' };

type Kind = 'cost' | 'price';
type Met = 'yes' | 'no' | 'perhaps';

interface Counted {
  readonly unit: Unit;
  readonly quantity: number;
  readonly prices: readonly Price[];
  readonly terms: Terms;
}

function addAmount(sum: Sum, kind: Kind, { unit, quantity, prices, terms }: Counted): void {
  const [line] = linesFor(unit, kind, prices, (when) => metBy(terms, when));
  if (line) sum.add(quantity, line[kind] as bigint, line.per);
}

/** The dearest line that a unit, or one that falls back to it, may be sold by; undefined when it is not what is sold. */
function dearestOf(unit: Unit, prices: readonly Price[], terms: Terms) {
  let dearest: { readonly price: bigint; readonly per: bigint } | undefined;
  for (const each of ALL_UNITS) {
    if (!fallsBackTo(each, unit)) continue;
    for (const { per, price = 0n } of linesFor(each, 'price', prices, (when) => mayBeMetBy(terms, when))) {
      if (dearest === undefined || price * dearest.per > dearest.price * per) dearest = { price, per };
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
  for (let level: Unit | undefined = unit; level; level = parentOf(level)) {
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

function metBy(terms: Terms, when: Conditions): Met {
  for (const name in when) {
    const condition = when[name] as Condition;
    const term = terms[name];
    if (term === undefined) return 'no';
    if (typeof condition === 'string' ? String(term) !== condition : Number(term) <= condition.above) return 'no';
  }
  return 'yes';
}

/** Whether conditions are met when a missing term may be anything, and a number is the most that it may be. */
function mayBeMetBy(terms: Terms, when: Conditions): Met {
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
    if (growing === undefined || !fallsBackTo(growing, unit)) sizes[name] = quantityOf(unit, usage);
  return { ...sizes, ...terms };
}

function parentOf(unit: Unit): Unit | undefined {
  return (UNITS[unit] as { readonly of?: Unit }).of;
}

function fallsBackTo(unit: Unit, ancestor: Unit): boolean {
  for (let level: Unit | undefined = unit; level; level = parentOf(level)) if (level === ancestor) return true;
  return false;
}

function entriesOf(usage: Usage): readonly (readonly [Unit, number])[] {
  return (Object.entries(usage) as [Unit, number][]).filter(([, quantity]) => quantity !== 0);
}

// sums --------------------------------------------------------------------------------------------------------------

function boundedSum(usage: Usage, prices: readonly Price[], terms: Terms): Sum {
  const sum = new Sum();
  for (const [unit, quantity] of entriesOf(usage)) {
    const dearest = dearestOf(unit, prices, terms);
    if (dearest) sum.add(quantity, dearest.price, dearest.per);
  }
  return sum;
}

/** An exact fraction of pico-USD. */
class Sum {
  private numerator = 0n;
  private denominator = 1n;

  add(quantity: number, amount: bigint, per: bigint): void {
    if (this.denominator % per !== 0n) {
      const common = (this.denominator / greatestDivisor(this.denominator, per)) * per;
      this.numerator *= common / this.denominator;
      this.denominator = common;
    }
    this.numerator += BigInt(quantity) * amount * (this.denominator / per);
  }

  roundedUp(): PicoUsd {
    return picoUsd(money.divideUp(this.numerator, this.denominator));
  }

  isAbove(amount: PicoUsd): boolean {
    return this.numerator > amount * this.denominator;
  }

  /** How many units at `price` for `per` can be added without exceeding an amount. */
  unitsWithin(amount: PicoUsd, price: bigint, per: bigint): bigint {
    return ((amount * this.denominator - this.numerator) * per) / (this.denominator * price);
  }
}

function greatestDivisor(a: bigint, b: bigint): bigint {
  return b === 0n ? a : greatestDivisor(b, a % b);
}
