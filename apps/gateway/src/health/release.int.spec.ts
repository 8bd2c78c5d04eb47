import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { WRITE_CONTRACT } from '#eventstore';
import { RELEASE } from '#foundation';
import { shortenDelays, type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
let database: pg.Client;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  database = new pg.Client({ connectionString: world.databaseUrl });
  await database.connect();
  account = await world.createAccount(1);
});
afterEach(() => accept(WRITE_CONTRACT));
afterAll(async () => {
  await database.end();
  await world.close();
});

const accept = (contract: number) => database.query('update es.contracts set oldest = $1, newest = $1', [contract]);
const checkRelease = async () => {
  const { status, body } = await world.send('GET', '/health/ready');
  return [status, body.checks.release];
};

test('a gateway reports its version, commit and schema', async () => {
  const { status, body } = await world.send('GET', '/health');
  expect([status, body]).toEqual([200, { status: 'ok', ...RELEASE }]);
  expect(await checkRelease()).toEqual([200, { ok: true, required: true, version: RELEASE.version }]);
});

test.each([
  ['newer', WRITE_CONTRACT + 1],
  ['older', WRITE_CONTRACT - 1],
])(
  'a gateway whose database accepts only %s releases is not ready, gets 503 for requests, and charges nothing',
  async (_, contract) => {
    const before = await world.fetchBalance(account);
    await accept(contract);
    const restoreDelays = shortenDelays(20); // the gateway tries to append again
    const { status, headers } = await world.sendChat(account);
    restoreDelays();
    expect(status).toBe(503);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await checkRelease()).toEqual([503, { ok: false, required: true, version: RELEASE.version }]);
    await accept(WRITE_CONTRACT);
    expect(await world.fetchBalance(account)).toBe(before);
    expect((await world.sendChat(account)).status).toBe(200);
  },
);
