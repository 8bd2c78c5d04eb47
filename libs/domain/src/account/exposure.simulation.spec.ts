/**
 * What providers bill, and how many responses are complete, if many requests of one account arrive at once: simulated
 * with the decisions of the account. `npm run prove:cases` uses all 20 seeds.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { RiskLimits } from '#domain';
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import { sampleCases } from '../../../testing/src/sample-cases.ts';
import {
  AccountSimulation,
  type MeasuredModel,
  type SimulatedRequest,
  type SimulationParams,
} from '../../../testing/src/simulation/account-simulation.ts';
import { priceResponse } from '../../../testing/src/simulation/simulated-response.ts';

const ALL_SEEDS = Array.from({ length: 20 }, (_, index) => index + 1);
const SEEDS = sampleCases(ALL_SEEDS, 1);
/** For rules on averages. */
const AVERAGED_SEEDS = sampleCases(ALL_SEEDS, 2);
const LIMITS: RiskLimits = {
  lossPerHour: money.parseUsd('1'),
  exposure: money.parseUsd('0.02'),
  exposurePercent: 3n,
};
/** Has the prices of an expensive model: 25 USD per million output tokens, with a margin of 5.5 %. */
const MODEL: MeasuredModel = {
  tokenPrice: 26_375_000n,
  promptPrice: 150_000_000n,
  tokensPerSecond: 100,
  isStreamed: true,
};
const STREAMED = { name: 'streamed', model: MODEL, second: 0 };
const UNSTREAMED = { name: 'not streamed', model: { ...MODEL, isStreamed: false }, second: 1 };
/** Each payer and kind of response samples other cases, beginning at `first` and `second`. */
const PAYERS = [
  { payer: 'a balance, at one gateway', gateways: 1, isLimited: false, first: 0 },
  { payer: 'a balance, at three gateways', gateways: 3, isLimited: false, first: 1 },
  { payer: 'the limit of a key, at three gateways', gateways: 3, isLimited: true, first: 2 },
];
const TYPICAL_LENGTHS = sampleLengths(60, createRandom(999));
const MEASURED: MeasuredModel = { ...MODEL, measuredLengths: TYPICAL_LENGTHS, measuredTokensPerSecond: 100 };
/** A length that exceeds nine tenths of the measured ones. */
const ABOVE_P90 = (TYPICAL_LENGTHS.toSorted((a, b) => a - b)[54] as number) + 1;

/** Numbers of responses, and how many of them the money affords. */
const VARYING_WAVES = [
  [64, 40],
  [64, 70],
  [200, 40],
  [200, 70],
] as const;

const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0; // rejections are frequent here
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
});

/** Returns a function that returns numbers between 0 and 1, the same for the same seed. */
function createRandom(seed: number): () => number {
  let state = seed * 7_919;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state + 1) / 4_294_967_297;
  };
  for (let i = 0; i < 20; i++) next();
  return next;
}

/** Returns log-normal lengths from 50 to 8,000 tokens with a median of 400. */
function sampleLengths(count: number, random: () => number): readonly number[] {
  return Array.from({ length: count }, () => {
    const normal = Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
    return Math.round(Math.min(Math.max(400 * Math.exp(normal), 50), 8_000));
  });
}

function createEqualLengths(count: number, tokens: number): readonly number[] {
  return Array<number>(count).fill(tokens);
}

/** Returns the price of as many responses of this average length. */
function priceAverage(lengths: readonly number[], count: number): PicoUsd {
  const total = lengths.reduce((sum, tokens) => sum + priceResponse(MODEL, tokens), 0n);
  return ((total * BigInt(count)) / BigInt(lengths.length)) as PicoUsd;
}

function calculateTolerance(balance: PicoUsd): PicoUsd {
  return money.max(LIMITS.exposure, ((balance * LIMITS.exposurePercent) / 100n) as PicoUsd);
}

interface Wave {
  readonly lengths: readonly number[];
  readonly amount: PicoUsd;
  readonly model: MeasuredModel;
  readonly gateways: number;
  readonly isLimited: boolean;
}

/** Simulates requests that arrive within 0.2 s. Checks what applies to every wave. */
function runWave({ lengths, amount, model, gateways, isLimited }: Wave, seed: number): AccountSimulation {
  const random = createRandom(seed);
  const requests = lengths.map((tokens, index) => ({
    arrivesAtMs: random() * 200,
    tokens,
    model,
    gateway: index % gateways,
    keyId: isLimited ? 'limited' : null,
  }));
  return isLimited
    ? simulate({ requests, balance: money.parseUsd('1000'), limitedKey: { limit: amount } })
    : simulate({ requests, balance: amount });
}

