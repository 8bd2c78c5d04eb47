import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTestEndpoint, createTestModel, listCharges, sampleSize, type TestAccount, TestWorld } from '#testing';

const FREE = ['openai/gpt-oss-20b:free', 'z-ai/glm-4.5-air:free', 'meta-llama/llama-3.3-70b-instruct:free'];

const AT_NO_PRICE = [createTestEndpoint('OpenAI', 'openai', { usdPerMillionTokens: { input: '0', output: '0' } })];
const MODELS = [
  createTestModel('test/operated', AT_NO_PRICE),
  createTestModel('test/promoted', AT_NO_PRICE, { freeTier: true }),
];

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.open({ FREE_REQUESTS_PER_MINUTE: '4' }, MODELS);
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

test.each(FREE)('%s has an alias without its provider', async (id) => {
  const alias = String(id.split('/')[1]);
  const { status, body } = await world.sendChat(await world.createAccount(), 'tokens=4', { model: alias });
  expect([status, body.model, body.usage.cost]).toEqual([200, id, 0]);
  expect((await world.sendChat(await world.createAccount(), 'tokens=4', { model: `${alias}:online` })).status).toBe(
    200,
  );
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

  test.each<[string, object]>([
    ['a plugin', { plugins: [{ id: 'web', engine: 'exa' }] }],
    ['a plugin with auto', { plugins: [{ id: 'web', engine: 'auto' }] }],
    ['a tool', { tools: [{ type: 'web_search', parameters: { engine: 'exa' } }], tool_choice: 'required' }],
  ])('is made at its fee if its engine is named by %s', async (_, fields) => {
    const body = { model: FREE[0], messages, ...fields };
    const poor = await world.createAccount();
    expect((await world.post('/v1/chat/completions', body, poor)).status).toBe(402);
    const account = await world.createAccount(1.05);
    const { status, headers, body: completion } = await world.post('/v1/chat/completions', body, account);
    expect([status, headers.get('x-web-search-ignored'), completion.usage.cost]).toEqual([200, null, 0.02]);
    const [charge] = listCharges(await world.listEvents(account));
    expect([charge?.price, charge?.cost]).toEqual(['20000000000', '7000000000']);
    await world.waitUntil(async () => (await world.get('/queries/history', account)).body.data.length === 1);
    const { data } = (await world.get('/queries/history', account)).body;
    expect(data).toMatchObject([{ isFreeModel: true, isOnline: true, price_in_usd: 0.02 }]);
  });

  test('by the model itself is rejected, because free models have none', async () => {
    const body = { model: FREE[0], messages, plugins: [{ id: 'web', engine: 'native' }] };
    const { status, body: error } = await world.post('/v1/chat/completions', body, await world.createAccount());
    expect([status, error.error.param]).toEqual([400, 'plugins.engine']);
  });

  test('is not reported as ignored if another model makes it', async () => {
    const body = { model: 'openai/gpt-5-mini:online', max_tokens: 20, messages };
    expect(await isReportedIgnored('/v1/chat/completions', body, await world.createAccount(1.05))).toBeNull();
  });
});

test.each([String(FREE[0]), 'test/promoted'])(
  'rejects requests for %s above the limit per minute with 429 before a hold',
  async (model) => {
    const account = await world.createAccount(0.105);
    const ask = (stream: boolean) => world.sendChat(account, 'tokens=1', { model, stream });
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
    expect((await world.sendChat(await world.createAccount(), 'tokens=1', { model })).status).toBe(200);
  },
);

describe('a model at a price of 0 that is not part of the free tier', () => {
  const model = 'test/operated';

  test('serves any number of requests of an account without money, and records their usage', async () => {
    const account = await world.createAccount();
    const perKey = sampleSize(20, 4);
    const keys = await Promise.all(
      Array.from({ length: 5 }, (_, i) =>
        world.send('POST', '/keys', { body: { name: `key ${i}` }, headers: { 'x-credit-id': account.creditId } }),
      ),
    );
    const send = async (key: string) => {
      const { status, body } = await world.sendChat({ ...account, apiKey: key }, 'tokens=3', { model });
      return [status, body.usage?.cost];
    };
    const sent = keys.flatMap(({ body }) => Array.from({ length: perKey }, () => send(body.data.api_key)));
    expect(await Promise.all(sent)).toEqual(sent.map(() => [200, 0]));

    const events = await world.listEvents(account);
    const charges = listCharges(events);
    expect(charges).toHaveLength(sent.length);
    for (const { price, items } of charges) expect([price, items[0]?.usage.output]).toEqual(['0', 3]);
    const held = events.flatMap((event) => (event.type === 'FundsHeld' ? [event.data.amount] : []));
    expect(held).toEqual(sent.map(() => '0'));
    const key = { ...account, apiKey: keys[0]?.body.data.api_key };
    await world.waitUntil(async () => (await world.get('/queries/history', key)).body.data.length === perKey);
    const [record] = (await world.get('/queries/history', key)).body.data;
    expect(record).toMatchObject({ model, isFreeModel: false, price_in_usd: 0, output_count: 3 });
  });

  test('is charged for a web search', async () => {
    const online = { model: `${model}:online`, max_tokens: 20 };
    const account = await world.createAccount(1.05);
    const { status, headers, body } = await world.sendChat(account, 'tokens=4', online);
    expect([status, headers.get('x-web-search-ignored'), body.usage.cost]).toEqual([200, null, 0.02]);
    expect((await world.sendChat(await world.createAccount(), 'tokens=4', online)).status).toBe(402);
  });
});

test.each([['meta-llama/llama-4-maverick:extended', 'meta-llama/llama-4-maverick-extended']])(
  'resolves the suffix of %s to the model %s',
  async (name, model) => {
    const account = await world.createAccount(1.05);
    const long = await world.sendChat(account, 'tokens=2', { model: name });
    expect([long.status, long.body.model]).toEqual([200, model]);
  },
);
