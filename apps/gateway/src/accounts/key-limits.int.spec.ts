import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Clock } from '#application';
import { extendDelay, shiftClock, slowTime, type TestAccount, TestWorld } from '#testing';

/** Costs 0.01 USD for each request, whatever its length. */
const FLAT = { model: 'countinghouse/flat' };
const DAY_MS = 86_400_000;

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(10.5);
});
afterAll(() => world.close());

let keys = 0;
const ask = (method: string, route: string, body?: unknown) =>
  world.send(method, route, { headers: { 'x-credit-id': account.creditId }, body });
async function newKey(fields: object = {}) {
  const { _id, api_key } = (await ask('POST', '/keys', { name: `key ${++keys}`, ...fields })).body.data;
  return { id: _id as string, creditId: account.creditId, apiKey: api_key as string };
}
const shown = async ({ id }: { id: string }) => (await ask('GET', `/keys/${id}`)).body.data;

describe('a key with a limit', () => {
  test('pays until the limit is reached; then requests fail with key_limit_exceeded', async () => {
    const key = await newKey({ usage_limit_usd: 0.02 });
    expect((await world.sendChat(key, '', FLAT)).status).toBe(200);
    expect((await world.sendChat(key, '', FLAT)).status).toBe(200);
    const { status, body } = await world.sendChat(key, '', FLAT);
    expect(status).toBe(402);
    expect(body).toMatchObject({
      statusCode: 402,
      message: expect.stringMatching(/limit/),
      error: {
        type: 'key_limit_exceeded',
        code: 'insufficient_quota',
        metadata: { required: '0.01', affordable: '0' },
      },
    });
    expect((await world.post('/credits/balance', undefined, key)).status).toBe(200);
  });

  test('does not exceed its limit with concurrent requests', async () => {
    const key = await newKey({ usage_limit_usd: 0.055 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => world.sendChat(key, '', FLAT)));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(5);
    expect(statuses.filter((status) => status === 402)).toHaveLength(15);
    expect((await shown(key)).total_usage_all_time_usd).toBe(0.05);
  });

  test('does not exceed its limit with requests to two gateways', async () => {
    const key = await newKey({ usage_limit_usd: 0.03 });
    const apis = [world.api, await world.addGateway()];
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => world.sendChat(key, '', FLAT, apis[i % 2])));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    expect((await shown(key)).total_usage_all_time_usd).toBe(0.03);
  });

  test('limits the length of a completion to what its remaining limit pays for', async () => {
    const key = await newKey({ usage_limit_usd: 0.01 });
    const { body } = await slowTime(() => world.sendChat(key, 'tokens=100000'));
    expect(body.choices[0].finish_reason).toBe('length');
    expect(body.usage.cost).toBeLessThanOrEqual(0.01);
    expect(body.usage.cost).toBeGreaterThan(0.0099);
  });

  test('does not limit other keys, and cannot be bypassed with the credit id of the account', async () => {
    const spent = await newKey({ usage_limit_usd: 0.01 });
    await world.sendChat(spent, '', FLAT);
    expect((await world.sendChat(spent, '', FLAT)).status).toBe(402);
    expect((await world.sendChat(account, '', FLAT)).status).toBe(200);
    const messages = [{ role: 'user', content: 'Hello' }];
    const byAccount = { headers: { 'x-credit-id': account.creditId }, body: { ...FLAT, messages } };
    const { status, body } = await world.send('POST', '/v1/chat/completions', byAccount);
    expect([status, body.message]).toEqual([401, expect.stringContaining('API key, not x-credit-id')]);
  });

  test('pays if an empty x-credit-id is sent as well, which counts as none', async () => {
    const headers = { authorization: `Bearer ${account.apiKey}`, 'x-credit-id': '' };
    const messages = [{ role: 'user', content: 'Hello' }];
    const chat = await world.send('POST', '/v1/chat/completions', { headers, body: { ...FLAT, messages } });
    expect(chat.status).toBe(200);
    expect((await world.send('GET', '/queries/history', { headers })).status).toBe(200);
    expect((await world.send('GET', '/v1/models', { headers: { 'x-credit-id': '' } })).status).toBe(200);
    const { status, body } = await world.send('GET', '/keys', { headers });
    expect([status, body.message]).toEqual([401, expect.stringContaining('Missing credential')]);
  });

  test('still pays if the credit id of its account is sent as well, but not with that of another account', async () => {
    const spent = await newKey({ usage_limit_usd: 0.01 });
    const messages = [{ role: 'user', content: 'Hello' }];
    const beside = (creditId: string) => {
      const headers = { authorization: `Bearer ${spent.apiKey}`, 'x-credit-id': creditId };
      return world.send('POST', '/v1/chat/completions', { headers, body: { ...FLAT, messages } });
    };
    const other = await beside((await world.createAccount()).creditId);
    expect([other.status, other.body.error.param]).toEqual([400, 'x-credit-id']);
    expect((await beside(account.creditId)).status).toBe(200);
    expect((await beside(account.creditId)).status).toBe(402);
  });

  test('pays again after the limit is raised or removed', async () => {
    const key = await newKey({ usage_limit_usd: 0.01 });
    await world.sendChat(key, '', FLAT);
    await ask('PATCH', `/keys/${key.id}`, { usage_limit_usd: 0.02 });
    expect((await world.sendChat(key, '', FLAT)).status).toBe(200);
    expect((await world.sendChat(key, '', FLAT)).status).toBe(402);
    await ask('PATCH', `/keys/${key.id}`, { usage_limit_usd: null });
    expect((await world.sendChat(key, '', FLAT)).status).toBe(200);
  });

  test('stops paying when the limit is lowered below what it has spent', async () => {
    const key = await newKey();
    await world.sendChat(key, '', FLAT);
    await world.sendChat(key, '', FLAT);
    await ask('PATCH', `/keys/${key.id}`, { usage_limit_usd: 0.01 });
    expect((await world.sendChat(key, '', FLAT)).body.error.type).toBe('key_limit_exceeded');
  });

  test('spends nothing on a failed request', async () => {
    const key = await newKey({ usage_limit_usd: 0.01 });
    expect((await world.sendChat(key, 'fault=400', FLAT)).status).toBe(400);
    expect((await shown(key)).total_usage_all_time_usd).toBe(0);
    expect((await world.sendChat(key, '', FLAT)).status).toBe(200);
  });
});

