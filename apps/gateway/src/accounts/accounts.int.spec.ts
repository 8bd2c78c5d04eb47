import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { extendDelay, type TestAccount, TestWorld } from '#testing';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.open();
});
afterAll(() => world.close());

test('with ACCOUNTS_BY_OPERATOR nobody opens an account over the API', async () => {
  const api = await world.addGateway({ accountsByOperator: true });
  const before = (await world.listEvents()).length;
  const { status, body } = await world.send('POST', '/accounts/create', { api });
  expect([status, body.error.message]).toEqual([403, 'The accounts of this installation are opened by its operator']);
  expect(await world.listEvents()).toHaveLength(before);
});

describe('a new account', () => {
  test('is created without a body or a credential, with a balance of 0', async () => {
    const { status, body } = await world.send('POST', '/accounts/create');
    expect(status).toBe(201);
    expect(body).toEqual({
      success: true,
      credit_id: expect.stringMatching(UUID),
      api_key: expect.stringMatching(/^sk-[A-Za-z0-9]{22}$/),
      balance: 0,
    });
  });

  test.each([
    ['an empty body with a JSON content type', { headers: { 'content-type': 'application/json' } }],
    ['an empty object', { body: {} }],
    ['unknown fields', { body: { name: 'x', plan: { a: 1 } } }],
  ])('is created with %s', async (_, sent) => {
    expect((await world.send('POST', '/accounts/create', sent)).status).toBe(201);
  });

  test('can be used at once by its key and its credit id', async () => {
    const account = await world.createAccount();
    expect((await world.post('/credits/balance', undefined, account)).body.balance).toBe(0);
    expect((await world.post('/credits/balance', { credit_id: account.creditId })).body.balance).toBe(0);
  });

  test('has one key, which is named "Default"', async () => {
    const account = await world.createAccount();
    const listed = await world.send('GET', '/keys?show_key=true', { headers: { 'x-credit-id': account.creditId } });
    expect(listed.body.data).toHaveLength(1);
    expect(listed.body.data[0]).toMatchObject({ name: 'Default', api_key: account.apiKey, deleted_at: null });
  });

  test('shares neither credit id nor key with another account', async () => {
    const [a, b] = await Promise.all([world.createAccount(), world.createAccount()]);
    expect(a.creditId).not.toBe(b.creditId);
    expect(a.apiKey).not.toBe(b.apiKey);
  });

  test('is stored under an internal id that is not accepted as a credential', async () => {
    const account = await world.createAccount();
    const id = world.getAccountId(account);
    const [{ stream } = { stream: '' }] = await world.listEvents(account);
    expect(stream).toBe(`account-${id}`);
    const asked = [
      ['POST', '/credits/balance'],
      ['POST', '/topup/create/btc-lightning'],
      ['POST', '/topup/card/session'],
      ['GET', '/queries/history'],
      ['GET', '/keys'],
      ['POST', '/keys'],
      ['GET', '/nwc-auto-topup'],
      ['DELETE', '/nwc-auto-topup/connection'],
    ] as const;
    const [byHeader, byQuery, byBody] = [
      asked.map(([method, route]) => world.send(method, route, { headers: { 'x-credit-id': id } })),
      [world.get(`/queries/history?credit_id=${id}`)],
      ['/credits/balance', '/topup/create/btc-lightning'].map((route) =>
        world.post(route, { amount: 1, currency: 'USD', credit_id: id }),
      ),
    ];
    for (const answer of await Promise.all([...byHeader, ...byQuery, ...byBody])) expect(answer.status).toBe(401);
    const beside = await world.send('POST', '/credits/balance', {
      headers: { 'api-key': account.apiKey, 'x-credit-id': id },
    });
    expect(beside.status).toBe(400);
  });

  test('appends AccountOpened and KeyCreated, which do not reveal the secret of its key', async () => {
    const account = await world.createAccount();
    const facts = await world.listEvents(account);
    expect(facts.map(({ type }) => type)).toEqual(['AccountOpened', 'KeyCreated']);
    expect(JSON.stringify(facts, (_, value) => (typeof value === 'bigint' ? '' : value))).not.toContain(account.apiKey);
  });
});

