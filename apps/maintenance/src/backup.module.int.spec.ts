import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { mock } from 'node:test';
import { afterAll, afterEach, beforeAll, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { contentMigrations } from '#connectors';
import { createLog, migrate, readSettings, type SecretWatch } from '#foundation';
import { openContext, openRole, type ReadinessReport, SETTINGS_READER } from '#modules';
import { createMigratedDatabase, createTestDatabase, shortenDelays, type TestDatabase, waitUntil } from '#testing';
import { BackupModule } from './backup.module.ts';
import { DirectoryStore } from './scheduled/directory-store.ts';
import { createDecryption, generateKeys } from './scheduled/encryption.ts';
import { fetchBackup } from './scheduled/fetch-backup.ts';

let directory: string;
let database: TestDatabase;
let env: Record<string, string>;
let restoreDelays: () => void;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-backup-role-'));
  restoreDelays = shortenDelays(5);
  database = await createMigratedDatabase();
  const { publicKey } = await generateKeys();
  env = { DATABASE_URL: database.url, BACKUP_DIR: directory, BACKUP_PUBLIC_KEY: publicKey, HEALTH_PORT: '0' };
});
afterAll(async () => {
  restoreDelays();
  await database.drop();
  await rm(directory, { recursive: true });
});

const start = (variables: Record<string, string>) =>
  openRole('backup', readSettings(variables), createLog('fatal'), (role) => openContext(role, [BackupModule]));

async function fetchCheck(health: unknown) {
  const report = (await (await fetch(`${health}/health/ready`)).json()) as ReadinessReport;
  return report.checks.backup;
}

test('of two processes one makes the first backup, and the health of both reports it', async () => {
  const processes = [await start(env), await start(env)];
  const fetchChecks = () => Promise.all(processes.map(({ health }) => fetchCheck(health)));
  let checks = await fetchChecks();
  while (!checks.some((check) => check?.leading && check.last_success !== null)) checks = await fetchChecks();
  expect(checks.map((check) => check?.leading).toSorted()).toEqual([false, true]);
  const leader = checks.find((check) => check?.leading);
  expect(leader).toMatchObject({ ok: true, required: false, last_success: expect.stringMatching(/^\d{4}-/) });
  await Promise.all(processes.map((running) => running.close()));
  expect(await readdir(directory)).toHaveLength(1);
  const next = await start(env);
  while ((await fetchCheck(next.health))?.ok !== true);
  await next.close();
});

test('without a public key or a place, with two places, or with the bucket of files, the role does not start', async () => {
  await expect(start({ ...env, BACKUP_PUBLIC_KEY: '' })).rejects.toThrow('require BACKUP_PUBLIC_KEY');
  await expect(start({ ...env, BACKUP_DIR: '' })).rejects.toThrow('BACKUP_DIR or BACKUP_S3_BUCKET, and not both');
  await expect(start({ ...env, BACKUP_S3_BUCKET: 'b' })).rejects.toThrow(
    'BACKUP_DIR or BACKUP_S3_BUCKET, and not both',
  );
  const shared = { ...env, BACKUP_DIR: '', BACKUP_S3_BUCKET: 'b', S3_BUCKET: 'b' };
  await expect(start(shared)).rejects.toThrow('BACKUP_S3_BUCKET must not be the bucket of S3_BUCKET');
});

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const running of opened.splice(0)) await running.close();
});

/** Starts a role that makes five backups a second, and whose secrets are in files. */
async function startWatched(variables: Record<string, string>) {
  const settings = { ...SETTINGS_READER.read(variables), backupEveryMs: 200 };
  let watch: SecretWatch | undefined;
  const running = await openRole('backup', settings, createLog('fatal'), (role) => {
    watch = role.watchSecrets(variables, SETTINGS_READER);
    return openContext(role, [BackupModule]);
  });
  opened.push(running);
  return { settings, readSecretsAgain: async () => watch?.poll() };
}

const isManifest = (file: string) => file.endsWith('/manifest.json.age');

