/** What an API key permits: its list of models and its block, on several gateways and by every paid route. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Streams } from '#application';
import { UNRESTRICTED_ACCESS } from '#domain';
import { createForm, PIXEL, sampleCases, sampleSize, TEST_CAUSE, type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
let apis: string[];
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  apis = [world.api];
  while (apis.length < sampleSize(3, 2)) apis.push(await world.addGateway());
  account = await world.createAccount(50);
});
afterAll(() => world.close());

interface Key extends TestAccount {
  readonly id: string;
}

const manage = (method: string, route: string, body?: unknown, { creditId } = account) =>
  world.send(method, route, { headers: { 'x-credit-id': creditId }, body });

let keyNumber = 0;
async function createKey(fields: object = {}): Promise<Key> {
  const { body, text } = await manage('POST', '/keys', { name: `key ${keyNumber++}`, ...fields });
  if (body.data === undefined) throw new Error(text);
  return { creditId: account.creditId, apiKey: body.data.api_key, id: body.data._id };
}

const messages = [{ role: 'user', content: 'Hello' }];
const chat = (model: string) => ['/v1/chat/completions', { model, messages }] as const;
const speech = (model?: string) => ['/v1/audio/speech', { model, input: 'Hello', voice: 'aura-2-thalia-en' }] as const;

/** Requests by route, with the id of the model or lookup that pays, in every form in which a model can be named. */
const REQUESTS: readonly (readonly [what: string, id: string, route: string, body: () => unknown])[] = [
  ['a chat', 'openai/gpt-5-mini', '/v1/chat/completions', () => chat('openai/gpt-5-mini')[1]],
  ['a chat without a prefix', 'openai/gpt-5-mini', '/chat/completions', () => chat('openai/gpt-5-mini')[1]],
  ['a streamed chat', 'openai/gpt-5-mini', '/v1/chat/completions', () => ({ ...chat('gpt-5-mini')[1], stream: true })],
  ['an alias', 'openai/gpt-5-mini', ...toEntry(chat('gpt-5-mini'))],
  ['a routing suffix', 'openai/gpt-5-mini', ...toEntry(chat('openai/gpt-5-mini:floor'))],
  ['an alias with two suffixes', 'openai/gpt-5-mini', ...toEntry(chat('gpt-5-mini:online:nitro'))],
  ['a model object', 'openai/gpt-5-mini', '/v1/chat/completions', () => ({ model: { id: 'gpt-5-mini' }, messages })],
  ['a free model', 'openai/gpt-oss-20b:free', ...toEntry(chat('openai/gpt-oss-20b:free'))],
  ['a completion', 'openai/gpt-5-mini', '/v1/completions', () => ({ model: 'openai/gpt-5-mini', prompt: 'Hello' })],
  ['a response', 'openai/gpt-5-mini', '/v1/responses', () => ({ model: 'openai/gpt-5-mini', input: 'Hello' })],
  ['a message', 'openai/gpt-5-mini', '/v1/messages', () => ({ model: 'openai/gpt-5-mini', max_tokens: 9, messages })],
  [
    'an embedding',
    'openai/text-embedding-3-small',
    '/v1/embeddings',
    () => ({ model: 'text-embedding-3-small', input: 'Hello' }),
  ],
  ['speech', 'deepgram_aura_2', ...toEntry(speech('deepgram_aura_2'))],
  ['speech by the default model', 'deepgram_aura_2', ...toEntry(speech())],
  ['an image', 'openai/gpt-image-2', '/v1/images/generations', () => ({ model: 'gpt-image-2', prompt: 'A harbour' })],
  [
    'an edited image',
    'openai/gpt-image-1.5',
    '/v1/images/edits',
    () =>
      createForm({
        model: 'gpt-image-1.5',
        prompt: 'A harbour',
        image: new File([PIXEL], 'harbour.png', { type: 'image/png' }),
      }),
  ],
  [
    'a video',
    'kling/kling-2.5-turbo',
    '/v1/videos',
    () => ({ model: 'kling/kling-2.5-turbo', prompt: 'A harbour at dusk', duration: 5 }),
  ],
  ['a data lookup', 'web/search', '/v1/data/api/web/search', () => ({ query: 'harbour' })],
];

