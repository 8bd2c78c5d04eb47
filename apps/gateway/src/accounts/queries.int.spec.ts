import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Streams } from '#application';
import { type ChallengeCommand, MAX_REFUSED_REQUESTS_PER_DAY } from '#domain';
import { parseUsd } from '#kernel';
import { createIssuedChallenge, TEST_CAUSE, type TestAccount, TestWorld } from '#testing';

const FLAT = 'countinghouse/flat';
const GPT = 'openai/gpt-5-mini';

let world: TestWorld;
let account: TestAccount;
/** Another key of the account. */
let second: TestAccount;
const stranger = crypto.randomUUID();
let ids: { first: string; second: string };

const ask = (route: string, headers: Record<string, string> = {}) => world.send('GET', route, { headers });
const ofAccount = (query = '') => ask(`/queries/history?${query}`, { 'x-credit-id': account.creditId });
const models = ({ body }: { body: { data: { model: string }[] } }) => body.data.map(({ model }) => model);

/**
 * Sends four queries, in this order: a completion, one with another key from the web application, one with the credit
 * id instead of a key, and one that fails.
 */
beforeAll(async () => {
  world = await TestWorld.open({ ALLOW_CREDIT_ID_INFERENCE: 'true' });
  account = await world.createAccount(1.05);
  const byAccount = { 'x-credit-id': account.creditId };
  const made = await world.send('POST', '/keys', { headers: byAccount, body: { name: 'second' } });
  second = { creditId: account.creditId, apiKey: made.body.data.api_key };
  const [first] = (await ask('/keys', byAccount)).body.data;
  ids = { first: first._id, second: made.body.data._id };
  await world.sendChat(account, 'tokens=8 reasoning=2 fault=cached');
  const messages = [{ role: 'user', content: 'Hello' }];
  const fromUi = { authorization: `Bearer ${second.apiKey}`, 'x-query-source': 'ui' };
  await world.send('POST', '/chat/completions', { headers: fromUi, body: { model: FLAT, messages } });
  await world.send('POST', '/chat/completions', { headers: byAccount, body: { model: FLAT, messages } });
  await world.sendChat(account, 'fault=500');
});
afterAll(() => world.close());

describe('the query history', () => {
  test('has a record with every field for each query, newest first', async () => {
    const { status, body } = await ofAccount();
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(['status', 'data', 'pagination']);
    expect(body.status).toBe('success');
    expect(models({ body })).toEqual([GPT, FLAT, FLAT, GPT]);
    expect(body.data[3]).toEqual({
      timestamp: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/),
      model: GPT,
      input_count: 22,
      input_unit: 'tokens',
      output_count: 8,
      output_unit: 'tokens',
      price_in_usd: 0.000020071375,
      query_type: 'chat_completion',
      query_source: 'api',
      api_key_id: ids.first,
      isOnline: false,
      isFreeModel: false,
      isEstimated: false,
      error_code: null,
      request_id: expect.any(String),
    });
    const times = body.data.map(({ timestamp }: { timestamp: string }) => timestamp);
    expect(times).toEqual(times.toSorted().toReversed());
  });

  test('lists a failed query with its error and a price of zero', async () => {
    const [failed] = (await ofAccount()).body.data;
    expect(failed).toMatchObject({ input_count: 0, output_count: 0, price_in_usd: 0, error_code: 'upstream_error' });
  });

  test('names the key that was used, or null for the account itself', async () => {
    const { data } = (await ofAccount()).body;
    const keys = data.map(({ api_key_id }: { api_key_id: string }) => api_key_id);
    expect(keys).toEqual([ids.first, null, ids.second, ids.first]);
  });

  test('adds up to what the account has spent', async () => {
    const { data } = (await ofAccount()).body;
    const spent = data.reduce((sum: number, row: { price_in_usd: number }) => sum + row.price_in_usd, 0);
    expect(1.05 - spent).toBeCloseTo(Number(await world.fetchBalance(account)), 12);
  });

  test('writes prices as plain numbers', async () => {
    expect((await ofAccount()).text).toMatch(/"price_in_usd":0\.0000\d+,/);
  });

  test('includes a query as soon as its response has been received', async () => {
    const asker = await world.createAccount(1.05);
    for (let asked = 1; asked <= 20; asked++) {
      await world.sendChat(asker, 'tokens=1');
      expect((await world.get('/queries/history', asker)).body.pagination.total).toBe(asked);
    }
  });

  test('lists a request that cannot be paid, at a price of zero, but no request for an unknown model', async () => {
    const poor = await world.createAccount();
    const refused = await world.sendChat(poor);
    expect(refused.status).toBe(402);
    expect((await world.sendChat(poor, '', { model: 'nope' })).status).toBe(404);
    const { data } = (await world.get('/queries/history', poor)).body;
    expect(data).toMatchObject([
      {
        model: GPT,
        price_in_usd: 0,
        error_code: 'insufficient_balance',
        query_type: 'chat_completion',
        request_id: refused.headers.get('x-request-id'),
      },
    ]);
    expect(data[0].api_key_id).toMatch(/^[0-9a-f]{24}$/);
  });

  test('lists a limited number of rejected requests of a day, and appends none to the account stream', async () => {
    const poor = await world.createAccount();
    const before = await world.listEvents(poor);
    await Promise.all(Array.from({ length: MAX_REFUSED_REQUESTS_PER_DAY + 10 }, () => world.sendChat(poor)));
    expect((await world.get('/queries/history', poor)).body.pagination.total).toBe(MAX_REFUSED_REQUESTS_PER_DAY);
    expect(await world.listEvents(poor)).toEqual(before);
  });
});

