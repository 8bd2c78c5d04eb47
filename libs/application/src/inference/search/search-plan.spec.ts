import { describe, expect, test } from '@jest/globals';
import { InvalidRequestError } from '#application';
import { Catalogue, type ModelFile, type TokenPricedModel } from '#catalogue';
import { createTestModel } from '../../../../testing/src/world/test-catalogue.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { planSearch } from './search-plan.ts';
import { quoteSearch } from './search-quote.ts';
import {
  findRequestedSearch,
  parseSearchRequest,
  type RequestedSearch,
  removeSearchOptions,
} from './search-request.ts';

const fees = [
  { name: 'web_search', provider: 'Exa', costUsd: '0.005', priceUsdPerRequest: '0.02' },
  { name: 'own', provider: 'V', costUsd: '0.01', priceUsd: '0.011' },
  { name: 'inclusive', provider: 'V', costUsd: '0.01', priceUsd: '0.011', excludesDomains: false },
  {
    name: 'unlimited',
    provider: 'V',
    costUsd: '0.01',
    priceUsd: '0.011',
    includesDomains: false,
    excludesDomains: false,
    heldSearches: { min: 3, max: 10 },
  },
];
const endpoint = (provider: string, more: object = {}) => ({
  provider,
  upstream: 'up',
  model: 'm',
  usdPerMillionTokens: { input: '1', output: '2' },
  margin: '1.055',
  parameters: ['max_tokens', 'tools', 'tool_choice'],
  ...more,
});
const file = (id: string, endpoints: readonly object[], more: object = {}) =>
  createTestModel(id, endpoints, { context: 100_000, maxOutput: 1_000, ...more }) as ModelFile;

const catalogue = Catalogue.fromFiles(
  [
    file('plain', [endpoint('A')]),
    file('native', [endpoint('A', { searchFee: 'own' })]),
    file('on-request', [endpoint('A', { searchFee: 'own', searchOnRequest: true })]),
    file('inclusive', [endpoint('A', { searchFee: 'inclusive' })]),
    file('unlimited', [endpoint('A', { searchFee: 'unlimited', searchOnRequest: true })]),
    file('mixed', [endpoint('A', { searchFee: 'own' }), endpoint('B')]),
    file('late', [endpoint('B'), endpoint('A', { searchFee: 'own' })]),
    file('anyway', [endpoint('A')], { searchesWeb: true }),
    file('toolless', [endpoint('A', { parameters: ['max_tokens'] })]),
  ],
  { fees },
);

const tool = { type: 'web_search' };
const own = (name: string) => ({ type: 'function', function: { name } });
const plugins = [{ id: 'web' }];
const excluding = [{ id: 'web', exclude_domains: ['a.b'] }];

function planned(id: string, more: object, online = false, zdr = false) {
  const model = catalogue.findModel(id);
  if (model?.type !== 'chat') throw new Error(`no model ${id}`);
  const asked = { model: id, messages: [{ role: 'user', content: 'Why?' }], ...more } as ChatBody;
  const requested = findRequestedSearch(asked, online);
  const search = requested && parseSearchRequest(requested);
  const body = removeSearchOptions(asked, model);
  const { plan, endpoints } = search
    ? planSearch(search, { body, model, endpoints: model.endpoints, zdr }, catalogue)
    : { plan: undefined, endpoints: model.endpoints };
  return { plan, endpoints, body, quote: plan && quoteSearch(plan, { body, model, endpoints }) };
}

