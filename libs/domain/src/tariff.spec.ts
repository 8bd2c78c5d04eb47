import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type PicoUsd, parseUsd, toPicoUsd } from '#kernel';
import { isExplained, sampleSize } from '#testing';
import { toCharge, toChargeItem } from './charge.ts';
import {
  addUsage,
  calculateCostAndPrice,
  calculateMaxPrice,
  countAffordableUnits,
  getQuantity,
  type Price,
  type PriceTerms,
  parsePriceJson,
  toPriceJson,
  toUsageJson,
  type Unit,
  type Usage,
} from './tariff.ts';

const RUNS = { numRuns: sampleSize(3_000, 500) };

const line = (unit: Unit, price: string, more: Partial<Price> = {}): Price => ({
  unit,
  per: 1n,
  cost: parseUsd(price),
  price: parseUsd(price),
  ...more,
});
const perMillion = (unit: Unit, price: string, more: Partial<Price> = {}) =>
  line(unit, price, { per: 1_000_000n, ...more });

describe('a price', () => {
  test('is exact to the last decimal place', () => {
    const prices = [perMillion('input', '0.79125'), perMillion('output', '1.31875')];
    expect(calculateCostAndPrice({ input: 74, output: 3 }, prices).price).toBe(parseUsd('0.00006250875'));
  });

  test('is rounded up once, after all units are summed', () => {
    const thirds: Price[] = [
      { unit: 'image', per: 3n, cost: 1n, price: 2n },
      { unit: 'search', per: 7n, cost: 1n, price: 1n },
    ];
    expect(calculateCostAndPrice({ image: 1, search: 1 }, thirds)).toEqual({ cost: 1n, price: 1n });
    expect(calculateCostAndPrice({ image: 3, search: 7 }, thirds)).toEqual({ cost: 2n, price: 3n });
    expect(calculateCostAndPrice({ image: 4, search: 7 }, thirds)).toEqual({ cost: 3n, price: 4n });
    expect(calculateCostAndPrice({}, thirds)).toEqual({ cost: 0n, price: 0n });
  });

  test('of a unit without its own price is the price of its fallback unit, through every level', () => {
    const prices = [line('input', '1'), line('output', '10')];
    expect(calculateCostAndPrice({ input: 1, cacheRead: 1, cacheWriteHour: 1, reasoning: 1 }, prices).price).toBe(
      parseUsd('13'),
    );
    const written = [...prices, line('cacheWrite', '2')];
    expect(calculateCostAndPrice({ cacheWrite: 1, cacheWriteHour: 1 }, written).price).toBe(parseUsd('4'));
  });

  test('of an unpriced unit cannot be calculated, and neither can its maximum price', () => {
    const prices = [line('input', '1')];
    expect(() => calculateCostAndPrice({ input: 1, output: 1 }, prices)).toThrow('no price for the unit output');
    expect(() => calculateMaxPrice({ image: 1 }, prices)).toThrow('no price for the unit image');
    expect(() => countAffordableUnits(parseUsd('1'), { unit: 'output', beside: {} }, prices)).toThrow('output');
    expect(calculateCostAndPrice({ input: 1, output: 0 }, prices).price).toBe(parseUsd('1'));
  });

  test('comes from the first line whose conditions are satisfied', () => {
    const prices = [
      line('image', '4', { when: { quality: 'high', size: '2k' } }),
      line('image', '3', { when: { quality: 'high' } }),
      line('image', '1'),
    ];
    const of = (terms: PriceTerms) => calculateCostAndPrice({ image: 1 }, prices, terms).price;
    expect(of({ quality: 'high', size: '2k' })).toBe(parseUsd('4'));
    expect(of({ quality: 'high', size: '1k' })).toBe(parseUsd('3'));
    expect(of({ quality: 'low' })).toBe(parseUsd('1'));
    expect(of({})).toBe(parseUsd('1'));
  });

  test('that exists only under a condition is missing under other conditions', () => {
    const prices = [line('image', '4', { when: { quality: 'high' } })];
    expect(calculateCostAndPrice({ image: 1 }, prices, { quality: 'high' }).price).toBe(parseUsd('4'));
    expect(() => calculateCostAndPrice({ image: 1 }, prices, { quality: 'low' })).toThrow('image');
    expect(() => calculateMaxPrice({ image: 1 }, prices)).toThrow('image');
  });

  test('can depend on the size of the call, which is derived from its usage unless the provider reports it', () => {
    const prices = [line('input', '2', { when: { inputTokens: { above: 10 } } }), line('input', '1')];
    expect(calculateCostAndPrice({ input: 4, cacheRead: 6 }, prices).price).toBe(parseUsd('10'));
    expect(calculateCostAndPrice({ input: 5, cacheRead: 6 }, prices).price).toBe(parseUsd('22'));
    expect(calculateCostAndPrice({ input: 5, cacheRead: 6 }, prices, { inputTokens: 10 }).price).toBe(parseUsd('11'));
    expect(calculateMaxPrice({ input: 10 }, prices)).toBe(parseUsd('10'));
    expect(calculateMaxPrice({ input: 11 }, prices)).toBe(parseUsd('22'));
    expect(countAffordableUnits(parseUsd('19'), { unit: 'input', beside: {} }, prices)).toBe(9);
  });

  test('can be for another unit than the cost: billed by tokens, sold by the image', () => {
    const prices: Price[] = [
      { unit: 'output', per: 1n, cost: 5n },
      { unit: 'image', per: 1n, price: 700n },
    ];
    expect(calculateCostAndPrice({ output: 100, image: 1 }, prices)).toEqual({ cost: 500n, price: 700n });
    expect(calculateMaxPrice({ output: 100, image: 2 }, prices)).toBe(1_400n);
  });

  test('is the same after serialising and parsing', () => {
    const prices = [
      line('image', '4', { when: { quality: 'high' } }),
      line('character', '0.015', { per: 1_000n }),
      { unit: 'output', per: 1n, cost: 5n } as Price,
    ];
    expect(prices.map(toPriceJson).map(parsePriceJson)).toEqual(prices);
  });
});

