import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readCatalogue } from '#catalogue';
import { createTestEndpoint, createTestModel, type TestAccount, TestWorld } from '#testing';

const keys: unknown[] = [];
/** Simulates the only provider with a credential. */
const vendor = createServer((request, response) => {
  keys.push(request.headers.authorization);
  const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' } }];
  const usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 };
  request.resume().on('end', () => response.end(JSON.stringify({ id: 'x', created: 1, model: 'm', choices, usage })));
});

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  await new Promise<void>((listening) => vendor.listen(0, '127.0.0.1', listening));
  const { port } = vendor.address() as AddressInfo;
  world = await TestWorld.open({ GROQ_API_KEY: 'secret', GROQ_BASE_URL: `http://127.0.0.1:${port}/v1` });
  account = await world.createAccount(1);
});
afterAll(async () => {
  await world.close();
  await new Promise((closed) => vendor.close(closed));
});

describe('providers with neither a credential nor a base URL, if another provider has a credential', () => {
  const { models, priceList } = readCatalogue();
  const atGroq = models.filter(({ endpoints }) => endpoints.some(({ upstream }) => upstream === 'groq'));
  const shared = atGroq.find(({ endpoints }) => endpoints.length > 1)?.id;

  test('are not called for a model that the provider with a credential also serves', async () => {
    const answer = await world.sendChat(account, '', { model: shared });
    expect(answer.status).toBe(200);
    expect(answer.body.provider).toBe('Groq');
    expect(keys.at(-1)).toBe('Bearer secret');
  });

  test('are not called, and a model that no other provider serves is not found', async () => {
    const answer = await world.sendChat(account, '', { model: 'anthropic/claude-haiku-4.5' });
    expect(answer.status).toBe(404);
    expect(answer.body.error).toMatchObject({
      code: 'model_not_found',
      param: 'model',
      message: 'The model "anthropic/claude-haiku-4.5" is not available here: it requires ANTHROPIC_API_KEY',
    });
  });

  const messages = [{ role: 'user', content: 'Hi' }];
  test.each<[string, object, string]>([
    ['/v1/chat/completions', { model: 'openai/gpt-5-mini', messages }, 'OPENAI_API_KEY'],
    ['/v1/chat/completions', { model: 'openai/gpt-5-mini:online', messages }, 'OPENAI_API_KEY'],
    ['/v1/responses', { model: 'anthropic/claude-haiku-4.5', input: 'Hi' }, 'ANTHROPIC_API_KEY'],
    ['/v1/messages', { model: 'claude-haiku-4.5', max_tokens: 9, messages }, 'ANTHROPIC_API_KEY'],
    ['/v1/embeddings', { model: 'openai/text-embedding-3-small', input: 'Hi' }, 'OPENAI_API_KEY'],
    ['/v1/images/generations', { model: 'openai/gpt-image-2', prompt: 'A cat' }, 'OPENAI_API_KEY'],
    ['/v1/videos', { model: 'kling/kling-2.5-turbo', prompt: 'A cat' }, 'FAL_API_KEY'],
    ['/v1/audio/speech', { model: 'openai/tts-1', input: 'Hi', voice: 'alloy' }, 'OPENAI_API_KEY'],
    ['/v1/data/api/web/search', { query: 'cats' }, 'EXA_API_KEY'],
  ])('are not called by POST %s, which names the missing setting: %j', async (route, body, setting) => {
    const answer = await world.post(route, body, account);
    expect(answer.status).toBe(404);
    expect(answer.body.message ?? answer.body.error.message).toMatch(
      new RegExp(`^The (model|lookup) ".+" is not available here: it requires ${setting}$`),
    );
  });

  test.each([
    ['/v1/models/anthropic/claude-haiku-4.5', 'ANTHROPIC_API_KEY'],
    ['/v1/models/anthropic/claude-haiku-4.5/endpoints', 'ANTHROPIC_API_KEY'],
    ['/private/attestation?model=private/gpt-oss-120b', 'TINFOIL_API_KEY'],
  ])('are named by GET %s', async (route, setting) => {
    const answer = await world.get(route, account);
    expect(answer.status).toBe(404);
    expect(answer.body.error.message).toContain(`is not available here: it requires ${setting}`);
  });

  test('add no entries to the lists of lookups and audio models', async () => {
    expect((await world.get('/v1/data/endpoints')).body.data).toEqual([]);
    const audio = (await world.get('/v1/audio/models')).body.data.map(({ id }: { id: string }) => id);
    expect(atGroq.map(({ id }) => id)).toEqual(expect.arrayContaining(audio));
  });

  test('add no models to the list', async () => {
    const { data } = (await world.get('/v1/models?type=all')).body;
    expect(data.map(({ id }: { id: string }) => id)).toEqual(atGroq.map(({ id }) => id));
    expect((await world.get('/v1/models/anthropic/claude-haiku-4.5')).status).toBe(404);
    expect((await world.get(`/v1/models/${shared}`)).status).toBe(200);
  });

  test('remain in the price list, whose version is that of the complete catalogue', async () => {
    const published = (await world.listEvents()).filter(({ type }) => type === 'PriceListPublished');
    expect(published).toMatchObject([{ data: { version: priceList.version } }]);
  });

  test.each([
    ['a plugin', { plugins: [{ id: 'web' }] }],
    ['a tool', { tools: [{ type: 'web_search' }] }],
    ['a suffix', { model: `${shared}:online` }],
  ])('do not search, and a request for a search by %s is rejected without a charge', async (_, search) => {
    const before = await world.fetchBalance(account);
    const answer = await world.sendChat(account, '', { model: shared, ...search });
    expect(answer.status).toBe(404);
    expect(answer.body.error.message).toBe('The web search is not available here: it requires EXA_API_KEY');
    expect(await world.fetchBalance(account)).toBe(before);
  });
});

test.each([
  ['exa', ['chat'], 'chat'],
  ['anthropic', ['chat', 'responses'], 'responses'],
])(
  'does not start if the catalogue requires that %s supports a protocol which it does not support',
  async (upstream, speaks, what) => {
    const models = [createTestModel('test/m', [createTestEndpoint('Test', upstream, { speaks })])];
    await expect(TestWorld.open({}, models)).rejects.toThrow(
      `The catalogue cannot be used: model "test/m" requires ${what} of provider "${upstream}", which does not support it.`,
    );
  },
);
