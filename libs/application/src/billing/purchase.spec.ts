import { describe, expect, test } from '@jest/globals';
import type { Endpoint, TokenPricedModel } from '#catalogue';
import type { Price, Tariff, Usage } from '#domain';
import { parseUsd, ZERO_USD } from '#kernel';
import { createTestRuntime } from '#testing';
import { Clock } from '../clock.ts';
import { UpstreamError } from '../errors.ts';
import { EndpointHealth } from '../routing/endpoint-health.ts';
import type { Order } from './order.ts';
import type { Payer } from './payer.ts';
import { Purchase } from './purchase.ts';
import type { StreamResult } from './upstream-call.ts';

class StillClock extends Clock {
  nowMs(): number {
    return 0;
  }
}

const price = (unit: Price['unit'], amount: bigint): Price => ({ unit, per: 1n, cost: amount, price: 2n * amount });
const prices = [price('input', 3n), price('output', 5n), price('request', 7n)];
const tariff: Tariff = { of: 'v/m', provider: 'maker', creditor: 'router', prices };
const search: Tariff = {
  of: 'web_search',
  provider: 'exa',
  creditor: 'exa',
  prices: [price('search', 11n), price('request', 1n)],
};
const endpoint = { slug: 'maker', tariff } as unknown as Endpoint;
const model = { id: 'v/m', endpoints: [endpoint] } as unknown as TokenPricedModel;

function begin(endpoints = [endpoint]) {
  const alarms: string[] = [];
  const query = { model: 'v/m', type: 'chat_completion', source: 'api', online: false, free: false } as const;
  const bounds = { priceList: { version: 'list', lines: [] }, minPrice: parseUsd('1'), maxPrice: parseUsd('1') };
  const sale: Order = { id: 'h', query, model, endpoints, ...bounds };
  const hold = {
    holdId: 'h',
    payer: 'account-a',
    amount: parseUsd('1'),
    availableAfter: ZERO_USD,
    expiresAt: 0,
  };
  const watch = {
    health: new EndpointHealth(new StillClock()),
    runtime: createTestRuntime({ reportError: (problem) => void alarms.push(problem) }),
  };
  return {
    sale,
    hold,
    purchase: new Purchase(
      sale,
      { payer: {} as Payer, hold },
      { signal: new AbortController().signal, abort: () => {} },
      watch,
    ),
    alarms,
    health: watch.health,
  };
}

const counted = async (): Promise<Usage> => ({ input: 100 });
const call = { send: async () => 'answer', estimateUsage: counted };
const made = (usage: Usage | undefined, vendorId?: string) => ({ usage, getDeliveredText: () => '', vendorId });

