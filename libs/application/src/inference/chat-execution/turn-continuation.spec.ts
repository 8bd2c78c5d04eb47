import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Catalogue, type ModelFile } from '#catalogue';
import { getQuantity, type PartialHold, type Usage } from '#domain';
import { money, type PicoUsd, parseUsd, toPicoUsd, ZERO_USD } from '#kernel';
import { createTestRuntime } from '../../../../testing/src/test-runtime.ts';
import { createTestModel } from '../../../../testing/src/world/test-catalogue.ts';
import type { Payer } from '../../billing/payer.ts';
import { Purchase } from '../../billing/purchase.ts';
import { Clock } from '../../clock.ts';
import type { PausedResponse } from '../../providers/provider.ts';
import { EndpointHealth } from '../../routing/endpoint-health.ts';
import { countMaxChatInputTokens } from '../chat/count-tokens.ts';
import { quoteNativeSearch } from '../search/search-quote.ts';
import { type ContinuedCall, MAX_CONTINUATIONS, TurnContinuation } from './turn-continuation.ts';

class StillClock extends Clock {
  nowMs(): number {
    return 0;
  }
}

const body = { model: 'v/m', messages: [{ role: 'user', content: 'What is new in the world of ledgers?' }] };
const query = { model: 'v/m', type: 'chat_completion', source: 'api', online: true, free: false } as const;
const reported = { estimateUsage: () => Promise.reject(new Error('all usage is reported')) };
const prices = [
  { unit: 'search' as const, per: 1n, cost: 10_000_000_000n, price: 10_550_000_000n },
  { unit: 'request' as const, per: 1n, cost: 0n, price: 0n },
];
const searchFee = { of: 'web_search_v', provider: 'v', creditor: 'v', prices };
const native = { maxUses: 3, isRequired: true, includeDomains: [], excludeDomains: [] };
const paused = (searches: number, isSearching = false): PausedResponse => ({ content: [], searches, isSearching });

interface Scenario {
  readonly amount: PicoUsd;
  readonly limit?: number;
  /** What the payer can still hold. */
  readonly available?: PicoUsd;
}

/** Creates the continuation of a request at a model of 1 USD and 5 USD per million tokens. */
function start({ amount, limit, available }: Scenario) {
  const endpointFile = {
    provider: 'V',
    upstream: 'up',
    model: 'm',
    margin: '1',
    parameters: ['max_tokens', 'tools'],
    usdPerMillionTokens: { input: '1', output: '5' },
  };
  const file = createTestModel('v/m', [endpointFile], { context: 60_000, maxOutput: 4_000 }) as ModelFile;
  const model = Catalogue.fromFiles([file]).findModel('v/m');
  if (model?.type !== 'chat') throw new Error('no model');
  const [endpoint] = model.endpoints;
  if (!endpoint) throw new Error('no endpoint');
  const limitedBody = limit === undefined ? body : { ...body, max_tokens: limit };
  const quote = quoteNativeSearch({ billsInput: true, fee: searchFee }, 3, {
    body: limitedBody,
    model,
    endpoints: [endpoint],
  });
  const partialHold: PartialHold | undefined =
    available === undefined ? undefined : { minAmount: ZERO_USD, divisor: 8n, extension: undefined };
  const hold = { holdId: 'h', payer: 'account-a', amount, availableAfter: available ?? ZERO_USD, expiresAt: 0 };
  const payer = {
    id: 'account-a',
    extend: async (held: typeof hold, { minAmount, targetAmount }: { minAmount: PicoUsd; targetAmount: PicoUsd }) => {
      const most = money.add(amount, available ?? ZERO_USD);
      return minAmount > most ? 'exhausted' : { ...held, amount: money.min(targetAmount, most) };
    },
  } as unknown as Payer;
  const order = {
    id: 'h',
    query,
    model,
    endpoints: [endpoint],
    priceList: { version: 'v', lines: [] },
    minPrice: ZERO_USD,
    maxPrice: parseUsd('100') as PicoUsd,
    partialHold,
  };
  const purchase = new Purchase(
    order,
    { payer, hold },
    { signal: new AbortController().signal, abort: () => {} },
    { health: new EndpointHealth(new StillClock()), runtime: createTestRuntime() },
  );
  purchase.endpoint = endpoint;
  const resolved = { model } as never;
  const continuation = new TurnContinuation(
    { body: limitedBody, resolved, quote, extraInputTokens: 0, native, searchFee },
    purchase,
  );
  return { purchase, continuation, endpoint, model };
}

