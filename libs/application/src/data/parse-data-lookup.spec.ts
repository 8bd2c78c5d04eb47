import { describe, expect, test } from '@jest/globals';
import type { DataEndpoint } from '#catalogue';
import { readCatalogue } from '#catalogue';
import { InvalidRequestError } from '../errors.ts';
import { getByPath } from './field-paths.ts';
import { parseDataLookup, type RawDataLookup } from './parse-data-lookup.ts';

const SEARCH = {
  provider: 'web',
  action: 'search',
  method: 'POST',
  path: '/search',
  headers: { 'x-fields': 'a' },
  always: { stream: false },
  caps: { numResults: { max: 10, default: 5 }, 'contents.pages': { max: 3 }, urls: { max: 2 } },
  billed: { count: 'results', cap: 'numResults' },
  parameters: {
    type: 'object',
    properties: { query: { type: 'string', minLength: 1 }, urls: { type: 'array', items: { type: 'string' } } },
    required: ['query'],
  },
  example: { query: 'x' },
} as unknown as DataEndpoint;

const POSTS = {
  provider: 'x',
  action: 'tweets',
  method: 'GET',
  path: '/users/{id}/tweets:list',
  caps: { max_results: { max: 20, default: 10 } },
  always: { fields: 'id' },
  parameters: { type: 'object', properties: { open: { type: 'boolean' } } },
  example: { id: '1' },
} as unknown as DataEndpoint;

const COMMENTS = {
  ...SEARCH,
  upstreamMethod: 'GET',
  path: '/comments/{id}',
  always: {},
  parameters: undefined,
} as DataEndpoint;

const post = (body: unknown, entry = SEARCH) => parseDataLookup({ query: {}, body }, entry);
const get = (query: RawDataLookup['query'], entry = POSTS) => parseDataLookup({ query, body: undefined }, entry);
const sent = (body: object) => post({ query: 'x', ...body }).body;

function refusal(wanted: () => unknown): string {
  try {
    wanted();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect((error as InvalidRequestError).status).toBe(400);
    return (error as Error).message;
  }
  throw new Error('the lookup was accepted');
}

describe('a body', () => {
  test('is sent with its own fields unchanged, and the field and header that the entry adds', () => {
    const body = { query: 'x', nested: [{ a: null }], numResults: 3 };
    expect(post(body)).toEqual({
      method: 'POST',
      path: '/search',
      query: [],
      headers: { 'x-fields': 'a' },
      maxResults: 3,
      body: { ...body, stream: false },
    });
  });

  test('gets the default number of results if it states no number', () => {
    expect(sent({})).toMatchObject({ numResults: 5 });
    expect(post({ query: 'x' }).maxResults).toBe(5);
    expect(sent({ contents: { text: true } })).toMatchObject({ contents: { text: true } });
  });

  test('is rejected with __proto__, from which a provider might inherit a field with a cap', () => {
    const body = JSON.parse('{"query":"x","__proto__":{"numResults":50}}');
    expect(refusal(() => post(body))).toBe('__proto__ is not allowed');
    expect(refusal(() => get(JSON.parse('{"id":"1","__proto__":"1"}')))).toBe('__proto__ is not allowed');
  });

  test('cannot set the fields that the entry sets, even in another spelling', () => {
    expect(sent({ stream: true, Stream: true, ſtream: true, 'stream[]': true })).toEqual({
      query: 'x',
      numResults: 5,
      stream: false,
    });
  });

  test.each<[object, RegExp]>([
    [{ numResults: 11 }, /^numResults must be an integer from 1 to 10/],
    [{ numResults: 0 }, /^numResults must be/],
    [{ numResults: -1 }, /^numResults must be/],
    [{ numResults: 1.5 }, /^numResults must be/],
    [{ numResults: 1e300 }, /^numResults must be/],
    [{ numResults: '5' }, /^numResults must be/],
    [{ numResults: [5] }, /^numResults must be/],
    [{ numResults: null }, /^numResults must be/],
    [{ numResults: true }, /^numResults must be/],
    [{ NumResults: 50 }, /^NumResults is spelled numResults/],
    [{ num_results: 50 }, /^num_results is spelled numResults/],
    [{ 'numResults[]': 50 }, /is spelled numResults/],
    [{ '[numResults]': 50 }, /is spelled numResults/],
    [{ numReſults: 50 }, /is spelled numResults/],
    [{ ｎumResults: 50 }, /is spelled numResults/],
    [{ contents: { pages: 4 } }, /^contents.pages must be an integer from 1 to 3/],
    [{ contents: { Pages: 4 } }, /^Pages is spelled pages/],
    [{ Contents: { pages: 4 } }, /^Contents is spelled contents/],
    [{ contents: [{ pages: 4 }] }, /^contents.pages must be in an object "contents"/],
    [{ urls: ['a', 'b', 'c'] }, /^urls may have at most 2 elements/],
    [{ urls: [] }, /^urls must be a non-empty list/],
    [{ urls: [1] }, /^urls.0 must be string/],
    [{ query: '' }, /^query must NOT have fewer than 1 characters/],
    [{ query: 5 }, /^query must be string/],
    [
      Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`field${i}`, 0])),
      /^The body may have at most 100 fields/,
    ],
  ])('is rejected with %j', (more, message) => {
    expect(refusal(() => sent(more))).toMatch(message);
  });

  test.each<unknown>([[], 'x', 5, true, ['query']])('is rejected if it is not an object: %j', (body) => {
    expect(refusal(() => post(body))).toBe('The body must be a JSON object');
  });

  test('is treated as an empty object if it is missing or null', () => {
    expect(refusal(() => post(undefined))).toBe('query is required');
    expect(refusal(() => post(null))).toBe('query is required');
  });

  test('is rejected together with a query, which could add fields', () => {
    const asked = { query: { $fields: '*' }, body: { query: 'x' } };
    expect(refusal(() => parseDataLookup(asked, SEARCH))).toMatch(/accepts its fields in the body/);
  });

  test('is sent as a query if the provider requires GET', () => {
    const { method, path, query, body } = post({ id: 'a.b-1', limit: 5, tags: ['x', true], numResults: 2 }, COMMENTS);
    const expected = [
      ['limit', '5'],
      ['tags', 'x'],
      ['tags', 'true'],
      ['numResults', '2'],
    ];
    expect([method, path, query, body]).toEqual(['GET', '/comments/a.b-1', expected, undefined]);
    expect(post({ id: 7 }, COMMENTS).path).toBe('/comments/7');
    expect(refusal(() => post({ id: 'x', deep: { a: 1 } }, COMMENTS))).toMatch(/^deep must be a string/);
    expect(refusal(() => post({ id: 'x', none: null }, COMMENTS))).toMatch(/^none must be a string/);
    expect(refusal(() => post({ id: 'x', text: 'é'.repeat(1_366) }, COMMENTS))).toMatch(/at most 8192 characters/);
  });
});