function simulate(params: Omit<SimulationParams, 'riskLimits'>): AccountSimulation {
  const simulation = new AccountSimulation({ ...params, riskLimits: LIMITS });
  const { balance, limitedKey, requests } = params;
  const { account, billed, billedToKey, count, maxWaitMs } = simulation;
  expect(billed).toBeLessThanOrEqual(money.add(balance, calculateTolerance(balance)));
  if (limitedKey) {
    const windows = limitedKey.resetPeriod ? 2n : 1n;
    expect(billedToKey).toBeLessThanOrEqual(windows * (limitedKey.limit + calculateTolerance(limitedKey.limit)));
  }
  expect(maxWaitMs).toBeLessThan(30_001);
  expect(Object.values(count).reduce((sum, each) => sum + each)).toBe(requests.length);
  expect({ ...account, holds: account.holds.size }).toMatchObject({
    holds: 0,
    held: ZERO_USD,
    exposure: ZERO_USD,
    reserve: ZERO_USD,
  });
  expect(account.available).toBeGreaterThanOrEqual(0n);
  expect(account.keys.get('limited') ?? { exposure: 0n, reserve: 0n }).toMatchObject({ exposure: 0n, reserve: 0n });
  return simulation;
}

function calculateMean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

describe.each(PAYERS)('with $payer', ({ gateways, isLimited, first }) => {
  describe.each([STREAMED, UNSTREAMED])('$name', ({ model, second }) => {
    test.each(sampleCases([64, 200], 1, first + second))(
      'of %d responses of 1,600 tokens with money for 40, at least 36 are complete, and none is truncated',
      (count) => {
        const lengths = createEqualLengths(count, 1_600);
        const wave = { lengths, amount: priceAverage(lengths, 40), model, gateways, isLimited };
        const counts = SEEDS.map((seed) => runWave(wave, seed).count);
        expect(Math.min(...counts.map(({ complete }) => complete))).toBeGreaterThanOrEqual(36);
        expect(counts.map(({ truncated }) => truncated)).toEqual(SEEDS.map(() => 0));
      },
    );
    test.each([
      ['before anything is measured', model],
      [
        'once they are measured',
        { ...model, measuredLengths: createEqualLengths(40, 500), measuredTokensPerSecond: 100 },
      ],
    ])('64 responses of 500 tokens with money for 70 are complete %s', (_, measured) => {
      const lengths = createEqualLengths(64, 500);
      const wave = { lengths, amount: priceAverage(lengths, 70), model: measured, gateways, isLimited };
      expect(SEEDS.map((seed) => runWave(wave, seed).count.complete)).toEqual(SEEDS.map(() => 64));
    });
  });
  test('with varying lengths, truncated responses take at most 12 % of the money, and nine tenths of what it affords are complete', () => {
    const shares: number[] = [];
    for (const [count, affordable] of sampleCases(VARYING_WAVES, 1, first)) {
      const runs = AVERAGED_SEEDS.map((seed) => {
        const lengths = sampleLengths(count, createRandom(seed));
        const amount = priceAverage(lengths, affordable);
        return runWave({ lengths, amount, model: MEASURED, gateways, isLimited }, seed);
      });
      shares.push(...runs.map(({ chargedForTruncated, charged }) => Number(chargedForTruncated) / Number(charged)));
      const complete = calculateMean(runs.map((run) => run.count.complete));
      expect(complete).toBeGreaterThanOrEqual(0.9 * Math.min(affordable, count));
    }
    expect(calculateMean(shares)).toBeLessThanOrEqual(0.12);
  });
});

