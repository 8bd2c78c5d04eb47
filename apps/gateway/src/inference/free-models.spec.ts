import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type TestAccount, TestWorld } from '#testing';

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

describe('a web search with a free model', () => {
  const messages = [{ role: 'user', content: '[[sandbox tokens=4]] Why?' }];
  const isReportedIgnored = async (path: string, body: object, account?: TestAccount) => {
    const { status, headers } = await world.post(path, body, account ?? (await world.createAccount()));
    expect(status).toBe(200);
    return headers.get('x-web-search-ignored');
  };

  test.each([true, false])(
    'is not made, and the response says so in every protocol if stream is %s',
    async (stream) => {
      const online = { model: `${FREE[0]}:online`, max_tokens: 20, stream };
      for (const [path, body] of [
        ['/v1/chat/completions', { ...online, messages }],
        ['/v1/completions', { ...online, prompt: 'Why?' }],
        ['/v1/responses', { model: online.model, stream, input: 'Why?' }],
        ['/v1/messages', { ...online, messages }],
      ] as const)
        expect([path, await isReportedIgnored(path, body)]).toEqual([path, 'true']);
    },
  );

  test.each<[string, object, string | null]>([
    ['a plugin', { plugins: [{ id: 'web' }] }, 'true'],
    ['a tool', { tools: [{ type: 'web_search' }] }, 'true'],
    ['web_search_options', { web_search_options: {} }, 'true'],
    ['a disabled plugin', { plugins: [{ id: 'web', enabled: false }] }, null],
    ['nothing', {}, null],
  ])('is reported as ignored if the request contains one: %s', async (_, fields, expected) => {
    expect(await isReportedIgnored('/v1/chat/completions', { model: FREE[0], messages, ...fields })).toBe(expected);
  });

  test('is not reported as ignored if another model makes it', async () => {
    const body = { model: 'openai/gpt-5-mini:online', max_tokens: 20, messages };
    expect(await isReportedIgnored('/v1/chat/completions', body, await world.createAccount(1.05))).toBeNull();
  });
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