describe('planning a search', () => {
  test.each<[string, string, object, boolean, string | undefined]>([
    ['plans no search if none is requested', 'plain', {}, false, undefined],
    ['plans a search before the call for a plugin', 'plain', { plugins }, false, 'pre_search'],
    ['plans a search before the call for :online', 'plain', {}, true, 'pre_search'],
    ['lets the model decide for a tool', 'plain', { tools: [tool] }, false, 'tool'],
    ['searches before the call for a plugin with a tool', 'plain', { plugins, tools: [tool] }, false, 'pre_search'],
    ['lets the model decide for :online with a tool', 'plain', { tools: [tool] }, true, 'tool'],
    ['plans no search for a disabled plugin', 'plain', { plugins: [{ id: 'web', enabled: false }] }, true, undefined],
    ['plans no search for tool choice none', 'plain', { tools: [tool], tool_choice: 'none' }, false, undefined],
    ['searches before the call if the model supports no tools', 'toolless', { tools: [tool] }, false, 'pre_search'],
    ['plans a search before the call for several choices', 'plain', { tools: [tool], n: 2 }, false, 'pre_search'],
    [
      'plans no search for a blank text',
      'plain',
      { plugins, messages: [{ role: 'user', content: ' ' }] },
      false,
      undefined,
    ],
    ['selects the provider if it can search', 'native', { plugins }, false, 'upstream'],
    ['selects the provider for a tool', 'native', { tools: [tool] }, false, 'upstream'],
    ['selects the provider of the first endpoint', 'mixed', { plugins }, false, 'upstream'],
    ['selects Exa if the first endpoint cannot search', 'late', { plugins }, false, 'pre_search'],
    ['selects Exa if the provider searches only on request', 'on-request', { plugins }, false, 'pre_search'],
    ['selects the provider on request', 'on-request', { tools: [{ ...tool, engine: 'native' }] }, false, 'upstream'],
    ['selects the provider if requested', 'late', { plugins: [{ id: 'web', engine: 'native' }] }, false, 'upstream'],
    ['selects Exa if the provider cannot exclude domains', 'inclusive', { plugins: excluding }, false, 'pre_search'],
    ['selects a provider that can exclude domains', 'native', { plugins: excluding }, false, 'upstream'],
    ['selects Exa if requested', 'native', { tools: [{ ...tool, engine: 'exa' }] }, false, 'tool'],
    ['selects Exa if a function has the tool’s name', 'native', { tools: [tool, own('web_search')] }, false, 'tool'],
    ['relies on a model that always searches', 'anyway', { plugins }, false, 'built_in'],
    [
      'selects Exa if requested, even if the model always searches',
      'anyway',
      { plugins: [{ id: 'web', engine: 'exa' }] },
      false,
      'pre_search',
    ],
  ])('%s', (_, id, more, online, kind) => {
    expect(planned(id, more, online).plan?.kind).toBe(kind);
  });

  test('selects only endpoints with the same fee for a native search', () => {
    expect(planned('mixed', { plugins }).endpoints.map(({ slug }) => slug)).toEqual(['a']);
    expect(planned('mixed', { plugins: [{ id: 'web', engine: 'exa' }] }).endpoints).toHaveLength(2);
  });

  test.each<[string, object, object]>([
    ['of the tool itself', { ...tool, max_results: 7, max_uses: 2 }, { maxResults: 7, maxUses: 2 }],
    ['of the tool’s parameters before others', { ...tool, max_uses: 1, parameters: { max_uses: 2 } }, { maxUses: 2 }],
    ['of OpenAI’s filters', { ...tool, filters: { allowed_domains: ['a.b'] } }, { includeDomains: ['a.b'] }],
    ['with OpenRouter’s names', { ...tool, parameters: { excluded_domains: ['a.b'] } }, { excludeDomains: ['a.b'] }],
    ['up to a limit', { ...tool, max_uses: 99 }, { maxUses: 3 }],
  ])('applies options %s', (_, asked, plan) => {
    expect(planned('plain', { tools: [asked] }).plan).toMatchObject(plan);
  });

  test.each<[string, string, object, string]>([
    ['an unknown engine', 'plain', { plugins: [{ id: 'web', engine: 'x' }] }, 'plugins.engine'],
    ['a native search that the model lacks', 'plain', { tools: [{ ...tool, engine: 'native' }] }, 'tools.engine'],
    [
      'excluded domains for a native search without them',
      'inclusive',
      { plugins: [{ ...excluding[0], engine: 'native' }] },
      'plugins.engine',
    ],
    [
      'included domains for a native search without them',
      'unlimited',
      { plugins: [{ id: 'web', engine: 'native', include_domains: ['a.b'] }] },
      'plugins.engine',
    ],
    ['a fractional number of results', 'plain', { tools: [{ ...tool, max_results: 0.5 }] }, 'tools.max_results'],
    ['zero uses', 'plain', { tools: [{ ...tool, max_uses: 0 }] }, 'tools.max_uses'],
    ['a name conflict', 'native', { tools: [{ ...tool, engine: 'native' }, own('web_search')] }, 'tools.engine'],
  ])('rejects %s', (_, id, more, param) => {
    expect(() => planned(id, more)).toThrow(
      expect.objectContaining({ name: InvalidRequestError.name, status: 400, param }),
    );
  });
});