describe('a query', () => {
  test('is sent without the field of the path, with the defaults and the fields that the entry sets', () => {
    const query = [
      ['a', 'ü'],
      ['b', '1'],
      ['b', '2'],
      ['open', 'true'],
      ['max_results', '10'],
      ['fields', 'id'],
    ];
    expect(get({ id: '12', a: 'ü', b: ['1', '2'], open: 'true', fields: '*', Fields: '*' })).toEqual({
      method: 'GET',
      path: '/users/12/tweets:list',
      headers: {},
      maxResults: 0,
      query,
    });
  });

  test.each<[object, RegExp]>([
    [{ max_results: '21' }, /^max_results must be an integer from 1 to 20/],
    [{ max_results: '' }, /^max_results must be/],
    [{ max_results: '1e1' }, /^max_results must be/],
    [{ max_results: '0x5' }, /^max_results must be/],
    [{ max_results: ' 5' }, /^max_results must be/],
    [{ max_results: '05' }, /^max_results must be/],
    [{ max_results: '5.0' }, /^max_results must be/],
    [{ max_results: ['5', '5'] }, /^max_results must be/],
    [{ maxResults: '5' }, /^maxResults is spelled max_results/],
    [{ 'max_results[]': '100' }, /is spelled max_results/],
    [{ open: 'perhaps' }, /^open must be boolean/],
    [{ a: 'x'.repeat(5_000) }, /^a may have at most/],
    [{ a: Array(101).fill('x') }, /at most 100 parameters/],
    [{ ['x'.repeat(300)]: '' }, /^Names of parameters/],
    ...['', '.', '..', 'a/b', 'a%2fb', 'a?b', 'a#b', 'a b', 'ü', 'x'.repeat(257)].map((id): [object, RegExp] => [
      { id },
      /^id must consist of 1 to 256 letters/,
    ]),
    [{ id: ['1', '2'] }, /^id must consist of 1 to 256 letters/],
    [{ id: undefined }, /^id is required/],
  ])('is rejected with %j', (more, message) => {
    expect(refusal(() => get({ id: '1', ...more }))).toMatch(message);
  });
});

test.each(readCatalogue().dataEndpoints.map((entry) => [entry.endpoint.model, entry] as const))(
  'accepts the example of %s, and rejects values above its caps',
  (_, entry) => {
    const asking = (fields: object) =>
      parseDataLookup(
        entry.method === 'GET' ? { query: { ...fields }, body: undefined } : { query: {}, body: fields },
        entry,
      );
    expect(asking(entry.example).path).toMatch(/^\/[^{}]*$/);
    for (const [field, { max }] of Object.entries(entry.caps ?? {})) {
      const example = getByPath(entry.example, field);
      const many = Array.isArray(example) ? Array(max + 1).fill(example[0]) : max + 1;
      const above = entry.method === 'GET' ? String(many) : many;
      const message = refusal(() => asking({ ...entry.example, [field]: above }));
      expect(message).toMatch(Array.isArray(example) ? `at most ${max} ` : `from 1 to ${max}`);
    }
  },
);

test('rejects a query for Google with parameters of the Google API that the entry does not list', () => {
  const ofGoogle = readCatalogue().dataEndpoints.filter(
    ({ upstream, method }) => upstream.startsWith('google') && method === 'GET',
  );
  expect(ofGoogle.length).toBeGreaterThan(4);
  for (const entry of ofGoogle)
    for (const name of ['fields', '$fields', 'key', 'alt', 'callback'])
      expect(refusal(() => get({ ...entry.example, [name]: '*' }, entry))).toBe(`${name} is not supported`);
});