const bill = (purchase: Purchase, usage: Usage) =>
  purchase.billCall(reported, { usage, getDeliveredText: () => '', vendorId: undefined });

describe('a paused turn', () => {
  const rich = parseUsd('10') as PicoUsd;
  const usage = { input: 1_000, output: 100 };

  test('is continued a limited number of times, with the searches and output tokens that are left', async () => {
    const { purchase, continuation, endpoint } = start({ amount: rich, limit: 1_000 });
    const calls: (ContinuedCall | undefined)[] = [];
    for (let searches = 1; searches <= MAX_CONTINUATIONS + 1; searches++) {
      await bill(purchase, usage);
      calls.push(await continuation.createCall(endpoint, paused(searches), usage));
    }
    expect(calls.map((call) => call?.search.maxUses)).toEqual([2, 1, 0, undefined]);
    expect(calls.map((call) => call?.limit)).toEqual([900, 800, 700, undefined]);
  });

  test('is not continued without output tokens', async () => {
    const { purchase, continuation, endpoint } = start({ amount: rich, limit: 100 });
    await bill(purchase, usage);
    expect(await continuation.createCall(endpoint, paused(1), usage)).toBeUndefined();
  });

  test.each([
    ['without a search if the hold pays for none', '0.005', false, 0],
    ['with one search if the hold pays for one', '0.04', false, 1],
    ['not at all if the hold does not pay for a search that has started', '0.005', true, undefined],
    ['not at all if the hold does not pay for a short response', '0.002', false, undefined],
  ])('is continued %s', async (_, amount, isSearching, maxUses) => {
    const { purchase, continuation, endpoint } = start({ amount: parseUsd(amount) as PicoUsd });
    await bill(purchase, usage);
    expect((await continuation.createCall(endpoint, paused(1, isSearching), usage))?.search.maxUses).toBe(maxUses);
  });

  test('extends a partial hold for its searches', async () => {
    const amount = parseUsd('0.005') as PicoUsd;
    const { purchase, continuation, endpoint } = start({ amount, available: rich });
    await bill(purchase, usage);
    expect((await continuation.createCall(endpoint, paused(1), usage))?.search.maxUses).toBe(2);
    expect(purchase.hold.amount).toBeGreaterThan(amount);
  });

  test('costs at most what is held, for random amounts and for all usage that its quotes cover', () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 300_000 }),
        fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 4, maxLength: 4 }),
        async (microUsd, used) => {
          const amount = toPicoUsd(BigInt(microUsd) * 1_000_000n);
          const { purchase, continuation, endpoint, model } = start({ amount });
          let last: Usage = { input: countMaxChatInputTokens(body, model), output: 10 };
          await bill(purchase, last);
          fc.pre(purchase.remaining >= 0n);
          let searches = 0;
          for (const part of used) {
            const call = await continuation.createCall(endpoint, paused(searches), last);
            if (!call) break;
            const made = Math.min(part, call.search.maxUses);
            const read = getQuantity('input', last) + getQuantity('output', last);
            last = { input: (made + 1) * read + 16_000 * ((made * (made + 1)) / 2), output: call.limit };
            await bill(purchase, last);
            purchase.billSearches(searchFee, made);
            searches += made;
            expect(purchase.remaining).toBeGreaterThanOrEqual(0n);
          }
          expect(searches).toBeLessThanOrEqual(native.maxUses);
        },
      ),
      { numRuns: 300 },
    ));
});