describe('a native search whose number no request can limit', () => {
  const search = (more: object = {}) => planned('unlimited', { tools: [{ ...tool, engine: 'native', ...more }] });

  test('is planned for as many searches as a hold pays for, whatever number is requested', () => {
    expect(search({ max_uses: 1 }).plan).toMatchObject({ minUses: 3, native: { maxUses: 10 } });
  });

  test('is paid for three times at least if it is required', () => {
    const required = { tools: [{ ...tool, engine: 'native' }], tool_choice: tool };
    const { quote } = planned('unlimited', required);
    const single = planned('native', required).quote;
    expect(quote?.search).toEqual({ isRequired: true, price: quote?.minPrice });
    expect(quote?.minPrice).toBeGreaterThan((single?.minPrice as bigint) + 2n * 11_000_000_000n);
    expect(quote?.maxPrice).toBeGreaterThan((quote?.minPrice as bigint) + 7n * 11_000_000_000n);
  });

  test('is not part of the minimum price if the model decides', () => {
    const { quote } = search();
    expect(quote?.minPrice).toBe(planned('native', { tools: [tool] }).quote?.minPrice);
    expect(quote?.search?.price).toBeGreaterThan(3n * 11_000_000_000n);
  });
});

describe('a search with zero data retention', () => {
  const asked = { plugins };

  test.each<[string, string, object]>([
    ['by the gateway', 'plain', asked],
    ['by the gateway for a tool', 'plain', { tools: [tool] }],
    ['by the provider', 'native', asked],
    ['by the provider for engine native', 'native', { plugins: [{ id: 'web', engine: 'native' }] }],
  ])('is rejected if the query would be retained: a search %s', (_, id, more) => {
    expect(() => planned(id, more, false, true)).toThrow(expect.objectContaining({ status: 404, param: 'provider' }));
  });

  test('is allowed for a model that always searches', () => {
    expect(planned('anyway', asked, false, true).plan?.kind).toBe('built_in');
  });

  test('is made if its provider retains no data', () => {
    const [exa, own] = fees;
    const forgetful = Catalogue.fromFiles([file('m', [endpoint('A', { searchFee: 'own' })])], {
      fees: [{ ...exa, zdr: true }, own] as never,
    });
    const body = { model: 'm', messages: [{ role: 'user', content: 'Why?' }], ...asked } as ChatBody;
    const model = forgetful.findModel('m') as TokenPricedModel;
    const search = parseSearchRequest(findRequestedSearch(body, false) as RequestedSearch);
    const { plan } = planSearch(search, { body, model, endpoints: model.endpoints, zdr: true }, forgetful);
    expect(plan).toMatchObject({ kind: 'pre_search', fee: { of: 'web_search' } });
  });
});

