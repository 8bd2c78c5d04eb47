import { randomBytes, randomUUID } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { verify } from '#audit';
import { APPEND_LOCK_ID, WRITE_CONTRACT } from '#eventstore';
import { createLog, type Log, migrate, openFoundation, readSettings } from '#foundation';
import { projections } from '#projections';
import { createTestDatabase, ProgressRecorder, type TestAccount, type TestDatabase, TestWorld } from '#testing';
import { startProjector } from '../../projector/src/projector.ts';
import { checkBackup } from './check.ts';
import { createBackup } from './create.ts';
import { BACKUP_TABLES, listDatabases } from './databases.ts';
import { finishRestore } from './finish-restore.ts';
import type { Manifest } from './manifest.ts';
import { restoreBackup } from './restore.ts';

const MASTER_KEY = randomBytes(32).toString('hex');
/**
 * Tables that are rebuilt from the events, by triggers or by migrations, or that a restored installation does not need.
 */
const REMADE = [
  'es.origin',
  'es.contracts',
  ...projections.map(({ name }) => `books.${name}`),
  'books.checkpoints',
  'books.query_counts',
  'es.snapshots',
  'es.checkpoints',
  'es.due',
  'app.stored_bytes',
  'public.migrations',
  'public.leases',
  'public.processes',
  'limits.challenges',
  'limits.counted',
  'limits.samples',
  'public.rate_quotes',
  'public.agreed_rates',
];
const CHAT = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: 'Hello' }] };

let directory: string;
let backup: string;
let saved: Manifest;
let world: TestWorld;
let account: TestAccount;
let target: TestDatabase;
const key = randomUUID();
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-backup-'));
  backup = path.join(directory, 'backup');
  target = await createTestDatabase();
  world = await TestWorld.open({ MASTER_KEY });
  account = await world.createAccount(5);
  const other = await world.createAccount(1);
  await Promise.all([asked(world), world.sendChat(other), world.sendChat(account)]);
  const inPostgres = listDatabases(world.databaseUrl, undefined);
  [saved] = await Promise.all([createBackup(inPostgres, backup, 'PostgreSQL'), world.sendChat(other)]);
});
afterAll(async () => {
  await world.close();
  await target.drop();
  await rm(directory, { recursive: true });
});

/** Sends the request that is charged once, because it has the same idempotency key each time. */
function asked(of: TestWorld) {
  const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': key };
  return of.send('POST', '/v1/chat/completions', { body: CHAT, headers });
}

async function lines(foundation: TestWorld['foundation']): Promise<readonly string[]> {
  const printed: string[] = [];
  await verify(foundation, (line) => printed.push(line));
  return printed;
}

/**
 * PostgreSQL 16 and older have no right to lock a table apart from the rights to change its rows, which the owner of
 * the events does not have. Without MAINTAIN a newer one behaves in the same way.
 */
async function withoutMaintain(url: string): Promise<void> {
  const owner = new pg.Client({ connectionString: url });
  await owner.connect();
  await owner.query('revoke maintain on all tables in schema es from current_user');
  await owner.end();
}

/** Waits until every read model includes the last event. */
async function applied(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const reached = `select count(*) = ${projections.length} as all from books.checkpoints
                    where position >= (select max(position) from es.events)`;
  while (!(await client.query(reached)).rows[0].all);
  await client.end();
}

