/** Limits of the specification, with the last accepted value, the first rejected one, or both. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type TestAccount, type TestResponse, TestWorld } from '#testing';

const HELLO = '[[sandbox tokens=2]]';
const GPT = 'openai/gpt-5-mini';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(105);
});
afterAll(() => world.close());

type Send = (fields: object) => Promise<TestResponse>;

const chat: Send = (fields) => {
  const messages = [{ role: 'user', content: HELLO }];
  return world.post('/v1/chat/completions', { model: GPT, messages, max_tokens: 2, ...fields }, account);
};
const respond: Send = (fields) =>
  world.post('/v1/responses', { model: GPT, input: HELLO, max_output_tokens: 2, ...fields }, account);
const search: Send = (fields) => chat({ plugins: [{ id: 'web', engine: 'exa', ...fields }] });
const embed: Send = (fields) =>
  world.post('/v1/embeddings', { model: 'openai/text-embedding-3-large', dimensions: 4, ...fields }, account);
const newKey: Send = (fields) =>
  world.send('POST', '/keys', {
    headers: { 'x-credit-id': account.creditId },
    body: { name: crypto.randomUUID().slice(0, 20), ...fields },
  });
const topUp: Send = (fields) => world.post('/topup/create/btc-lightning', fields, account);

const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`tag${i}`, true]));
const tokens = (count: number) => Array(count).fill(1);
const words = (count: number) => Array(count).fill('a');

const LIMITS: readonly (readonly [
  what: string,
  Send,
  field: string,
  taken: readonly unknown[],
  refused: readonly unknown[],
  more?: object,
])[] = [
  ['choices', chat, 'n', [128], [129, 0]],
  ['a temperature', chat, 'temperature', [2], [2.01], { model: 'gpt-4o-mini' }],
  ['a temperature of a response', respond, 'temperature', [], [-0.01]],
  ['top_p', respond, 'top_p', [1], [1.01]],
  ['tokens of a completion', chat, 'max_tokens', [], [0]],
  ['tokens of a response', respond, 'max_output_tokens', [], [0]],
  ['results of a search', search, 'max_results', [20], [21, 0]],
  ['tags', respond, 'metadata', [tags(16)], [tags(17), { tag: {} }]],
  ['tokens to embed', embed, 'input', [tokens(8_191)], [tokens(8_192)]],
  ['inputs to embed', embed, 'input', [words(2_048)], [words(2_049)]],
  ['the name of a key', newKey, 'name', ['1', 'n'.repeat(25)], ['', 'n'.repeat(26)]],
  ['the limit of a key', newKey, 'usage_limit_usd', [0.01], [0.0099]],
  ['USD over Lightning', topUp, 'amount', [0.1, 1_000], [0.0999, 1_000.01], { currency: 'USD' }],
  ['satoshis over Lightning', topUp, 'amount', [100, 1_000_000], [99, 1_000_001], { currency: 'SATS' }],
];

type Case = readonly [what: string, shown: string, send: () => Promise<TestResponse>, field: string];

function casesOf(side: 3 | 4): Case[] {
  return LIMITS.flatMap(([what, send, field, taken, refused, more]) =>
    (side === 3 ? taken : refused).map((value): Case => {
      return [what, brief(value), () => send({ ...more, [field]: value }), field];
    }),
  );
}

function brief(value: unknown): string {
  if (Array.isArray(value)) return `${value.length} of them`;
  const text = JSON.stringify(value);
  return text.length > 20
    ? `${typeof value === 'string' ? value.length : Object.keys(value as object).length} of them`
    : text;
}

describe('a limit', () => {
  test.each(casesOf(3))('of %s accepts %s', async (_, __, send) => {
    expect([200, 201]).toContain((await send()).status);
  });

  test.each(casesOf(4))('of %s rejects %s with 400 and appends no event', async (_, __, send, field) => {
    const before = await world.listEvents();
    const { status, body } = await send();
    expect([status, body.error.type, body.error.param]).toEqual([
      400,
      'invalid_request_error',
      expect.stringContaining(field),
    ]);
    expect(await world.listEvents()).toEqual(before);
  });

  test.each([
    ['100', 100],
    ['101', 100],
    ['1000000', 100],
    ['0', 1],
  ])('of the records of a page treats %s as %i', async (asked, size) => {
    const { status, body } = await world.get(`/queries/history?page_count=${asked}`, account);
    expect([status, body.pagination.page_count]).toEqual([200, size]);
  });
});