describe('a purchase', () => {
  test.each([200, 5_000_000])(
    'creates a charge of limited size after many calls, with response ids of %i characters',
    async (length) => {
      const { purchase } = begin(Array.from({ length: 32 }, (_, i) => ({ ...endpoint, slug: `endpoint ${i}` })));
      const vendorId = 'x'.repeat(length);
      const failure = new UpstreamError('upstream_error', 'no', { status: 400, vendorId });
      await expect(purchase.call({ send: async () => Promise.reject(failure), estimateUsage: counted })).rejects.toBe(
        failure,
      );
      for (let round = 0; round < 32; round++) {
        await purchase.billCall(call, made({ input: 100 }, vendorId));
        purchase.billSearches(search, 1, { vendorId });
      }
      const { attempts, items } = purchase.createCharge(failure) ?? {};
      expect([attempts?.length, items?.length]).toEqual([32, 64]);
      expect(JSON.stringify({ attempts, items }).length).toBeLessThan(64 * 1024);
    },
  );

  test.each<[string, () => unknown, number, boolean]>([
    ['an exception of the gateway', () => new RangeError('Maximum call stack size exceeded'), 2, false],
    ['a failure of the provider', () => new UpstreamError('upstream_error', 'The upstream answered with 500'), 4, true],
  ])('falls back after %s, and avoids an endpoint only for its own failures', async (_, error, calls, cools) => {
    const { purchase, health } = begin([endpoint, { ...endpoint, slug: 'other' }]);
    let made = 0;
    const make = async () => {
      made++;
      throw error();
    };
    await expect(purchase.call({ send: make, estimateUsage: counted })).rejects.toMatchObject({
      code: 'upstream_error',
    });
    expect([made, health.get(model, endpoint).isCoolingDown]).toEqual([calls, cools]);
  });

  describe('the speed of one choice of a stream', () => {
    /** Bills a stream of 200 tokens per choice in ten seconds. Returns the speed that was recorded. */
    const measureSpeed = async (pausedMs: number) => {
      const { purchase, health } = begin();
      const response = { usage: () => ({ output: 1_000 }), getDeliveredText: () => '', vendorId: () => undefined };
      const stream = { ...response, getIdleMs: () => 0, getPausedMs: () => pausedMs };
      const served = await purchase.call({ ...call, send: async (): Promise<StreamResult> => stream });
      const sentAtMs = performance.now() - 10_000;
      await purchase.billStream(call, { ...served, sentAtMs, firstByteAtMs: sentAtMs }, 5);
      return health.getMaxTokensPerSecond(model, endpoint);
    };

    test('is recorded, also if reading paused for an instant', async () => {
      for (const pausedMs of [0, 100]) expect(await measureSpeed(pausedMs)).toBeLessThanOrEqual(20);
    });

    test('is not recorded if the client read too slowly', async () => {
      expect(await measureSpeed(1_000)).toBeUndefined();
    });
  });

  test('creates an item for each call and one for the web searches', async () => {
    const { purchase, alarms } = begin();
    await purchase.call(call);
    await purchase.billCall(call, made({ input: 2 }, 'gen-1'));
    purchase.billSearches(search, 1, { vendorId: 'exa-1' });
    purchase.billSearches(search, 0);
    await purchase.callSameEndpoint(call, endpoint);
    await purchase.billCall(call, made({ input: 1, output: 1 }));
    const sold = { of: 'v/m', provider: 'maker', creditor: 'router', estimated: false };
    expect(purchase.createCharge()?.items).toEqual([
      { ...sold, vendorId: 'gen-1', usage: { input: 2, request: 1 }, cost: '13', price: '26' },
      {
        of: 'web_search',
        provider: 'exa',
        creditor: 'exa',
        beside: true,
        vendorId: 'exa-1',
        estimated: false,
        usage: { search: 1, request: 1 },
        cost: '12',
        price: '24',
      },
      { ...sold, usage: { input: 1, output: 1, request: 1 }, cost: '15', price: '30' },
    ]);
    expect(purchase.createCharge()).toMatchObject({ cost: '40', price: '80', priceList: 'list' });
    expect(purchase.remaining).toBe(parseUsd('1') - 80n);
    const parts = { input: 23n, output: 5n, searches: 24n, margin: 28n };
    expect(purchase.createReceipt(parseUsd('0.00000000008'))).toMatchObject({ charged: 80n, parts });
    expect(purchase.createReceipt(parseUsd('0.00000000003')).parts).toEqual({
      ...parts,
      input: 6n,
      output: 0n,
      margin: 0n,
    });
    expect(alarms).toEqual([]);
  });

  test('records the model, the creditor and the provider’s response id in the attempt', async () => {
    const { purchase } = begin();
    const failure = new UpstreamError('invalid_request', 'no', { status: 400, deliveredText: '', vendorId: 'gen-2' });
    await expect(purchase.call({ send: () => Promise.reject(failure), estimateUsage: counted })).rejects.toBe(failure);
    const { attempts, items } = purchase.createCharge(failure) ?? {};
    const asked = { provider: 'maker', creditor: 'router', model: 'v/m' };
    expect(attempts).toMatchObject([{ ...asked, vendorId: 'gen-2', outcome: 'invalid_request', status: 400 }]);
    expect(items).toMatchObject([{ vendorId: 'gen-2', estimated: true, usage: { input: 100, request: 1 } }]);
  });

  test('records the maximum cost of an attempt without a response: what the call states, else what is held', async () => {
    const failure = new UpstreamError('timeout', 'no', { hasOpenCost: true });
    const send = () => Promise.reject(failure);
    const { purchase, hold } = begin();
    await expect(
      purchase.call({ send, estimateUsage: counted, getLostUsage: () => ({ usage: { output: 2 } }) }),
    ).rejects.toBe(failure);
    await expect(purchase.call({ send, estimateUsage: counted })).rejects.toBe(failure);
    expect(purchase.attempts).toMatchObject([{ openCost: '10' }, { openCost: hold.amount.toString() }]);
    expect(purchase.createCharge(failure)).toBeUndefined();
  });

  test('records the cost of what the provider counted for each attempt that failed, without a charge', async () => {
    const failure = new UpstreamError('upstream_error', 'no', { unpaidUsage: { input: 2 } });
    const { purchase } = begin();
    await expect(purchase.call({ send: () => Promise.reject(failure), estimateUsage: counted })).rejects.toBe(failure);
    expect(purchase.attempts).toMatchObject([{ openCost: '6' }, { openCost: '6' }, { openCost: '6' }]);
    expect(purchase.createCharge(failure)).toBeUndefined();
  });

  test('records what is held as the cost of a lost response, of which the provider counted only a part', async () => {
    const failure = new UpstreamError('timeout', 'no', { hasOpenCost: true, unpaidUsage: { input: 2 } });
    const { purchase, hold } = begin();
    await expect(purchase.call({ send: () => Promise.reject(failure), estimateUsage: counted })).rejects.toBe(failure);
    expect(purchase.attempts).toMatchObject([{ openCost: hold.amount.toString() }]);
  });

  test('records what is held as the cost of a counted usage without a price', async () => {
    const failure = new UpstreamError('invalid_request', 'no', { unpaidUsage: { audioMillisecond: 1 } });
    const { purchase, hold } = begin();
    await expect(purchase.call({ send: () => Promise.reject(failure), estimateUsage: counted })).rejects.toBe(failure);
    expect(purchase.attempts).toMatchObject([{ openCost: hold.amount.toString() }]);
  });

  test.each(['deliveredText', 'usage'])(
    'records no open cost of an attempt that is billed by its %s',
    async (detail) => {
      const billed = detail === 'usage' ? { usage: { input: 1 } } : { deliveredText: '', unpaidUsage: { input: 1 } };
      const failure = new UpstreamError('timeout', 'no', { hasOpenCost: detail !== 'usage' }).withDetails(billed);
      const { purchase } = begin();
      await expect(purchase.call({ send: () => Promise.reject(failure), estimateUsage: counted })).rejects.toBe(
        failure,
      );
      expect(purchase.attempts).toEqual([expect.not.objectContaining({ openCost: expect.anything() })]);
      expect(purchase.createCharge(failure)?.items).toHaveLength(1);
    },
  );

  test('bills the fee of a request with web searches once, and the cost of each search', async () => {
    const { purchase } = begin();
    purchase.billSearches(search, 1);
    purchase.billSearches(search, 2);
    expect(purchase.createCharge()?.items).toMatchObject([
      { usage: { search: 1, request: 1 }, cost: '12' },
      { usage: { search: 2 }, cost: '22' },
    ]);
    expect(purchase.createCharge()?.items[1]?.usage.request).toBeUndefined();
  });

  test('charges the full hold for usage without a price, and reports an error', async () => {
    const { purchase, alarms } = begin();
    await purchase.call(call);
    await purchase.billCall(call, made({ input: 1, image: 1 }));
    expect(purchase.createCharge()).toMatchObject({
      price: parseUsd('1').toString(),
      items: [{ usage: { input: 1, image: 1, request: 1 }, price: parseUsd('1').toString() }],
    });
    expect(alarms).toEqual(['usage of v/m by maker has no price']);
  });

  test('creates no charge if nothing was billed', () => {
    expect(begin().purchase.createCharge()).toBeUndefined();
  });
});
