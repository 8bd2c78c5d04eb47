import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { TooManyRequestsError } from '#application';
import { StoreUnavailableError } from '#kernel';
import { createMigratedDatabase, type TestDatabase } from '#testing';
import { PostgresRateLimiter, type RateLimitSettings } from './rate-limiter.ts';

const RATES: RateLimitSettings = {
  accountsPerHour: 20,
  invoicesPerHourOfAddress: 20,
  invoicesPerHourOfAccount: 20,
  invoicesPerHourOfKey: 20,
  changesPerHour: 20,
  invalidCredentialsPerMinute: 20,
  challengesPerMinute: 20,
  challengesPerMinuteInAll: 30,
  freePerMinute: 3,
  freePerDay: 5,
  freePerDayOfAddress: 6,
};
const hashed = { hashWithOldestKey: (text: string) => `hash of ${text}` };

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createMigratedDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => {}); // the database may be dropped before the last connection is closed
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const opened = () => new PostgresRateLimiter(pool, hashed, RATES);
const allowed = async (asked: readonly Promise<void>[]) =>
  (await Promise.allSettled(asked)).filter(({ status }) => status === 'fulfilled').length;

test('all gateways share the limit of each address and the total limit, also for concurrent requests', async () => {
  const gateways = [1, 2, 3].map(opened);
  const times20 = (ask: (each: PostgresRateLimiter) => Promise<void>) =>
    gateways.flatMap((each) => Array.from({ length: 20 }, () => ask(each)));
  expect(await allowed(times20((each) => each.count('accounts of an address', '192.0.2.1')))).toBe(20);
  expect(await allowed(times20((each) => each.count('accounts of an address', '192.0.2.2')))).toBe(20);
  expect(await allowed(times20((each) => each.count('invoices of an address', '192.0.2.1')))).toBe(20);
  expect(await allowed(times20((each) => each.count('challenges')))).toBe(30);
  const refused = await gateways[0]?.count('accounts of an address', '192.0.2.1').catch((error) => error);
  expect(refused).toBeInstanceOf(TooManyRequestsError);
  expect(refused.retryAfterSeconds).toBeGreaterThan(3_590);
  expect(refused.retryAfterSeconds).toBeLessThanOrEqual(3_600);
});

test('a process caches that a caller has exceeded a limit once it has rejected a request of that caller', async () => {
  const [limits, another] = [opened(), opened()];
  const times = (length: number) => Array.from({ length }, () => limits.count('changes of an account', 'a'));
  await allowed(times(20));
  expect(limits.isExceeded('changes of an account', 'a')).toBe(false);
  await allowed(times(1));
  expect(limits.isExceeded('changes of an account', 'a')).toBe(true);
  expect(limits.isExceeded('changes of an account', 'b')).toBe(false);
  expect(another.isExceeded('changes of an account', 'a')).toBe(false);
});

test('expired counts are ignored and removed', async () => {
  const limits = opened();
  await pool.query("update limits.counted set expire = 1 where key = 'accounts of an address:hash of 192.0.2.2'");
  await limits.count('accounts of an address', '192.0.2.2');
  await pool.query('update limits.counted set expire = 1');
  await limits.removeExpired();
  expect((await pool.query('select from limits.counted')).rowCount).toBe(0);
});

test('an operation is rejected if it cannot be counted', async () => {
  const away = new pg.Pool({ connectionString: database.url.replace(/[^/]+$/, 'not_there') });
  const limits = new PostgresRateLimiter(away, hashed, RATES);
  await expect(limits.count('accounts of an address', '192.0.2.1')).rejects.toBeInstanceOf(StoreUnavailableError);
  await expect(limits.count('challenges')).rejects.toBeInstanceOf(StoreUnavailableError);
  await away.end();
});
