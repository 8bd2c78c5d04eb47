/** When a meter stops a completion: at most half a second after the last usage that the hold covered. */
import { describe, expect, test } from '@jest/globals';
import type { Endpoint } from '#catalogue';
import type { Price, Tariff } from '#domain';
import { type PicoUsd, StoreUnavailableError, ZERO_USD } from '#kernel';
import { createTestRuntime } from '../../../../testing/src/test-runtime.ts';
import { useFakeTime } from '../../../../testing/src/use-fake-time.ts';
import type { Order } from '../../billing/order.ts';
import type { Hold, HoldExtensionRequest, Payer } from '../../billing/payer.ts';
import { Purchase } from '../../billing/purchase.ts';
import type { UpstreamError } from '../../errors.ts';
import type { CompletionStream, SseEventSink } from '../../providers/provider.ts';
import { EndpointHealth } from '../../routing/endpoint-health.ts';
import type { ChatQuote } from '../chat/chat-quote.ts';
import { OutputLengthStats } from './output-length-stats.ts';
import { type MeterParams, UsageMeter } from './usage-meter.ts';

/** An output token costs 1; nothing else costs anything. */
const prices: readonly Price[] = [
  { unit: 'input', per: 1n, cost: 0n, price: 0n },
  { unit: 'output', per: 1n, cost: 1n, price: 1n },
  { unit: 'request', per: 1n, cost: 0n, price: 0n },
];
const tariff: Tariff = { of: 'v/m', provider: 'maker', creditor: 'maker', prices };
const endpoint = { slug: 'maker', tariff, onDisconnect: 'stops' } as unknown as Endpoint;
const tokens = (count: number) => BigInt(count) as PicoUsd;
const TOKENS_PER_SECOND = 100;
/** The meter assumes that uncounted usage is generated at twice the typical speed. */
const ASSUMED = 2 * TOKENS_PER_SECOND;
const OUTPUT_LIMIT = 10_000;
const HELD = 1_000;

const getTime = useFakeTime();

/** What a payer responds to a request for a larger hold. */
type Extend = (extension: HoldExtensionRequest, hold: Hold) => ReturnType<Payer['extend']>;
const refuse: Extend = async () => 'retry_later';
const grant: Extend = async ({ targetAmount }, hold) => ({ ...hold, amount: targetAmount });

interface Metered {
  readonly extend?: Extend;
  readonly choices?: number;
  /** False before the response starts. */
  readonly hasStarted?: boolean;
  readonly held?: Partial<Hold>;
  readonly more?: Partial<MeterParams>;
}