describe('a maximum price', () => {
  test('covers the units that fall back to a unit, and every condition that can be satisfied', () => {
    const prices = [
      line('input', '1'),
      line('cacheWrite', '2'),
      line('output', '3', { when: { tier: 'priority' } }),
      line('output', '1'),
    ];
    expect(calculateMaxPrice({ input: 2 }, prices)).toBe(parseUsd('4'));
    expect(calculateMaxPrice({ output: 1 }, prices)).toBe(parseUsd('3'));
    expect(calculateMaxPrice({ output: 1 }, prices, { tier: 'flex' })).toBe(parseUsd('1'));
  });
});

describe('a usage', () => {
  test('is serialised without zeros, and is rejected with a quantity that is not a safe integer from 0', () => {
    expect(JSON.stringify(toUsageJson({ output: 2, cacheRead: 0, input: 1 }))).toBe('{"input":1,"output":2}');
    for (const wrong of [-1, 0.5, Number.NaN, 2 ** 53]) expect(() => toUsageJson({ input: wrong })).toThrow('input');
  });

  test('is added unit by unit, and the quantity of a unit includes the units that fall back to it', () => {
    const sum = addUsage({ input: 1, reasoning: 2 }, { input: 3, output: 4 });
    expect(sum).toEqual({ input: 4, reasoning: 2, output: 4 });
    expect(getQuantity('output', sum)).toBe(6);
    expect(getQuantity('input', { input: 1, cacheRead: 2, cacheWriteHour: 4, output: 8 })).toBe(7);
  });
});

/** The rates of version 1 price lists: costs per million tokens and per request, and a margin. */
interface OldRates {
  readonly input: bigint;
  readonly cacheRead: bigint;
  readonly cacheWrite: bigint;
  readonly output: bigint;
  readonly reasoning: bigint;
  readonly request: bigint;
  readonly margin: bigint;
}

const CLASSES = ['input', 'cacheRead', 'cacheWrite', 'output', 'reasoning'] as const;

