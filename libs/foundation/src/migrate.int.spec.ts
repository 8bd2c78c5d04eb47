import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { eventStoreMigrations, WRITE_CONTRACT } from '#eventstore';
import { createTestDatabase, type TestDatabase } from '#testing';
import { migrate, planMigrations, prepareDatabase, StartError } from './index.ts';
import { RELEASE } from './release.ts';

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

/** Waits until a statement waits for a lock. */
async function waitUntilBlocked(pattern: string): Promise<void> {
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like $1
                  and datname = current_database()`;
  while ((await other.query(waits, [pattern])).rowCount === 0);
}

test('a start in command mode applies no migrations, and names the missing ones', async () => {
  await expect(prepareDatabase(database.url, [FIRST], 'command')).rejects.toThrow(/lacks .*first: run "npm run mig/);
  await Promise.all([migrate(database.url, [FIRST]), migrate(database.url, [FIRST])]);
  await prepareDatabase(database.url, [FIRST], 'command');
});

test('a migration waits for a long transaction, and other queries run before that transaction ends', async () => {
  await reader.query('begin; select from wide');
  const migrating = migrate(database.url, [FIRST, SECOND]);
  await waitUntilBlocked('alter table wide%');
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
  const refused = migrate(database.url, [third], { remainingMs: 0, explain: () => {} });
  await expect(refused).rejects.toBeInstanceOf(StartError);
  await expect(refused).rejects.toThrow('cannot be migrated while a transaction');
  await reader.query('select from wide; commit');
});

describe('a database of another release', () => {
  const accept = (oldest: number, newest: number) =>
    other.query('update es.contracts set oldest = $1, newest = $2, oldest_version = $3, newest_version = $4', [
      oldest,
      newest,
      `${oldest}.0.0`,
      `${newest}.0.0`,
    ]);
  beforeAll(() => migrate(database.url, eventStoreMigrations));
  afterAll(() => accept(WRITE_CONTRACT, WRITE_CONTRACT));

  test.each([
    ['newer', WRITE_CONTRACT + 1, WRITE_CONTRACT + 2],
    ['older', WRITE_CONTRACT - 1, WRITE_CONTRACT - 1],
  ])('that is %s is not used: the start, and the command, name both versions', async (_, oldest, newest) => {
    await accept(oldest, newest);
    for (const start of [
      () => migrate(database.url, eventStoreMigrations),
      () => prepareDatabase(database.url, eventStoreMigrations, 'start'),
      () => prepareDatabase(database.url, eventStoreMigrations, 'command'),
    ]) {
      const refused = start();
      await expect(refused).rejects.toBeInstanceOf(StartError);
      await expect(refused).rejects.toThrow(
        `This is version ${RELEASE.version}, which follows contract ${WRITE_CONTRACT}, but`,
      );
      await expect(refused).rejects.toThrow(`${oldest}.0.0`);
    }
  });

  test('is used if it accepts the contract of this release and others', async () => {
    await accept(WRITE_CONTRACT - 1, WRITE_CONTRACT + 1);
    await prepareDatabase(database.url, eventStoreMigrations, 'start');
  });
});

describe('while processes are running, a migration', () => {
  const appear = async (name: string) => {
    const client = new pg.Client({ connectionString: database.url, application_name: name });
    await client.connect();
    return client;
  };
  const change = (id: string, minContract?: number) => ({ id, sql: `create table ${id} (a integer)`, minContract });

  test.each([
    ['of a version before 1.0.0', 'countinghouse-lease-projector', change('later'), true],
    ['that follow an older contract', 'countinghouse-gateway-1a2b3c4d/1', change('second_step', 2), true],
    ['that follow the oldest supported contract', 'countinghouse-lease-topups/1', change('first_step', 1), false],
    ['of any version, if it supports them', 'countinghouse-gateway-1a2b3c4d', change('supported', 0), false],
    ['that write nothing', 'countinghouse-verify', change('unrelated', 9), false],
  ])('%s', async (_, name, migration, isRefused) => {
    const client = await appear(name);
    const plan = await planMigrations(database.url, [migration as never]);
    expect(plan.pending.map(({ id }) => id)).toEqual([migration.id]);
    const done = await migrate(database.url, [migration as never]).catch((error) => error);
    const tables = await other.query('select from pg_tables where tablename = $1', [migration.id]);
    if (isRefused)
      expect(done).toMatchObject({ message: expect.stringMatching(`after the migrations ${migration.id}:`) });
    expect(tables.rowCount).toBe(isRefused ? 0 : 1);
    await client.end();
  });

  test('is not applied if such a process appears while it waits for a lock', async () => {
    const slow = { id: 'slow', sql: 'alter table wide add column slow int', minContract: 1 };
    await reader.query('begin; select from wide');
    const migrating = migrate(database.url, [slow]);
    await waitUntilBlocked('alter table wide add column slow%');
    const client = await appear('countinghouse-lease-projector');
    await Promise.all([expect(migrating).rejects.toThrow('after the migrations slow:'), reader.query('commit')]);
    await client.end();
    await expect(other.query('select slow from wide')).rejects.toThrow('does not exist');
  });
});
