import { describe, expect, test } from '@jest/globals';
import { InvalidRequestError } from '#application';
import { Catalogue, type ModelFile, type TokenPricedModel } from '#catalogue';
import { createTestModel } from '../../../../testing/src/world/test-catalogue.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { planSearch } from './search-plan.ts';
import { quoteSearch } from './search-quote.ts';
import { parseSearchRequest, removeSearchOptions, type SearchRequest } from './search-request.ts';

const fees = [
  { name: 'web_search', provider: 'Exa', costUsd: '0.005', priceUsdPerRequest: '0.02' },
  { name: 'own', provider: 'V', costUsd: '0.01', priceUsd: '0.011' },
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

const free = { usdPerMillionTokens: { input: '0', output: '0' } };
const catalogue = Catalogue.fromFiles(
  [
    file('plain', [endpoint('A')]),
    file('native', [endpoint('A', { searchFee: 'own' })]),
    file('mixed', [endpoint('A', { searchFee: 'own' }), endpoint('B')]),
    file('late', [endpoint('B'), endpoint('A', { searchFee: 'own' })]),
    file('anyway', [endpoint('A')], { searchesWeb: true }),
    file('toolless', [endpoint('A', { parameters: ['max_tokens'] })]),
    file('free', [endpoint('A', free)]),
  ],
  { fees },
);

const tool = { type: 'web_search' };
const own = (name: string) => ({ type: 'function', function: { name } });
const plugins = [{ id: 'web' }];

function planned(id: string, more: object, online = false, zdr = false) {
  const model = catalogue.findModel(id);
  if (model?.type !== 'chat') throw new Error(`no model ${id}`);
  const asked = { model: id, messages: [{ role: 'user', content: 'Why?' }], ...more } as ChatBody;
  const search = parseSearchRequest(asked, model, online);
  const body = removeSearchOptions(asked, model);
  const { plan, endpoints } = search
    ? planSearch(search, { body, model, endpoints: model.endpoints, zdr }, catalogue)
    : { plan: undefined, endpoints: model.endpoints };
  return { plan, endpoints, body, quote: plan && quoteSearch(plan, { body, model, endpoints }) };
}

describe('a search', () => {
  test.each<[string, string, object, boolean, string | undefined]>([
    ['is none where none is asked for', 'plain', {}, false, undefined],
    ['by plugin comes before the answer', 'plain', { plugins }, false, 'pre_search'],
    ['by :online comes before the answer', 'plain', {}, true, 'pre_search'],
    ['by tool is up to the model', 'plain', { tools: [tool] }, false, 'tool'],
    ['by plugin is made once, whatever tool is there', 'plain', { plugins, tools: [tool] }, false, 'pre_search'],
    ['by :online leaves the tool to the model', 'plain', { tools: [tool] }, true, 'tool'],
    ['by a plugin that is off is none', 'plain', { plugins: [{ id: 'web', enabled: false }] }, true, undefined],
    ['by a tool that must not be called is none', 'plain', { tools: [tool], tool_choice: 'none' }, false, undefined],
    ['without tools comes before the answer', 'toolless', { tools: [tool] }, false, 'pre_search'],
    ['for several answers comes before them', 'plain', { tools: [tool], n: 2 }, false, 'pre_search'],
    ['for nothing is none', 'plain', { plugins, messages: [{ role: 'user', content: ' ' }] }, false, undefined],
    ['is the upstream’s where it can', 'native', { plugins }, false, 'upstream'],
    ['is the upstream’s by tool as well', 'native', { tools: [tool] }, false, 'upstream'],
    ['is the first endpoint’s affair', 'mixed', { plugins }, false, 'upstream'],
    ['is Exa’s where the first endpoint cannot', 'late', { plugins }, false, 'pre_search'],
    ['is the upstream’s where that is said', 'late', { plugins: [{ id: 'web', engine: 'native' }] }, false, 'upstream'],
    ['is Exa’s where that is said', 'native', { tools: [{ ...tool, engine: 'exa' }] }, false, 'tool'],
    ['is Exa’s beside a function of that name', 'native', { tools: [tool, own('web_search')] }, false, 'tool'],
    ['is in the price of some models', 'anyway', { plugins }, false, 'built_in'],
    ['is in the price unless Exa is named', 'anyway', { plugins: [{ id: 'web', engine: 'exa' }] }, false, 'pre_search'],
    ['for free is none', 'free', { plugins, tools: [tool] }, true, undefined],
  ])('%s', (_, id, more, online, kind) => {
    expect(planned(id, more, online).plan?.kind).toBe(kind);
  });

  test('of the upstream’s is asked only of endpoints that make it for the same fee', () => {
    expect(planned('mixed', { plugins }).endpoints.map(({ slug }) => slug)).toEqual(['a']);
    expect(planned('mixed', { plugins: [{ id: 'web', engine: 'exa' }] }).endpoints).toHaveLength(2);
  });

  test.each<[string, object, object]>([
    ['of the tool itself', { ...tool, max_results: 7, max_uses: 2 }, { maxResults: 7, maxUses: 2 }],
    ['of its parameters, before others', { ...tool, max_uses: 1, parameters: { max_uses: 2 } }, { maxUses: 2 }],
    ['of OpenAI’s filters', { ...tool, filters: { allowed_domains: ['a.b'] } }, { includeDomains: ['a.b'] }],
    ['of OpenRouter’s names', { ...tool, parameters: { excluded_domains: ['a.b'] } }, { excludeDomains: ['a.b'] }],
    ['up to a bound', { ...tool, max_uses: 99 }, { maxUses: 3 }],
  ])('follows options %s', (_, asked, plan) => {
    expect(planned('plain', { tools: [asked] }).plan).toMatchObject(plan);
  });

  test.each<[string, string, object, string]>([
    ['no such engine', 'plain', { plugins: [{ id: 'web', engine: 'x' }] }, 'plugins.engine'],
    ['none of its own', 'plain', { tools: [{ ...tool, engine: 'native' }] }, 'tools.engine'],
    ['half a result', 'plain', { tools: [{ ...tool, max_results: 0.5 }] }, 'tools.max_results'],
    ['no use', 'plain', { tools: [{ ...tool, max_uses: 0 }] }, 'tools.max_uses'],
    ['a name that is taken', 'native', { tools: [{ ...tool, engine: 'native' }, own('web_search')] }, 'tools.engine'],
  ])('cannot have %s', (_, id, more, param) => {
    expect(() => planned(id, more)).toThrow(
      expect.objectContaining({ name: InvalidRequestError.name, status: 400, param }),
    );
  });
});

describe('where nothing may be kept', () => {
  const asked = { plugins };

  test.each<[string, string, object]>([
    ['ours', 'plain', asked],
    ['ours by tool', 'plain', { tools: [tool] }],
    ['a vendor’s own', 'native', asked],
    ['a vendor’s own by its engine', 'native', { plugins: [{ id: 'web', engine: 'native' }] }],
  ])('a search that keeps the question is refused: %s', (_, id, more) => {
    expect(() => planned(id, more, false, true)).toThrow(expect.objectContaining({ status: 404, param: 'provider' }));
  });

  test('a model that searches anyway is as private as its endpoint', () => {
    expect(planned('anyway', asked, false, true).plan?.kind).toBe('built_in');
  });

  test('a search that keeps nothing is made', () => {
    const [exa, own] = fees;
    const forgetful = Catalogue.fromFiles([file('m', [endpoint('A', { searchFee: 'own' })])], {
      fees: [{ ...exa, zdr: true }, own] as never,
    });
    const body = { model: 'm', messages: [{ role: 'user', content: 'Why?' }], ...asked } as ChatBody;
    const model = forgetful.findModel('m') as TokenPricedModel;
    const search = parseSearchRequest(body, model, false) as SearchRequest;
    const { plan } = planSearch(search, { body, model, endpoints: model.endpoints, zdr: true }, forgetful);
    expect(plan).toMatchObject({ kind: 'pre_search', fee: { of: 'web_search' } });
  });
});

describe('a search in OpenAI’s words', () => {
  const user_location = { type: 'approximate', approximate: { city: 'Bern', country: 'CH' } };

  test.each<[string, string, object, object]>([
    ['an option', 'plain', {}, { kind: 'pre_search', maxResults: 5, location: undefined }],
    [
      'an option, of the model’s vendor',
      'native',
      {},
      { kind: 'upstream', isModelDecided: false, native: { isRequired: true } },
    ],
    ['more to read', 'plain', { search_context_size: 'high' }, { maxResults: 10 }],
    ['less to read', 'plain', { search_context_size: 'low' }, { maxResults: 3 }],
    ['a place', 'plain', { user_location }, { location: { city: 'Bern', country: 'CH' } }],
  ])('by web_search_options: %s', (_, id, web_search_options, plan) => {
    expect(planned(id, { web_search_options }).plan).toMatchObject(plan);
  });

  test.each(['web_search_preview', 'web_search_preview_2025_03_11', 'web_search_2025_08_26', 'openrouter:web_search'])(
    'by a tool of the type %s is one that the model decides on',
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
    ['no object', 'yes', 'web_search_options'],
    ['a list', [], 'web_search_options'],
    ['another size', { search_context_size: 'huge' }, 'web_search_options.search_context_size'],
    ['a place without a type', { user_location: { city: 'Bern' } }, 'web_search_options.user_location'],
    ['a place that is none', { user_location: 'Bern' }, 'web_search_options.user_location'],
    [
      'a country of three letters',
      { user_location: { type: 'approximate', approximate: { country: 'CHE' } } },
      'web_search_options.user_location',
    ],
  ])('is refused as %s', (_, web_search_options, param) => {
    expect(() => planned('plain', { web_search_options })).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test('a plugin says more than the option, also that there is to be no search', () => {
    const plugins = [{ id: 'web', max_results: 2 }];
    expect(planned('plain', { plugins, web_search_options: {} }).plan).toMatchObject({ maxResults: 2 });
    expect(planned('plain', { plugins: [{ id: 'web', enabled: false }], web_search_options: {} }).plan).toBeUndefined();
  });
});

describe('what goes on without the search', () => {
  const book = own('book');
  test.each<[string, string, object, object]>([
    [
      'keeps other tools, and the choice among them',
      'plain',
      { tools: [tool, book], tool_choice: 'required' },
      { tools: [book], tool_choice: 'required' },
    ],
    ['loses the choice of the search', 'plain', { tools: [tool, book], tool_choice: tool }, { tools: [book] }],
    [
      'loses all about tools with the last one',
      'plain',
      { tools: [tool], tool_choice: 'auto', parallel_tool_calls: true },
      {},
    ],
    ['loses all tools where the model knows none', 'toolless', { tools: [book], tool_choice: 'auto' }, {}],
    [
      'is the same where there is none',
      'plain',
      { tools: [book], tool_choice: book },
      { tools: [book], tool_choice: book },
    ],
  ])('%s', (_, id, more, left) => {
    const { model, messages, ...rest } = planned(id, more).body;
    expect(rest).toEqual(left);
  });
});

describe('what is held', () => {
  const plain = planned('anyway', { plugins }).quote;

  test('at least for a search that may be made is what is held without one', () => {
    expect(planned('plain', { tools: [tool] }).quote?.minPrice).toBe(plain?.minPrice);
    expect(planned('native', { tools: [tool] }).quote?.minPrice).toBe(plain?.minPrice);
  });

  test.each<[string, string, bigint[]]>([
    ['plain', 'ours by the request', [20_000_000_000n, 0n, 0n]],
    ['native', 'a vendor’s one by one', [11_000_000_000n, 11_000_000_000n, 11_000_000_000n]],
  ])('at most is for all searches, with their fees: %s, %s', (id, _, fees) => {
    const quotes = [1, 2, 3].map((max_uses) => planned(id, { tools: [{ ...tool, max_uses }] }).quote?.maxPrice ?? 0n);
    const more = quotes.map((quote, i) => quote - (quotes[i - 1] ?? plain?.maxPrice ?? 0n));
    for (const [i, each] of more.entries()) expect(each).toBeGreaterThan(fees[i] as bigint);
    // Each search is read with all that was found before; only the fee makes the first one dearer.
    const [first = 0n, second = 0n] = more;
    expect(first > second).toBe(id === 'plain');
  });

  test.each(['plain', 'native'])('at least for a search that must be made has its fee: %s', (id) => {
    const must = planned(id, { tools: [tool], tool_choice: tool }).quote;
    expect(must?.minPrice).toBeGreaterThan(10_000_000_000n);
    expect(must?.maxPrice).toBeGreaterThanOrEqual(must?.minPrice ?? 0n);
  });
});