function oldPriceOf(usage: Usage, rates: OldRates): { cost: bigint; price: bigint } {
  const up = (amount: bigint, by: bigint) => (amount + by - 1n) / by;
  let millionths = BigInt(usage.request ?? 0) * rates.request * 1_000_000n;
  for (const each of CLASSES) millionths += BigInt(usage[each] ?? 0) * rates[each];
  return { cost: up(millionths, 1_000_000n), price: up(millionths * rates.margin, 10n ** 10n) };
}

function pricesOf(rates: OldRates): Price[] {
  const of = (unit: Unit, rate: bigint, per: bigint) => ({
    unit,
    per,
    cost: rate * 10_000n,
    price: rate * rates.margin,
  });
  return [...CLASSES.map((each) => of(each, rates[each], 10n ** 10n)), of('request', rates.request, 10_000n)];
}

const rate = fc.bigInt({ min: 0n, max: 10n ** 14n });
const oldRates = fc.record({
  input: rate,
  cacheRead: rate,
  cacheWrite: rate,
  output: rate,
  reasoning: rate,
  request: fc.bigInt({ min: 0n, max: 10n ** 12n }),
  margin: fc.bigInt({ min: 10_000n, max: 20_000n }),
});
const tokens = fc.nat({ max: 200_000 });
const anyUsage = fc.record({
  input: tokens,
  cacheRead: tokens,
  cacheWrite: tokens,
  output: tokens,
  reasoning: tokens,
  request: fc.nat({ max: 5 }),
});

test('cache writes for an hour have their own price, which only their own upper bound includes', () => {
  const toPrice = (unit: Unit, price: bigint): Price => ({ unit, per: 1n, cost: price, price });
  const prices = [toPrice('input', 100n), toPrice('cacheWrite', 125n), toPrice('cacheWriteHour', 200n)];

  expect(calculateCostAndPrice({ cacheWriteHour: 10 }, prices)).toEqual({ cost: 2_000n, price: 2_000n });
  expect(calculateMaxPrice({ input: 10 }, prices)).toBe(1_250n);
  expect(calculateMaxPrice({ cacheWriteHour: 10 }, prices)).toBe(2_000n);
  expect(calculateMaxPrice({ cacheWriteHour: 10 }, prices.slice(0, 2))).toBe(1_250n);
  expect(calculateMaxPrice({ cacheWriteHour: 10 }, [toPrice('cacheWriteHour', 90n), ...prices.slice(0, 2)])).toBe(
    1_250n,
  );
  expect(
    countAffordableUnits(toPicoUsd(2_900n), { unit: 'output', beside: { cacheWriteHour: 10 } }, [
      ...prices,
      toPrice('output', 100n),
    ]),
  ).toBe(9);
});