describe('the usage of a key', () => {
  test('is counted exactly, and only for the key that was used', async () => {
    const [key, idle] = [await newKey(), await newKey()];
    await world.sendChat(key, 'tokens=8');
    await world.sendChat(key, 'tokens=8');
    const { text } = await ask('GET', `/keys/${key.id}`);
    expect(text).toContain('"current_period_usage_usd":0.0000416725,"total_usage_all_time_usd":0.0000416725,');
    expect(await shown(idle)).toMatchObject({ current_period_usage_usd: 0, total_usage_all_time_usd: 0 });
  });

  test('is a plain JSON number, also for 0.000001899 USD', async () => {
    const key = await newKey();
    const hi = { model: 'openai/gpt-4o-mini', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] };
    await world.sendChat(key, '', { ...hi, messages: [{ role: 'user', content: '[[sandbox tokens=0 fault=zero]]' }] });
    await world.sendChat(key, '', hi);
    expect((await ask('GET', `/keys/${key.id}`)).text).toContain('"total_usage_all_time_usd":0.000001899,');
  });

  test('restarts at zero when the reset period changes, but its total does not', async () => {
    const key = await newKey({ usage_limit_usd: 0.01 });
    await world.sendChat(key, '', FLAT);
    const { body } = await ask('PATCH', `/keys/${key.id}`, { reset_period: 'daily' });
    expect(body.data).toMatchObject({ current_period_usage_usd: 0, total_usage_all_time_usd: 0.01 });
    expect((await world.sendChat(key, '', FLAT)).status).toBe(200);
    expect((await world.sendChat(key, '', FLAT)).status).toBe(402);
    expect(await shown(key)).toMatchObject({ current_period_usage_usd: 0.01, total_usage_all_time_usd: 0.02 });
  });

  test('of a request that started before the reset period changed counts only towards the total', async () => {
    const key = await newKey({ usage_limit_usd: 0.01 });
    const generation = extendDelay(150);
    const running = world.sendChat(key, 'tokens=1 latency=150', FLAT);
    await generation.started;
    await ask('PATCH', `/keys/${key.id}`, { reset_period: 'monthly' });
    generation.end();
    expect((await running).status).toBe(200);
    expect(await shown(key)).toMatchObject({ current_period_usage_usd: 0, total_usage_all_time_usd: 0.01 });
    expect((await world.sendChat(key, '', FLAT)).status).toBe(200);
  });

  test('does not restart when the same reset period or another field is sent', async () => {
    const key = await newKey({ usage_limit_usd: 0.01, reset_period: 'daily' });
    await world.sendChat(key, '', FLAT);
    for (const change of [{ reset_period: 'daily' }, { name: 'renamed' }, { expire_at: '2999-01-01' }]) {
      const { body } = await ask('PATCH', `/keys/${key.id}`, change);
      expect(body.data.current_period_usage_usd).toBe(0.01);
    }
    expect((await world.sendChat(key, '', FLAT)).status).toBe(402);
  });
});

