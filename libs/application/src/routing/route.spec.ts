import { describe, expect, test } from '@jest/globals';
import { Catalogue, type Endpoint, type ModelFile, type TokenPricedModel } from '#catalogue';
import { createTestModel } from '../../../testing/src/world/test-catalogue.ts';
import { InvalidRequestError } from '../errors.ts';
import { NO_PREFERENCES, parseRoutingPreferences, resolveModel } from './preferences.ts';
import { type EndpointPerformance, selectRoute } from './route.ts';

const endpoint = (provider: string, input: string, more: object = {}): ModelFile['endpoints'][number] => ({
  provider,
  upstream: 'openai',
  model: 'm',
  usdPerMillionTokens: { input, output: input },
  margin: '1',
  parameters: ['max_tokens', 'tools'],
  ...more,
});

/** All of them, the cheapest first. */
const CHEAPEST = ['beta', 'gamma-cloud', 'alpha'];
const RESPONSES = { parameters: ['n'], speaks: ['responses'] };

const ENDPOINTS = [
  endpoint('Alpha', '3', { zdr: true, latencyMs: 300, tokensPerSecond: 50, quantization: 'fp8' }),
  endpoint('Beta', '1', { collectsData: true, latencyMs: 900, tokensPerSecond: 200, toolReliability: 0.9 }),
  endpoint('Gamma Cloud', '2', {
    latencyMs: 100,
    tokensPerSecond: 20,
    parameters: ['max_tokens'],
    quantization: 'bf16',
  }),
];

const file = (id: string, more: object = {}) =>
  createTestModel(id, ENDPOINTS, { context: 1000, maxOutput: 100, ...more }) as ModelFile;

const catalogue = Catalogue.fromFiles([
  file('v/m', { aliases: ['m'], variants: { thinking: 'v/m-thinking' } }),
  file('v/m-thinking'),
  file('v/pinned', { routing: { only: ['alpha'] } }),
  file('v/searching', { routing: { webSearchDropsZdr: true } }),
  file('v/odd:free', {}),
  file('v/keeping', { routing: { only: ['beta'], ignore: ['alpha'] } }),
  file('v/ordered', { routing: { order: ['gamma-cloud'] } }),
  file('v/handless', {
    endpoints: [endpoint('Alpha', '3'), endpoint('Beta', '1', { parameters: ['max_tokens'] })],
  }),
  file('v/several', {
    endpoints: [endpoint('A', '3', { parameters: ['n'] }), endpoint('B', '1'), endpoint('C', '1', RESPONSES)],
  }),
  file('v/private', { privacy: 'zdr' }),
  file('v/long', { variants: { extended: 'v/m' } }),
  file('v/routed', { endpoints: [endpoint('OpenRouter', '2', { routes: true }), endpoint('Alpha', '3')] }),
  file('v/equals', {
    endpoints: [endpoint('A', '1.1'), endpoint('B', '1'), endpoint('C', '1.11'), endpoint('D', '1.05', { zdr: true })],
  }),
  file('v/equals-in-order', {
    routing: { order: ['a', 'b'] },
    endpoints: [endpoint('A', '1'), endpoint('B', '1')],
  }),
  file('v/free', { endpoints: [endpoint('A', '0'), endpoint('B', '0'), endpoint('C', '0.01')] }),
]);

const calm: EndpointPerformance = { latencyMs: undefined, tokensPerSecond: undefined, isCoolingDown: false };

interface Case {
  readonly model?: string;
  readonly provider?: object;
  readonly fields?: readonly string[];
  readonly usesTools?: boolean;
  readonly searchesWeb?: boolean;
  readonly health?: Readonly<Record<string, Partial<EndpointPerformance>>>;
  readonly chance?: number;
  readonly choices?: number;
  readonly source?: string;
}