test('every table is part of a backup, or known not to be needed in one', async () => {
  const pool = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
  const { rows } = await pool.query(
    `select schemaname || '.' || tablename as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
  );
  await pool.end();
  const known = new Set([...BACKUP_TABLES.map(({ name }) => name), ...REMADE]);
  expect(rows.map(({ name }) => name).filter((name: string) => !known.has(name))).toEqual([]);
  expect(saved.tables.map(({ name }) => name)).toEqual(BACKUP_TABLES.map(({ name }) => name));
  expect(saved.masterKeys.length).toBe(1);
});

test('saving and checking a backup report how much of each table is done', async () => {
  const place = path.join(directory, 'reported');
  const saving = new ProgressRecorder();
  const { tables } = await createBackup(listDatabases(world.databaseUrl, undefined), place, 'PostgreSQL', saving.start);
  expect(saving.tasks).toEqual(
    tables.map(({ name, rows }) => ({
      name: `backup ${name}`,
      total: rows,
      unit: 'rows',
      done: rows,
      isFinished: true,
    })),
  );

  const checking = new ProgressRecorder();
  await checkBackup(place, checking.start);
  expect(checking.tasks.map(({ name }) => name)).toEqual(tables.map(({ name }) => `check ${name}`));
  for (const task of checking.tasks) expect(task).toMatchObject({ unit: 'MB', done: task.total, isFinished: true });
});

test('a modified backup is rejected, and nothing of it is restored', async () => {
  expect(await checkBackup(backup)).toEqual(saved);
  for (const file of await readdir(backup)) {
    const place = path.join(backup, file);
    const bytes = await readFile(place);
    const changed = Buffer.from(bytes);
    const at = Math.floor(changed.length / 2);
    changed[at] = (changed[at] as number) ^ 1;
    await writeFile(place, file.endsWith('.json') ? bytes.subarray(0, -9) : changed);
    await expect(restoreBackup(listDatabases(target.url, undefined), backup)).rejects.toThrow(file);
    await writeFile(place, bytes);
  }
  const client = new pg.Client({ connectionString: target.url });
  await client.connect();
  expect((await client.query("select to_regclass('es.events') as events")).rows).toEqual([{ events: null }]);
  await client.end();
  await expect(createBackup([], backup, 'PostgreSQL')).rejects.toThrow('already exists');
});

test('a backup is not restored into a database with data', async () => {
  const refused = restoreBackup(listDatabases(world.databaseUrl, undefined), backup);
  await expect(refused).rejects.toThrow('es.events has rows');
});

test('a restore waits for appends, names them if they do not end, and restores nothing then', async () => {
  const databases = listDatabases(target.url, undefined);
  for (const { url, migrations } of databases) await migrate(url, migrations);
  const appender = new pg.Client({ connectionString: target.url });
  await appender.connect();
  await appender.query('begin');
  await appender.query('select pg_advisory_xact_lock_shared($1)', [APPEND_LOCK_ID]);
  await expect(restoreBackup(databases, backup, '50ms')).rejects.toThrow('stop all roles');
  await appender.query('rollback');
  expect((await appender.query('select from es.events')).rowCount).toBe(0);
  await appender.end();
});

test('a restore does not fill a database of a newer release', async () => {
  const newer = await createTestDatabase();
  const databases = listDatabases(newer.url, undefined);
  for (const { url, migrations } of databases) await migrate(url, migrations);
  const client = new pg.Client({ connectionString: newer.url });
  await client.connect();
  await client.query('update es.contracts set oldest = $1, newest = $1', [WRITE_CONTRACT + 1]);
  await expect(restoreBackup(databases, backup)).rejects.toThrow(`accepts only contract ${WRITE_CONTRACT + 1}`);
  expect((await client.query('select from es.events')).rowCount).toBe(0);
  await client.end();
  await newer.drop();
});

test('a backup of an older contract, which only later migrations replace, is restored, also by a second attempt', async () => {
  const older = await createTestDatabase();
  const toContract = (id: string, contract: number) => {
    return { id, sql: `update es.contracts set oldest = ${contract}, newest = ${contract}`, minContract: 0 };
  };
  const before = toContract('contract-before', WRITE_CONTRACT - 1);
  const databases = listDatabases(older.url, undefined).map((database) => ({
    ...database,
    migrations: [...database.migrations, before, toContract('contract-of-this-release', WRITE_CONTRACT)],
  }));
  const copy = path.join(directory, 'older');
  await cp(backup, copy, { recursive: true });
  const manifest = { ...saved, migrations: [...saved.migrations, before.id] };
  await writeFile(path.join(copy, 'manifest.json'), JSON.stringify(manifest));

  for (const { url, migrations } of databases) await migrate(url, migrations.slice(0, -2));
  const appender = new pg.Client({ connectionString: older.url });
  await appender.connect();
  await appender.query('select pg_advisory_lock_shared($1)', [APPEND_LOCK_ID]);
  await expect(restoreBackup(databases, copy, '50ms')).rejects.toThrow('stop all roles');
  await appender.query('select pg_advisory_unlock_shared($1)', [APPEND_LOCK_ID]);
  await restoreBackup(databases, copy);

  expect((await appender.query('select newest from es.contracts')).rows).toEqual([{ newest: WRITE_CONTRACT }]);
  const events = saved.tables.find(({ name }) => name === 'es.events')?.rows;
  expect((await appender.query('select from es.events')).rowCount).toBe(events);
  await appender.end();
  await older.drop();
});

test('the owner of a database restores a backup, its read models are complete at once, and it has no drift', async () => {
  const databases = listDatabases(target.url, undefined);
  for (const { url, migrations } of databases) await migrate(url, migrations);
  await withoutMaintain(target.url);
  const { tasks, start } = new ProgressRecorder();
  await restoreBackup(databases, backup, undefined, start);
  const printed: string[] = [];
  const settings = readSettings({ DATABASE_URL: target.url, LOG_LEVEL: 'fatal' });
  expect(await finishRestore(settings, (line) => printed.push(line), start)).toBe(true);
  expect(tasks.map(({ name }) => name)).toEqual([
    ...saved.tables.map(({ name }) => `check ${name}`),
    ...saved.tables.map(({ name }) => `restore ${name}`),
    ...projections.map(({ name }) => `rebuild ${name}`),
    'verify',
  ]);
  for (const task of tasks) expect(task).toMatchObject({ done: task.total, isFinished: true });
  expect(printed.at(-1)).toBe('drift 0');
  expect(printed.filter((line) => line.includes('has not applied'))).toEqual([]);
});

test('a restored installation has the balance, API key and saved response of an account, and no drift', async () => {
  const wrong = TestWorld.openWithSagas({ DATABASE_URL: target.url, MASTER_KEY: randomBytes(32).toString('hex') });
  await expect(wrong).rejects.toThrow(`lacks the key with the fingerprint ${saved.masterKeys[0]}`);
  const restored = await TestWorld.openWithSagas({ DATABASE_URL: target.url, MASTER_KEY });
  await applied(target.url);
  expect(await restored.fetchBalance(account)).toBe(await world.fetchBalance(account));
  expect((await asked(restored)).headers.get('idempotent-replayed')).toBe('true');
  expect((await restored.sendChat(account)).status).toBe(200);
  await restored.fund(account, 1);
  await applied(target.url);
  expect((await lines(restored.foundation)).at(-1)).toBe('drift 0');
  await restored.close();
});

test('read models and snapshots that are newer than the restored events are deleted at the next start, which names both ends', async () => {
  const root = new pg.Client({ connectionString: target.superuserUrl });
  await root.connect();
  const last = saved.tables.find(({ name }) => name === 'es.events')?.rows ?? 0;
  const before = (await root.query('select max(position) as end from books.checkpoints')).rows[0].end;
  await root.query('alter table es.events disable trigger user');
  await root.query(
    'delete from es.events where position > (select position from es.events order by 1 offset $1 limit 1)',
    [last - 2],
  );
  await root.query("select setval('es.events_position_seq', (select max(position) from es.events))");
  await root.query('alter table es.events enable trigger user');
  const settings = readSettings({ DATABASE_URL: target.url, LOG_LEVEL: 'fatal' });
  const warnings: string[] = [];
  const warn = (_: object, message: string) => void warnings.push(message);
  const foundation = await openFoundation(settings, { ...createLog('fatal'), warn } as unknown as Log);
  const end = await foundation.store.readLastPosition();
  expect(warnings).toEqual([expect.stringMatching(`last event has the position ${end}, but .* up to ${before};`)]);
  expect((await root.query('select from books.journal union all select from es.snapshots')).rowCount).toBe(0);
  const projector = await startProjector(foundation);
  await applied(target.url);
  expect((await lines(foundation)).at(-1)).toBe('drift 0');
  await projector.close();
  await foundation.close();
  await root.end();
});
