import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { TestWorld } from '#testing';

const FREE = ['openai/gpt-oss-20b:free', 'z-ai/glm-4.5-air:free', 'meta-llama/llama-3.3-70b-instruct:free'];

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.open({ FREE_REQUESTS_PER_MINUTE: '4' });
});
afterAll(() => world.close());

test('serves free models to an account without money, and marks the queries as free in the history', async () => {
  const account = await world.createAccount();
  for (const model of FREE) {
    const { status, body } = await world.sendChat(account, 'tokens=4', { model });
    expect([status, body.model, body.usage.cost]).toEqual([200, model, 0]);
  }
  await world.waitUntil(async () => (await world.get('/queries/history', account)).body.data.length === FREE.length);
  for (const record of (await world.get('/queries/history', account)).body.data)
    expect(record).toMatchObject({ isFreeModel: true, price_in_usd: 0, isOnline: false });
  expect((await world.sendChat(account, 'tokens=4')).status).toBe(402);
});

test('lists free models with prices of 0 and a provider that collects data', async () => {
  for (const model of FREE) {
    const { pricing, privacyLevel } = (await world.get(`/v1/models/${model}`)).body;
    expect([pricing.prompt, pricing.completion, pricing.request, privacyLevel]).toEqual(['0', '0', '0', 'anon']);
    const { endpoints } = (await world.get(`/v1/models/${model}/endpoints`)).body.data;
    expect(endpoints).toMatchObject([{ privacy: { zdr: false, collects_data: true } }]);
  }
});

test('ignores :online for a free model', async () => {
  const account = await world.createAccount();
  const { status, body } = await world.sendChat(account, 'tokens=4', { model: `${FREE[0]}:online` });
  expect([status, body.model, body.usage.cost]).toEqual([200, FREE[0], 0]);
});

test('rejects free requests above the limit per minute with 429 before a hold, non-streaming and streamed', async () => {
  const account = await world.createAccount(0.105);
  const ask = (stream: boolean) => world.sendChat(account, 'tokens=1', { model: FREE[0], stream });
  for (const stream of [true, false, true, false]) expect((await ask(stream)).status).toBe(200);
  const facts = (await world.listEvents(account)).length;
  for (const stream of [true, false]) {
    const { status, headers, body } = await ask(stream);
    expect([status, body.error.type]).toEqual([429, 'rate_limit_error']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(body.message).toContain('4 requests per minute');
  }
  expect(await world.listEvents(account)).toHaveLength(facts);
  expect((await world.sendChat(account, 'tokens=1')).status).toBe(200);
  expect((await world.sendChat(await world.createAccount(), 'tokens=1', { model: FREE[0] })).status).toBe(200);
});

test.each([['meta-llama/llama-4-maverick:extended', 'meta-llama/llama-4-maverick-extended']])(
  'resolves the suffix of %s to the model %s',
  async (name, model) => {
    const account = await world.createAccount(1.05);
    const long = await world.sendChat(account, 'tokens=2', { model: name });
    expect([long.status, long.body.model]).toEqual([200, model]);
  },
);
