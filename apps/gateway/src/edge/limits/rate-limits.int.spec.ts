/** Free operations are limited across all gateways; what a balance pays for is not limited. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { type TestAccount, type TestResponse, TestWorld } from '#testing';

const FREE = 'openai/gpt-oss-20b:free';
const LIMITS = {
  accountsPerHour: 3,
  invoicesPerHourOfAddress: 4,
  invoicesPerHourOfAccount: 4,
  invoicesPerHourOfKey: 2,
  changesPerHour: 2,
  invalidCredentialsPerMinute: 3,
  freePerDayOfAddress: 2,
  trustedProxies: ['127.0.0.1'],
};

let world: TestWorld;
let apis: readonly string[];
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  apis = [await world.addGateway(LIMITS), await world.addGateway(LIMITS)];
  account = await world.createAccount(1.05);
});
afterAll(() => world.close());

let sent = 0;
/** Sends requests to the gateways in turn. */
function send(
  method: string,
  route: string,
  from: string,
  headers: object = {},
  body?: unknown,
): Promise<TestResponse> {
  const api = apis[sent++ % apis.length] as string;
  return world.send(method, route, { api, headers: { 'x-forwarded-for': from, ...headers }, body });
}

async function statuses(times: number, ask: () => Promise<TestResponse>): Promise<readonly number[]> {
  const answers: number[] = [];
  for (let i = 0; i < times; i++) answers.push((await ask()).status);
  return answers;
}

const bearer = (apiKey: string) => ({ authorization: `Bearer ${apiKey}` });
const topUp = (from: string, headers: object) =>
  send('POST', '/topup/create/btc-lightning', from, headers, { amount: 1, currency: 'USD' });
const chat = (from: string, apiKey: string, model = 'openai/gpt-5-mini') => {
  const messages = [{ role: 'user', content: '[[sandbox tokens=1]]' }];
  return send('POST', '/v1/chat/completions', from, bearer(apiKey), { model, messages });
};

test('limits accounts by address before anything is stored, and reports when to retry', async () => {
  const create = (from: string) => send('POST', '/accounts/create', from);
  expect(await statuses(3, () => create('192.0.2.1'))).toEqual([201, 201, 201]);
  const facts = (await world.listEvents()).length;
  const { status, headers, body } = await create('192.0.2.1');
  expect([status, body.error.type, headers.get('access-control-allow-origin')]).toEqual([429, 'rate_limit_error', '*']);
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(3_500);
  expect(await world.listEvents()).toHaveLength(facts);
  expect((await create('192.0.2.2')).status).toBe(201);
});

test('limits invoices by key, account and address; requests above the key limit use up no other limit', async () => {
  const [one, another, third] = [await world.createAccount(), await world.createAccount(), await world.createAccount()];
  const byKey = () => topUp('192.0.2.3', bearer(one.apiKey));
  const byAccount = () => topUp('192.0.2.3', { 'x-credit-id': one.creditId });
  expect(await statuses(4, byKey)).toEqual([201, 201, 429, 429]);
  expect(await statuses(3, byAccount)).toEqual([201, 201, 429]);
  expect((await topUp('192.0.2.3', { 'x-credit-id': another.creditId })).status).toBe(429);
  expect((await topUp('192.0.2.4', { 'x-credit-id': third.creditId })).status).toBe(201);
});

test('limits changes of keys by account, but not reads of keys', async () => {
  const headers = { 'x-credit-id': account.creditId };
  const newKey = () => send('POST', '/keys', '192.0.2.5', headers, { name: crypto.randomUUID().slice(0, 20) });
  expect(await statuses(3, newKey)).toEqual([201, 201, 429]);
  expect(await statuses(3, () => send('GET', '/keys', '192.0.2.5', headers))).toEqual([200, 200, 200]);
});

test('limits connections of wallets by address, because each waits for relays and may create an invoice', async () => {
  const connect = async () => {
    const { creditId } = await world.createAccount();
    return send('POST', '/nwc-auto-topup/connect', '192.0.2.11', { 'x-credit-id': creditId }, { nwc_url: 'none' });
  };
  expect(await statuses(5, connect)).toEqual([400, 400, 400, 400, 429]);
});

test('limits requests to free models by address', async () => {
  const [one, other] = [await world.createAccount(), await world.createAccount()];
  const answers = [await chat('192.0.2.6', one.apiKey, FREE), await chat('192.0.2.6', other.apiKey, FREE)];
  answers.push(await chat('192.0.2.6', other.apiKey, FREE), await chat('192.0.2.7', other.apiKey, FREE));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 200]);
});

test.each([
  ['minute', { freePerMinute: 3 }],
  ['day', { freePerDay: 3 }],
])('limits requests to free models by account and %s on all gateways together', async (_, limit) => {
  const gateways = [await world.addGateway(limit), await world.addGateway(limit)];
  const stranger = await world.createAccount();
  const answers: number[] = [];
  for (const api of [...gateways, ...gateways])
    answers.push((await world.sendChat(stranger, 'tokens=1', { model: FREE }, api)).status);
  expect(answers).toEqual([200, 200, 200, 429]);
});

test('limits invalid credentials by address, but still accepts valid ones, cached or not', async () => {
  const wrong = (i: number) => [{ 'x-credit-id': crypto.randomUUID() }, bearer(`sk-${i}`)][i % 2] as object;
  const balance = (headers: object) => send('POST', '/credits/balance', '192.0.2.8', headers);
  const answers = [0, 1, 2, 3, 4, 5].map((i) => () => balance(wrong(i)));
  const found: number[] = [];
  for (const ask of answers) found.push((await ask()).status);
  expect(found).toEqual([401, 401, 401, 429, 429, 429]);
  const unknownHere = await world.createAccount(0.105);
  expect(await statuses(3, () => chat('192.0.2.8', unknownHere.apiKey))).toEqual([200, 200, 200]);
  expect((await balance({ 'x-credit-id': unknownHere.creditId })).status).toBe(200);
});

test('limits invalid proofs by address like other credentials', async () => {
  const prove = (route: string) => {
    const authorization = `L402 ${randomBytes(32).toString('base64url')}:${'0'.repeat(64)}`;
    return send('GET', route, '192.0.2.10', { authorization });
  };
  expect(await statuses(4, () => prove('/v1/payments/charge'))).toEqual([401, 401, 401, 429]);
  expect((await prove('/v1/videos/unknown')).status).toBe(429);
  expect((await prove('/v1/data/x/search?query=x')).status).toBe(429);
});

test('serves paid requests and rejects free ones while the counters are unavailable', async () => {
  const pool = world.getService(pg.Pool);
  await pool.query('alter table limits.counted rename to gone');
  try {
    const [from, key] = ['192.0.2.9', { 'x-credit-id': account.creditId }];
    const free = [send('POST', '/accounts/create', from), topUp(from, key), chat(from, account.apiKey, FREE)];
    expect((await Promise.all(free)).map(({ status }) => status)).toEqual([503, 503, 503]);
    expect(await statuses(3, () => chat(from, account.apiKey))).toEqual([200, 200, 200]);
  } finally {
    await pool.query('alter table limits.gone rename to counted');
  }
});
