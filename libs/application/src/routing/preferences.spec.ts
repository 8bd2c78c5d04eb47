import { describe, expect, test } from '@jest/globals';
import { Catalogue, type ModelFile, type TokenPricedModel } from '#catalogue';
import { createTestModel } from '../../../testing/src/world/test-catalogue.ts';
import { toUpstreamBody } from '../inference/chat/chat-body.ts';
import { enforceRouting, type ResolvedModel, resolveModel } from './preferences.ts';

const endpoint = (provider: string, more: object = {}): ModelFile['endpoints'][number] => ({
  provider,
  upstream: 'openrouter',
  model: 'v/m',
  usdPerMillionTokens: { input: '1', output: '1' },
  margin: '1',
  parameters: ['max_tokens', 'provider'],
  ...more,
});

const file = (id: string, endpoints: ModelFile['endpoints'], more: object = {}) =>
  createTestModel(id, endpoints, { context: 1000, maxOutput: 100, ...more }) as ModelFile;

const catalogue = Catalogue.fromFiles([
  file('v/through', [endpoint('Google Vertex')]),
  file('v/router', [endpoint('OpenRouter', { routes: true })]),
  file('v/direct', [endpoint('Direct', { upstream: 'openai', parameters: ['max_tokens'] })]),
  file('v/ruled', [endpoint('Google Vertex')], { routing: { ignore: ['google-ai-studio'] } }),
  file('v/private', [endpoint('Google Vertex', { zdr: true })], { privacy: 'zdr' }),
  file('v/searching', [endpoint('Google Vertex')], { routing: { webSearchDropsZdr: true } }),
]);

const API = { source: 'api', searchesWeb: false };

function sent(name: string, provider: object | undefined, asked = API): unknown {
  const named = resolveModel(name, catalogue) as ResolvedModel;
  const body = enforceRouting({ model: name, messages: [], ...(provider && { provider }) }, named, asked);
  const [first] = (named.model as TokenPricedModel).endpoints;
  const told = first && toUpstreamBody(body, first, undefined).provider;
  if (told === undefined) return undefined;
  const { max_price, ...wishes } = JSON.parse(JSON.stringify(told));
  // always the costs of the endpoint
  expect(max_price).toEqual({ prompt: 1, completion: 1, request: 0, image: 0.005 });
  return Object.keys(wishes).length > 0 ? wishes : undefined;
}

describe('the provider object sent to a provider that supports it', () => {
  test.each<[string, string, object | undefined, unknown]>([
    ['has only maximum prices if the caller specifies nothing', 'v/through', undefined, undefined],
    [
      'has what the caller specifies',
      'v/through',
      { only: ['google-vertex'], zdr: true },
      { only: ['google-vertex'], zdr: true },
    ],
    ['has fields that are unknown here', 'v/through', { order: ['a'], brand_new: 1 }, { order: ['a'], brand_new: 1 }],
    ['has the sort of a suffix instead of the caller’s', 'v/through:nitro', { sort: 'price' }, { sort: 'throughput' }],
    ['has only the sort of a suffix', 'v/through:floor', undefined, { sort: 'price' }],
    ['has enforced rules if the caller specifies nothing', 'v/ruled', undefined, { ignore: ['google-ai-studio'] }],
    [
      'has enforced rules instead of the caller’s, and the caller’s zdr',
      'v/ruled',
      { only: ['google-ai-studio'], order: ['x'], zdr: true },
      { ignore: ['google-ai-studio'], zdr: true },
    ],
    ['has zdr without a web search', 'v/searching', { zdr: true }, { zdr: true }],
    ['has names of the router’s own providers', 'v/router', { only: ['Google Vertex'] }, { only: ['Google Vertex'] }],
    ['has no list that names only the router itself', 'v/router', { only: ['OpenRouter'] }, undefined],
    [
      'has no list of others if the router itself is allowed',
      'v/router',
      { only: ['openrouter', 'a'], zdr: true },
      { zdr: true },
    ],
    ['has an order without the router itself', 'v/router', { order: ['openrouter', 'a'] }, { order: ['a'] }],
  ])('%s', (_, name, provider, expected) => {
    expect(sent(name, provider)).toEqual(expected);
  });

  test('has no zdr if a web search drops it', () => {
    expect(sent('v/searching', { zdr: true, sort: 'price' }, { ...API, searchesWeb: true })).toEqual({ sort: 'price' });
  });
});

test.each([
  ['v/private', undefined, { zdr: true }],
  ['v/private', { sort: 'price', zdr: false }, { sort: 'price', zdr: true }],
  ['v/through', { sort: 'price' }, { sort: 'price' }],
])(
  'requires zero data retention for the web application if the model is in the zdr tier: %s, %j',
  (name, given, expected) => {
    expect(sent(name, given, { ...API, source: 'ui' })).toEqual(expected);
  },
);

test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty'])(
  'forwards %s as a suffix, and rejects it as a model name',
  (name) => {
    expect(resolveModel(`v/direct:${name}`, catalogue)).toMatchObject({ sort: undefined, forwardedSuffix: `:${name}` });
    expect(() => resolveModel(name, catalogue)).toThrow('does not exist');
  },
);

test('sends no provider object to a provider that does not support it', () => {
  expect(sent('v/direct', { zdr: true })).toBeUndefined();
});

test('returns the body unchanged if neither rules nor a suffix apply', () => {
  const body = { model: 'v/through', messages: [], provider: { zdr: true } };
  expect(enforceRouting(body, resolveModel('v/through', catalogue) as ResolvedModel, API)).toBe(body);
});
