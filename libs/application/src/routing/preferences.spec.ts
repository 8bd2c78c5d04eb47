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
  expect(max_price).toEqual({ prompt: 1, completion: 1 }); // whatever is said: what it is sold for
  return Object.keys(wishes).length > 0 ? wishes : undefined;
}

describe('an upstream that knows the field gets, as the provider object,', () => {
  test.each<[string, string, object | undefined, unknown]>([
    ['nothing when the caller says nothing', 'v/through', undefined, undefined],
    [
      'what the caller says',
      'v/through',
      { only: ['google-vertex'], zdr: true },
      { only: ['google-vertex'], zdr: true },
    ],
    ['also what is not known here', 'v/through', { order: ['a'], brand_new: 1 }, { order: ['a'], brand_new: 1 }],
    ['the sort of a suffix', 'v/through:nitro', { sort: 'price' }, { sort: 'throughput' }],
    ['the sort of a suffix alone', 'v/through:floor', undefined, { sort: 'price' }],
    ['enforced rules when the caller says nothing', 'v/ruled', undefined, { ignore: ['google-ai-studio'] }],
    [
      'enforced rules instead of the caller’s, and his zdr',
      'v/ruled',
      { only: ['google-ai-studio'], order: ['x'], zdr: true },
      { ignore: ['google-ai-studio'], zdr: true },
    ],
    ['zdr without a search', 'v/searching', { zdr: true }, { zdr: true }],
    ['names of its own providers', 'v/router', { only: ['Google Vertex'] }, { only: ['Google Vertex'] }],
    ['no list that names only itself', 'v/router', { only: ['OpenRouter'] }, undefined],
    [
      'no list of others when it may be asked itself',
      'v/router',
      { only: ['openrouter', 'a'], zdr: true },
      { zdr: true },
    ],
    ['an order without itself', 'v/router', { order: ['openrouter', 'a'] }, { order: ['a'] }],
  ])('%s', (_, name, provider, expected) => {
    expect(sent(name, provider)).toEqual(expected);
  });

  test('no zdr where a web search drops it', () => {
    expect(sent('v/searching', { zdr: true, sort: 'price' }, { ...API, searchesWeb: true })).toEqual({ sort: 'price' });
  });
});

test.each([
  ['v/private', undefined, { zdr: true }],
  ['v/private', { sort: 'price', zdr: false }, { sort: 'price', zdr: true }],
  ['v/through', { sort: 'price' }, { sort: 'price' }],
])('over the web application a router keeps nothing for models of the zdr tier: %s, %j', (name, given, expected) => {
  expect(sent(name, given, { ...API, source: 'ui' })).toEqual(expected);
});

test.each(['constructor', '__proto__', 'toString', 'hasOwnProperty'])(
  '%s is a suffix, and a provider, like any other',
  (name) => {
    expect(resolveModel(`v/direct:${name}`, catalogue)).toMatchObject({ sort: undefined, forwardedSuffix: `:${name}` });
    expect(() => resolveModel(name, catalogue)).toThrow('does not exist');
  },
);

test('an upstream that does not know the field gets none', () => {
  expect(sent('v/direct', { zdr: true })).toBeUndefined();
});

test('a request without rules and suffix is not touched', () => {
  const body = { model: 'v/through', messages: [], provider: { zdr: true } };
  expect(enforceRouting(body, resolveModel('v/through', catalogue) as ResolvedModel, API)).toBe(body);
});
