/**
 * While no read model advances, commands return their results. Reads of the balance, the keys and the history report
 * that they may be outdated.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { CommandBus } from '@nestjs/cqrs';
import pg from 'pg';
import { OpenAccount } from '#application';
import { createRootCause } from '#kernel';
import { ProjectionProgress } from '#projections';
import { type TestAccount, type TestResponse, TestWorld } from '#testing';

const TESTS = 8;

let world: TestWorld;
let prepared: { readonly account: TestAccount; readonly keyId: string }[];
let account: TestAccount;
let keyId: string;
let lock: pg.Client;

/** Creates an account for each test, then locks the checkpoints so that no read model advances. */
beforeAll(async () => {
  world = await TestWorld.open();
  prepared = await Promise.all(Array.from({ length: TESTS }, prepare));
  lock = new pg.Client({ connectionString: world.databaseUrl });
  await lock.connect();
  await stand();
});
afterAll(async () => {
  await lock.end();
  await world.close();
});
beforeEach(() => {
  ({ account, keyId } = prepared.pop() as (typeof prepared)[0]);
  endWaits();
});
afterEach(() => void jest.restoreAllMocks());

/** Checks the read models only once instead of waiting for them: no wait would be long enough. */
function endWaits(): void {
  const { waitUntilApplied } = ProjectionProgress.prototype;
  jest.spyOn(ProjectionProgress.prototype, 'waitUntilApplied').mockImplementation(function (
    this: ProjectionProgress,
    projections,
    position,
  ) {
    return waitUntilApplied.call(this, projections, position, 0, true);
  });
}

const stand = () => lock.query('begin; lock table books.checkpoints in exclusive mode');

/** Opens an account as another gateway would: this gateway does not cache its key. */
async function elsewhere(): Promise<TestAccount> {
  return world.getService(CommandBus).execute(new OpenAccount(createRootCause('another gateway', 'x')));
}

async function prepare() {
  const own = await world.createAccount(1.05);
  const { body } = await send('GET', '/keys', undefined, own);
  return { account: own, keyId: body.data[0]._id as string };
}

const send = (method: string, route: string, body?: unknown, { creditId } = account): Promise<TestResponse> =>
  world.send(method, route, { headers: { 'x-credit-id': creditId }, ...(body === undefined ? {} : { body }) });

describe('while the projector is paused, the gateway', () => {
  test('opens an account whose key can be used on this gateway', async () => {
    const { status, body } = await world.send('POST', '/accounts/create');
    expect([status, body.success, body.balance]).toEqual([201, true, 0]);
    const opened = { creditId: body.credit_id, apiKey: body.api_key };
    expect((await world.sendChat(opened)).status).toBe(402);
    const topup = await world.post('/topup/create/btc-lightning', { amount: 5, currency: 'USD' }, opened);
    expect(topup.status).toBe(201);
    const history = await world.get('/queries/history', opened);
    expect([history.status, history.headers.get('x-books-behind')]).toEqual([200, 'true']);
  });

  test('creates a key and returns it', async () => {
    const { status, body } = await send('POST', '/keys', { name: 'new', usage_limit_usd: 5, reset_period: 'monthly' });
    expect(status).toBe(201);
    expect(body.data).toEqual({
      _id: expect.stringMatching(/^[0-9a-f]{24}$/),
      name: 'new',
      api_key: expect.stringMatching(/^sk-/),
      usage_limit_usd: 5,
      current_period_usage_usd: 0,
      total_usage_all_time_usd: 0,
      reset_period: 'monthly',
      reset_at: expect.stringMatching(/-01T00:00:00.000Z$/),
      expire_at: null,
      models: null,
      blocked: false,
      metadata: {},
      dedupe_seconds: null,
      created_at: expect.any(String),
      updated_at: body.data.created_at,
      deleted_at: null,
    });
    expect((await world.sendChat({ ...account, apiKey: body.data.api_key })).status).toBe(200);
  });

  test('changes a key and returns it with its usage so far', async () => {
    const used = (await world.sendChat(account)).body.usage.cost;
    const { status, body } = await send('PATCH', `/keys/${keyId}`, { name: 'renamed', usage_limit_usd: 3 });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({
      name: 'renamed',
      usage_limit_usd: 3,
      current_period_usage_usd: used,
      total_usage_all_time_usd: used,
      deleted_at: null,
    });
    expect(body.data.updated_at > body.data.created_at).toBe(true);
  });

  test('revokes a key', async () => {
    expect((await send('DELETE', `/keys/${keyId}`)).status).toBe(200);
    expect((await send('PATCH', `/keys/${keyId}`, { name: 'late' })).status).toBe(404);
  });

  test('reports in a header that reads may be outdated', async () => {
    const before = await world.post('/credits/balance', undefined, account);
    expect([before.status, before.headers.get('x-books-behind')]).toEqual([200, null]);
    expect((await world.sendChat(account)).status).toBe(200);
    const reads = [
      ['POST', '/credits/balance'],
      ['GET', '/keys'],
      ['GET', `/keys/${keyId}`],
      ['GET', '/queries/history'],
    ] as const;
    const answers = await Promise.all(reads.map(([method, route]) => send(method, route)));
    expect(answers.map(({ status, headers }) => [status, headers.get('x-books-behind')])).toEqual(
      reads.map(() => [200, 'true']),
    );
  });

  test('responds with 503 for an object that was written but cannot be read yet', async () => {
    const { body } = await send('POST', '/keys', { name: 'unseen' });
    const unseen = await send('GET', `/keys/${body.data._id}`);
    expect([unseen.status, unseen.headers.get('retry-after')]).toEqual([503, '1']);
    const { body: opened } = await world.send('POST', '/accounts/create');
    expect((await world.post('/credits/balance', { credit_id: opened.credit_id })).status).toBe(503);
  });

  test('responds with 503 to a key that it does not find, and checks the key once the projector runs', async () => {
    const made = await elsewhere();
    const about = await send('GET', `/queries/history?api_key=${made.apiKey}`, undefined, made);
    const asked = [await world.sendChat(made), await world.post('/credits/balance', undefined, made), about];
    expect(asked.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual(
      asked.map(() => [503, '1']),
    );
    expect(asked[0]?.body.error).toMatchObject({ type: 'unavailable', metadata: { error_type: 'server' } });
    expect((await world.sendChat({ ...made, apiKey: 'sk-of-nobody' })).status).toBe(503);
    await lock.query('rollback');
    jest.restoreAllMocks();
    try {
      await world.waitUntil(async () => (await world.sendChat(made)).status === 402);
      expect((await world.sendChat({ ...made, apiKey: 'sk-of-nobody' })).status).toBe(401);
    } finally {
      await stand();
    }
  });

  test('connects a wallet and shows it', async () => {
    const before = await send('GET', '/nwc-auto-topup');
    expect([before.status, before.body.connected]).toEqual([200, false]);
    const { nwc_url } = await world.createNwcWallet();
    const connected = await send('POST', '/nwc-auto-topup/connect', { nwc_url });
    const shown = await send('GET', '/nwc-auto-topup');
    for (const { status, body } of [connected, shown]) expect([status, body.connected]).toEqual([200, true]);
  });
});
