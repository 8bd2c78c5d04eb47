import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '#testing';
import { migrate, prepareDatabase, StartError } from './index.ts';

const FIRST = { id: 'first', sql: 'create table wide (a integer)' };
const SECOND = { id: 'second', sql: 'alter table wide add column b integer' };

let database: TestDatabase;
let reader: pg.Client;
let other: pg.Client;
beforeAll(async () => {
  database = await createTestDatabase();
  [reader, other] = [0, 1].map(() => new pg.Client({ connectionString: database.url })) as [pg.Client, pg.Client];
  await Promise.all([reader.connect(), other.connect()]);
});
afterAll(async () => {
  await Promise.all([reader.end(), other.end()]);
  await database.drop();
});

test('a start in command mode applies no migrations, and names the missing ones', async () => {
  await expect(prepareDatabase(database.url, [FIRST], 'command')).rejects.toThrow(/lacks .*first: run "npm run mig/);
  await Promise.all([migrate(database.url, [FIRST]), migrate(database.url, [FIRST])]);
  await prepareDatabase(database.url, [FIRST], 'command');
});

test('a migration waits for a long transaction, and other queries run before that transaction ends', async () => {
  await reader.query('begin; select from wide');
  const migrating = migrate(database.url, [FIRST, SECOND]);
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like 'alter table wide%'
                  and datname = current_database()`;
  while ((await other.query(waits)).rowCount === 0);
  const { rows } = await other.query('select count(*)::int as there from wide'); // queued after the migration
  expect(rows).toEqual([{ there: 0 }]);
  expect((await other.query("select from public.migrations where id = 'second'")).rowCount).toBe(0);
  await reader.query('commit');
  await migrating;
  await other.query('select b from wide');
});

test('a migration fails with a StartError after its timeout, and leaves the table in place', async () => {
  await reader.query('begin; select from wide');
  const third = { id: 'third', sql: 'drop table wide' };
  const refused = migrate(database.url, [third], 0);
  await expect(refused).rejects.toBeInstanceOf(StartError);
  await expect(refused).rejects.toThrow('cannot be migrated while a transaction');
  await reader.query('select from wide; commit');
});
