import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { ConnectionProbe } from '#postgres';
import { createTestDatabase, TestWorld } from '#testing';

let world: TestWorld;
let admin: pg.Client;
beforeAll(async () => {
  // Each check of the readiness opens a connection, instead of one in two seconds.
  const { check } = ConnectionProbe.prototype;
  jest.spyOn(ConnectionProbe.prototype, 'check').mockImplementation(function (this: ConnectionProbe) {
    return check.call(Object.create(this, { lastAttempt: { value: undefined, writable: true } }));
  });
  world = await TestWorld.open();
  const url = Object.assign(new URL(world.databaseUrl), { username: 'postgres', pathname: '/postgres' });
  admin = new pg.Client({ connectionString: url.href });
  await admin.connect();
});
afterAll(async () => {
  jest.restoreAllMocks();
  await admin.end();
  await world.close();
});

const allowConnections = (databaseUrl: string, allowed: boolean) =>
  admin.query(`alter database ${new URL(databaseUrl).pathname.slice(1)} with allow_connections ${allowed}`);
/** @returns the status of the process, and whether a check has passed */
const checkReadiness = async (check: string, gateway: object = {}) => {
  const { status, body } = await world.send('GET', '/health/ready', gateway);
  return [status, body.checks[check].ok];
};

test('a gateway is not ready after its database rejects new connections, even if open ones work', async () => {
  const open = new pg.Client({ connectionString: world.databaseUrl });
  await open.connect();
  await world.waitUntil(async () => (await checkReadiness('postgres'))[0] === 200);

  await allowConnections(world.databaseUrl, false);
  await world.waitUntil(async () => (await checkReadiness('postgres'))[0] === 503);
  expect((await open.query('select 1')).rowCount).toBe(1);
  await allowConnections(world.databaseUrl, true);
  await world.waitUntil(async () => (await checkReadiness('postgres'))[0] === 200);
  await open.end();
});

test('a gateway reports that its separate database for content rejects connections, and stays ready', async () => {
  const content = await createTestDatabase();
  const gateway = await world.startGateway({ contentDatabaseUrl: content.url });
  await world.waitUntil(async () => (await checkReadiness('content', gateway)).join() === '200,true');

  await allowConnections(content.url, false);

  await world.waitUntil(async () => (await checkReadiness('content', gateway)).join() === '200,false');
  await gateway.close();
  await content.drop();
});
