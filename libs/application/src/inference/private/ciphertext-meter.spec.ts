/** When the meter of an encrypted stream stops it: half a second after the last usage that the hold covered. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Endpoint } from '#catalogue';
import type { Price } from '#domain';
import type { PicoUsd } from '#kernel';
import { FakeClock } from '../../../../testing/src/fake-clock.ts';
import { replaceDelays } from '../../../../testing/src/replace-delays.ts';
import type { HoldExtensionRequest, Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import { CiphertextMeter } from './ciphertext-meter.ts';
import { CiphertextUsageLimits } from './ciphertext-usage.ts';

/** An output token costs 1; nothing else costs anything. */
const prices: readonly Price[] = [
  { unit: 'input', per: 1n, cost: 0n, price: 0n },
  { unit: 'output', per: 1n, cost: 1n, price: 1n },
  { unit: 'request', per: 1n, cost: 0n, price: 0n },
];
const TOKENS_PER_SECOND = 100;
const ASSUMED = 2 * TOKENS_PER_SECOND;
const HELD = 1_000;
const overhead = { eventBytes: 0, eventTokens: 1, templateTokens: 0, context: 100_000 };
const endpoint = {
  tokensPerSecond: TOKENS_PER_SECOND,
  tariff: { of: 'v/m', provider: 'p', creditor: 'p', prices },
} as unknown as Endpoint;

const realNow = performance.now;
let time: FakeClock;
let restoreDelays: () => void;
beforeEach(() => {
  time = new FakeClock('2026-11-20T12:00:00.000Z');
  restoreDelays = replaceDelays(time.delay);
  performance.now = () => time.nowMs();
});
afterEach(() => {
  performance.now = realNow;
  restoreDelays();
});

type Outcome = Awaited<ReturnType<Purchase['extendHold']>>;

/** Starts a stream. `work` forwards it, until a test ends it. */
function start(extend: (request: HoldExtensionRequest) => Outcome = () => 'retry_later') {
  const startedAtMs = time.nowMs();
  const purchase = {
    hold: { amount: BigInt(HELD) as PicoUsd },
    order: { maxPrice: 1_000_000n as PicoUsd },
    signal: new AbortController().signal,
    extendHold: async (request: HoldExtensionRequest) => {
      const outcome = extend(request);
      if (outcome === 'extended') purchase.hold = { amount: request.targetAmount };
      return outcome;
    },
    payer: {} as Payer,
  };
  const limits = new CiphertextUsageLimits(overhead);
  const order = { endpoint, isMetered: true, overhead };
  const meter = new CiphertextMeter(purchase as unknown as Purchase, limits, order);
  const work = Promise.withResolvers<void>();
  let stopped: { readonly code: string; readonly afterMs: number } | undefined;
  const watched = meter.monitor(work.promise).catch((error) => {
    stopped = { code: error.code, afterMs: time.nowMs() - startedAtMs };
  });
  return {
    meter,
    limits,
    /** Receives events of one token each. Its failure ends the work, as in the relay. */
    receive: (count: number) =>
      meter
        .meterChunk({ bytes: Buffer.alloc(0), frameSizes: Array(count).fill(4), missingBytes: 0 }, true)
        ?.catch(work.reject),
    end: async () => {
      work.resolve();
      await watched;
    },
    get stopped() {
      return stopped;
    },
  };
}

describe('an encrypted stream', () => {
  test('is stopped within half a second if other requests hold the money', async () => {
    const stream = start();
    void stream.receive(HELD);
    await time.advance(2_050);
    void stream.receive(1);
    await time.advance(10_000);
    expect(stream.stopped?.code).toBe('hold_used_up');
    expect(stream.stopped?.afterMs).toBeGreaterThan(2_400);
    expect(stream.stopped?.afterMs).toBeLessThanOrEqual(2_550);
    const used = stream.meter.addUnread(stream.limits.clamp(undefined));
    expect(used.output).toBe(HELD + 1 + (((stream.stopped?.afterMs ?? 0) - 2_050) / 1_000) * TOKENS_PER_SECOND);
    expect(await stream.meter.countCovered(used)).toBe(HELD);
  });

  test('is stopped when the hold does not cover what may have been generated while the client does not read', async () => {
    const stream = start();
    void stream.receive(100);
    stream.meter.markFull(new Promise(() => {}));
    await time.advance(60_000);
    const coveredMs = ((HELD - 100) / ASSUMED) * 1_000;
    expect(stream.stopped?.code).toBe('hold_used_up');
    expect(stream.stopped?.afterMs).toBeGreaterThan(coveredMs);
    expect(stream.stopped?.afterMs).toBeLessThanOrEqual(coveredMs + 700);
  });

  test('continues if the payer has money, and costs what was read', async () => {
    const stream = start(() => 'extended');
    const drained = Promise.withResolvers<void>();
    void stream.receive(100);
    stream.meter.markFull(drained.promise);
    await time.advance(60_000);
    drained.resolve();
    await time.advance(300);
    void stream.receive(200);
    await stream.end();
    expect([stream.stopped, stream.meter.addUnread(stream.limits.clamp(undefined)).output]).toEqual([undefined, 300]);
  });

  test('costs nothing during a gap in the output', async () => {
    const stream = start();
    void stream.receive(HELD - 1);
    await time.advance(600_000);
    await stream.end();
    expect(stream.stopped).toBeUndefined();
  });
});