/** Starts the metering of a stream. Each token is one word. */
function start({ extend = refuse, choices = 1, hasStarted = true, held = {}, more = {} }: Metered = {}) {
  const startedAtMs = getTime().nowMs();
  let text = '';
  let abortedAfterMs: number | undefined;
  let failure: UpstreamError | undefined;
  const abort = new AbortController();
  const requests: HoldExtensionRequest[] = [];
  const hold: Hold = {
    holdId: 'h',
    payer: 'account-a',
    amount: tokens(HELD),
    availableAfter: ZERO_USD,
    expiresAt: 0,
    ...held,
  };
  const payer = {
    extend: (extended: Hold, extension: HoldExtensionRequest) => {
      requests.push(extension);
      return extend(extension, extended);
    },
  } as unknown as Payer;
  const order = { model: { id: 'v/m' }, maxPrice: tokens(OUTPUT_LIMIT * choices) } as unknown as Order;
  const deadline = {
    signal: abort.signal,
    abort: (reason: UpstreamError) => {
      abortedAfterMs ??= getTime().nowMs() - startedAtMs;
      failure ??= reason;
      abort.abort(reason);
    },
  };
  const observer = { health: new EndpointHealth(getTime()), runtime: createTestRuntime() };
  const purchase = new Purchase(order, { payer, hold }, deadline, observer);
  const stream = {
    getDeliveredText: () => text,
    getMaxGeneratedTokens: () => text.length,
  } as unknown as CompletionStream;
  const params: MeterParams = {
    purchase,
    quote: { choices, inputTokens: 0, fees: ZERO_USD } as unknown as ChatQuote,
    endpoint,
    lengths: new OutputLengthStats(),
    tokensPerSecond: TOKENS_PER_SECOND,
    maxReasoningTokens: 0,
    maxOutputTokens: OUTPUT_LIMIT,
    latencyMs: 0,
    countText: async (part) => part.split(' ').filter((word) => word !== '').length,
    ...more,
  };
  const meter = new UsageMeter(params);
  if (hasStarted) meter.setCompletion(stream);
  let forwarded = 0;
  let whenDrained: Promise<void> | undefined;
  const sink = meter.wrapSink((events) => {
    forwarded += events.length;
    return whenDrained;
  });
  const receive = (count: number): ReturnType<SseEventSink> => {
    text += 'w '.repeat(count);
    const delta = { content: 'w '.repeat(count) };
    return sink(Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`));
  };
  return {
    meter,
    purchase,
    receive,
    requests,
    /** Makes the receiver full until the returned function is called. */
    fill: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      whenDrained = promise;
      return () => {
        whenDrained = undefined;
        resolve();
      };
    },
    get abortedAfterMs() {
      return abortedAfterMs;
    },
    get failure() {
      return failure?.code;
    },
    get forwarded() {
      return forwarded;
    },
  };
}

describe('a completion whose hold is used up', () => {
  test('is stopped within half a second if other requests hold the money', async () => {
    const stream = start();
    void stream.receive(HELD - 10);
    await getTime().advance(50);
    void stream.receive(20);
    await getTime().advance(10_000);
    expect(stream.abortedAfterMs).toBeGreaterThan(400);
    expect(stream.abortedAfterMs).toBeLessThanOrEqual(550);
    expect([stream.failure, stream.meter.endedBy?.code]).toEqual(['hold_used_up', 'hold_used_up']);
    expect(stream.requests.length).toBeGreaterThanOrEqual(4);
  });

  test('is stopped at once if the payer has no money', async () => {
    const stream = start({ extend: async () => 'exhausted' });
    await getTime().advance(1_000);
    void stream.receive(HELD + 10);
    await getTime().advance(0);
    expect(stream.abortedAfterMs).toBe(1_000);
  });

  test('is stopped before its last events are accepted, because the receiver may be full', async () => {
    const stream = start({ extend: async () => 'exhausted' });
    stream.fill();
    void stream.receive(HELD + 10);
    await getTime().advance(0);
    expect([stream.failure, stream.abortedAfterMs]).toEqual(['hold_used_up', 0]);
  });

  test('is stopped within half a second if the event store does not respond', async () => {
    const stream = start({ extend: () => new Promise(() => {}) });
    void stream.receive(HELD - 5); // requests money in advance
    await getTime().advance(50);
    void stream.receive(10);
    await getTime().advance(10_000);
    expect(stream.abortedAfterMs).toBeLessThanOrEqual(550);
    expect(stream.failure).toBe('hold_ended');
  });

  test('lacks money, not the event store, if the store responded to one of the attempts', async () => {
    let attempts = 0;
    const extend = () => (attempts++ < 2 ? Promise.resolve('retry_later' as const) : new Promise<never>(() => {}));
    const stream = start({ extend });
    void stream.receive(HELD + 10);
    await getTime().advance(10_000);
    expect(stream.failure).toBe('hold_used_up');
  });

  test('continues if money is released in time', async () => {
    const isReleased = () => getTime().nowMs() >= Date.parse('2026-11-20T12:00:00.300Z');
    const stream = start({ extend: (...request) => (isReleased() ? grant(...request) : refuse(...request)) });
    void stream.receive(HELD + 10);
    await getTime().advance(10_000);
    expect([stream.abortedAfterMs, stream.meter.endedBy]).toEqual([undefined, undefined]);
    expect(stream.forwarded).toBeGreaterThan(0);
  });

  test('waits longer if its provider has ended it and bills nothing more', async () => {
    const isReleased = () => getTime().nowMs() >= Date.parse('2026-11-20T12:00:03.000Z');
    const stream = start({ extend: (...request) => (isReleased() ? grant(...request) : refuse(...request)) });
    void stream.receive(HELD + 10);
    const finished = stream.meter.finish();
    await getTime().advance(4_000);
    await finished;
    expect([stream.abortedAfterMs, stream.forwarded > 0]).toEqual([undefined, true]);
  });

  test('has generated what was counted, and more until it was stopped', async () => {
    const stream = start();
    void stream.receive(HELD + 10);
    await getTime().advance(10_000);
    const waited = ((stream.abortedAfterMs ?? 0) / 1_000) * TOKENS_PER_SECOND;
    expect(await stream.meter.estimateGenerated()).toBe(HELD + 10 + Math.round(waited));
    expect(stream.meter.coveredTokens).toBe(HELD);
  });

  test('has generated at most its output limit, of all choices together', async () => {
    const maxOutputTokens = 510;
    const stream = start({ choices: 2, more: { maxOutputTokens } });
    void stream.receive(HELD + 10);
    await getTime().advance(10_000);
    expect(await stream.meter.estimateGenerated()).toBe(2 * maxOutputTokens);
  });
});

describe('the speed of an endpoint, if it was unknown', () => {
  /** The maximum that the provider may bill is not held, and the account does not know the speed. */
  const unknownSpeed = { limitPrice: tokens(OUTPUT_LIMIT) };

  test('is that of the output without the time before it', async () => {
    const stream = start({ extend: grant, held: unknownSpeed });
    await getTime().advance(30_000);
    for (let chunk = 0; chunk < 20; chunk++) {
      void stream.receive(20); // 400 bytes per second
      await getTime().advance(100);
    }
    const [stated] = stream.requests.filter(({ stopPrice }) => stopPrice !== undefined);
    expect(Number(stated?.stopPrice)).toBeGreaterThanOrEqual(200);
  });

  test('is not stated if the client reads too slowly, so that it would seem lower', async () => {
    const stream = start({ extend: grant, held: unknownSpeed });
    const drain = stream.fill();
    void stream.receive(1);
    await getTime().advance(1_000);
    drain();
    for (let chunk = 0; chunk < 20; chunk++) {
      void stream.receive(20);
      await getTime().advance(100);
    }
    expect(stream.requests.filter(({ stopPrice }) => stopPrice !== undefined)).toEqual([]);
  });

  test('does not stop a completion that its hold covers if it cannot be stated', async () => {
    const extend = async () => {
      throw new StoreUnavailableError('away');
    };
    const stream = start({ extend, held: unknownSpeed });
    void stream.receive(500);
    await getTime().advance(10_000);
    expect([stream.requests.length > 0, stream.failure]).toEqual([true, undefined]);
  });
});

describe('a client that does not read', () => {
  test('stops its completion when the hold no longer covers what may have been generated', async () => {
    const stream = start();
    stream.fill();
    void stream.receive(100);
    await getTime().advance(60_000);
    const coveredMs = ((HELD - 100) / ASSUMED) * 1_000;
    expect(stream.failure).toBe('hold_used_up');
    expect(stream.abortedAfterMs).toBeGreaterThan(coveredMs);
    expect(stream.abortedAfterMs).toBeLessThanOrEqual(coveredMs + 700);
    const generated = 100 + ((stream.abortedAfterMs ?? 0) / 1_000) * TOKENS_PER_SECOND;
    expect(Math.abs((await stream.meter.estimateGenerated()) - generated)).toBeLessThan(0.3 * TOKENS_PER_SECOND);
  });

  test('gets the rest of its completion if the payer has money, up to the output limit', async () => {
    const stream = start({ extend: grant });
    const drain = stream.fill();
    void stream.receive(100);
    await getTime().advance(600_000);
    expect(stream.purchase.hold.amount).toBe(tokens(OUTPUT_LIMIT));
    drain();
    void stream.receive(5_000);
    await getTime().advance(1_000);
    expect([stream.abortedAfterMs, stream.meter.endedBy]).toEqual([undefined, undefined]);
  });

  test('pays for what is counted once it has read everything', async () => {
    const stream = start();
    const drain = stream.fill();
    void stream.receive(100);
    await getTime().advance(2_000);
    drain();
    await getTime().advance(1_000);
    void stream.receive(HELD - 150);
    await getTime().advance(60_000);
    expect([stream.abortedAfterMs, await stream.meter.estimateGenerated()]).toEqual([undefined, HELD - 50]);
  });

  test('may have much to read if it reads a little from time to time', async () => {
    const stream = start();
    for (let second = 0; second < 20; second++) {
      const drain = stream.fill();
      void stream.receive(1);
      await getTime().advance(1_000);
      drain();
      await getTime().advance(0);
    }
    expect(stream.failure).toBe('hold_used_up');
    expect(stream.abortedAfterMs).toBeLessThanOrEqual((HELD / ASSUMED) * 1_000 + 700);
  });

  test('has as many tokens generated as all of its choices together', async () => {
    const stream = start({ choices: 4 });
    stream.fill();
    void stream.receive(100);
    await getTime().advance(60_000);
    expect(stream.abortedAfterMs).toBeLessThanOrEqual(((HELD - 100) / (4 * ASSUMED)) * 1_000 + 700);
  });
});

describe('a gap in the output', () => {
  test('is no usage if the model does not reason', async () => {
    const stream = start();
    void stream.receive(HELD - 100);
    await getTime().advance(600_000);
    expect([stream.abortedAfterMs, stream.requests]).toEqual([undefined, []]);
  });

  test('leaves half a second for money after a model that does not reason', async () => {
    const stream = start();
    void stream.receive(HELD - 5);
    await getTime().advance(60_000);
    void stream.receive(10);
    await getTime().advance(350);
    expect(stream.abortedAfterMs).toBeUndefined();
  });

  test.each([
    ['before the first output', 0],
    ['after the first output', 100],
  ])('may be hidden reasoning, and stops the completion when the hold does not cover it: %s', async (_, seen) => {
    const stream = start({ more: { maxReasoningTokens: Number.POSITIVE_INFINITY } });
    if (seen > 0) void stream.receive(seen);
    await getTime().advance(60_000);
    const coveredMs = ((HELD - seen) / ASSUMED) * 1_000;
    expect(stream.failure).toBe('hold_used_up');
    expect(stream.abortedAfterMs).toBeGreaterThan(coveredMs);
    expect(stream.abortedAfterMs).toBeLessThanOrEqual(coveredMs + 700);
  });

  test('contains at most the reasoning that the request permits', async () => {
    const stream = start({ more: { maxReasoningTokens: 200 } });
    void stream.receive(100);
    await getTime().advance(600_000);
    expect([stream.abortedAfterMs, await stream.meter.estimateGenerated()]).toEqual([undefined, 300]);
  });

  test('is no reasoning if the output continues within a second', async () => {
    const stream = start({ more: { maxReasoningTokens: Number.POSITIVE_INFINITY } });
    for (let chunk = 0; chunk < 60; chunk++) {
      void stream.receive(1);
      await getTime().advance(900);
    }
    void stream.receive(1);
    await getTime().advance(100);
    expect([stream.abortedAfterMs, await stream.meter.estimateGenerated()]).toEqual([undefined, 61]);
  });

  test('before the response starts may be hidden reasoning, except for the usual latency', async () => {
    const more = { maxReasoningTokens: Number.POSITIVE_INFINITY, latencyMs: 2_000 };
    const stream = start({ hasStarted: false, more });
    await getTime().advance(60_000);
    const coveredMs = 2_000 + (HELD / ASSUMED) * 1_000;
    expect(stream.failure).toBe('hold_used_up');
    expect(stream.abortedAfterMs).toBeGreaterThan(coveredMs);
    expect(stream.abortedAfterMs).toBeLessThanOrEqual(coveredMs + 700);
  });

  test('before the response starts is no usage of a model that does not reason', async () => {
    const stream = start({ hasStarted: false });
    await getTime().advance(60_000);
    expect([stream.abortedAfterMs, await stream.meter.estimateGenerated()]).toEqual([undefined, 0]);
  });
});
