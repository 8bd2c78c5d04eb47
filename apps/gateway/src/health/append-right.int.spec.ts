import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { formatFailure } from '#foundation';
import { TestWorld } from '#testing';

const MASTER_KEY = 'ab'.repeat(32);

let world: TestWorld;
let database: pg.Client;
beforeAll(async () => {
  world = await TestWorld.open({ MASTER_KEY });
  database = new pg.Client({ connectionString: world.databaseUrl });
  await database.connect();
});
afterAll(async () => {
  await database.end();
  await world.close();
});

const changeRight = (change: 'grant' | 'revoke') =>
  database.query(
    `${change} execute on function es.append_events ${change === 'grant' ? 'to' : 'from'} "${new URL(world.databaseUrl).username}"`,
  );
const isReady = async () => (await world.send('GET', '/health/ready')).body.checks.append.ok;

test('a gateway whose user may not append is not ready, gets 503 for requests, and charges nothing', async () => {
  const account = await world.createAccount(1);
  const before = await world.fetchBalance(account);
  expect(await isReady()).toBe(true);

  await changeRight('revoke');
  const { status, headers } = await world.sendChat(account);
  expect(status).toBe(503);
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await isReady()).toBe(false);
  await changeRight('grant');

  expect(await isReady()).toBe(true);
  expect(await world.fetchBalance(account)).toBe(before);
  expect((await world.sendChat(account)).status).toBe(200);
});

test('a start without the right to append ends with one sentence that says how to grant it', async () => {
  await changeRight('revoke');

  const failure = await TestWorld.open({ MASTER_KEY, DATABASE_URL: world.databaseUrl }).catch(
    (error: unknown) => error,
  );

  expect(formatFailure(failure)).toMatch(/^The database user .*for function append_events; run "npm run grant"/);
  await changeRight('grant');
});