describe('access to the query history', () => {
  test.each<[string, () => Promise<{ body: { data: { model: string }[] } }>, number]>([
    ['a key sees its own queries', () => world.get('/queries/history', second), 1],
    ['a key sees all queries of the account on request', () => world.get('/queries/history?all_keys=true', second), 4],
    ['a key sees its own queries with all_keys=false', () => world.get('/queries/history?all_keys=false', second), 1],
    ['an api-key header works as well', () => ask('/queries/history', { 'api-key': second.apiKey }), 1],
    ['a credit_id in the query sees all', () => ask(`/queries/history?credit_id=${account.creditId}`), 4],
    ['an x-credit-id header sees all', () => ofAccount(), 4],
    ['an account sees one key on request', () => ofAccount(`api_key=${second.apiKey}`), 1],
    [
      'a key with the credit_id of its account sees all',
      () => world.get(`/queries/history?credit_id=${account.creditId}`, second),
      4,
    ],
    [
      'a key with the credit_id of its account may send all_keys',
      () => world.get(`/queries/history?all_keys=TRUE&credit_id=${account.creditId}`, second),
      4,
    ],
  ])('%s', async (_, asked, rows) => {
    expect((await asked()).body.data).toHaveLength(rows);
  });

  test.each<[string, number, () => Promise<{ status: number }>]>([
    ['nothing', 401, () => ask('/queries/history')],
    ['an unknown key', 401, () => ask('/queries/history', { 'x-api-key': 'sk-x' })],
    ['an unknown credit_id', 401, () => ask(`/queries/history?credit_id=${crypto.randomUUID()}`)],
    ['an invalid credit_id', 401, () => ask('/queries/history?credit_id=1')],
    ['a key, with an api_key to filter by', 400, () => world.get(`/queries/history?api_key=${account.apiKey}`, second)],
    [
      'a key and the credit_id of another account',
      400,
      () => world.get(`/queries/history?credit_id=${stranger}`, second),
    ],
    ['all_keys that is not a boolean', 400, () => world.get('/queries/history?all_keys=yes', second)],
    ['a credit_id, with all_keys', 400, () => ofAccount('all_keys=true')],
    [
      'a credit_id, with a key of another account',
      400,
      async () => ofAccount(`api_key=${(await world.createAccount()).apiKey}`),
    ],
    ['a credit_id, with an unknown key', 400, () => ofAccount('api_key=sk-x')],
  ])('is denied to a caller that sends %s, with %i', async (_, status, asked) => {
    expect((await asked()).status).toBe(status);
  });
});

describe('a paid challenge', () => {
  const id = crypto.randomUUID();
  const issued = createIssuedChallenge({ reference: id });
  const { query, request, units, at, expiresAt } = issued;
  const price = parseUsd('0.0115');

  /** Issues and pays a challenge whose request fails, and waits until all read models have applied these events. */
  beforeAll(async () => {
    const { challenges } = world.getService(Streams);
    const run = (command: ChallengeCommand) => challenges.run(id, command, TEST_CAUSE);
    await run({ type: 'IssueChallenge', data: issued });
    await run({ type: 'RecordChallengePayment', data: { units: BigInt(units), at } });
    const terms = { holdId: `hold of ${id}`, request, maxAmount: price, query, expiresAt };
    await run({ type: 'ClaimChallenge', data: { ...terms, at } });
    const why = { errorCode: 'upstream_error', reason: 'it failed', attempts: [] };
    const { position } = await run({ type: 'ReleaseHold', data: { holdId: terms.holdId, ...why, at } });
    const pool = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
    await world.waitUntil(async () => {
      const { rows } = await pool.query('select min(position) as position from books.checkpoints');
      return BigInt(rows[0].position) >= position;
    });
    await pool.end();
  });

  const own = { 'x-credit-id': id };
  const messages = [{ role: 'user', content: 'Hello' }];
  test.each<[string, string, string, object | undefined]>([
    ['its queries', 'GET', '/queries/history', undefined],
    ['keys', 'GET', '/keys', undefined],
    ['a new key', 'POST', '/keys', { name: 'mine' }],
    ['a balance', 'POST', '/credits/balance', undefined],
    ['a top-up', 'POST', '/topup/create/btc-lightning', { amount: 1, currency: 'USD' }],
    ['an automatic top-up', 'GET', '/nwc-auto-topup', undefined],
    ['a completion', 'POST', '/v1/chat/completions', { model: FLAT, messages }],
  ])('is not an account: its id as a credit id gives no access to %s', async (_, method, route, body) => {
    const sent = body ? { body } : {};
    expect((await world.send(method, route, { headers: own, ...sent })).status).toBe(401);
    if (method === 'GET') expect((await ask(`${route}?credit_id=${id}`)).status).toBe(401);
  });
});

