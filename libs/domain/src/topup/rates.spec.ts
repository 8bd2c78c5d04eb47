import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type AcceptedRate,
  addToHistory,
  type ConsensusRate,
  getRateTime,
  type RateContext,
  type RateQuote,
  selectRate,
} from '#domain';
import { formatUsd, money, type PicoUsd } from '#kernel';

const NOW = Date.parse('2026-11-20T12:00:00.000Z');
const MINUTE = 60_000;
const LIMITS = { maxSpreadPercent: 2, maxJumpPercent: 20 };

const FAST = 10_000;
const quote = (source: string, price: string): RateQuote => ({
  source,
  price: money.parseUsd(price),
  at: NOW,
  intervalMs: FAST,
});
const says = (...prices: readonly string[]) => prices.map((price, i) => quote(`source ${i + 1}`, price));
const agreed = (price: string, minutesAgo: number): ConsensusRate => ({
  price: money.parseUsd(price),
  at: NOW - minutesAgo * MINUTE,
});

function beliefIn(quotes: readonly RateQuote[], more: Partial<RateContext> = {}): string {
  const belief = selectRate({ quotes, history: [], allowsSingleSource: false, now: NOW, ...more }, LIMITS);
  return typeof belief === 'string' ? belief : formatUsd(belief.price);
}

describe('the rate of a coin', () => {
  test.each<[readonly string[], string]>([
    [[], 'no_quotes'],
    [['100'], 'single_source'],
    [['100', '100'], '100'],
    [['100', '102'], '101'],
    [['102', '100'], '101'],
    [['100', '102.000001'], 'contradiction'],
    [['98', '100'], 'contradiction'],
    [['100', '101', '102'], '101'],
    [['102', '100', '101'], '101'],
    [['100', '101', '1000000'], '100.5'],
    [['0.01', '100', '101'], '100.5'],
    [['100', '101.9', '103.8'], '101.9'],
    [['100', '103', '106'], 'contradiction'],
    [['1', '100', '10000'], 'contradiction'],
    [['99.5', '100', '101', '500'], '100'],
    [['50', '100', '101', '200'], '100.5'],
    [['50', '100', '103', '200'], 'contradiction'],
    [['0.000000000001', '0.000000000002'], 'contradiction'],
  ])('for the quotes %j is %s', (prices, rate) => {
    expect(beliefIn(says(...prices))).toBe(rate);
  });

  test('includes only the quotes that agree', () => {
    const { quotes } = selectRate(
      { quotes: says('100', '5', '101'), history: [], allowsSingleSource: false, now: NOW },
      LIMITS,
    ) as AcceptedRate;
    expect(quotes.map(({ source }) => source)).toEqual(['source 1', 'source 3']);
  });
});

describe('a single source', () => {
  test.each<[string, Partial<RateContext>, string]>([
    ['is rejected by default', { history: [agreed('100', 1)] }, 'single_source'],
    ['is rejected without an earlier consensus', { allowsSingleSource: true }, 'single_source'],
    ['is accepted if the coin allows it', { allowsSingleSource: true, history: [agreed('90', 1)] }, '100'],
    ['is rejected far from the last consensus', { allowsSingleSource: true, history: [agreed('83', 1)] }, 'jump'],
    ['has a limit that does not grow with time', { allowsSingleSource: true, history: [agreed('83', 6_000)] }, 'jump'],
  ])('%s', (_, more, rate) => {
    expect(beliefIn(says('100'), more)).toBe(rate);
  });
});

describe('a jump of the rate', () => {
  const both = (price: string) => says(price, price);

  test.each<[string, string, number, string]>([
    ['by 20 % is accepted at once', '120', 0, '120'],
    ['by more than 20 % is rejected', '120.01', 0, 'jump'],
    ['downwards has the same limit', '83.34', 0, '83.34'],
    ['downwards beyond the limit is rejected', '83.33', 0, 'jump'],
    ['has twice the limit after ten minutes', '140', 10, '140'],
    ['from 100 to 60 is rejected after 23 minutes', '60', 23, 'jump'],
    ['from 100 to 60 is accepted after 24 minutes', '60', 24, '60'],
    ['by a factor of 10,000 is rejected after a month', '1000000', 43_200, 'jump'],
    ['by a factor of 1/10,000 is rejected after a month', '0.01', 43_200, 'jump'],
  ])('%s', (_, price, minutesAgo, rate) => {
    expect(beliefIn(both(price), { history: [agreed('100', minutesAgo)] })).toBe(rate);
  });

  test('has no larger limit after the clock was set back', () => {
    expect(beliefIn(both('121'), { history: [agreed('100', -60)] })).toBe('jump');
  });

  test('in small steps is limited like one large jump', () => {
    let known: readonly ConsensusRate[] = [agreed('100', 60)];
    let now = NOW - 60 * MINUTE;
    let price = money.parseUsd('100');
    for (; now <= NOW; now += MINUTE / 2) {
      const next = ((price * 119n) / 100n) as PicoUsd;
      const quotes = ['a', 'b'].map((source) => ({ source, price: next, at: now, intervalMs: FAST }));
      const belief = selectRate({ quotes, history: known, allowsSingleSource: false, now }, LIMITS);
      if (typeof belief === 'string') continue;
      price = next;
      known = addToHistory(known, price, now);
    }
    expect(price).toBeLessThanOrEqual(money.parseUsd('240'));
    expect(price).toBeGreaterThan(money.parseUsd('150'));
  });

  test('is measured from each consensus that differs by more than 1 %, and else from one of every 30 s', () => {
    const first = [agreed('100', 0)];
    expect(addToHistory(first, money.parseUsd('101'), NOW + 29_999)).toBe(first);
    expect(addToHistory(first, money.parseUsd('100'), NOW + 30_000)).toHaveLength(2);
    expect(addToHistory(first, money.parseUsd('101.000001'), NOW)).toHaveLength(2);
    expect(addToHistory(first, money.parseUsd('98.9'), NOW)).toHaveLength(2);
    expect(addToHistory(first, money.parseUsd('100'), NOW - 30_000)).toHaveLength(2);
  });

  test('is not measured from a consensus that is an hour older than the newest one', () => {
    const known = addToHistory([agreed('1', 60), agreed('2', 59)], money.parseUsd('3'), NOW);
    expect(known.map(({ price }) => formatUsd(price))).toEqual(['2', '3']);
  });
});

