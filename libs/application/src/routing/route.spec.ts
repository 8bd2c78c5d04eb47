import { describe, expect, test } from '@jest/globals';
import { Catalogue, type Endpoint, type ModelFile, type TokenPricedModel } from '#catalogue';
import { createTestModel } from '../../../testing/src/world/test-catalogue.ts';
import { InvalidRequestError } from '../errors.ts';
import { NO_PREFERENCES, parseRoutingPreferences, resolveModel } from './preferences.ts';
import type { RequestRequirements } from './request-requirements.ts';
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

/** All endpoints, the cheapest first. */
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
  file('v/ruled', {
    endpoints: [
      endpoint('A', '3', { parameters: ['tools', 'n', 'temperature'], maxChoices: 4 }),
      endpoint('B', '1', {
        parameters: ['tools', 'temperature'],
        modelRules: { efforts: ['none', 'low'], forcedTools: false, prefill: false, sampling: 'without_reasoning' },
      }),
      endpoint('C', '2', { parameters: ['tools'], modelRules: { prefill: false, tokenInputs: false } }),
    ],
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
  readonly requirements?: RequestRequirements;
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
    requirements = {},
  } = given;
  const named = resolveModel(model, catalogue);
  return selectRoute({
    model: named.model as TokenPricedModel,
    preferences: parseRoutingPreferences(provider, named.sort),
    fields,
    usesTools,
    searchesWeb,
    choices,
    ...requirements,
    source,
    chance,
    getPerformance: ({ slug }: Endpoint) => ({ ...calm, ...health[slug] }),
  });
}

const order = (given: Case) => route(given).endpoints.map(({ slug }) => slug);