const createPath = () => path.join(directory, randomUUID());

test('a replaced public key encrypts the next backup, and one with an incorrect character is rejected', async () => {
  const [before, after] = [await generateKeys(), await generateKeys()];
  const [keyFile, place] = [createPath(), createPath()];
  await writeFile(keyFile, before.publicKey);
  const { BACKUP_PUBLIC_KEY: _, ...others } = env;
  const running = await startWatched({ ...others, BACKUP_DIR: place, BACKUP_PUBLIC_KEY_FILE: keyFile });
  const store = await DirectoryStore.open(place);
  const canDecrypt = (secretKey: string) =>
    fetchBackup(store, createDecryption(secretKey), createPath()).then(Boolean, () => false);
  await waitUntil(() => canDecrypt(before.secretKey));

  await writeFile(keyFile, `${after.publicKey.slice(0, -1)}${after.publicKey.endsWith('q') ? 'p' : 'q'}`);
  await running.readSecretsAgain();
  expect(running.settings.backupPublicKey).toBe(before.publicKey);
  await writeFile(keyFile, after.publicKey);
  await running.readSecretsAgain();
  await waitUntil(() => canDecrypt(after.secretKey));
});

test('replaced credentials of CONTENT_DATABASE_URL are used for the next backup', async () => {
  const contents = await createTestDatabase();
  const admin = new pg.Client({ connectionString: contents.superuserUrl });
  await admin.connect();
  const owner = new URL(contents.url);
  const users = ['before', 'after'].map((name) => `${name}_${randomUUID().replaceAll('-', '')}`);
  const [before = '', after = ''] = users.map((username) => Object.assign(new URL(contents.url), { username }).href);
  const [addressFile, place] = [createPath(), createPath()];
  try {
    for (const user of users) {
      await admin.query(`create role ${user} login password '${decodeURIComponent(owner.password)}'`);
      await admin.query(`grant ${owner.username} to ${user}`);
      await admin.query(`alter role ${user} set role = ${owner.username}`);
    }
    await migrate(contents.url, contentMigrations);
    await writeFile(addressFile, before);
    const variables = { ...env, BACKUP_DIR: place, CONTENT_DATABASE_URL_FILE: addressFile };
    const running = await startWatched(variables);
    const listManifests = async () =>
      (await DirectoryStore.open(place).then((store) => store.list())).filter(isManifest);
    await waitUntil(async () => (await listManifests()).length > 0);

    await admin.query(`alter role ${users[0]} nologin`);
    await writeFile(addressFile, after);
    await running.readSecretsAgain();
    const { length } = await listManifests();
    await waitUntil(async () => (await listManifests()).length > length + 1);
  } finally {
    for (const running of opened.splice(0)) await running.close();
    for (const user of users) await admin.query(`drop role if exists ${user}`);
    await admin.end();
    await contents.drop();
  }
});

test('a process that cannot write its backups leaves them to another process', async () => {
  const [broken, working] = [createPath(), createPath()];
  await startWatched({ ...env, BACKUP_DIR: broken });
  const listManifests = async (place: string) =>
    (await DirectoryStore.open(place).then((store) => store.list())).filter(isManifest);
  await waitUntil(async () => (await listManifests(broken)).length > 0);
  await startWatched({ ...env, BACKUP_DIR: working });

  await rename(broken, createPath());
  await writeFile(broken, 'no directory');

  await waitUntil(async () => (await listManifests(working)).length > 1);
});

test('a role whose backup does not end stops at its limit, and reports it', async () => {
  const warn = jest.fn();
  const foundation = { log: { info: jest.fn(), warn } };
  const role = new BackupModule({} as never, foundation as never, {} as never, {} as never);
  Object.assign(role, { running: new Promise(() => {}) });
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  try {
    const stopping = role.beforeApplicationShutdown();
    mock.timers.tick(40_000);
    await stopping;
  } finally {
    mock.timers.reset();
  }
  expect(warn).toHaveBeenCalledWith({ leading: [] }, expect.stringContaining('time limit'));
});
