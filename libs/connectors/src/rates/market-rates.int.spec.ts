import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type pg from 'pg';
import { Clock } from '#application';
import { readPayments } from '#catalogue';
import { createCoinbaseSource, createCoinGeckoSource, createKrakenSource, MarketRates, SharedRates } from '#connectors';
import { money } from '#kernel';
import { openPool } from '#postgres';
import { createMigratedDatabase, sampleCases, type TestDatabase } from '#testing';
import { startSandbox } from '../../../../apps/sandbox/src/sandbox.ts';
import type { ConsensusSettings } from './market-rates.ts';
import type { RateSource } from './rate-sources.ts';

const { coins } = readPayments();
const SETTINGS: ConsensusSettings = { maxSpreadPercent: 2, maxJumpPercent: 20, loneSourceCoins: [] };
const NOON = Date.parse('2026-11-20T12:00:00.000Z');
const MINUTE = 60_000;

class HandClock extends Clock {
  current = NOON;

  nowMs(): number {
    return this.current;
  }
}

const clock = new HandClock();
let alarms: string[];
const alarm = (problem: string) => void alarms.push(problem);

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createMigratedDatabase();
  pool = openPool({ connectionString: database.url, name: 'rates' });
});
beforeEach(async () => {
  clock.current = NOON;
  alarms = [];
  await pool.query('delete from public.rate_quotes; delete from public.agreed_rates');
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const openRates = (sources: readonly RateSource[], settings: Partial<ConsensusSettings> = {}) =>
  new MarketRates(
    { sources, coins, shared: new SharedRates(pool, () => clock.current) },
    clock,
    { ...SETTINGS, ...settings },
    alarm,
  );

const refused = (why: string) =>
  expect.objectContaining({
    name: 'UpstreamError',
    code: 'upstream_unavailable',
    message: `No exchange rate is available at the moment: ${why}`,
  });
const CONTRADICTION = refused('the sources of exchange rates contradict each other');
const ALONE = refused('only one source has a current rate');
const SILENCE = refused('no source has a current rate');
const JUMP = refused('the rate has jumped');

describe('with the protocols of all sources', () => {
  const TRUTH = { BTC: 100_000, LBTC: 100_000, LTC: 100, XMR: 200 };
  const COINS = Object.keys(TRUTH) as (keyof typeof TRUTH)[];
  const NAMES = ['kraken', 'coinbase', 'coingecko'] as const;
  /** Deviations of a source from the true price. A rate that stands still is 10 % lower, as if the price had risen. */
  const CASES: Readonly<Record<string, (truth: number) => object | null>> = {
    'reports 10,000 times the price': () => ({ times: '10000' }),
    'reports 1/10,000 of the price': () => ({ times: '0.0001' }),
    'is 3 % too high': () => ({ times: '1.03' }),
    'is 3 % too low': () => ({ times: '0.97' }),
    'stands still': (truth) => ({ usd: String(truth * 0.9), age_s: 600 }),
    'makes no sense': () => ({ nonsense: true }),
    'is down': () => null,
  };
  /** Whether the source has a usable quote. */
  const says = (source: string, what: string) =>
    !(what === 'is down' || what === 'makes no sense' || (what === 'stands still' && source === 'coingecko'));
  const quoting = (coin: string) => NAMES.filter((name) => coin !== 'XMR' || name !== 'coinbase');
  const QUOTES = COINS.flatMap((coin) => quoting(coin).map((source) => [coin, source] as const));
  /** Every source of every coin, each with other deviations. */
  const MATRIX = QUOTES.flatMap(([coin, source], i) =>
    sampleCases(Object.keys(CASES), 3, i).map((what) => [coin, source, what] as const),
  );

  let sandbox: Awaited<ReturnType<typeof startSandbox>>;
  beforeAll(async () => {
    sandbox = await startSandbox({ port: 0 });
  });
  afterAll(() => sandbox.close());
  beforeEach(async () => {
    clock.current = Date.now();
    await put({ btc_usd: '100000', ltc_usd: '100', xmr_usd: '200' });
  });

  async function put(changes: object): Promise<void> {
    const response = await fetch(`${sandbox.url}/rates`, { method: 'PUT', body: JSON.stringify(changes) });
    expect(response.status).toBe(200);
  }

  function misleading(source: string, coin: keyof typeof TRUTH, what: string) {
    return put({ [source]: { [coin === 'LBTC' ? 'BTC' : coin]: CASES[what]?.(TRUTH[coin]) } });
  }

  async function rateOf(coin: string) {
    const { url } = sandbox;
    const sources = [
      createKrakenSource(`${url}/kraken`),
      createCoinbaseSource(`${url}/coinbase`),
      createCoinGeckoSource(`${url}/coingecko`),
    ];
    const rates = openRates(sources);
    return rates.fetchUsdRate(coin).finally(() => rates.close());
  }

  test.each(COINS)('the rate of %s is the true price and names its sources', async (coin) => {
    const { value, source } = await rateOf(coin);
    expect([value, source]).toEqual([String(TRUTH[coin]), quoting(coin).join(', ')]);
    expect(alarms).toEqual([]);
  });

  test.each(MATRIX)('the rate of %s is rejected or is the true price if %s %s', async (coin, source, what) => {
    await misleading(source, coin, what);
    if (coin === 'XMR') return expect(rateOf(coin)).rejects.toEqual(says(source, what) ? CONTRADICTION : ALONE);
    // Two of three sources agree on the true price.
    expect(Number((await rateOf(coin)).value)).toBe(TRUTH[coin]);
  });

  test.each(MATRIX)('the rate of %s is rejected if %s %s and another source is down', async (coin, source, what) => {
    await misleading(source, coin, what);
    const other = NAMES.find((name) => name !== source && quoting(coin).includes(name)) ?? '';
    await misleading(other, coin, 'is down');
    await expect(rateOf(coin)).rejects.toMatchObject({ code: 'upstream_unavailable' });
  });
});

/** A source whose quotes a test sets. */
class Told implements RateSource {
  readonly freshMs = 60_000;
  asked = 0;
  /** The time of its price, if it reports one. */
  at: number | undefined;
  private waiting: Promise<unknown> = Promise.resolve();

  constructor(
    readonly name: string,
    public says: string | null,
    readonly intervalMs = 10_000,
  ) {}

  get key(): string {
    return this.name;
  }

  canQuote(): boolean {
    return true;
  }

  /** Delays its responses until `waiting` has settled. */
  after(waiting: Promise<unknown>): void {
    this.waiting = waiting;
  }

  async fetchPrice(_: unknown, { now }: { readonly now: number }) {
    this.asked++;
    const { says } = this;
    await this.waiting;
    if (says === null) throw new Error('it is down');
    return { price: money.parseUsd(says), at: this.at ?? now };
  }
}

type Says = Readonly<Record<string, string | null>>;

function market(
  says: Says,
  settings: Partial<ConsensusSettings> = {},
  intervals: Readonly<Record<string, number>> = {},
) {
  const told = Object.fromEntries(
    Object.entries(says).map(([name, price]) => [name, new Told(name, price, intervals[name])]),
  );
  const rates = openRates(Object.values(told), settings);
  const say = (changes: Says) => {
    for (const [name, price] of Object.entries(changes)) (told[name] as Told).says = price;
  };
  return { rates, say, told: told as Record<string, Told>, value: async () => (await rates.fetchUsdRate('BTC')).value };
}

/** A market whose source `b` may be called only once a minute. */
const slowMarket = (says: Says) => market(says, {}, { b: MINUTE });

describe('an exchange rate', () => {
  test('has the time of its oldest quote', async () => {
    const { rates, told } = market({ a: '100', b: '101' });
    (told.b as Told).at = NOON - 30_000;
    expect(await rates.fetchUsdRate('LBTC')).toEqual({
      value: '100.5',
      source: 'a, b',
      at: '2026-11-20T11:59:30.000Z',
    });
  });

  test('is requested once for all concurrent callers, and again only after 10 s', async () => {
    const { told, say, value } = market({ a: '100', b: '100' });
    await Promise.all(Array.from({ length: 100 }, value));
    say({ a: '101', b: '101' });
    clock.current += 9_999;
    expect(await value()).toBe('100');
    expect([told.a?.asked, told.b?.asked]).toEqual([1, 1]);
    clock.current += 1;
    expect(await Promise.all([value(), value()])).toEqual(['101', '101']);
    expect([told.a?.asked, told.b?.asked]).toEqual([2, 2]);
  });

  test('waits for a slow source, which is called only once', async () => {
    const { told, value } = market({ a: '100', b: '100', c: '100' });
    const slow = Promise.withResolvers<void>();
    told.c?.after(slow.promise);
    const asked = [value(), value()];
    slow.resolve();
    expect(await Promise.all(asked)).toEqual(['100', '100']);
    expect(told.c?.asked).toBe(1);
  });

  test('is cached separately for each coin', async () => {
    const { rates, say, value } = market({ a: '100', b: '100' });
    await value();
    say({ a: '5', b: '5' });
    expect((await rates.fetchUsdRate('LTC')).value).toBe('5');
    expect(await value()).toBe('100');
  });

  test('is fixed for a currency without a market', async () => {
    const { rates, told } = market({ a: '100', b: '100' });
    expect(await rates.fetchUsdRate('USD')).toEqual({ value: '1', source: 'fixed', at: '2026-11-20T12:00:00.000Z' });
    expect(told.a?.asked).toBe(0);
  });
});

describe('a source', () => {
  test('that fails does not count with a quote of more than 10 s', async () => {
    const { say, value } = market({ a: '100', b: '101' });
    await value();
    say({ a: null, b: null });
    clock.current += 9_999;
    expect(await value()).toBe('100.5');
    clock.current += 1;
    await expect(value()).rejects.toEqual(SILENCE);
  });

  test('that fails and may be called only once a minute counts with its last quote for its maximum age', async () => {
    const { rates, say, value } = slowMarket({ a: '100', b: '101' });
    await value();
    say({ b: null });
    clock.current += 59_999;
    expect(await rates.fetchUsdRate('BTC')).toMatchObject({ value: '100.5', at: '2026-11-20T12:00:00.000Z' });
    clock.current += 1;
    await expect(value()).rejects.toEqual(ALONE);
  });

  test('that fails is called again after 3 s, then 6 s, up to a minute', async () => {
    const { told, value } = market({ a: null, b: null });
    const waits: number[] = [];
    let last = 0;
    for (let second = 0; second < 240; second++, clock.current += 1_000) {
      const before = told.a?.asked ?? 0;
      await expect(value()).rejects.toEqual(SILENCE);
      if ((told.a?.asked ?? 0) === before) continue;
      waits.push(second - last);
      last = second;
    }
    expect(waits).toEqual([0, 3, 6, 12, 24, 48, 60, 60]);
    expect(alarms).toHaveLength(3); // one for each source, one for the missing rate
  });

  test('that has failed counts as soon as it responds', async () => {
    const { say, value } = market({ a: '100', b: null });
    await expect(value()).rejects.toEqual(ALONE);
    say({ b: '100' });
    clock.current += 3_000;
    expect(await value()).toBe('100');
  });

  test('is called again if the clock was set back by an hour', async () => {
    const { say, value } = market({ a: '100', b: '100' });
    await value();
    clock.current -= 60 * MINUTE;
    say({ a: '90', b: '90' });
    expect(await value()).toBe('90');
  });
});

test('a source that reports an old time of its price is ignored', async () => {
  const { told, value } = market({ a: '100', b: '100' });
  (told.b as Told).at = NOON - 60_000;
  await expect(value()).rejects.toEqual(ALONE);
  await expect(value()).rejects.toEqual(ALONE);
  expect(alarms).toEqual([
    'the rate of BTC at b is outdated: its time is 2026-11-20T11:59:00.000Z',
    'no rate of BTC is accepted, only one source has a current rate: a reports 100; there is no earlier consensus',
  ]);
});

describe('a rejected rate', () => {
  test('has the time after which a retry can succeed', async () => {
    const { value } = market({ a: '100', b: '150' });
    await expect(value()).rejects.toMatchObject({ retryAfterSeconds: 10 });
    clock.current += 8_500;
    await expect(value()).rejects.toMatchObject({ retryAfterSeconds: 2 });
    const down = market({ c: null, d: null });
    await expect(down.value()).rejects.toMatchObject({ retryAfterSeconds: 3 });
    await expect(market({}).value()).rejects.toMatchObject({ retryAfterSeconds: 60 });
  });

  test('is reported once with sources and values, and again if a rate was accepted in between', async () => {
    const { say, value } = market({ a: '100', b: '150', c: '200' });
    const contradiction =
      'no rate of BTC is accepted, the sources of exchange rates contradict each other: a reports 100, b reports 150, c reports 200; ';
    for (let i = 0; i < 10; i++, clock.current += 30_000) await expect(value()).rejects.toEqual(CONTRADICTION);
    expect(alarms).toEqual([`${contradiction}there is no earlier consensus`]);
    say({ b: '101' });
    expect(await value()).toBe('100.5');
    say({ b: '150' });
    clock.current += 30_000;
    await expect(value()).rejects.toEqual(CONTRADICTION);
    expect(alarms.slice(1)).toEqual([
      'c reports 200 for BTC, which is ignored: the others agree on 100.5',
      `${contradiction}last consensus: 100.5`,
    ]);
  });
});

describe('a jump of all sources', () => {
  test('of 40 % is rejected for 23 minutes and then accepted', async () => {
    const { say, value } = market({ a: '100', b: '100', c: '100' });
    await value();
    say({ a: '60', b: '60', c: '60' });
    let minutes = 0;
    for (; minutes < 60; minutes += 0.5) {
      clock.current += MINUTE / 2;
      const rate = await value().catch((error) => expect(error).toEqual(JUMP));
      if (rate === '60') break;
    }
    expect(minutes).toBe(23);
    expect(alarms).toEqual([
      'no rate of BTC is accepted, the rate has jumped: a reports 60, b reports 60, c reports 60; last consensus: 100',
    ]);
  });

  test('is not detected if the rate falls by 40 % within an hour in small steps', async () => {
    const { say, value } = market({ a: '100', b: '100' });
    for (let half = 0; half <= 120; half++, clock.current += MINUTE / 2) {
      const price = (100 - half / 3).toFixed(6);
      say({ a: price, b: price });
      expect(Number(await value())).toBeCloseTo(100 - half / 3, 5);
    }
  });

  test('by a factor of 10,000 is rejected for the 30 days that it lasts', async () => {
    const { say, value } = market({ a: '100', b: '100' });
    await value();
    say({ a: '1000000', b: '1000000' });
    for (let day = 0; day < 30; day++) {
      clock.current += 24 * 60 * MINUTE;
      await expect(value()).rejects.toEqual(JUMP);
    }
    say({ a: '110', b: '110' });
    clock.current += MINUTE;
    expect(await value()).toBe('110');
  });

  test('is also rejected after a restart, and the earlier rate is then accepted again', async () => {
    expect(await market({ a: '100', b: '100' }).value()).toBe('100');
    clock.current += 10_000;
    await expect(market({ a: '150', b: '150' }).value()).rejects.toEqual(JUMP);
    clock.current += 10_000;
    expect(await market({ a: '101', b: '101' }).value()).toBe('101');
  });
});

describe('a single source', () => {
  const loneSourceCoins = ['BTC'];

  test('is rejected by default, even near the last consensus', async () => {
    const { say, value } = market({ a: '100', b: '100' });
    await value();
    say({ b: null });
    clock.current += MINUTE;
    await expect(value()).rejects.toEqual(ALONE);
  });

  test('is accepted for a coin that allows it, within 20 % of the last consensus', async () => {
    const { say, value, rates } = market({ a: '100', b: '100' }, { loneSourceCoins });
    await value();
    say({ b: null });
    for (let hour = 0; hour < 24; hour++) {
      clock.current += 60 * MINUTE;
      say({ a: '120' });
      expect(await rates.fetchUsdRate('BTC')).toMatchObject({ value: '120', source: 'a' });
      clock.current += MINUTE;
      say({ a: '121' });
      await expect(value()).rejects.toEqual(JUMP);
    }
  });

  test('is rejected before the first consensus', async () => {
    const { say, value } = market({ a: '100', b: null }, { loneSourceCoins });
    await expect(value()).rejects.toEqual(ALONE);
    say({ b: '100' });
    clock.current += 3_000;
    expect(await value()).toBe('100');
  });
});