function route(given: Case) {
  const {
    model = 'v/m',
    provider,
    fields = [],
    usesTools = false,
    searchesWeb = false,
    choices = 1,
    source = 'api',
    health = {},
    chance = 0,
  } = given;
  const named = resolveModel(model, catalogue);
  return selectRoute({
    model: named.model as TokenPricedModel,
    preferences: parseRoutingPreferences(provider, named.sort),
    fields,
    usesTools,
    searchesWeb,
    choices,
    source,
    randomValue: chance,
    getPerformance: ({ slug }: Endpoint) => ({ ...calm, ...health[slug] }),
  });
}

const order = (given: Case) => route(given).endpoints.map(({ slug }) => slug);

describe('endpoints are asked in this order', () => {
  test.each<[string, Case, string[]]>([
    ['the cheapest alone, at the price that is listed, where nothing is said', {}, ['beta']],
    ['the cheapest that can serve it', { usesTools: true, model: 'v/handless' }, ['alpha']],
    ['the cheapest alone, whatever fields it knows', { fields: ['tools'], model: 'v/handless' }, ['beta']],
    ['the cheapest first, where dearer ones are allowed', { provider: { allow_fallbacks: true } }, CHEAPEST],
    ['the caller’s order, then the others', { provider: { order: ['Alpha'] } }, ['alpha', 'beta', 'gamma-cloud']],
    ['names as people write them', { provider: { order: ['Gamma Cloud', 'ALPHA'] } }, ['gamma-cloud', 'alpha', 'beta']],
    ['no others when none are allowed', { provider: { order: ['alpha'], allow_fallbacks: false } }, ['alpha']],
    [
      'all that are listed and no others, also when one of them failed a moment ago',
      {
        provider: { order: ['alpha', 'delta', 'beta'], allow_fallbacks: false },
        health: { alpha: { isCoolingDown: true } },
      },
      ['beta', 'alpha'],
    ],
    [
      'the listed one that failed a moment ago, when others are not allowed',
      { provider: { order: ['alpha'], allow_fallbacks: false }, health: { alpha: { isCoolingDown: true } } },
      ['alpha'],
    ],
    ['only those that give several choices', { model: 'v/several', choices: 2 }, ['a']],
    [
      'a router, for a name in the order that we do not know',
      { model: 'v/routed', provider: { order: ['vertex'], allow_fallbacks: false } },
      ['openrouter'],
    ],
    ['only those that are named', { provider: { only: ['alpha', 'beta'] } }, ['beta', 'alpha']],
    ['none that are to be ignored', { provider: { ignore: ['beta'] } }, ['gamma-cloud', 'alpha']],
    ['by price', { provider: { sort: 'price' } }, ['beta', 'gamma-cloud', 'alpha']],
    ['by throughput', { provider: { sort: 'throughput' } }, ['beta', 'alpha', 'gamma-cloud']],
    ['by latency', { provider: { sort: 'latency' } }, ['gamma-cloud', 'alpha', 'beta']],
    [
      'by latency, said with an object',
      { provider: { sort: { by: 'latency', partition: 'none' } } },
      ['gamma-cloud', 'alpha', 'beta'],
    ],
    ['by throughput with :nitro', { model: 'm:nitro' }, ['beta', 'alpha', 'gamma-cloud']],
    ['by price with :floor', { model: 'v/m:floor', provider: { sort: 'latency' } }, ['beta', 'gamma-cloud', 'alpha']],
    ['by tool calls with :exacto', { model: 'v/m:exacto' }, ['beta', 'gamma-cloud', 'alpha']],
    ['only those that retain nothing', { provider: { zdr: true } }, ['alpha']],
    [
      'only those that retain nothing for the web application, in the zdr tier',
      { model: 'v/private', source: 'ui' },
      ['alpha'],
    ],
    ['any of them for its others', { source: 'ui' }, ['beta']],
    ['any of them over the API, also in the zdr tier', { model: 'v/private' }, ['beta']],
    ['only those that collect nothing', { provider: { data_collection: 'deny' } }, ['gamma-cloud', 'alpha']],
    ['only those of a quantization', { provider: { quantizations: ['fp8', 'fp16'] } }, ['alpha']],
    ['none above a price of input', { provider: { max_price: { prompt: 2 } } }, ['beta', 'gamma-cloud']],
    ['none above a price of output, as text', { provider: { max_price: { completion: '1' } } }, ['beta']],
    ['the quick ones first', { provider: { preferred_max_latency: 0.5 } }, ['gamma-cloud', 'alpha', 'beta']],
    [
      'the quick ones first, by percentiles',
      { provider: { preferred_max_latency: { p50: 1, p90: 0.2 } } },
      ['gamma-cloud', 'beta', 'alpha'],
    ],
    ['the broad ones first', { provider: { preferred_min_throughput: 40 } }, ['beta', 'alpha', 'gamma-cloud']],
    [
      'those that know most of the fields first',
      { fields: ['tools'], provider: { allow_fallbacks: true } },
      ['beta', 'alpha', 'gamma-cloud'],
    ],
    [
      'only those that know all fields',
      { fields: ['tools'], provider: { require_parameters: true } },
      ['beta', 'alpha'],
    ],
    [
      'only those with tools when tools are used',
      { usesTools: true, provider: { sort: 'latency' } },
      ['alpha', 'beta'],
    ],
    [
      'what was measured counts more than what was expected',
      { provider: { sort: 'latency' }, health: { beta: { latencyMs: 5 } } },
      ['beta', 'gamma-cloud', 'alpha'],
    ],
    [
      'an endpoint that failed a moment ago comes last',
      { provider: { allow_fallbacks: true }, health: { beta: { isCoolingDown: true } } },
      ['gamma-cloud', 'alpha', 'beta'],
    ],
    [
      'an endpoint that failed is asked when there is no other',
      { provider: { only: ['beta'] }, health: { beta: { isCoolingDown: true } } },
      ['beta'],
    ],
    [
      'enforced rules override the caller’s',
      { model: 'v/pinned', provider: { only: ['beta'], order: ['beta'] } },
      ['alpha'],
    ],
    [
      'an enforced order overrides the caller’s lists',
      { model: 'v/ordered', provider: { only: ['alpha'], order: ['beta'] } },
      ['gamma-cloud', 'beta', 'alpha'],
    ],
    [
      'a router may know providers that we do not',
      { model: 'v/routed', provider: { only: ['vertex'] } },
      ['openrouter'],
    ],
    ['a router is left out for one that we know', { model: 'v/routed', provider: { only: ['alpha'] } }, ['alpha']],
    ['by tool calls, said with a word', { provider: { sort: 'exacto' } }, ['beta', 'gamma-cloud', 'alpha']],
    [
      'by price, among all models',
      { provider: { sort: { by: 'price', partition: 'model' } } },
      ['beta', 'gamma-cloud', 'alpha'],
    ],
    ['in the order of a variant', { model: 'v/long:extended:nitro' }, ['beta', 'alpha', 'gamma-cloud']],
    [
      'all, where collecting data is allowed',
      { provider: { data_collection: 'allow' } },
      ['beta', 'gamma-cloud', 'alpha'],
    ],
    ['none above a price of a request', { provider: { max_price: { request: 0 } } }, ['beta', 'gamma-cloud', 'alpha']],
    ['a suffix changes nothing for a pinned model', { model: 'v/pinned:nitro' }, ['alpha']],
    [
      'web search drops zdr where it must',
      { model: 'v/searching', provider: { zdr: true }, searchesWeb: true },
      ['beta', 'gamma-cloud', 'alpha'],
    ],
    ['and only then', { model: 'v/searching', provider: { zdr: true } }, ['alpha']],
  ])('%s', (_, given, expected) => {
    expect(order(given)).toEqual(expected);
  });
});