describe('a filter', () => {
  test.each([
    [`model=${FLAT}`, 2],
    ['model=flat', 2],
    ['model=nope', 0],
    ['model=gpt-5-mini', 2],
    [`model=${GPT}:online`, 2],
    ['query_source=ui', 1],
    ['query_source=api', 3],
    ['query_type=chat_completion', 4],
    ['query_type=embedding', 0],
    [`model=${FLAT}&query_source=ui`, 1],
    ['model=&query_source=&query_type=', 4],
    ['limit=1&offset=2&unknown=%F0%9F%8E%89', 4],
    ['start_date=2020-01-01', 4],
    ['start_date=2999-01-01T00:00:00Z', 0],
    ['end_date=2999-01-01T00:00:00%2B02:00', 4],
    ['end_date=2020-01-01', 0],
  ])('with %s finds %i of 4 records', async (query, rows) => {
    const { status, body } = await ofAccount(query);
    expect([status, body.data.length, body.pagination.total]).toEqual([200, rows, rows]);
  });

  test('includes the records at its first and its last date', async () => {
    const { data } = (await ofAccount()).body;
    const [third, first] = [data[1].timestamp, data[3].timestamp];
    expect((await ofAccount(`start_date=${first}&end_date=${third}`)).body.data).toEqual(data.slice(1));
    const after = new Date(Date.parse(first) + 1).toISOString();
    expect((await ofAccount(`start_date=${after}`)).body.data).toEqual(data.slice(0, 3));
  });

  test('includes the entire day of a date without a time', async () => {
    const days = (await ofAccount()).body.data.map((row: { timestamp: string }) => row.timestamp.slice(0, 10));
    const { body } = await ofAccount(`start_date=${days.at(-1)}&end_date=${days[0]}`);
    expect(body.data).toHaveLength(4);
  });

  test.each([
    'start_date=yesterday',
    'start_date=2026-02-30',
    'start_date=0000-01-01',
    'end_date=9999-12-31T23:59:59-12:00',
    'end_date=2026-W05',
    'model=a&model=b',
    'model=%00',
    'page=one',
    'page_count=many',
  ])('is rejected if it is %s', async (query) => {
    expect((await ofAccount(query)).status).toBe(400);
  });
});

describe('a page', () => {
  const ALL = { total_is_exact: true, looked_back_to: null };

  test('has a size of 20 unless another size is requested', async () => {
    expect((await ofAccount()).body.pagination).toEqual({ page: 1, page_count: 20, total: 4, total_pages: 1, ...ALL });
  });

  test('continues where the page before it ended', async () => {
    const all = (await ofAccount()).body.data;
    const pages = await Promise.all([1, 2, 3].map((page) => ofAccount(`page=${page}&page_count=3`)));
    expect(pages.map(({ body }) => body.data)).toEqual([all.slice(0, 3), all.slice(3), []]);
    expect(pages[1]?.body.pagination).toEqual({ page: 2, page_count: 3, total: 4, total_pages: 2, ...ALL });
  });

  test.each([
    ['page_count=1000', { page: 1, page_count: 100 }],
    ['page_count=0', { page: 1, page_count: 1 }],
    ['page_count=-5&page=-5', { page: 1, page_count: 1 }],
    ['page=2.9&page_count=2.9', { page: 2, page_count: 2 }],
    ['page=&page_count=', { page: 1, page_count: 20 }],
    ['page=9007199254740991&page_count=1', { page: 1_000_000_000, page_count: 1 }],
  ])('has a valid number and size when requested with %s', async (query, pagination) => {
    const { status, body } = await ofAccount(query);
    expect(status).toBe(200);
    expect(body.pagination).toMatchObject({ ...pagination, total: 4 });
  });
});
