import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type TestAccount, TestWorld } from '#testing';

const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const NEVER_USED = '0123456789abcdef01234567';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
});
beforeEach(async () => {
  account = await world.createAccount();
});
afterAll(() => world.close());

const ask = (method: string, route: string, body?: unknown, { creditId } = account) =>
  world.send(method, route, { headers: { 'x-credit-id': creditId }, body });
const create = (fields: object) => ask('POST', '/keys', { name: 'bot', ...fields });
const created = async (fields: object = {}) => (await create(fields)).body.data;

describe('a key', () => {
  test('is returned on creation with its secret and all other fields', async () => {
    const { status, body } = await create({});
    expect(status).toBe(201);
    expect(body).toEqual({
      status: 'success',
      data: {
        _id: expect.stringMatching(/^[0-9a-f]{24}$/),
        name: 'bot',
        api_key: expect.stringMatching(/^sk-[A-Za-z0-9]{22}$/),
        usage_limit_usd: null,
        current_period_usage_usd: 0,
        total_usage_all_time_usd: 0,
        reset_period: null,
        reset_at: null,
        expire_at: null,
        models: null,
        blocked: false,
        metadata: {},
        dedupe_seconds: null,
        created_at: expect.stringMatching(INSTANT),
        updated_at: expect.stringMatching(INSTANT),
        deleted_at: null,
      },
    });
  });

  test('is managed with the credit id alone, whatever key of the account is sent as well', async () => {
    const { _id, api_key: revoked } = await created();
    await ask('DELETE', `/keys/${_id}`);
    const list = (authorization: string) => {
      const headers = { 'x-credit-id': account.creditId, authorization };
      return world.send('GET', '/keys', { headers });
    };
    for (const authorization of [`Bearer ${account.apiKey}`, `Bearer ${revoked}`, 'Bearer sk-unknown', 'Basic YTpi'])
      expect([authorization, (await list(authorization)).status]).toEqual([authorization, 200]);
    const { apiKey } = await world.createAccount();
    const { status, body } = await list(`Bearer ${apiKey}`);
    expect([status, body.error.param]).toEqual([400, 'x-credit-id']);
    expect(body.data).toBeUndefined();
  });

  test('can be used as soon as it is created', async () => {
    const { api_key } = await created();
    expect((await world.send('POST', '/credits/balance', { headers: { 'api-key': api_key } })).status).toBe(200);
  });

  test('is created with explicit nulls as if the fields were omitted', async () => {
    const { status, body } = await create({ usage_limit_usd: null, reset_period: null, expire_at: null });
    expect(status).toBe(201);
    expect(body.data).toMatchObject({ usage_limit_usd: null, reset_period: null, reset_at: null, expire_at: null });
  });

  test('stores its limit, its reset period and its expiry', async () => {
    const fields = { usage_limit_usd: 12.345678, reset_period: 'weekly', expire_at: '2999-01-01T02:00:00+02:00' };
    const { _id } = await created(fields);
    const { body } = await ask('GET', `/keys/${_id}`);
    expect(body.data).toMatchObject({ ...fields, expire_at: '2999-01-01T00:00:00.000Z' });
  });

  test('reads an expiry without a time zone as UTC', async () => {
    expect((await created({ expire_at: '2999-01-01T12:00:00' })).expire_at).toBe('2999-01-01T12:00:00.000Z');
  });

  test('ignores fields that are no settings, such as _id or api_key', async () => {
    const { status, body } = await create({ _id: NEVER_USED, api_key: 'sk-mine' });
    expect(status).toBe(201);
    expect(body.data._id).not.toBe(NEVER_USED);
    expect(body.data.api_key).not.toBe('sk-mine');
  });

  test('accepts the shortest and the longest name, and the smallest limit', async () => {
    for (const fields of [{ name: 'a' }, { name: 'x'.repeat(25) }, { name: 'é 🎉 "x"', usage_limit_usd: 0.01 }]) {
      expect((await created(fields)).name).toBe(fields.name);
    }
  });

  test.each([
    ['no name', { name: undefined }, 'name'],
    ['null for a name', { name: null }, 'name'],
    ['a number for a name', { name: 7 }, 'name'],
    ['an empty name', { name: '' }, 'name'],
    ['a name of 26 characters', { name: 'x'.repeat(26) }, 'name'],
    ['a NUL in its name', { name: 'a\0b' }, 'name'],
    ['an unpaired surrogate in its name', { name: 'a\ud800b' }, 'name'],
    ['a limit below a cent', { usage_limit_usd: 0.0099 }, 'usage_limit_usd'],
    ['a limit of zero', { usage_limit_usd: 0 }, 'usage_limit_usd'],
    ['a negative limit', { usage_limit_usd: -5 }, 'usage_limit_usd'],
    ['a limit that is a string', { usage_limit_usd: '5' }, 'usage_limit_usd'],
    ['a limit that is too large', { usage_limit_usd: 1e300 }, 'usage_limit_usd'],
    ['an unknown reset period', { usage_limit_usd: 1, reset_period: 'yearly' }, 'reset_period'],
    ['an expiry that is not a date', { expire_at: 'tomorrow' }, 'expire_at'],
    ['an expiry on a day that does not exist', { expire_at: '2999-02-30' }, 'expire_at'],
    ['an expiry in weeks', { expire_at: '2999-W05-1' }, 'expire_at'],
    ['an expiry that is a number', { expire_at: 32503680000000 }, 'expire_at'],
  ])('with %s is rejected with the name of the field', async (_, fields, param) => {
    const { status, body } = await create(fields);
    expect(status).toBe(400);
    expect(body).toMatchObject({ status: 'error', statusCode: 400, error: { param, type: 'invalid_request_error' } });
    expect(body.message).toContain(param);
  });

  test.each([
    ['a reset period without a limit', { reset_period: 'daily' }],
    ['an expiry in the past', { expire_at: '2020-01-01T00:00:00Z' }],
  ])('with %s is rejected', async (_, fields) => {
    expect((await create(fields)).status).toBe(400);
  });

  test('appends no event if it is rejected, and can be created afterwards', async () => {
    await create({ name: 'a\0b' });
    await create({ usage_limit_usd: 1e300 });
    expect((await world.listEvents(account)).map(({ type }) => type)).toEqual(['AccountOpened', 'KeyCreated']);
    expect((await create({})).status).toBe(201);
  });

  test('cannot have the name of another active key, even if both are created at the same time', async () => {
    const answers = await Promise.all([create({}), create({}), create({}), create({ name: 'Default' })]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  test('may have the name of a revoked key, or of a key of another account', async () => {
    const { _id } = await created();
    await ask('DELETE', `/keys/${_id}`);
    expect((await create({})).status).toBe(201);
    expect((await ask('POST', '/keys', { name: 'bot' }, await world.createAccount())).status).toBe(201);
  });
});

describe('the list of keys', () => {
  const listed = async (query = '') => (await ask('GET', `/keys${query}`)).body.data;

  test('is in the order of creation, and reveals secrets only on request', async () => {
    const { api_key } = await created();
    expect((await listed()).map(({ name }: { name: string }) => name)).toEqual(['Default', 'bot']);
    expect((await ask('GET', '/keys')).text).not.toContain('api_key');
    expect((await ask('GET', '/keys?show_key=false')).text).not.toContain('api_key');
    expect((await listed('?show_key=true'))[1].api_key).toBe(api_key);
  });

  test('includes revoked keys only on request', async () => {
    const { _id } = await created();
    await ask('DELETE', `/keys/${_id}`);
    expect(await listed()).toHaveLength(1);
    expect(await listed('?include_disabled=false')).toHaveLength(1);
    const [, revoked] = await listed('?include_disabled=true');
    expect(revoked).toMatchObject({ _id, deleted_at: expect.stringMatching(INSTANT) });
  });
});

describe('one key', () => {
  test('is returned by its id, with its secret only on request', async () => {
    const { api_key, ...shown } = await created();
    expect((await ask('GET', `/keys/${shown._id}`)).body).toEqual({ status: 'success', data: shown });
    expect((await ask('GET', `/keys/${shown._id}?show_key=true`)).body.data).toEqual({ ...shown, api_key });
  });

  test('changes only the fields that are sent and updated_at, and does not return its secret again', async () => {
    const { api_key, ...before } = await created({ usage_limit_usd: 5, reset_period: 'daily' });
    const { status, body } = await ask('PATCH', `/keys/${before._id}`, { name: 'renamed' });
    expect(status).toBe(200);
    expect(body.data).toEqual({ ...before, name: 'renamed', updated_at: expect.stringMatching(INSTANT) });
    expect(Date.parse(body.data.updated_at)).toBeGreaterThanOrEqual(Date.parse(before.updated_at));
    expect((await world.send('POST', '/credits/balance', { headers: { 'api-key': api_key } })).status).toBe(200);
  });

  test.each([
    ['its expiry', { expire_at: null }],
    ['its reset period', { reset_period: null }],
    ['its limit and its reset period', { usage_limit_usd: null, reset_period: null }],
    ['everything', { usage_limit_usd: null, reset_period: null, expire_at: null }],
  ])('removes %s on an explicit null', async (_, nulls) => {
    const fields = { usage_limit_usd: 5, reset_period: 'daily', expire_at: '2999-01-01T00:00:00.000Z' };
    const { _id } = await created(fields);
    const { body } = await ask('PATCH', `/keys/${_id}`, nulls);
    expect(body.data).toMatchObject({ ...fields, ...nulls });
    expect(body.data.reset_at === null).toBe('reset_period' in nulls);
  });

  test.each([[{}], [undefined], [{ name: 'bot' }], [{ _id: '1' }]])(
    'stays unchanged and appends no event if %j changes nothing',
    async (nothing) => {
      const { api_key: _, ...before } = await created();
      const facts = await world.listEvents(account);
      expect((await ask('PATCH', `/keys/${before._id}`, nothing)).body.data).toEqual(before);
      expect(await world.listEvents(account)).toHaveLength(facts.length);
    },
  );

  test.each([
    ['a null name', { name: null }, 400],
    ['an empty name', { name: '' }, 400],
    ['the name of another key', { name: 'Default' }, 409],
    ['a limit below a cent', { usage_limit_usd: 0.001 }, 400],
    ['a reset period without a limit', { reset_period: 'monthly' }, 400],
    ['an expiry in the past', { expire_at: '2020-01-01' }, 400],
    ['a name with a NUL', { name: 'a\0b' }, 400],
  ])('rejects a change to %s', async (_, changes, status) => {
    const { api_key: __, ...before } = await created();
    expect((await ask('PATCH', `/keys/${before._id}`, changes)).status).toBe(status);
    expect((await ask('GET', `/keys/${before._id}`)).body.data).toEqual(before);
  });

  test('loses its reset period with its limit', async () => {
    const { _id } = await created({ usage_limit_usd: 5, reset_period: 'daily' });
    const { status, body } = await ask('PATCH', `/keys/${_id}`, { usage_limit_usd: null });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ usage_limit_usd: null, reset_period: null, reset_at: null });
  });

  test('is rejected with a message about the NUL in its name', async () => {
    const { status, body } = await ask('POST', '/keys', { name: 'a\0b' });
    expect([status, body.error.param, body.message]).toEqual([400, 'name', expect.stringContaining('NUL')]);
  });

  test.each(['TRUE', 'True', '1'])('includes its secret with show_key=%s', async (word) => {
    const { _id, api_key } = await created();
    expect((await ask('GET', `/keys/${_id}?show_key=${word}`)).body.data.api_key).toBe(api_key);
    expect((await ask('GET', `/keys?show_key=0&include_disabled=FALSE`)).text).not.toContain('sk-');
  });

  test.each(['/keys?show_key=yes', '/keys?include_disabled=2', '/keys?show_key=', '/keys?show_key=true&show_key=true'])(
    'rejects %s, whose flag is not a single boolean',
    async (route) => expect((await ask('GET', route)).status).toBe(400),
  );

  test('is revoked only once, and can still be read', async () => {
    const { _id } = await created();
    const { status, body } = await ask('DELETE', `/keys/${_id}`);
    expect([status, body]).toEqual([200, { status: 'success', message: expect.stringMatching(/revoked/) }]);
    expect((await ask('DELETE', `/keys/${_id}`)).status).toBe(404);
    expect((await ask('PATCH', `/keys/${_id}`, { name: 'back' })).status).toBe(404);
    expect((await ask('GET', `/keys/${_id}`)).body.data.deleted_at).toMatch(INSTANT);
    expect((await world.listEvents(account)).filter(({ type }) => type === 'KeyRevoked')).toHaveLength(1);
  });

  test.each(['GET', 'PATCH', 'DELETE'])('is not found by %s if it belongs to another account', async (method) => {
    const { _id } = await created();
    const stranger = await world.createAccount();
    const body = method === 'PATCH' ? { name: 'mine' } : undefined;
    expect((await ask(method, `/keys/${_id}`, body, stranger)).status).toBe(404);
    expect((await ask(method, `/keys/${NEVER_USED}`, body)).status).toBe(404);
    expect((await ask('GET', `/keys/${_id}`)).body.data).toMatchObject({ name: 'bot', deleted_at: null });
  });
});

describe('a caller without the x-credit-id of an account', () => {
  test.each(['GET /keys', 'POST /keys', 'GET /keys/x', 'PATCH /keys/x', 'DELETE /keys/x'])(
    'is rejected by %s',
    async (route) => {
      const [method = '', path = ''] = route.split(' ');
      const body = method === 'POST' || method === 'PATCH' ? { name: 'x' } : undefined;
      const headers: Record<string, string>[] = [
        {},
        { authorization: `Bearer ${account.apiKey}` },
        { 'x-credit-id': crypto.randomUUID() },
        { 'x-credit-id': account.apiKey },
      ];
      for (const each of headers) expect((await world.send(method, path, { headers: each, body })).status).toBe(401);
    },
  );
});