function toEntry([route, body]: readonly [string, unknown]): [string, () => unknown] {
  return [route, () => body];
}

const send = (key: Key, route: string, body: () => unknown, api = world.api) => world.post(route, body(), key, api);

describe.each(REQUESTS)('a request for %s (%s)', (what, id, route, body) => {
  const index = REQUESTS.findIndex(([other]) => other === what);

  test('is rejected on every gateway by a key that permits other models, and charges nothing', async () => {
    const [key, before] = [await createKey({ models: ['anthropic/*', `${id}-2*`] }), await world.fetchBalance(account)];
    for (const api of sampleCases(apis, 1, index)) {
      const { status, body: response } = await send(key, route, body, api);
      expect([status, JSON.stringify(response)]).toEqual([403, expect.stringContaining(`does not permit \\"${id}\\"`)]);
    }
    expect(await world.fetchBalance(account)).toBe(before);
  });

  test('is served by a key that permits it, until the key is blocked', async () => {
    const key = await createKey({ models: ['anthropic/*', `${id.slice(0, -1)}*`] });
    expect([200, 202]).toContain((await send(key, route, body)).status);
    await manage('PATCH', `/keys/${key.id}`, { blocked: true });
    for (const api of sampleCases(apis, 1, index)) {
      const { status, body: response } = await send(key, route, body, api);
      expect([status, JSON.stringify(response)]).toEqual([403, expect.stringContaining('The API key is blocked')]);
    }
  });
});

describe('a list of models', () => {
  test('stores aliases and names with suffixes as ids, and can be changed and removed', async () => {
    const models = ['gpt-5-mini', 'openai/gpt-5-mini:online', 'web/search', 'google/*'];
    const key = await createKey({ models });
    const read = async () => (await manage('GET', `/keys/${key.id}`)).body.data.models;
    expect(await read()).toEqual(['openai/gpt-5-mini', 'web/search', 'google/*']);
    await manage('PATCH', `/keys/${key.id}`, { models: null });
    expect(await read()).toBeNull();
    expect((await send(key, ...toEntry(chat('openai/gpt-4o-mini')))).status).toBe(200);
  });

  test.each([
    ['an unknown model', ['openai/gpt-5-mini', 'openai/gpt-5-mimi'], 'models[1]'],
    ['no model', [], 'models must be null, or a list of 1 to 100'],
    ['more than 100 entries', Array.from({ length: 101 }, (_, i) => `a${i}*`), 'at most 100'],
    ['a number', [5], 'models[0] must be a string'],
    ['an object', {}, 'models must be an array or null'],
    ['a pattern with a space', ['open ai/*'], 'models must contain model ids'],
  ])('is rejected with %s', async (_, models, message) => {
    const { status, body } = await manage('POST', '/keys', { name: `key ${keyNumber++}`, models });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(message)]);
  });

  test('limits what the key sees of the models', async () => {
    const key = await createKey({ models: ['openai/gpt-5*', 'anthropic/claude-haiku-4.5'] });
    const list = async (route: string, caller?: TestAccount) => (await world.get(route, caller)).body;
    const { data, total_count } = await list('/v1/models?type=all', key);
    const ids: readonly string[] = data.map(({ id }: { id: string }) => id);
    expect(ids).toContain('openai/gpt-5-mini');
    expect(ids.filter((id) => !id.startsWith('openai/gpt-5'))).toEqual(['anthropic/claude-haiku-4.5']);
    expect(total_count).toBe(ids.length);
    expect((await list('/v1/models?type=all')).total_count).toBeGreaterThan(total_count);
    for (const [route, status] of [
      ['/v1/models/openai/gpt-5-mini', 200],
      ['/v1/models/openai/gpt-4o-mini', 404],
      ['/v1/models/openai/gpt-4o-mini/endpoints', 404],
      ['/v1/models/gpt-4o-mini/endpoints', 404],
    ] as const)
      expect([route, (await world.get(route, key)).status]).toEqual([route, status]);
    const headers = { authorization: `Bearer ${key.apiKey}`, 'x-credit-id': account.creditId };
    const own = await world.send('GET', '/v1/models?type=all', { headers });
    expect(own.body.total_count).toBeGreaterThan(total_count); // the account itself may use all models
  });
});