describe('properties', () => {
  test('tokens and requests have the same cost and price as at the rates of version 1', () => {
    fc.assert(
      fc.property(oldRates, anyUsage, (rates, usage) => {
        expect(calculateCostAndPrice(usage, pricesOf(rates))).toEqual(oldPriceOf(usage, rates));
      }),
      RUNS,
    );
  });

  const units = ['input', 'cacheRead', 'cacheWrite', 'cacheWriteHour', 'output', 'reasoning', 'image'] as const;
  const conditions = fc.constantFrom<Price['when']>(
    undefined,
    { tier: 'flex' },
    { tier: 'priority', size: '2k' },
    { inputTokens: { above: 100_000 } },
  );
  const anyLine = fc
    .record({
      unit: fc.constantFrom(...units),
      per: fc.bigInt({ min: 1n, max: 10n ** 6n }),
      price: rate,
      when: conditions,
    })
    .map(({ when, ...rest }): Price => ({ ...rest, cost: 0n, ...(when ? { when } : {}) }));
  /** Each of `units` that has no fallback has an unconditional price. */
  const anyPrices = fc
    .record({ lines: fc.array(anyLine, { maxLength: 8 }), input: rate, output: rate, image: rate })
    .map(({ lines, input, output, image }): Price[] => [
      ...lines,
      { unit: 'input', per: 1_000_000n, cost: 0n, price: input },
      { unit: 'output', per: 1_000_000n, cost: 0n, price: output },
      { unit: 'image', per: 1n, cost: 0n, price: image },
    ]);
  const anyTerms = fc.record(
    { tier: fc.constantFrom('flex', 'priority', 'default'), size: fc.constantFrom('1k', '2k') },
    { requiredKeys: [] },
  );
  /** The fractions by which `within` divides upper bounds among units. */
  const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 });
  function within({ input, output, image }: Readonly<Record<'input' | 'output' | 'image', number>>, parts: number[]) {
    const [all = 0, read = 0, write = 0, thought = 0] = parts;
    const used = Math.floor(input * all);
    const cacheRead = Math.floor(used * read);
    const cacheWrite = Math.floor((used - cacheRead) * write);
    const reasoning = Math.floor(output * thought);
    const usage = { cacheRead, cacheWrite, input: used - cacheRead - cacheWrite };
    return { ...usage, reasoning, output: output - reasoning, image: Math.floor(image * all) };
  }
  const bounds = fc.record({ input: tokens, output: tokens, image: fc.nat({ max: 10 }) });

  test('the price of a usage within an upper bound is at most the maximum price, for any terms of the response', () => {
    fc.assert(
      fc.property(anyPrices, bounds, shares, anyTerms, fc.boolean(), (prices, bound, parts, terms, known) => {
        const usage = within(bound, parts);
        expect(
          calculateCostAndPrice(usage, prices, terms).price <= calculateMaxPrice(bound, prices, known ? terms : {}),
        ).toBe(true);
      }),
      RUNS,
    );
  });

  test('the affordable number of units costs at most the amount, and one more unit exceeds it', () => {
    const amounts = fc.bigInt({ min: 0n, max: 10n ** 16n });
    fc.assert(
      fc.property(anyPrices, tokens, amounts, anyTerms, (prices, input, amount, terms) => {
        const output = countAffordableUnits(amount as PicoUsd, { unit: 'output', beside: { input } }, prices, terms);
        const bound = (more: number) => calculateMaxPrice({ input, output: more }, prices, terms);
        if (output < 0) expect(bound(0) > amount).toBe(true);
        else if (output < Number.MAX_SAFE_INTEGER) {
          expect(bound(output) <= amount).toBe(true);
          expect(bound(output + 1) > amount).toBe(true);
        }
      }),
      RUNS,
    );
  });

  test('a charge is the sum of its items; the price list explains their prices, but no price higher by 1 pUSD', () => {
    const sold = { of: 'v/m', provider: 'v', creditor: 'router' };
    fc.assert(
      fc.property(anyPrices, fc.array(anyUsage, { maxLength: 4 }), anyTerms, (lines, usages, terms) => {
        const prices = [...lines, { unit: 'request', per: 3n, cost: 1n, price: 2n } as Price];
        const items = usages.map((usage) => toChargeItem({ ...sold, prices }, { usage, terms, estimated: false }));
        const { cost, price } = toCharge(items, { priceList: 'list', attempts: [] });
        expect(BigInt(price)).toBe(
          usages.reduce((sum, usage) => sum + calculateCostAndPrice(usage, prices, terms).price, 0n),
        );
        expect(BigInt(cost)).toBe(
          usages.reduce((sum, usage) => sum + calculateCostAndPrice(usage, prices, terms).cost, 0n),
        );
        const published = [{ ...sold, prices: prices.map(toPriceJson) }];
        const explained = (each: typeof items) =>
          isExplained(toCharge(each, { priceList: 'list', attempts: [] }), published);
        expect(explained(items)).toBe(true);
        for (const item of items) {
          expect(explained([{ ...item, price: `${BigInt(item.price) + 1n}` }])).toBe(false);
          expect(explained([{ ...item, absorbed: 'late' }])).toBe(item.price === '0');
        }
      }),
      { numRuns: sampleSize(500, 100) },
    );
  });
});