describe('endpoints of about the same price share the load', () => {
  // Weights are 1, 1/1.05² and 1/1.1², by price; c is more than a tenth dearer than the cheapest.
  const total = 1 + 1.05 ** -2 + 1.1 ** -2;
  const shares = { b: 1 / total, d: 1.05 ** -2 / total, a: 1.1 ** -2 / total };

  test.each<[number, string[]]>([
    [0, ['b', 'd', 'a']],
    [shares.b - 1e-9, ['b', 'd', 'a']],
    [shares.b + 1e-9, ['d', 'b', 'a']],
    [shares.b + shares.d - 1e-9, ['d', 'b', 'a']],
    [shares.b + shares.d + 1e-9, ['a', 'b', 'd']],
    [1 - Number.EPSILON, ['a', 'b', 'd']],
  ])('with a chance of %d in the order %j', (chance, expected) => {
    expect(order({ model: 'v/equals', chance })).toEqual(expected);
  });

  test('and the route reports how it was drawn', () => {
    const { loadShares: draw } = route({ model: 'v/equals', chance: 0.5 });
    expect(draw?.chance).toBe(0.5);
    expect(Object.keys(draw?.shares ?? {})).toEqual(['b', 'd', 'a']);
    for (const [slug, share] of Object.entries(shares)) expect(draw?.shares[slug]).toBeCloseTo(share, 12);
  });

  test.each<[string, Case, string[]]>([
    ['free ones in equal parts', { model: 'v/free', chance: 0.6 }, ['b', 'a']],
    ['without those that are dearer', { model: 'v/equals' }, ['d', 'b', 'a']],
    ['without the others when none are allowed', { model: 'v/equals', provider: { allow_fallbacks: false } }, ['d']],
    ['among those that are left', { model: 'v/equals', provider: { ignore: ['b'] } }, ['a', 'd', 'c']],
    [
      'but not with one that failed a moment ago',
      { model: 'v/equals', provider: { only: ['b', 'd'] }, health: { b: { isCoolingDown: true } } },
      ['d', 'b'],
    ],
    [
      'but not with one that is too slow for the caller',
      {
        model: 'v/equals',
        provider: { only: ['b', 'd'], preferred_max_latency: 1 },
        health: { b: { latencyMs: 5_000 }, d: { latencyMs: 10 } },
      },
      ['d', 'b'],
    ],
  ])('%s', (_, given, expected) => {
    expect(order({ chance: 0.5, ...given })).toEqual(expected);
  });

  test.each<[string, Case, string[]]>([
    ['the caller’s order', { model: 'v/equals', provider: { order: ['b'] } }, ['b', 'd', 'a', 'c']],
    ['a sort', { model: 'v/equals', provider: { sort: 'price' } }, ['b', 'd', 'a', 'c']],
    ['a suffix', { model: 'v/equals:floor' }, ['b', 'd', 'a', 'c']],
    ['an enforced order', { model: 'v/equals-in-order' }, ['a', 'b']],
    ['prices that differ', { provider: { allow_fallbacks: true } }, CHEAPEST],
    ['a single endpoint', { model: 'v/pinned' }, ['alpha']],
  ])('%s leaves nothing to chance', (_, given, expected) => {
    for (const chance of [0, 0.5, 0.999999]) {
      const { endpoints, loadShares: draw } = route({ ...given, chance });
      expect(endpoints.map(({ slug }) => slug)).toEqual(expected);
      expect(draw).toBeUndefined();
    }
  });
});

