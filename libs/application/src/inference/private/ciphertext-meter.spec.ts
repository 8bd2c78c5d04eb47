/** When the meter of an encrypted stream stops it: half a second after the last usage that the hold covered. */
import { describe, expect, test } from '@jest/globals';
import type { Endpoint } from '#catalogue';
import type { Price } from '#domain';
import type { PicoUsd } from '#kernel';
import { createTestRuntime } from '../../../../testing/src/test-runtime.ts';
import { useFakeTime } from '../../../../testing/src/use-fake-time.ts';
import type { Hold, HoldExtensionRequest } from '../../billing/payer.ts';
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
  onDisconnect: 'stops',
  tariff: { of: 'v/m', provider: 'p', creditor: 'p', prices },
} as unknown as Endpoint;

const getTime = useFakeTime();

type Outcome = Awaited<ReturnType<Purchase['extendHold']>>;

/** Starts a stream. `work` forwards it, until a test ends it. */
function start(extend: (request: HoldExtensionRequest) => Outcome = () => 'retry_later', prices: Partial<Hold> = {}) {
  const startedAtMs = getTime().nowMs();
  const requests: HoldExtensionRequest[] = [];
  const deliveries: number[] = [];
  const purchase = {
    hold: { amount: BigInt(HELD) as PicoUsd, ...prices },
    order: { maxPrice: 1_000_000n as PicoUsd },
    signal: new AbortController().signal,
    runtime: createTestRuntime(),
    extendHold: async (request: HoldExtensionRequest) => {
      requests.push(request);
      const { targetAmount: amount, stopPrice } = request;
      const outcome = extend(request);
      if (outcome === 'extended')
        purchase.hold = { ...purchase.hold, amount, ...(stopPrice === undefined ? {} : { stopPrice }) };
      return outcome;
    },
    extendHoldToPrice: async (targetAmount: PicoUsd) => {
      await purchase.extendHold({ minAmount: targetAmount, targetAmount, isFinal: true });
    },
    recordDelivery: (_: Endpoint, count: number, milliseconds: number) => {
      deliveries.push((count * 1_000) / milliseconds);
    },
  };
  const limits = new CiphertextUsageLimits(overhead);
  const order = { endpoint, isMetered: true, overhead };
  const meter = new CiphertextMeter(purchase as unknown as Purchase, limits, order);
  const work = Promise.withResolvers<void>();
  let stopped: { readonly code: string; readonly afterMs: number } | undefined;
  const watched = meter.monitor(work.promise).catch((error) => {
    stopped = { code: error.code, afterMs: getTime().nowMs() - startedAtMs };
  });
  return {
    meter,
    limits,
    requests,
    /** The speeds that were recorded, in tokens per second. */
    deliveries,
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
    await getTime().advance(2_050);
    void stream.receive(1);
    await getTime().advance(10_000);
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
    await getTime().advance(60_000);
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
    await getTime().advance(60_000);
    drained.resolve();
    await getTime().advance(300);
    void stream.receive(200);
    await stream.end();
    expect([stream.stopped, stream.meter.addUnread(stream.limits.clamp(undefined)).output]).toEqual([undefined, 300]);
  });

  test('costs nothing during a gap in the output', async () => {
    const stream = start();
    void stream.receive(HELD - 1);
    await getTime().advance(600_000);
    await stream.end();
    expect(stream.stopped).toBeUndefined();
  });
});

describe('the speed of an enclave, if it was unknown', () => {
  const unknownSpeed = { limitPrice: 50_000n as PicoUsd };

  /** Receives for two seconds after an idle time. */
  async function receive(stream: ReturnType<typeof start>): Promise<void> {
    await getTime().advance(30_050); // the output starts between two checks
    for (let chunk = 0; chunk < 20; chunk++) {
      void stream.receive(TOKENS_PER_SECOND / 10);
      await getTime().advance(100);
    }
  }

  test('is recorded and stated once, during the response, so that other requests need not wait for its end', async () => {
    const stream = start(() => 'extended', unknownSpeed);
    await receive(stream);
    const stated = stream.requests.filter(({ stopPrice }) => stopPrice !== undefined);
    expect(stated).toHaveLength(1);
    const perHalfSecond = TOKENS_PER_SECOND / 2;
    for (const value of [Number(stated[0]?.stopPrice), (stream.deliveries[0] ?? 0) / 2]) {
      expect(value).toBeGreaterThanOrEqual(perHalfSecond);
      expect(value).toBeLessThanOrEqual(perHalfSecond * 1.2);
    }
    expect(stream.deliveries).toHaveLength(1);
  });

  test('does not stop a response that its hold covers if it cannot be stated', async () => {
    const stream = start(() => 'retry_later', unknownSpeed);
    await receive(stream);
    expect([stream.requests.length > 1, stream.stopped, stream.deliveries.length]).toEqual([true, undefined, 1]);
  });

  test('is neither recorded nor stated if the client reads too slowly, so that it would seem lower', async () => {
    const stream = start(() => 'extended', unknownSpeed);
    await getTime().advance(50);
    void stream.receive(10);
    const drained = Promise.withResolvers<void>();
    stream.meter.markFull(drained.promise);
    await getTime().advance(1_000);
    drained.resolve();
    await receive(stream);
    expect(stream.meter.isSpeedNew).toBe(false);
    expect([stream.requests.filter(({ stopPrice }) => stopPrice !== undefined), stream.deliveries]).toEqual([[], []]);
  });

  test('is not stated if the account knows a speed, or need not know it', async () => {
    const streams = [start(() => 'extended'), start(() => 'extended', { ...unknownSpeed, stopPrice: 50n as PicoUsd })];
    for (const stream of streams) await receive(stream);
    expect(streams.map(({ requests, deliveries }) => [requests.length, deliveries.length])).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });
});
