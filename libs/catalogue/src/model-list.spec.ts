import { describe, expect, test } from '@jest/globals';
import { createTestEndpoint, createTestModel } from '#testing';
import { Catalogue } from './catalogue.ts';
import { parseModels } from './data-files.ts';
import { LISTING_PROVIDERS } from './listing-providers.ts';
import { compareModelList, parseModelList } from './model-list.ts';

const DAY = '2026-11-29';

/** Returns a catalogue with a model at this provider, whose tokens cost 0.15, 0.075 (cached) and 0.6 USD per million. */
function open(upstream: string, overrides: object = {}) {
  const endpoints = [createTestEndpoint('Provider', upstream, { model: 'known', ...overrides })];
  const models = parseModels([createTestModel('test/known', endpoints)]);
  return Catalogue.fromFiles(models, { lists: { 'openai-sampling': [] } });
}

const compare = (upstream: string, response: unknown, overrides: object = {}) =>
  compareModelList(open(upstream, overrides), upstream, parseModelList(upstream, response), DAY).map(
    ({ sentence }) => sentence,
  );

const KNOWN = '"known" of model "test/known"';

describe.each(LISTING_PROVIDERS)('the list of %s', (upstream) => {
  const toList = (...ids: readonly string[]) =>
    upstream === 'google'
      ? { models: ids.map((id) => ({ name: `models/${id}`, version: '001' })) }
      : { object: 'list', data: ids.map((id) => ({ id, object: 'model', created: 1, owned_by: upstream })) };

  test('shows which models are new and gone', () => {
    expect(compare(upstream, toList('known'))).toEqual([]);
    expect(compare(upstream, toList('known', 'other'))).toEqual(['new: "other"']);
    expect(compare(upstream, toList('other'))).toEqual(['new: "other"', `gone: ${KNOWN}`]);
  });

  test('shows no endpoint that has retired as gone, or as new', () => {
    expect(compare(upstream, toList('other'), { retires: DAY })).toEqual(['new: "other"']);
    expect(compare(upstream, toList('known'), { retires: DAY })).toEqual([]);
  });

  test.each([[null], [{}], [{ data: [], models: [] }], [{ data: {}, models: {} }]])('rejects %j', (response) => {
    expect(() => parseModelList(upstream, response)).toThrow(`it must be the list of models of ${upstream}`);
  });

  test.each(['', 'a\u001b[2J', 'x'.repeat(201)])('rejects the id %j', (id) => {
    expect(() => parseModelList(upstream, toList(id))).toThrow('each row must have an id');
  });
});

test.each([
  ['openai', { shutdown_date: '2026-12-11' }],
  ['openrouter', { expiration_date: '2026-12-11' }],
  ['anthropic', { lifecycle: 'deprecated', retires_at: '2026-12-11T00:00:00Z' }],
])('shows a day of %s that the catalogue does not have', (upstream, fields) => {
  const list = { data: [{ id: 'known', ...fields }] };
  expect(compare(upstream, list)).toEqual([`retiring: ${KNOWN} on 2026-12-11; the catalogue has no day`]);
  expect(compare(upstream, list, { retires: '2026-12-10' })).toEqual([
    `retiring: ${KNOWN} on 2026-12-11; the catalogue has 2026-12-10`,
  ]);
  expect(compare(upstream, list, { retires: '2026-12-11' })).toEqual([]);
});

test('shows an end of a provider that has passed as such', () => {
  const list = { data: [{ id: 'known', shutdown_date: DAY }] };
  expect(compare('openai', list)).toEqual([`ended: ${KNOWN} on ${DAY}; the catalogue has no day`]);
});

test('finds a model that Anthropic lists by the name of its snapshot', () => {
  expect(compare('anthropic', { data: [{ id: 'known-20251001' }] })).toEqual([]);
  expect(compare('anthropic', { data: [{ id: 'known-2' }] })).toEqual(['new: "known-2"', `gone: ${KNOWN}`]);
});

test.each([
  ['anthropic', { lifecycle: 'retired' }],
  ['groq', { active: false }],
])('a model that %s lists as retired is gone', (upstream, fields) => {
  expect(compare(upstream, { data: [{ id: 'known', ...fields }] })).toEqual([`gone: ${KNOWN}`]);
});

test.each([
  [
    'openrouter',
    (input: number) => ({
      pricing: { prompt: `${input / 1e6}`, completion: '0.0000006', input_cache_read: '0.000000075' },
    }),
  ],
  [
    'deepinfra',
    (input: number) => ({
      metadata: { pricing: { input_tokens: input, output_tokens: 0.6, cache_read_tokens: 0.075 } },
    }),
  ],
])('shows prices of %s that differ from those of the catalogue', (upstream, toFields) => {
  const list = (input: number) => ({ data: [{ id: 'known', ...toFields(input) }] });
  expect(compare(upstream, list(0.15))).toEqual([]);
  expect(compare(upstream, list(-1))).toEqual([]);
  expect(compare(upstream, list(0.17))).toEqual([
    `repriced: ${KNOWN}: 1,000,000 input cost 0.17 USD; the catalogue has 0.15 USD`,
  ]);
});
