/**
 * A newer version of the service has appended an event that this version does not know. No decision about its account
 * is made without it.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { PostgresEventStore } from '#eventstore';
import { type TestAccount, type TestResponse, TestWorld } from '#testing';

const STOPPED = { status: 503, body: { error: { type: 'unavailable', metadata: { error_type: 'server' } } } };

let world: TestWorld;
let stopped: TestAccount;
let other: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open({ READY_MAX_LAG_MS: '300' });
  [stopped, other] = [await world.createAccount(1), await world.createAccount(1)];
  expect((await world.sendChat(stopped)).status).toBe(200); // its state is cached now
  const store = new PostgresEventStore({ connectionString: world.databaseUrl });
  const stream = `account-${world.getAccountId(stopped)}`;
  const { revision } = (await store.readHead(stream)) ?? { revision: -1 };
  await store.append(stream, revision, [
    { id: crypto.randomUUID(), type: 'HoldSettled', data: { holdId: 'x' }, metadata: { version: 1_000 } },
  ]);
  await store.close();
});
afterAll(() => world.close());

test.each<[string, () => Promise<TestResponse>]>([
  ['a chat', () => world.sendChat(stopped)],
  ['a repeated chat', () => world.sendChat(stopped)],
  [
    'a new key',
    () => world.send('POST', '/keys', { headers: { 'x-credit-id': stopped.creditId }, body: { name: 'k' } }),
  ],
])('responds with 503 to %s of the account with the unknown event', async (_, ask) => {
  expect(await ask()).toMatchObject(STOPPED);
});

test('serves a chat of another account', async () => {
  expect((await world.sendChat(other)).status).toBe(200);
});

test.each(['/keys', '/queries/history'])(
  'does not return read models that lack an event of the account (%s)',
  async (path) => {
    const read = (account: TestAccount) => world.send('GET', path, { headers: { 'x-credit-id': account.creditId } });
    expect(await read(stopped)).toMatchObject(STOPPED);
    const { status, headers } = await read(other);
    expect([status, headers.get('x-books-behind')]).toEqual([200, null]);
  },
);

test('responds with 503 to an unknown key while the read model may lack that key', async () => {
  const [id, store] = [crypto.randomUUID(), new PostgresEventStore({ connectionString: world.databaseUrl })];
  const unknown = () => world.sendChat({ ...other, apiKey: 'sk-unknown' });
  expect((await unknown()).status).toBe(401);
  const made = { id: crypto.randomUUID(), type: 'KeyCreated', data: {}, metadata: { version: 1_000 } };
  await store.append(`account-${id}`, -1, [made]);
  expect(await unknown()).toMatchObject(STOPPED);
  expect((await world.sendChat(other)).status).toBe(200);
  const pool = world.getService(pg.Pool);
  await pool.query('delete from es.skipped where stream = $1', [`account-${id}`]);
  await store.close();
});

test('returns only the balance of another account, and reports that one stream is incomplete', async () => {
  await world.sendChat(other);
  const held = async ({ creditId }: TestAccount) =>
    world.send('POST', '/credits/balance', { body: { credit_id: creditId } });
  expect(await held(stopped)).toMatchObject(STOPPED);
  expect((await held(other)).status).toBe(200);
  let ready = await world.get('/health/ready');
  await world.waitUntil(async () => {
    ready = await world.get('/health/ready');
    return ready.status === 200; // while other read models lag for longer than the limit, it is 503
  });
  expect([ready.status, ready.body.checks.read_models]).toEqual([
    200,
    { ok: false, required: false, incomplete_streams: 1, stopped: [] },
  ]);
});