describe('no more is billed than the balance and the tolerated exposure', () => {
  /** Returns requests that arrive within `spreadMs` at three gateways. */
  function createRequests(
    count: number,
    spreadMs: number,
    create: () => Pick<SimulatedRequest, 'model' | 'tokens' | 'disconnectsAfterMs' | 'keyId'>,
    random: () => number,
  ): readonly SimulatedRequest[] {
    return Array.from({ length: count }, (_, index) => ({
      arrivesAtMs: random() * spreadMs,
      gateway: index % 3,
      ...create(),
    }));
  }
  const pick = <T>(random: () => number, values: readonly T[]) => values[Math.floor(random() * values.length)] as T;
  const balances = ['0.05', '0.3', '2'].map(money.parseUsd);

  test.each<[string, number, number, (random: () => number) => Pick<SimulatedRequest, 'model' | 'tokens'>]>([
    ['each response is a little longer than most', 0, 200, () => ({ model: MEASURED, tokens: ABOVE_P90 })],
    ['each response is endless', 1, 200, () => ({ model: MEASURED, tokens: 20_000 })],
    ['each response is endless, and its speed is unknown', 2, 200, () => ({ model: MODEL, tokens: 20_000 })],
    ['each response is endless and is not streamed', 0, 200, () => ({ model: UNSTREAMED.model, tokens: 20_000 })],
    [
      'endless responses arrive during a minute',
      1,
      60_000,
      (random) => ({ model: MEASURED, tokens: pick(random, [200, 20_000]) }),
    ],
  ])('if %s', (_, first, spreadMs, create) => {
    for (const balance of sampleCases(balances, 1, first)) {
      const random = createRandom(balances.indexOf(balance) + 1);
      simulate({ requests: createRequests(120, spreadMs, () => create(random), random), balance });
    }
  });
  test('if responses of models with different prices mix, streamed and not', () => {
    const cheap = { ...MEASURED, tokenPrice: MODEL.tokenPrice / 4n };
    const expensive = { ...MODEL, tokenPrice: MODEL.tokenPrice * 6n };
    for (const seed of SEEDS) {
      const random = createRandom(seed);
      const create = () => ({
        model: pick(random, [cheap, MEASURED, expensive, UNSTREAMED.model]),
        tokens: pick(random, [30, 500, 2_500, 8_000]),
      });
      simulate({ requests: createRequests(60, 3_000, create, random), balance: pick(random, balances) });
    }
  });
  test('if clients disconnect', () => {
    for (const seed of SEEDS) {
      const random = createRandom(seed);
      const create = () => ({
        model: pick(random, [MEASURED, MODEL, UNSTREAMED.model]),
        tokens: pick(random, [500, 2_500, 8_000]),
        disconnectsAfterMs: random() < 0.7 ? random() * 20_000 : undefined,
      });
      simulate({ requests: createRequests(60, 2_000, create, random), balance: pick(random, balances) });
    }
  });
  test('if the limit of a key is reset in the meantime', () => {
    for (const seed of SEEDS) {
      const random = createRandom(seed);
      const create = () => ({
        model: pick(random, [MEASURED, MODEL, UNSTREAMED.model]),
        tokens: pick(random, [500, 2_500, 8_000]),
        keyId: pick(random, ['limited', 'limited', null]),
      });
      const requests = createRequests(60, 30_000, create, random);
      const limitedKey = { limit: pick(random, balances), resetPeriod: 'daily' } as const;
      const startsAt = '2026-11-20T23:59:45.000Z';
      simulate({ requests, balance: money.parseUsd('1000'), limitedKey, startsAt });
    }
  });
  // Not fulfilled: the loss of each truncated response can be as large as the tolerated exposure, one after the other,
  // and is not charged although money is available.
  test.failing('if a single response may generate as much as is tolerated until its provider stops', () => {
    const fast = {
      ...MEASURED,
      tokenPrice: MODEL.tokenPrice * 24n,
      tokensPerSecond: 200,
      measuredTokensPerSecond: 200,
    };
    for (const seed of SEEDS.slice(0, 5)) {
      const random = createRandom(seed);
      const create = () => ({ model: pick(random, [MEASURED, fast]), tokens: pick(random, [300, 20_000]) });
      simulate({ requests: createRequests(60, 5_000, create, random), balance: money.parseUsd('5') });
    }
  });
  test('if a gateway dies, apart from the responses that it served', () => {
    for (const seed of SEEDS) {
      const random = createRandom(seed);
      const lengths = sampleLengths(120, random);
      const create = () => ({ model: MEASURED, tokens: pick(random, lengths) });
      const diesAtMs = random() * 12_000;
      const requests = createRequests(120, 10_000, create, random);
      const { count } = simulate({ requests, balance: money.parseUsd('1'), diesAtMs });
      expect(count.lost).toBeGreaterThan(0);
      expect(count.complete).toBeGreaterThan(30);
    }
  });
});