describe('the next reset', () => {
  test.each([
    ['daily', 'at the next midnight', (next: Date) => next.getTime() % DAY_MS === 0, DAY_MS],
    [
      'weekly',
      'at the next Monday',
      (next: Date) => next.getTime() % DAY_MS === 0 && next.getUTCDay() === 1,
      7 * DAY_MS,
    ],
    [
      'monthly',
      'at the first of the next month',
      (next: Date) => next.getTime() % DAY_MS === 0 && next.getUTCDate() === 1,
      31 * DAY_MS,
    ],
  ])('of a key with a %s reset period is %s, in UTC', async (reset_period, _, isThere, longest) => {
    const { reset_at } = await shown(await newKey({ usage_limit_usd: 1, reset_period }));
    const ahead = Date.parse(reset_at) - Date.now();
    expect(isThere(new Date(reset_at))).toBe(true);
    expect(ahead).toBeGreaterThan(-5_000); // the test itself may run over midnight
    expect(ahead).toBeLessThanOrEqual(longest);
  });
});

describe('a revoked or expired key', () => {
  const everywhere = async (key: TestAccount, api = world.api) => {
    const answers = await Promise.all([
      world.sendChat(key, '', FLAT, api),
      world.sendChat(key, '', { ...FLAT, stream: true }, api),
      world.send('POST', '/credits/balance', { headers: { 'api-key': key.apiKey }, api }),
      world.send('GET', '/queries/history', { headers: { 'x-api-key': key.apiKey }, api }),
      world.post('/topup/create/btc-lightning', { amount: 1, currency: 'USD' }, key, api),
    ]);
    return answers.map(({ status }) => status);
  };

  test('stops working at once for paid requests, reads and top-ups on two gateways when it is revoked', async () => {
    const key = await newKey();
    const apis = [world.api, await world.addGateway()];
    for (const api of apis) expect(await everywhere(key, api)).toEqual([200, 200, 200, 200, 201]);
    await ask('DELETE', `/keys/${key.id}`);
    for (const api of apis) expect(await everywhere(key, api)).toEqual([401, 401, 401, 401, 401]);
  });

  test('stops working for paid requests, reads and top-ups when it expires, until it gets a later expiry', async () => {
    const key = await newKey({ expire_at: new Date(Date.now() + 30_000).toISOString() });
    expect(await everywhere(key)).toEqual([200, 200, 200, 200, 201]);
    const setBack = shiftClock(world.getService(Clock), 30_000);
    expect(await everywhere(key)).toEqual([401, 401, 401, 401, 401]);
    await ask('PATCH', `/keys/${key.id}`, { expire_at: '2999-01-01' });
    expect(await everywhere(key)).toEqual([200, 200, 200, 200, 201]);
    setBack();
  });

  test('still pays for a request that started before its revocation', async () => {
    const key = await newKey();
    const generation = extendDelay(150);
    const running = world.sendChat(key, 'tokens=1 latency=150', FLAT);
    await generation.started;
    await ask('DELETE', `/keys/${key.id}`);
    generation.end();
    expect((await running).status).toBe(200);
    expect((await shown(key)).total_usage_all_time_usd).toBe(0.01);
  });
});