describe('routing', () => {
  test.each<[string, Case, string[]]>([
    ['calls only the cheapest endpoint if the caller has no preferences', {}, ['beta']],
    ['calls the cheapest endpoint that can serve the request', { usesTools: true, model: 'v/handless' }, ['alpha']],
    [
      'calls only the cheapest endpoint, even if it does not support a field',
      { fields: ['tools'], model: 'v/handless' },
      ['beta'],
    ],
    ['calls the cheapest first if fallbacks are allowed', { provider: { allow_fallbacks: true } }, CHEAPEST],
    [
      'follows the caller’s order, then calls the others',
      { provider: { order: ['Alpha'] } },
      ['alpha', 'beta', 'gamma-cloud'],
    ],
    [
      'accepts names as users write them',
      { provider: { order: ['Gamma Cloud', 'ALPHA'] } },
      ['gamma-cloud', 'alpha', 'beta'],
    ],
    [
      'calls no others if fallbacks are not allowed',
      { provider: { order: ['alpha'], allow_fallbacks: false } },
      ['alpha'],
    ],
    [
      'calls all listed endpoints and no others, even if one of them failed recently',
      {
        provider: { order: ['alpha', 'delta', 'beta'], allow_fallbacks: false },
        health: { alpha: { isCoolingDown: true } },
      },
      ['beta', 'alpha'],
    ],
    [
      'calls the listed endpoint that failed recently if others are not allowed',
      { provider: { order: ['alpha'], allow_fallbacks: false }, health: { alpha: { isCoolingDown: true } } },
      ['alpha'],
    ],
    ['calls only endpoints that return several choices', { model: 'v/several', choices: 2 }, ['a']],
    [
      'calls a router for an unknown name in the order',
      { model: 'v/routed', provider: { order: ['vertex'], allow_fallbacks: false } },
      ['openrouter'],
    ],
    ['calls only the endpoints that are named', { provider: { only: ['alpha', 'beta'] } }, ['beta', 'alpha']],
    ['calls no ignored endpoint', { provider: { ignore: ['beta'] } }, ['gamma-cloud', 'alpha']],
    ['sorts by price', { provider: { sort: 'price' } }, ['beta', 'gamma-cloud', 'alpha']],
    ['sorts by throughput', { provider: { sort: 'throughput' } }, ['beta', 'alpha', 'gamma-cloud']],
    ['sorts by latency', { provider: { sort: 'latency' } }, ['gamma-cloud', 'alpha', 'beta']],
    [
      'sorts by latency if an object specifies it',
      { provider: { sort: { by: 'latency', partition: 'none' } } },
      ['gamma-cloud', 'alpha', 'beta'],
    ],
    ['sorts by throughput with :nitro', { model: 'm:nitro' }, ['beta', 'alpha', 'gamma-cloud']],
    [
      'sorts by price with :floor',
      { model: 'v/m:floor', provider: { sort: 'latency' } },
      ['beta', 'gamma-cloud', 'alpha'],
    ],
    ['sorts by tool reliability with :exacto', { model: 'v/m:exacto' }, ['beta', 'gamma-cloud', 'alpha']],
    ['calls only endpoints that retain nothing', { provider: { zdr: true } }, ['alpha']],
    ['requires zdr for the web application in the zdr tier', { model: 'v/private', source: 'ui' }, ['alpha']],
    ['requires no zdr for the web application outside the zdr tier', { source: 'ui' }, ['beta']],
    ['requires no zdr for the API, even in the zdr tier', { model: 'v/private' }, ['beta']],
    ['calls only endpoints that collect nothing', { provider: { data_collection: 'deny' } }, ['gamma-cloud', 'alpha']],
    ['calls only endpoints with a listed quantization', { provider: { quantizations: ['fp8', 'fp16'] } }, ['alpha']],
    [
      'calls no endpoint above a maximum price of input',
      { provider: { max_price: { prompt: 2 } } },
      ['beta', 'gamma-cloud'],
    ],
    [
      'calls no endpoint above a maximum price of output, as text',
      { provider: { max_price: { completion: '1' } } },
      ['beta'],
    ],
    ['calls fast endpoints first', { provider: { preferred_max_latency: 0.5 } }, ['gamma-cloud', 'alpha', 'beta']],
    [
      'calls fast endpoints first, by percentiles',
      { provider: { preferred_max_latency: { p50: 1, p90: 0.2 } } },
      ['gamma-cloud', 'beta', 'alpha'],
    ],
    [
      'calls endpoints with a high throughput first',
      { provider: { preferred_min_throughput: 40 } },
      ['beta', 'alpha', 'gamma-cloud'],
    ],
    [
      'calls endpoints that support more of the fields first',
      { fields: ['tools'], provider: { allow_fallbacks: true } },
      ['beta', 'alpha', 'gamma-cloud'],
    ],
    [
      'calls only endpoints that support all fields if that is required',
      { fields: ['tools'], provider: { require_parameters: true } },
      ['beta', 'alpha'],
    ],
    [
      'calls only endpoints that support tools if tools are used',
      { usesTools: true, provider: { sort: 'latency' } },
      ['alpha', 'beta'],
    ],
    [
      'prefers measured to expected performance',
      { provider: { sort: 'latency' }, health: { beta: { latencyMs: 5 } } },
      ['beta', 'gamma-cloud', 'alpha'],
    ],
    [
      'calls a recently failed endpoint last',
      { provider: { allow_fallbacks: true }, health: { beta: { isCoolingDown: true } } },
      ['gamma-cloud', 'alpha', 'beta'],
    ],
    [
      'calls an endpoint that failed recently if there is no other',
      { provider: { only: ['beta'] }, health: { beta: { isCoolingDown: true } } },
      ['beta'],
    ],
    [
      'lets enforced rules override the caller’s',
      { model: 'v/pinned', provider: { only: ['beta'], order: ['beta'] } },
      ['alpha'],
    ],
    [
      'lets an enforced order override the caller’s lists',
      { model: 'v/ordered', provider: { only: ['alpha'], order: ['beta'] } },
      ['gamma-cloud', 'beta', 'alpha'],
    ],
    [
      'calls a router for a provider that is unknown here',
      { model: 'v/routed', provider: { only: ['vertex'] } },
      ['openrouter'],
    ],
    [
      'does not call a router for a provider that is known here',
      { model: 'v/routed', provider: { only: ['alpha'] } },
      ['alpha'],
    ],
    ['sorts by tool reliability with sort exacto', { provider: { sort: 'exacto' } }, ['beta', 'gamma-cloud', 'alpha']],
    [
      'sorts by price with the partition model, as without a partition',
      { provider: { sort: { by: 'price', partition: 'model' } } },
      ['beta', 'gamma-cloud', 'alpha'],
    ],
    ['sorts the endpoints of a variant', { model: 'v/long:extended:nitro' }, ['beta', 'alpha', 'gamma-cloud']],
    [
      'calls all endpoints if collecting data is allowed',
      { provider: { data_collection: 'allow' } },
      ['beta', 'gamma-cloud', 'alpha'],
    ],
    [
      'calls endpoints without a price per request if that price is limited to 0',
      { provider: { max_price: { request: 0 } } },
      ['beta', 'gamma-cloud', 'alpha'],
    ],
    ['calls the pinned endpoint of a model with a suffix', { model: 'v/pinned:nitro' }, ['alpha']],
    [
      'drops zdr for a web search if the model’s rules say so',
      { model: 'v/searching', provider: { zdr: true }, searchesWeb: true },
      ['beta', 'gamma-cloud', 'alpha'],
    ],
    ['applies zdr to requests without a web search', { model: 'v/searching', provider: { zdr: true } }, ['alpha']],
  ])('%s', (_, given, expected) => {
    expect(order(given)).toEqual(expected);
  });
});