describe('a blocked key', () => {
  test('can do nothing on any gateway until it is unblocked, while the credit id and other keys work', async () => {
    const [key, other] = [await createKey(), await createKey()];
    await manage('PATCH', `/keys/${key.id}`, { blocked: true });
    const requests = (caller: TestAccount, api: string) =>
      Promise.all([
        world.send('POST', '/credits/balance', { headers: { 'api-key': caller.apiKey }, api }),
        world.send('GET', '/queries/history', { headers: { 'x-api-key': caller.apiKey }, api }),
        world.send('GET', '/v1/models', { headers: { authorization: `Bearer ${caller.apiKey}` }, api }),
        world.post('/topup/create/btc-lightning', { amount: 1, currency: 'USD' }, caller, api),
      ]).then((responses) => responses.map(({ status }) => status));
    for (const api of apis) {
      expect(await requests(key, api)).toEqual([403, 403, 403, 403]);
      expect(await requests(other, api)).toEqual([200, 200, 200, 201]);
    }
    expect((await manage('GET', `/keys/${key.id}`)).body.data.blocked).toBe(true);
    await manage('PATCH', `/keys/${key.id}`, { blocked: false });
    for (const api of apis) {
      await world.waitUntil(async () => !(await requests(key, api)).includes(403)); // it learns of this a moment later
      expect(await requests(key, api)).toEqual([200, 200, 200, 201]);
    }
    expect((await send(key, ...toEntry(chat('openai/gpt-5-mini')))).status).toBe(200);
    expect((await manage('PATCH', `/keys/${key.id}`, { blocked: null })).status).toBe(400);
  });
});

describe('the tags of a key', () => {
  test('are stored as they are sent, replaced completely, and removed with null', async () => {
    const metadata = { team: 'search', 'cost centre': '4711', ünïcode: '✓', __proto__x: '1' };
    const key = await createKey({ metadata });
    const read = async () => (await manage('GET', `/keys/${key.id}`)).body.data.metadata;
    expect(await read()).toEqual(metadata);
    await manage('PATCH', `/keys/${key.id}`, { metadata: { team: 'ads' } });
    expect(await read()).toEqual({ team: 'ads' });
    await manage('PATCH', `/keys/${key.id}`, { metadata: null });
    expect(await read()).toEqual({});
  });

  test.each([
    ['17 tags', Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`t${i}`, ''])), 'at most 16 tags'],
    ['a number', { team: 5 }, 'values are strings'],
    ['an array', ['team'], 'values are strings'],
    ['a NUL', { team: 'a\0' }, 'without control characters'],
  ])('are rejected with %s', async (_, metadata, message) => {
    const { status, body } = await manage('POST', '/keys', { name: `key ${keyNumber++}`, metadata });
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(message)]);
  });
});