describe('a rate that moves', () => {
  const MOVED = [agreed('100', 9)];
  const old = (age: number, price = '106'): RateQuote => ({ ...quote('old', price), at: NOW - age });
  const slow = (price = '106'): RateQuote => ({ ...quote('slow', price), intervalMs: 60_000 });
  const isMoving = (quotes: readonly RateQuote[], history: readonly ConsensusRate[]) =>
    (selectRate({ quotes, history, allowsSingleSource: true, now: NOW }, LIMITS) as AcceptedRate).isMoving;

  test.each<[string, readonly RateQuote[], boolean]>([
    ['two timely quotes', [quote('a', '106'), quote('b', '106')], false],
    ['two timely quotes and a slow one', [quote('a', '106'), quote('b', '106'), slow()], false],
    ['one timely quote and a slow one', [quote('a', '106'), slow()], true],
    ['one timely quote and two others', [quote('a', '106'), slow(), old(10_000)], true],
    ['one timely quote, a slow one and one that differs', [quote('a', '106'), slow(), quote('b', '50')], true],
    ['a quote of almost 10 s', [quote('a', '106'), old(9_999)], false],
    ['a quote of 10 s', [quote('a', '106'), old(10_000)], true],
    ['a single timely quote', [quote('a', '106')], false],
    ['a single slow quote', [slow()], true],
  ])('must not be used with %s: %#', (_, quotes, moving) => {
    expect(isMoving(quotes, MOVED)).toBe(moving);
  });

  test.each<[string, readonly ConsensusRate[], boolean]>([
    ['5 %', [agreed('100', 9)], false],
    ['more than 5 %', [agreed('99.99', 9)], true],
    ['-5 %', [agreed('110.25', 9)], false],
    ['more than -5 %', [agreed('110.26', 9)], true],
    ['more than 5 %, ten minutes ago', [agreed('99.99', 10)], false],
    ['more than 5 % and back', [agreed('102', 9), agreed('108', 5)], true],
    ['nothing', [], false],
  ])('has changed by %s', (_, history, moving) => {
    expect(isMoving([slow('105'), quote('a', '105')], history)).toBe(moving);
  });

  test('has the time since which a majority of its quotes has been known', () => {
    expect(getRateTime([quote('a', '1'), old(5)])).toBe(NOW - 5);
    expect(getRateTime([old(9), quote('a', '1'), old(5)])).toBe(NOW - 5);
    expect(getRateTime([old(9)])).toBe(NOW - 9);
  });
});

describe('a manipulated source', () => {
  const truth = fc.bigInt({ min: 10n ** 8n, max: 10n ** 24n });
  /** Honest sources differ by at most 0.2 % from the true price. */
  const noise = fc.tuple(fc.bigInt({ min: -20n, max: 20n }), fc.bigInt({ min: -20n, max: 20n }));
  const lie = fc.oneof(
    fc.bigInt({ min: 1n, max: 10n ** 30n }).map((price) => () => price),
    fc.bigInt({ min: 9_000n, max: 11_000n }).map((factor) => (price: bigint) => (price * factor) / 10_000n),
    fc.constantFrom<(price: bigint) => bigint>(
      (price) => price * 10_000n,
      (price) => price / 10_000n,
    ),
  );
  const order = fc.shuffledSubarray([0, 1, 2], { minLength: 3 });
  const priced = (source: string, price: bigint): RateQuote => ({
    source,
    price: price as PicoUsd,
    at: NOW,
    intervalMs: FAST,
  });
  const isNear = (price: bigint, of: bigint) => (price - of) * 100n <= of * 2n && (of - price) * 100n <= of * 2n;
  const rateOf = (quotes: readonly RateQuote[]) =>
    selectRate({ quotes, history: [], allowsSingleSource: false, now: NOW }, LIMITS);

  test('moves the rate by at most 2 % if two other sources are honest', () => {
    fc.assert(
      fc.property(truth, noise, lie, order, (price, [a, b], lies, places) => {
        const honest = [a, b].map((by, i) => priced(`honest ${i}`, (price * (10_000n + by)) / 10_000n));
        const quotes = [...honest, priced('liar', lies(price))];
        const belief = rateOf(places.map((i) => quotes[i] as RateQuote));
        expect(typeof belief === 'object' && isNear(belief.price, price)).toBe(true);
      }),
    );
  });

  test('is rejected or moves the rate by at most 2 % if the only other source is honest', () => {
    let refused = 0;
    let believed = 0;
    fc.assert(
      fc.property(truth, lie, fc.boolean(), (price, lies, first) => {
        const quotes = [priced('honest', price), priced('liar', lies(price))];
        const belief = rateOf(first ? quotes : quotes.toReversed());
        if (typeof belief === 'string') refused++;
        else believed++;
        expect(belief === 'contradiction' || (typeof belief === 'object' && isNear(belief.price, price))).toBe(true);
      }),
      { seed: 20_261_124, numRuns: 300 },
    );
    expect([refused > 0, believed > 0]).toEqual([true, true]);
  });
});