describe('endpoints of similar prices', () => {
  // Weights are 1, 1/1.05² and 1/1.1², by price; c is more than a tenth more expensive than the cheapest.
  const total = 1 + 1.05 ** -2 + 1.1 ** -2;
  const shares = { b: 1 / total, d: 1.05 ** -2 / total, a: 1.1 ** -2 / total };

  test.each<[number, string[]]>([
    [0, ['b', 'd', 'a']],
    [shares.b - 1e-9, ['b', 'd', 'a']],
    [shares.b + 1e-9, ['d', 'b', 'a']],
    [shares.b + shares.d - 1e-9, ['d', 'b', 'a']],
    [shares.b + shares.d + 1e-9, ['a', 'b', 'd']],
    [1 - Number.EPSILON, ['a', 'b', 'd']],
  ])('share the load: a random value of %d gives the order %j', (chance, expected) => {
    expect(order({ model: 'v/equals', chance })).toEqual(expected);
  });

  test('share the load, and the route reports how the first one was chosen', () => {
    const { loadShares: draw } = route({ model: 'v/equals', chance: 0.5 });
    expect(draw?.chance).toBe(0.5);
    expect(Object.keys(draw?.shares ?? {})).toEqual(['b', 'd', 'a']);
    for (const [slug, share] of Object.entries(shares)) expect(draw?.shares[slug]).toBeCloseTo(share, 12);
  });

  test.each<[string, Case, string[]]>([
    ['share the load equally if they are free', { model: 'v/free', chance: 0.6 }, ['b', 'a']],
    ['share the load without more expensive ones', { model: 'v/equals' }, ['d', 'b', 'a']],
    ['share the load if fallbacks are not allowed', { model: 'v/equals', provider: { allow_fallbacks: false } }, ['d']],
    ['share the load without an ignored one', { model: 'v/equals', provider: { ignore: ['b'] } }, ['a', 'd', 'c']],
    [
      'share no load with an endpoint that failed recently',
      { model: 'v/equals', provider: { only: ['b', 'd'] }, health: { b: { isCoolingDown: true } } },
      ['d', 'b'],
    ],
    [
      'share no load with an endpoint that is too slow for the caller',
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
  ])('%s makes the route independent of the random value', (_, given, expected) => {
    for (const chance of [0, 0.5, 0.999999]) {
      const { endpoints, loadShares: draw } = route({ ...given, chance });
      expect(endpoints.map(({ slug }) => slug)).toEqual(expected);
      expect(draw).toBeUndefined();
    }
  });
});

describe('a request without a suitable endpoint', () => {
  test.each<[string, Case]>([
    ['zdr with an ignored endpoint', { provider: { zdr: true, ignore: ['alpha'] } }],
    ['a quantization under an enforced rule', { model: 'v/pinned', provider: { quantizations: ['int4'] } }],
    ['zdr of the caller under enforced rules', { model: 'v/keeping', provider: { zdr: true } }],
    ['a provider that does not serve the model', { provider: { only: ['delta'] } }],
    ['an order without a provider of the model', { provider: { order: ['delta'], allow_fallbacks: false } }],
    ['a required field that no endpoint supports', { fields: ['top_k'], provider: { require_parameters: true } }],
  ])('is rejected with the reason of its first endpoint: %s', (_, given) => {
    expect(() => order(given)).toThrow(InvalidRequestError);
    expect(() => order(given)).toThrow(/No endpoints found for v\/\w+: alpha /);
  });
});

test.each([{ only: ['Delta'] }, { order: ['delta'], allow_fallbacks: false }])(
  'lists among the reasons a provider name that no endpoint has (%j)',
  (provider) => {
    expect(() => order({ provider })).toThrow(/; delta does not serve this model$/);
  },
);

test('rejects a request for several choices, naming the field n, if every endpoint returns one choice', () => {
  const refused = new InvalidRequestError(400, 'n must be 1 for v/m: alpha returns one choice only', 'n');
  expect(() => order({ choices: 2 })).toThrow(expect.objectContaining({ status: 400, param: 'n' }));
  expect(() => order({ choices: 2, provider: { only: ['alpha'] } })).toThrow(refused.message);
});

describe('the rules of a model', () => {
  const strict = { require_parameters: true, sort: 'price' };

  test.each<[string, Case, string[]]>([
    ['do not exclude an endpoint to which the request is adapted', { requirements: { effort: 'high' } }, ['b']],
    [
      'exclude an endpoint that does not know the effort',
      { provider: strict, requirements: { effort: 'high' } },
      ['c', 'a'],
    ],
    ['keep an endpoint that knows the effort', { provider: strict, requirements: { effort: 'low' } }, ['b', 'c', 'a']],
    [
      'exclude an endpoint that rejects a forced call',
      { provider: strict, requirements: { forcesTool: true } },
      ['c', 'a'],
    ],
    ['exclude an endpoint without sampling while it reasons', { provider: strict, fields: ['temperature'] }, ['a']],
    [
      'keep an endpoint with sampling without reasoning',
      { provider: strict, fields: ['temperature'], requirements: { effort: 'none' } },
      ['b', 'a'],
    ],
    [
      'always exclude an endpoint that does not continue a message',
      { requirements: { endsWithAssistant: true } },
      ['a'],
    ],
    ['always exclude an endpoint that accepts no token ids', { requirements: { sendsTokens: true } }, ['b']],
    ['exclude an endpoint that returns fewer choices', { choices: 4 }, ['a']],
  ])('%s', (_, given, slugs) => {
    expect(order({ model: 'v/ruled', ...given })).toEqual(slugs);
  });

  test.each<[string, Case, string, string]>([
    [
      'a message to continue',
      { provider: { only: ['c'] }, requirements: { endsWithAssistant: true } },
      'messages',
      'messages must not end with a message of the assistant for v/ruled: a is not one of the allowed providers; b is not one of the allowed providers; c does not continue a message of the assistant',
    ],
    [
      'token ids',
      { provider: { only: ['c'] }, requirements: { sendsTokens: true } },
      'input',
      'input must be text for v/ruled',
    ],
    ['too many choices', { choices: 5 }, 'n', 'n must be at most 4 for v/ruled: a returns at most 4 choices'],
  ])('reject %s, naming the field, if no endpoint remains', (_, given, param, message) => {
    expect(() => order({ model: 'v/ruled', ...given })).toThrow(message);
    expect(() => order({ model: 'v/ruled', ...given })).toThrow(expect.objectContaining({ status: 400, param }));
  });
});

describe('a model name with a suffix', () => {
  test.each([
    ['v/m:thinking', { id: 'v/m-thinking', online: false, passedOn: '' }],
    ['m:online', { id: 'v/m', online: true, passedOn: '' }],
    ['v/m:nitro:online', { id: 'v/m', online: true, passedOn: '' }],
    ['v/long:extended', { id: 'v/m', online: false, passedOn: '' }],
    ['v/m:thinking:online:beta', { id: 'v/m-thinking', online: true, passedOn: ':beta' }],
    ['v/m:beta', { id: 'v/m', online: false, passedOn: ':beta' }],
    ['v/odd:free', { id: 'v/odd:free', online: false, passedOn: '' }],
    ['v/odd:free:online', { id: 'v/odd:free', online: true, passedOn: '' }],
  ])('resolves: %s', (name, expected) => {
    const { model, online, forwardedSuffix: passedOn } = resolveModel(name, catalogue);
    expect({ id: model.id, online, passedOn }).toEqual(expected);
  });

  test.each(['v/m:extended', 'v/pinned:thinking'])('is rejected if it has no such variant: %s', (name) => {
    expect(() => resolveModel(name, catalogue)).toThrow(`No endpoints found for ${name}`);
  });

  test.each(['v/none', 'v/none:nitro', ':nitro', ''])('is rejected if there is no such model: "%s"', (name) => {
    expect(() => resolveModel(name, catalogue)).toThrow(`The model "${name}" does not exist`);
  });
});

describe('a routing preference', () => {
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
  ])('is rejected with the name of its field if it is invalid: %s in %j', (field, provider) => {
    expect(() => parseRoutingPreferences(provider)).toThrow(new RegExp(`^${field.replaceAll('.', '\\.')} must be`));
  });

  test.each([undefined, null, {}, { order: null, sort: null, max_price: null }])('is not found in %j', (provider) => {
    expect(parseRoutingPreferences(provider)).toEqual(NO_PREFERENCES);
  });
});