describe('the balance', () => {
  let account: TestAccount;
  let other: TestAccount;
  beforeAll(async () => {
    [account, other] = await Promise.all([world.createAccount(1.05), world.createAccount()]);
  });

  const asked = (headers: Record<string, string>, body?: unknown) =>
    world.send('POST', '/credits/balance', { headers, body });

  test.each<[string, () => Promise<{ status: number; body: unknown }>]>([
    ['a bearer key', () => asked({ authorization: `Bearer ${account.apiKey}` })],
    ['a key and an empty Authorization', () => asked({ authorization: '', 'api-key': account.apiKey })],
    ['a bearer key in any case', () => asked({ authorization: `bearer ${account.apiKey}` })],
    ['an api-key header', () => asked({ 'api-key': account.apiKey })],
    ['an x-api-key header', () => asked({ 'x-api-key': account.apiKey })],
    ['a credit_id in the body', () => asked({}, { credit_id: account.creditId })],
    ['a credit_id in upper case', () => asked({}, { credit_id: account.creditId.toUpperCase() })],
    ['an x-credit-id header', () => asked({ 'x-credit-id': account.creditId })],
    ['an x-credit-id header and a null field', () => asked({ 'x-credit-id': account.creditId }, { credit_id: null })],
    ['a key and an empty object', () => asked({ 'api-key': account.apiKey }, {})],
    [
      'a key and a JSON type without a body',
      () => asked({ 'api-key': account.apiKey, 'content-type': 'application/json' }),
    ],
    ['a key and the credit_id', () => asked({ 'api-key': account.apiKey }, { credit_id: account.creditId })],
    ['a key and unknown fields', () => asked({ 'api-key': account.apiKey }, { foo: [1] })],
  ])('is returned to a caller that sends %s', async (_, ask) => {
    const { status, body } = await ask();
    expect(status).toBe(200);
    expect(body).toEqual({ balance: 1.05, balance_usd: 1.05, held_usd: 0, currency: 'USD' });
  });

  test.each<[string, string, () => Promise<{ status: number; body: { error: { param: string } } }>]>([
    [
      'the credit_id of another account',
      'credit_id',
      () => asked({ 'api-key': other.apiKey }, { credit_id: account.creditId }),
    ],
    [
      'the x-credit-id of another account',
      'x-credit-id',
      () => asked({ 'api-key': other.apiKey, 'x-credit-id': account.creditId }),
    ],
    ['an invalid credit_id', 'credit_id', () => asked({ 'api-key': other.apiKey }, { credit_id: 7 })],
  ])('is not returned to a key that is sent with %s', async (_, param, ask) => {
    const { status, body } = await ask();
    expect([status, body.error.param]).toEqual([400, param]);
  });

  test.each<[string, () => Promise<{ status: number; body: unknown }>]>([
    ['nothing', () => asked({})],
    ['an empty object', () => asked({}, {})],
    ['an unknown key', () => asked({ authorization: 'Bearer sk-0000000000000000000000' })],
    ['a key under another scheme', () => asked({ authorization: `Basic ${account.apiKey}` })],
    ['an empty bearer', () => asked({ authorization: 'Bearer ' })],
    ['an unknown credit_id', () => asked({}, { credit_id: crypto.randomUUID() })],
    ['a credit_id that is not a UUID', () => asked({}, { credit_id: "' or 1=1 --" })],
    ['a credit_id that is not a string', () => asked({}, { credit_id: { $ne: null } })],
    ['an unknown key and a valid credit_id', () => asked({ 'api-key': 'sk-x' }, { credit_id: account.creditId })],
    ['the credit_id as a key', () => asked({ 'api-key': account.creditId })],
    ['the key as a credit_id', () => asked({}, { credit_id: account.apiKey })],
  ])('is not returned, but status 401, to a caller that sends %s', async (_, ask) => {
    const { status, body } = await ask();
    expect(status).toBe(401);
    expect(body).toMatchObject({
      status: 'error',
      statusCode: 401,
      error: { code: 'invalid_api_key', type: 'authentication_error' },
    });
  });

  test('is a JSON number in plain decimal notation, also for 0.0000001 USD', async () => {
    const spender = await world.createAccount(0.1100001); // eleven flat requests of 0.01 USD leave 1e-7
    for (let i = 0; i < 11; i++) await world.sendChat(spender, '', { model: 'countinghouse/flat' });
    const { text } = await world.post('/credits/balance', undefined, spender);
    expect(text).toBe('{"balance":0.0000001,"balance_usd":0.0000001,"held_usd":0,"currency":"USD"}');
  });

  test('shows the amount held for a running request until the request ends', async () => {
    const spender = await world.createAccount(1.05);
    const generation = extendDelay(150);
    const running = world.sendChat(spender, 'tokens=1 latency=150', { max_tokens: 100 });
    let shown = { balance: 0, held_usd: 0 };
    await world.waitUntil(async () => {
      shown = (await world.post('/credits/balance', undefined, spender)).body;
      return shown.held_usd > 0;
    });
    expect(shown.balance + shown.held_usd).toBeCloseTo(1.05, 12);
    generation.end();
    await running;
    expect((await world.post('/credits/balance', undefined, spender)).body.held_usd).toBe(0);
  });
});
