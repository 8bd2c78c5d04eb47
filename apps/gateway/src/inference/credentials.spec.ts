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
    expect(answer.body.error.message).toBe(
      'No endpoints found for anthropic/claude-haiku-4.5: anthropic is not configured on this gateway',
    );
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

  test('do not search, and a request for a search is rejected without a charge', async () => {
    const before = await world.fetchBalance(account);
    const answer = await world.sendChat(account, '', { model: shared, plugins: [{ id: 'web' }] });
    expect(answer.status).toBe(503);
    expect(answer.body.error.message).toBe('"exa" is not configured on this gateway');
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
