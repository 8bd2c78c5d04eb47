import { describe, expect, test } from '@jest/globals';
import type { Endpoint } from '#catalogue';
import { type ChargeItem, calculateCost, type Price, type Usage } from '#domain';
import { type PicoUsd, parseUsd } from '#kernel';
import { createTestRuntime } from '#testing';
import { Clock } from '../clock.ts';
import { EndpointHealth } from '../routing/endpoint-health.ts';
import type { Order } from './order.ts';
import type { Hold, Payer } from './payer.ts';
import { Purchase } from './purchase.ts';
import { billTruncatedResponse } from './truncated-response.ts';

class StillClock extends Clock {
  nowMs(): number {
    return 0;
  }
}

/** Output after more than 100 input tokens costs ten times as much. */
const prices: readonly Price[] = [
  { unit: 'input', per: 1n, cost: 1n, price: 2n },
  { unit: 'output', per: 1n, cost: 50n, price: 100n, when: { inputTokens: { above: 100 } } },
  { unit: 'output', per: 1n, cost: 5n, price: 10n },
  { unit: 'request', per: 1n, cost: 7n, price: 14n },
];

async function truncate(usage: Usage, coveredTokens: number) {
  const endpoint = { tariff: { of: 'v/m', provider: 'p', creditor: 'p', prices } } as unknown as Endpoint;
  const purchase = new Purchase(
    { priceList: { version: 'list', lines: [] } } as unknown as Order,
    { payer: {} as Payer, hold: { amount: parseUsd('1') } as Hold },
    { signal: new AbortController().signal, abort: () => {} },
    { health: new EndpointHealth(new StillClock()), runtime: createTestRuntime() },
  );
  purchase.endpoint = endpoint;
  const absorbed = 'hold_used_up';
  await billTruncatedResponse(purchase, { usage, estimated: false, coveredTokens, absorbed, vendorId: 'r1' });
  const charge = purchase.createCharge();
  if (!charge) throw new Error('nothing was billed');
  return { purchase, charge };
}

describe('a response of which the hold covers only a part', () => {
  test.each<[string, Usage, coveredTokens: number, paid: Usage, absorbed: Usage]>([
    ['output', { input: 9, output: 30 }, 20, { output: 20 }, { output: 10 }],
    ['reasoning', { input: 9, output: 30, reasoning: 40 }, 50, { output: 30, reasoning: 20 }, { reasoning: 20 }],
    ['everything', { input: 9, output: 30, reasoning: 4 }, 0, {}, { output: 30, reasoning: 4 }],
  ])('is charged for it, and the operator absorbs the rest: %s', async (_, usage, covered, paid, absorbed) => {
    const { purchase, charge } = await truncate(usage, covered);
    const sold = { of: 'v/m', provider: 'p', creditor: 'p', vendorId: 'r1', estimated: false };
    expect(charge.items).toEqual([
      { ...sold, usage: { input: 9, ...paid, request: 1 }, cost: expect.anything(), price: expect.anything() },
      {
        ...sold,
        usage: absorbed,
        terms: { inputTokens: 9 },
        absorbed: 'hold_used_up',
        cost: expect.anything(),
        price: '0',
      },
    ]);
    expect(purchase.usage).toMatchObject(paid);
    expect(charge.cost).toBe(calculateCost({ ...usage, request: 1 }, prices).toString());
  });

  test('is one item if the hold covers it', async () => {
    const { charge } = await truncate({ input: 9, output: 30 }, 30);
    expect(charge.items).toMatchObject([{ usage: { input: 9, output: 30, request: 1 } }]);
  });

  test('costs as much as one call whose price depends on the size of its input', async () => {
    const usage = { input: 60, cacheRead: 60, output: 30 };
    const { charge } = await truncate(usage, 20);
    expect(charge.cost).toBe(calculateCost({ ...usage, request: 1 }, prices).toString());
    expect((charge.items[1] as ChargeItem).cost).toBe('500');
  });

  test('has a receipt without the part that the customer does not pay', async () => {
    const { purchase } = await truncate({ input: 9, output: 30 }, 20);
    const charged = (18n + 200n + 14n) as PicoUsd;
    expect(purchase.createReceipt(charged)).toMatchObject({
      usage: { input: 9, output: 20, request: 1 },
      parts: { input: 16n, output: 100n, searches: 0n, margin: charged - 116n },
    });
  });
});
