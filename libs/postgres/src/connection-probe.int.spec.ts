import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { ConnectionProbe, openPool } from '#postgres';
import { createTestDatabase, slowTime, type TestDatabase } from '#testing';

let database: TestDatabase;
let admin: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  admin = new pg.Client({
    connectionString: Object.assign(new URL(database.superuserUrl), { pathname: '/postgres' }).href,
  });
  await admin.connect();
});
afterAll(async () => {
  await admin.end();
  await database.drop();
});

const allowConnections = (allowed: boolean) =>
  admin.query(`alter database ${new URL(database.url).pathname.slice(1)} with allow_connections ${allowed}`);

test('a probe fails while the database rejects new connections, even if open ones work', async () => {
  const pool = openPool({ connectionString: database.url, name: 'test', max: 1 });
  const probe = new ConnectionProbe({ connectionString: database.url, maxAgeMs: -1 });
  await pool.query('select 1');
  await probe.check();

  await allowConnections(false);

  await expect(probe.check()).rejects.toMatchObject({ code: '55000' });
  await pool.query('select 1');
  await allowConnections(true);
  await probe.check();
  await pool.end();
});

test('callers of a probe share one attempt for some time, also if it fails', async () => {
  const probe = new ConnectionProbe({ connectionString: database.url, maxAgeMs: 60_000 });
  await allowConnections(false);
  const first = probe.check();
  await expect(first).rejects.toMatchObject({ code: '55000' });

  await allowConnections(true);

  expect(probe.check()).toBe(first);
});

test('callers share a result of a probe for at most 2 s', async () => {
  const probe = new ConnectionProbe({ connectionString: database.url });
  await slowTime(async (advance) => {
    const first = probe.check();
    advance(1_900);
    expect(probe.check()).toBe(first);
    advance(200);
    const second = probe.check();
    expect(second).not.toBe(first);
    await Promise.all([first, second]);
  });
});
