/** A newer version of the service has written a fact that this one does not know: nothing is decided without it. */
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
  expect((await world.sendChat(stopped)).status).toBe(200); // its state is warm now
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
  ['a chat again', () => world.sendChat(stopped)],
  [
    'a new key',
    () => world.send('POST', '/keys', { headers: { 'x-credit-id': stopped.creditId }, body: { name: 'k' } }),
  ],
])('%s of its account is answered with 503', async (_, ask) => {
  expect(await ask()).toMatchObject(STOPPED);
});

test('other accounts are served', async () => {
  expect((await world.sendChat(other)).status).toBe(200);
});

test.each(['/keys', '/queries/history'])(
  'what the books do not know of its account is not shown (%s)',
  async (path) => {
    const read = (account: TestAccount) => world.send('GET', path, { headers: { 'x-credit-id': account.creditId } });
    expect(await read(stopped)).toMatchObject(STOPPED);
    expect(await read(other)).toMatchObject({
      status: 200,
      headers: expect.not.objectContaining({ 'x-books-behind': 'true' }),
    });
  },
);

test('a key that nothing here can read is not wrong, and neither is any that it might be', async () => {
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

test('the read models go on behind it, for all others, and verify names it', async () => {
  await world.sendChat(other);
  const held = async ({ creditId }: TestAccount) =>
    world.send('POST', '/credits/balance', { body: { credit_id: creditId } });
  expect(await held(stopped)).toMatchObject(STOPPED);
  expect((await held(other)).status).toBe(200);
  const ready = await world.get('/health/ready');
  expect([ready.status, ready.body.checks.read_models]).toEqual([
    200,
    { ok: false, required: false, incomplete_streams: 1, stopped: [] },
  ]);
});
