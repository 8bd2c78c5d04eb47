import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type pg from 'pg';
import { StoreUnavailableError } from '#kernel';
import { withUnavailableErrors } from '#modules';
import { openPool } from '#postgres';
import { PageOutOfRangeError, type QueryHistory } from '#projections';
import { createTestDatabase, type TestDatabase } from '#testing';
import { OverloadedError } from '../edge/errors/errors.ts';
import { HistoryReadPool } from './history-read-pool.ts';

let database: TestDatabase;
let pools: pg.Pool[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all(pools.map((pool) => pool.end()));
  pools = [];
});
afterAll(() => database.drop());

function open(limits: { readonly queryTimeoutMs?: number } = {}): pg.Pool {
  const options = { connectionString: database.url, name: 'history', max: 1, connectTimeoutMs: 15_000, ...limits };
  const pool = withUnavailableErrors(openPool(options));
  pools.push(pool);
  return pool;
}

function readFrom(read: QueryHistory['read']) {
  return new HistoryReadPool({ read }).read({ accountId: 'a1' }, 102, 100);
}

test('passes PageOutOfRangeError on, because it is no failure of the database', async () => {
  const read = readFrom(() => Promise.reject(new PageOutOfRangeError()));

  await expect(read).rejects.toThrow(PageOutOfRangeError);
});

test('throws OverloadedError if a query exceeds its time limit', async () => {
  const read = readFrom(() => open({ queryTimeoutMs: 50 }).query('select pg_sleep(3)') as Promise<never>);

  await expect(read).rejects.toThrow(OverloadedError);
});

test('throws StoreUnavailableError if the database ends the connection', async () => {
  const read = readFrom(() => open().query('select pg_terminate_backend(pg_backend_pid())') as Promise<never>);

  await expect(read).rejects.toThrow(StoreUnavailableError);
});