describe('no endpoint is left', () => {
  test.each<[string, Case]>([
    ['for zdr', { provider: { zdr: true, ignore: ['alpha'] } }],
    ['for zdr beside an enforced rule', { model: 'v/pinned', provider: { quantizations: ['int4'] } }],
    ['for zdr, which stays the caller’s under enforced rules', { model: 'v/keeping', provider: { zdr: true } }],
    ['for a provider that has it not', { provider: { only: ['delta'] } }],
    ['for an order of none that has it', { provider: { order: ['delta'], allow_fallbacks: false } }],
    ['for an unknown field', { fields: ['top_k'], provider: { require_parameters: true } }],
  ])('%s: 404, with the reason for each', (_, given) => {
    expect(() => order(given)).toThrow(InvalidRequestError);
    expect(() => order(given)).toThrow(/No endpoints found for v\/\w+: alpha /);
  });
});

test.each([{ only: ['Delta'] }, { order: ['delta'], allow_fallbacks: false }])(
  'a name that no endpoint has is among the reasons (%j)',
  (provider) => {
    expect(() => order({ provider })).toThrow(/; delta does not have it$/);
  },
);

test('several choices that nobody gives are refused by their name', () => {
  const refused = new InvalidRequestError(400, 'n must be 1 for v/m: alpha gives one choice', 'n');
  expect(() => order({ choices: 2 })).toThrow(expect.objectContaining({ status: 400, param: 'n' }));
  expect(() => order({ choices: 2, provider: { only: ['alpha'] } })).toThrow(refused.message);
});

