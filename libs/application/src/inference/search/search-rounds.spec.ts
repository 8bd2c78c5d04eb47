import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Catalogue, type ModelFile } from '#catalogue';
import { getQuantity } from '#domain';
import { money, ZERO_USD } from '#kernel';
import { createTestRuntime } from '../../../../testing/src/test-runtime.ts';
import { createTestModel } from '../../../../testing/src/world/test-catalogue.ts';
import type { Payer } from '../../billing/payer.ts';
import { Purchase } from '../../billing/purchase.ts';
import { Clock } from '../../clock.ts';
import { MAX_RESULT_CHARACTERS, type WebSearchResponse } from '../../providers/web-search.ts';
import { EndpointHealth } from '../../routing/endpoint-health.ts';
import { countMaxChatInputTokens } from '../chat/count-tokens.ts';
import type { ToolSearchPlan } from './search-plan.ts';
import { quoteSearch } from './search-quote.ts';
import { type Round, SearchRounds } from './search-rounds.ts';

const messages = [{ role: 'user', content: 'What is new in the world of ledgers?' }];
const body = { model: 'v/m', messages };

/** Returns a search that finds pages of the maximum length, or fails. */
function searching(fails: readonly boolean[]): () => Promise<WebSearchResponse> {
  let asked = 0;
  return async () => {
    if (fails[asked++]) throw new Error('down');
    const page = { url: 'https://a.example', title: 'A', text: 'word '.repeat(MAX_RESULT_CHARACTERS / 5) };
    return { results: Array(5).fill(page), vendorId: undefined };
  };
}

class StillClock extends Clock {
  nowMs(): number {
    return 0;
  }
}
const clock = new StillClock();
const query = { model: 'v/m', type: 'chat_completion', source: 'api', online: true, free: false } as const;
const priceList = { version: 'v', lines: [] };
const reported = { estimateUsage: () => Promise.reject(new Error('all usage is reported')) };

const microUsd = fc.integer({ min: 0, max: 50_000_000 }).map((micro) => (micro / 1e6).toFixed(6));

test('rounds and searches cost at most what is held, for random prices and usage within the limits of the model', () =>
  fc.assert(
    fc.asyncProperty(
      fc.record({ input: microUsd, output: microUsd, request: fc.constantFrom('0', '0.01') }),
      fc.record({
        wanted: fc.option(fc.integer({ min: 1, max: 2_000 })),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      fc.record({
        calls: fc.integer({ min: 1, max: 3 }),
        parts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 6, maxLength: 6 }),
        fails: fc.array(fc.boolean()),
      }),
      async (usd, { wanted, share }, { calls, parts, fails }) => {
        const model = modelWith(usd);
        const { endpoints } = model;
        const [endpoint] = endpoints;
        if (!endpoint) throw new Error('no endpoint');
        const search = { unit: 'search' as const, per: 1n, cost: 5_000_000_000n, price: 0n };
        const once = { unit: 'request' as const, per: 1n, cost: 0n, price: 20_000_000_000n };
        const fee = { of: 'web_search', provider: 'exa', creditor: 'exa', prices: [search, once] };
        const terms = { maxResults: 5, includeDomains: [], excludeDomains: [], fee };
        const plan: ToolSearchPlan = { kind: 'tool', ...terms, maxUses: 3, isRequired: false };
        const asked = wanted === null ? body : { ...body, max_tokens: wanted };
        const { minPrice: atLeast, maxPrice: atMost } = quoteSearch(plan, { body: asked, model, endpoints });
        const amount = money.toPicoUsd(atLeast + BigInt(Math.floor(Number(atMost - atLeast) * share)));
        const hold = {
          holdId: 'h',
          payer: 'account-a',
          amount,
          availableAfter: ZERO_USD,
          expiresAt: 0,
        };
        const { signal } = new AbortController();
        const sale = { id: 'h', query, model, endpoints, priceList, minPrice: atLeast, maxPrice: atMost };
        const problems: string[] = [];
        const reportError = (problem: string) => void problems.push(problem);
        let failedSearches = 0;
        const purchase = new Purchase(
          sale,
          { payer: {} as Payer, hold },
          { signal, abort: () => {} },
          { health: new EndpointHealth(clock), runtime: createTestRuntime({ reportError }) },
        );
        purchase.endpoint = endpoint;
        const rounds = new SearchRounds(
          { plan, body: asked, model, requestedMaxTokens: wanted ?? undefined, search: searching(fails) },
          purchase,
        );
        const cost = () => money.subtract(amount, purchase.remaining);
        const said = {
          content: '',
          reasoningDetails: [],
          calls: Array.from({ length: calls }, (_, i) => ({ id: `c${i}`, arguments: '{"query":"ledgers"}' })),
          hasClientCalls: false,
          finishReason: 'tool_calls',
        };
        let count = 0;
        for (
          let next: Round | undefined = rounds.createFirstRound(endpoints);
          next;
          next = rounds.createNextRound(endpoint)
        ) {
          const most = next.limit ?? model.maxOutput;
          const output = next.hasSearchTool ? Math.floor(most * (parts[count] ?? 0)) : most;
          const usage = { input: countMaxChatInputTokens(next.body), output };
          await purchase.billCall(reported, { usage, getDeliveredText: () => '', vendorId: undefined });
          expect(cost()).toBeLessThanOrEqual(amount);
          count++;
          if (!next.hasSearchTool) break;
          await rounds.search(endpoint, said, ({ state }) => {
            if (state === 'failed') failedSearches++;
          });
          expect(cost()).toBeLessThanOrEqual(amount);
        }
        expect(problems).toEqual(Array(failedSearches).fill('a web search failed'));
        expect(count).toBeGreaterThan(0);
        expect(count).toBeLessThanOrEqual(plan.maxUses + 1);
        const searches = (purchase.createCharge()?.items ?? []).filter(({ beside }) => beside);
        expect(searches.length).toBeLessThanOrEqual(plan.maxUses);
        expect(searches.map(({ price }) => Number(price))).toEqual(searches.map((_, i) => (i === 0 ? 2e10 : 0)));
        expect(getQuantity('output', purchase.usage)).toBeLessThanOrEqual(wanted ?? model.maxOutput);
      },
    ),
    { numRuns: 300 },
  ));

function modelWith({ input, output, request }: { input: string; output: string; request: string }) {
  const endpoint = {
    provider: 'V',
    upstream: 'up',
    model: 'm',
    usdPerMillionTokens: { input, output },
    usdPerRequest: request,
    margin: '1.055',
    parameters: ['max_tokens', 'tools', 'tool_choice'],
  };
  const file = createTestModel('v/m', [endpoint], { context: 60_000, maxOutput: 4_000 }) as ModelFile;
  const model = Catalogue.fromFiles([file]).findModel('v/m');
  if (model?.type !== 'chat') throw new Error('no model');
  return model;
}