describe('unknown fields', () => {
  /** Requests of other tests append events of holds and jobs in the background. */
  const countChanges = async () =>
    (await world.listEvents()).filter(({ type }) => /^(AccountOpened|Key|Invoice|Wallet)/.test(type)).length;

  test.each(['rpm_limit', 'max_budget', 'model', 'credit_id', '__proto__', 'constructor', 'x'.repeat(200)])(
    'such as %s are rejected by name in /keys, and nothing is stored',
    async (field) => {
      const before = await countChanges();
      const sent = (fields: string) => `{${fields}${JSON.stringify(field)}: 1}`;
      const headers = { 'x-credit-id': account.creditId, 'content-type': 'application/json' };
      const key = (await manage('GET', '/keys')).body.data[0];
      const created = await world.send('POST', '/keys', { headers, body: sent('"name": "bot",') });
      const updated = await world.send('PATCH', `/keys/${key._id}`, { headers, body: sent('') });
      for (const { status, body } of [created, updated])
        expect([status, body.error.message]).toEqual([400, expect.stringContaining(field.slice(0, 60))]);
      expect(await countChanges()).toBe(before);
    },
  );

  test('of the record that was read are ignored, so that it can be changed and sent back', async () => {
    const key = await createKey({
      usage_limit_usd: 5,
      reset_period: 'monthly',
      models: ['openai/*'],
      metadata: { a: 'b' },
    });
    const { data } = (await manage('GET', `/keys/${key.id}?show_key=true`)).body;
    const { status, body } = await manage('PATCH', `/keys/${key.id}`, { ...data, name: `key ${keyNumber++}` });
    expect([status, body.data]).toMatchObject([
      200,
      { models: ['openai/*'], usage_limit_usd: 5, metadata: { a: 'b' } },
    ]);
  });

  const LIMIT_FIELDS = [
    'models',
    'blocked',
    'rpm_limit',
    'tpm_limit',
    'max_budget',
    'budget_duration',
    'maxBudget',
    'Usage-Limit-USD',
  ];
  const OTHER_ROUTES: readonly [string, object][] = [
    ['/accounts/create', {}],
    ['/credits/balance', {}],
    ['/topup/create/btc-lightning', { amount: 1, currency: 'USD' }],
    ['/nwc-auto-topup/connect', { nwc_url: 'nostr+walletconnect://x' }],
  ];

  test.each(LIMIT_FIELDS)(
    'that read like a limit, such as %s, are rejected by the other routes of an account',
    async (field) => {
      const before = await countChanges();
      for (const [route, body] of sampleCases(OTHER_ROUTES, 1, LIMIT_FIELDS.indexOf(field))) {
        const headers = { authorization: `Bearer ${account.apiKey}`, 'x-credit-id': account.creditId };
        const response = await world.send('POST', route, { headers, body: { ...body, [field]: 1 } });
        expect([route, response.status, response.body.error.message]).toEqual([
          route,
          400,
          expect.stringContaining(`"${field}" is not a field of this operation and would limit nothing`),
        ]);
      }
      expect(await countChanges()).toBe(before);
    },
  );

  test('that clients send for other reasons are ignored by the other routes of an account', async () => {
    const headers = { authorization: `Bearer ${account.apiKey}` };
    const body = { credit_id: account.creditId, client: 'app', limits: {}, note: { a: 1 } };
    expect((await world.send('POST', '/credits/balance', { headers, body })).status).toBe(200);
    expect((await world.send('POST', '/accounts/create', { body: { plan: 'pro', user_id: 'u' } })).status).toBe(201);
  });
});

describe('the list of keys', () => {
  let owner: TestAccount;
  beforeEach(async () => {
    owner = await world.createAccount();
  });
  const list = async (query: string) => (await manage('GET', `/keys${query}`, undefined, owner)).body;

  test('has pages, oldest keys first, and counts only the keys that it lists', async () => {
    for (const name of ['b', 'c', 'd', 'e']) await manage('POST', '/keys', { name }, owner);
    const names = async (query: string) => (await list(query)).data.map(({ name }: { name: string }) => name);
    expect(await names('')).toEqual(['Default', 'b', 'c', 'd', 'e']);
    expect(await names('?page_count=2')).toEqual(['Default', 'b']);
    expect(await names('?page_count=2&page=3')).toEqual(['e']);
    expect(await names('?page_count=2&page=4')).toEqual([]);
    const { _id } = (await list('')).data[1];
    await manage('DELETE', `/keys/${_id}`, undefined, owner);
    expect(await names('?page_count=2')).toEqual(['Default', 'c']);
    const pages = { page: 2, page_count: 2, total: 4, total_pages: 2 };
    expect((await list('?page_count=2&page=2')).pagination).toEqual(pages);
    const all = { page: 1, page_count: 2, total: 5, total_pages: 3 };
    expect((await list('?page_count=2&include_disabled=true')).pagination).toEqual(all);
  });

  test('has at most 100 keys per page, also for an account with more', async () => {
    const { accounts } = world.getService(Streams);
    const secret = { key: '', box: '' };
    const unlimited = { limit: null, resetPeriod: null, expireAt: null, ...UNRESTRICTED_ACCESS };
    for (let i = 0; i < 100; i++) {
      const key = { keyId: randomUUID(), name: `k${i}`, hash: randomUUID(), secret, ...unlimited };
      const data = { key, at: new Date().toISOString() };
      await accounts.run(world.getAccountId(owner), { type: 'CreateKey', data }, TEST_CAUSE);
    }
    for (const query of ['', '?page_count=1000']) {
      const { data, pagination } = await list(query);
      expect([data.length, pagination.total, pagination.total_pages]).toEqual([100, 101, 2]);
    }
    expect((await list('?page=2')).data).toHaveLength(1);
    expect((await list('?page=x')).error.param).toBe('page');
  });
});
