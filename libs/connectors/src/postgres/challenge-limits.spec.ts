import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { TooManyChallenges } from '#application';
import { migrate } from '#infra';
import { StoreUnavailable } from '#kernel';
import { createTestDatabase, type TestDatabase } from '#testing';
import { challengeLimitMigrations, PostgresChallengeLimits } from './challenge-limits.ts';

const RATES = { challengesPerMinute: 20, challengesPerMinuteInAll: 30 };

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(database.url, challengeLimitMigrations);
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => {}); // the database may be dropped before the last connection is quite closed
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const allowed = async (asked: readonly Promise<void>[]) =>
  (await Promise.allSettled(asked)).filter(({ status }) => status === 'fulfilled').length;

test('gateways count together, also what comes at once: each address by itself, and all that is issued', async () => {
  const gateways = [1, 2, 3].map(() => new PostgresChallengeLimits(pool, RATES));
  const from = (address: string) => gateways.flatMap((each) => Array.from({ length: 20 }, () => each.ask(address)));
  expect(await allowed(from('192.0.2.1'))).toBe(20);
  expect(await allowed(from('192.0.2.2'))).toBe(20);
  expect(await allowed(gateways.flatMap((each) => Array.from({ length: 20 }, () => each.issue())))).toBe(30);
  const refused = await gateways[0]?.ask('192.0.2.1').catch((error) => error);
  expect(refused).toBeInstanceOf(TooManyChallenges);
  expect(refused.retryAfterSeconds).toBeGreaterThan(50);
  expect(refused.retryAfterSeconds).toBeLessThanOrEqual(60);
});

test('what has expired is counted no more, and removed', async () => {
  const limits = new PostgresChallengeLimits(pool, RATES);
  await pool.query("update limits.challenges set expire = 1 where key = 'asked:192.0.2.2'");
  await limits.ask('192.0.2.2');
  await pool.query('update limits.challenges set expire = 1');
  await limits.removeExpired();
  expect((await pool.query('select from limits.challenges')).rowCount).toBe(0);
});

test('nothing is allowed that cannot be counted', async () => {
  const away = new pg.Pool({ connectionString: database.url.replace(/[^/]+$/, 'not_there') });
  const limits = new PostgresChallengeLimits(away, RATES);
  await expect(limits.ask('192.0.2.1')).rejects.toBeInstanceOf(StoreUnavailable);
  await expect(limits.issue()).rejects.toBeInstanceOf(StoreUnavailable);
  await away.end();
});