describe('a search in OpenAI’s format', () => {
  const user_location = { type: 'approximate', approximate: { city: 'Bern', country: 'CH' } };

  test.each<[string, string, object, object]>([
    ['an empty object', 'plain', {}, { kind: 'pre_search', maxResults: 5, location: undefined }],
    [
      'an empty object for a native search',
      'native',
      {},
      { kind: 'upstream', isModelDecided: false, native: { isRequired: true } },
    ],
    ['a high context size', 'plain', { search_context_size: 'high' }, { maxResults: 10 }],
    ['a low context size', 'plain', { search_context_size: 'low' }, { maxResults: 3 }],
    ['a location', 'plain', { user_location }, { location: { city: 'Bern', country: 'CH' } }],
  ])('follows web_search_options with %s', (_, id, web_search_options, plan) => {
    expect(planned(id, { web_search_options }).plan).toMatchObject(plan);
  });

  test.each(['web_search_preview', 'web_search_preview_2025_03_11', 'web_search_2025_08_26', 'openrouter:web_search'])(
    'is made through the search tool for a tool of type %s',
    (type) => {
      const place = { type: 'approximate', city: 'Bern' };
      const asked = { tools: [{ type, user_location: place }], tool_choice: { type } };
      expect(planned('plain', asked)).toMatchObject({
        plan: { kind: 'tool', isRequired: true, location: { city: 'Bern' } },
        body: expect.not.objectContaining({ tools: expect.anything() }),
      });
    },
  );

  test.each<[string, unknown, string]>([
    ['a string', 'yes', 'web_search_options'],
    ['a list', [], 'web_search_options'],
    ['an unknown context size', { search_context_size: 'huge' }, 'web_search_options.search_context_size'],
    ['a location without a type', { user_location: { city: 'Bern' } }, 'web_search_options.user_location'],
    ['a location that is no object', { user_location: 'Bern' }, 'web_search_options.user_location'],
    [
      'a country with three letters',
      { user_location: { type: 'approximate', approximate: { country: 'CHE' } } },
      'web_search_options.user_location',
    ],
  ])('is rejected if web_search_options is invalid: %s', (_, web_search_options, param) => {
    expect(() => planned('plain', { web_search_options })).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test('follows the plugin instead of the option, even if the plugin is disabled', () => {
    const plugins = [{ id: 'web', max_results: 2 }];
    expect(planned('plain', { plugins, web_search_options: {} }).plan).toMatchObject({ maxResults: 2 });
    expect(planned('plain', { plugins: [{ id: 'web', enabled: false }], web_search_options: {} }).plan).toBeUndefined();
  });
});

describe('removing the search from a request', () => {
  const book = own('book');
  test.each<[string, string, object, object]>([
    [
      'retains other tools and the choice among them',
      'plain',
      { tools: [tool, book], tool_choice: 'required' },
      { tools: [book], tool_choice: 'required' },
    ],
    ['removes a choice of the search tool', 'plain', { tools: [tool, book], tool_choice: tool }, { tools: [book] }],
    [
      'removes all tool fields with the last tool',
      'plain',
      { tools: [tool], tool_choice: 'auto', parallel_tool_calls: true },
      {},
    ],
    ['removes all tools if the model supports none', 'toolless', { tools: [book], tool_choice: 'auto' }, {}],
    [
      'returns a request without a search unchanged',
      'plain',
      { tools: [book], tool_choice: book },
      { tools: [book], tool_choice: book },
    ],
  ])('%s', (_, id, more, left) => {
    const { model, messages, ...rest } = planned(id, more).body;
    expect(rest).toEqual(left);
  });
});

describe('the quote of a search', () => {
  const plain = planned('anyway', { plugins }).quote;

  test('has the minimum price of a request without a search if the search is optional', () => {
    expect(planned('plain', { tools: [tool] }).quote?.minPrice).toBe(plain?.minPrice);
    expect(planned('native', { tools: [tool] }).quote?.minPrice).toBe(plain?.minPrice);
  });

  test.each<[string, string, bigint[]]>([
    ['plain', 'by the gateway, with a fee per request', [20_000_000_000n, 0n, 0n]],
    ['native', 'by the provider, with a fee per search', [11_000_000_000n, 11_000_000_000n, 11_000_000_000n]],
  ])('includes all searches and their fees in the maximum price (model %s, %s)', (id, _, fees) => {
    const quotes = [1, 2, 3].map((max_uses) => planned(id, { tools: [{ ...tool, max_uses }] }).quote?.maxPrice ?? 0n);
    const more = quotes.map((quote, i) => quote - (quotes[i - 1] ?? plain?.maxPrice ?? 0n));
    for (const [i, each] of more.entries()) expect(each).toBeGreaterThan(fees[i] as bigint);
    // Each search adds more tokens than the one before, because all earlier results are read again. So the first
    // search costs more than the second only with a fee per request.
    const [first = 0n, second = 0n] = more;
    expect(first > second).toBe(id === 'plain');
  });

  test.each(['plain', 'native'])('includes the fee of a required search in the minimum price (model %s)', (id) => {
    const must = planned(id, { tools: [tool], tool_choice: tool }).quote;
    expect(must?.minPrice).toBeGreaterThan(10_000_000_000n);
    expect(must?.maxPrice).toBeGreaterThanOrEqual(must?.minPrice ?? 0n);
  });
});