describe('a name with a suffix', () => {
  test.each([
    ['v/m:thinking', { id: 'v/m-thinking', online: false, passedOn: '' }],
    ['m:online', { id: 'v/m', online: true, passedOn: '' }],
    ['v/m:nitro:online', { id: 'v/m', online: true, passedOn: '' }],
    ['v/long:extended', { id: 'v/m', online: false, passedOn: '' }],
    ['v/m:thinking:online:beta', { id: 'v/m-thinking', online: true, passedOn: ':beta' }],
    ['v/m:beta', { id: 'v/m', online: false, passedOn: ':beta' }],
    ['v/odd:free', { id: 'v/odd:free', online: false, passedOn: '' }],
    ['v/odd:free:online', { id: 'v/odd:free', online: true, passedOn: '' }],
  ])('%s', (name, expected) => {
    const { model, online, forwardedSuffix: passedOn } = resolveModel(name, catalogue);
    expect({ id: model.id, online, passedOn }).toEqual(expected);
  });

  test.each(['v/m:extended', 'v/pinned:thinking'])('%s has no such variant', (name) => {
    expect(() => resolveModel(name, catalogue)).toThrow(`No endpoints found for ${name}`);
  });

  test.each(['v/none', 'v/none:nitro', ':nitro', ''])('"%s" is no model', (name) => {
    expect(() => resolveModel(name, catalogue)).toThrow(`The model "${name}" does not exist`);
  });
});

describe('a preference that cannot be understood is refused and named', () => {
  test.each([
    ['provider', 'fast'],
    ['provider', []],
    ['provider.order', { order: 'alpha' }],
    ['provider.only', { only: [1] }],
    ['provider.zdr', { zdr: 'yes' }],
    ['provider.data_collection', { data_collection: 'maybe' }],
    ['provider.sort', { sort: 'best' }],
    ['provider.sort', { sort: { by: 'best' } }],
    ['provider.sort.partition', { sort: { by: 'price', partition: 'all' } }],
    ['provider.quantizations', { quantizations: ['int5'] }],
    ['provider.max_price', { max_price: 5 }],
    ['provider.max_price.prompt', { max_price: { prompt: 'cheap' } }],
    ['provider.preferred_max_latency', { preferred_max_latency: { p50: -1 } }],
    ['provider.allow_fallbacks', { allow_fallbacks: 1 }],
  ])('%s in %j', (field, provider) => {
    expect(() => parseRoutingPreferences(provider)).toThrow(new RegExp(`^${field.replaceAll('.', '\\.')} must be`));
  });

  test.each([undefined, null, {}, { order: null, sort: null, max_price: null }])('%j is no preference', (provider) => {
    expect(parseRoutingPreferences(provider)).toEqual(NO_PREFERENCES);
  });
});
