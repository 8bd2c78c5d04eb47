import { randomBytes, randomUUID } from 'node:crypto';
import { appendFile, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { S3Bucket } from '#connectors';
import { readSettings, type Settings } from '#foundation';
import { createTestDatabase, openS3Server, type S3Server, type TestDatabase, TestWorld } from '#testing';
import { FakeClock } from '../../../../libs/testing/src/fake-clock.ts';
import { checkBackup } from '../check.ts';
import { listDatabases } from '../databases.ts';
import { listBackups } from './backup-names.ts';
import type { BackupStore } from './backup-store.ts';
import { BucketStore } from './bucket-store.ts';
import { DirectoryStore } from './directory-store.ts';
import { createDecryption, createEncryption, generateKeys } from './encryption.ts';
import { fetchBackup } from './fetch-backup.ts';
import { rehearse } from './rehearse.ts';
import { type ScheduledBackupOptions, ScheduledBackups } from './scheduled-backups.ts';

const HOUR_MS = 3_600_000;
const START = '2026-11-28T12:00:00Z';
const never = new AbortController().signal;

let directory: string;
let world: TestWorld;
let server: S3Server;
let keys: Awaited<ReturnType<typeof generateKeys>>;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-scheduled-'));
  keys = await generateKeys();
  server = await openS3Server(['backups']);
  world = await TestWorld.open({ MASTER_KEY: randomBytes(32).toString('hex') });
  await world.sendChat(await world.createAccount(1));
});
afterAll(async () => {
  await world.close();
  await server.close();
  await rm(directory, { recursive: true });
});

const createPath = () => path.join(directory, randomUUID());
const openDirectory = () => DirectoryStore.open(createPath());
const openBucket = async () =>
  new BucketStore(await S3Bucket.open({ ...server, region: 'us-east-1', bucket: 'backups' }));

interface Scene {
  readonly clock: FakeClock;
  readonly backups: ScheduledBackups;
}

function schedule(store: BackupStore, options: Partial<ScheduledBackupOptions> = {}): Scene {
  const clock = new FakeClock(START);
  const backups = new ScheduledBackups({
    store,
    clock,
    createEncryption: () => createEncryption(keys.publicKey),
    databases: listDatabases(world.databaseUrl, undefined),
    eventStoreName: 'PostgreSQL',
    everyMs: HOUR_MS,
    retentionMs: 24 * HOUR_MS,
    log: { info: () => {} } as unknown as ScheduledBackupOptions['log'],
    reportError: () => {},
    ...options,
  });
  return { clock, backups };
}

async function listNames(store: BackupStore): Promise<readonly string[]> {
  return listBackups(await store.list()).map(({ name, isComplete }) => `${name}${isComplete ? '' : ' (incomplete)'}`);
}

/** A store whose disk is full after some files. */
function createFullStore(store: BackupStore, files: number, remove = store.remove.bind(store)): BackupStore {
  let written = 0;
  return {
    list: () => store.list(),
    read: (name) => store.read(name),
    close: () => store.close(),
    remove,
    write: async (name, content) => {
      if (++written > files) throw new Error('ENOSPC: no space left on device');
      await store.write(name, content);
    },
  };
}

describe.each([
  ['a directory', openDirectory],
  ['a bucket', openBucket],
])('in %s', (_, open) => {
  test('a backup is encrypted, can be decrypted with the secret key, and is complete', async () => {
    const store = await open();
    const name = await schedule(store).backups.runIfDue(never);
    for (const file of await store.list()) {
      const text = (await buffer(store.read(file))).toString('latin1');
      expect(text).toMatch(/^age-encryption\.org\/v1\n/);
    }
    const target = createPath();
    expect(await fetchBackup(store, createDecryption(keys.secretKey), target)).toBe(name);
    const { tables } = await checkBackup(target);
    expect(tables.find((table) => table.name === 'es.events')?.rows).toBeGreaterThan(0);
    await store.remove(await store.list());
    expect(await store.list()).toEqual([]);
    store.close();
  });
});

test('a backup is made once in each period, no matter by how many processes', async () => {
  const store = await openDirectory();
  const [one, other] = [schedule(store), schedule(store)];
  expect(one.backups.getStatus()).toEqual({ ok: false, last_success: null });
  expect(await one.backups.runIfDue(never)).toBeDefined();
  expect(await other.backups.runIfDue(never)).toBeUndefined();
  expect(other.backups.getStatus()).toEqual({ ok: true, last_success: '2026-11-28T12:00:00.000Z' });
  await other.clock.advance(HOUR_MS);
  expect(await other.backups.runIfDue(never)).toBeDefined();
  expect(await listNames(store)).toHaveLength(2);
  await other.clock.advance(2 * HOUR_MS + 1);
  expect(other.backups.getStatus().ok).toBe(false);
});

test('with a full disk the incomplete backup is removed, the older ones stay, and the next attempt succeeds', async () => {
  const store = await openDirectory();
  const { clock, backups } = schedule(store);
  const first = await backups.runIfDue(never);
  await clock.advance(100 * HOUR_MS);
  const failing = schedule(createFullStore(store, 2), { clock });
  await expect(failing.backups.runIfDue(never)).rejects.toThrow('ENOSPC');
  expect(await listNames(store)).toEqual([first]);
  expect(failing.backups.getStatus().ok).toBe(false);
  const second = await backups.runIfDue(never);
  expect(await listNames(store)).toEqual([second]); // the first one has expired, and there is a newer one
});

test('a process whose backup fails leaves the next attempt to another, and waits before its own', async () => {
  const store = await openDirectory();
  let attempts = 0;
  const failing: BackupStore = {
    ...createFullStore(store, 0),
    list: () => {
      attempts++;
      return Promise.reject(new Error('ENOTDIR'));
    },
  };
  const { backups } = schedule(failing);
  await expect(backups.run(never)).rejects.toThrow('another process should try');
  expect(attempts).toBe(1);
  const lease = new AbortController();
  const waiting = backups.run(lease.signal);
  lease.abort();
  await waiting;
  expect(attempts).toBe(1);
});

test('the backup of a process that died is never used, and is deleted an hour later', async () => {
  const store = await openDirectory();
  const { clock, backups } = schedule(store);
  const first = await backups.runIfDue(never);
  await clock.advance(HOUR_MS);
  const failToRemove = () => Promise.reject(new Error('the process is dead'));
  const problems: string[] = [];
  const reportError = (problem: string) => void problems.push(problem);
  const dying = schedule(createFullStore(store, 3, failToRemove), { clock, reportError });
  await expect(dying.backups.runIfDue(never)).rejects.toThrow();
  expect(problems).toEqual([expect.stringMatching(/^the partial backup .* was not removed$/)]);
  expect(await listNames(store)).toEqual([first, expect.stringMatching(/\(incomplete\)$/)]);
  expect(await fetchBackup(store, createDecryption(keys.secretKey), createPath())).toBe(first);
  await clock.advance(HOUR_MS + 1_000);
  const next = await backups.runIfDue(never);
  expect(await listNames(store)).toEqual([first, next]);
});

test('a process that loses its lease ends its backup, and writes no manifest', async () => {
  const store = await openDirectory();
  const lease = new AbortController();
  const losing: BackupStore = {
    ...createFullStore(store, Number.POSITIVE_INFINITY),
    write: async (name, content) => {
      await store.write(name, content);
      lease.abort();
    },
  };
  await expect(schedule(losing).backups.runIfDue(lease.signal)).rejects.toThrow('abort');
  expect(await store.list()).toEqual([]);
});

test('nothing is deleted while the clock is not reliable', async () => {
  const store = await openDirectory();
  const { clock, backups } = schedule(store);
  const first = await backups.runIfDue(never);
  await clock.advance(100 * HOUR_MS);
  const unreliable = { nowMs: () => clock.nowMs(), isReliable: () => false };
  const second = await schedule(store, { clock: unreliable }).backups.runIfDue(never);
  expect(await listNames(store)).toEqual([first, second]);
});

describe('the newest backup', () => {
  let store: DirectoryStore;
  let root: string;
  beforeAll(async () => {
    root = createPath();
    store = await DirectoryStore.open(root);
    await schedule(store).backups.runIfDue(never);
  });

  test('is not decrypted with another key', async () => {
    const { secretKey } = await generateKeys();
    const target = createPath();
    await expect(fetchBackup(store, createDecryption(secretKey), target)).rejects.toThrow(
      /age cannot be decrypted with BACKUP_SECRET_KEY: no identity matched/,
    );
    await expect(stat(target)).rejects.toThrow('ENOENT');
  });

  test('is rejected if one of its files is longer than it was, or missing', async () => {
    const copy: BackupStore = await DirectoryStore.open(createPath());
    const files = await store.list();
    for (const file of files) await copy.write(file, store.read(file));
    const manifest = files.find((file) => file.includes('manifest')) as string;
    const events = files.find((file) => file.includes('es.events')) as string;
    await copy.remove([events]);
    const target = createPath();
    await fetchBackup(copy, createDecryption(keys.secretKey), target);
    await expect(checkBackup(target)).rejects.toThrow('es.events.copy.gz cannot be read');
    await appendFile(path.join(root, manifest), 'x');
    await expect(fetchBackup(store, createDecryption(keys.secretKey), createPath())).rejects.toThrow(manifest);
    await store.remove([manifest]);
    await store.write(manifest, copy.read(manifest));
  });

  describe('is rehearsed', () => {
    let database: TestDatabase;
    let superuser: pg.Client;
    let role: string;
    let settings: Settings;
    beforeAll(async () => {
      database = await createTestDatabase();
      superuser = new pg.Client({ connectionString: database.superuserUrl });
      await superuser.connect();
      role = `rehearser_${randomUUID().slice(0, 8)}`;
      await superuser.query(`create role ${role} login createdb password 'secret'`);
      const url = Object.assign(new URL(database.url), { username: role, password: 'secret' }).href;
      settings = readSettings({ DATABASE_URL: url, DATA_DIR: createPath(), LOG_LEVEL: 'fatal' });
    });
    afterAll(async () => {
      await superuser.query(`drop role ${role}`);
      await superuser.end();
      await database.drop();
    });

    const run = async (changed: Partial<Settings> = {}) => {
      const printed: string[] = [];
      const decrypt = createDecryption(keys.secretKey);
      const isRight = await rehearse({ ...settings, ...changed }, { store, decrypt }, (line) => printed.push(line));
      return { isRight, lastLine: printed.at(-1) };
    };
    const scratchName = () => `${new URL(database.url).pathname.slice(1)}_rehearsal`;
    const listScratch = async () =>
      (await superuser.query('select from pg_database where datname = $1', [scratchName()])).rowCount;

    test('in a scratch database, of which nothing is left, but not twice at the same time', async () => {
      const outcomes = await Promise.allSettled([run(), run()]);
      expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
      expect(outcomes.find(({ status }) => status === 'fulfilled')).toEqual({
        status: 'fulfilled',
        value: { isRight: true, lastLine: 'drift 0' },
      });
      expect(await listScratch()).toBe(0);
      expect(await readdir(settings.dataDir)).toEqual([]);
    });

    test('also after a rehearsal that was interrupted, but not in a database that no rehearsal has created', async () => {
      await superuser.query(`create database ${scratchName()} owner ${role}`);
      await expect(run()).rejects.toThrow('was not created by a rehearsal');
      expect(await listScratch()).toBe(1);
      await superuser.query(`comment on database ${scratchName()} is 'created by "backup rehearse", which drops it'`);
      expect((await run()).lastLine).toBe('drift 0');
      expect(await listScratch()).toBe(0);
    });

    test('not without the right to create a database', async () => {
      await expect(run({ databaseUrl: database.url })).rejects.toThrow(/run "alter role \w+ createdb"/);
    });
  });
});

test('a key with an incorrect character is rejected', () => {
  const change = (key: string) => `${key.slice(0, -1)}${key.endsWith('q') || key.endsWith('Q') ? 'p' : 'q'}`;
  expect(() => createEncryption(change(keys.publicKey))).toThrow('BACKUP_PUBLIC_KEY is not a public key of age');
  expect(() => createDecryption(change(keys.secretKey))).toThrow('BACKUP_SECRET_KEY is not a secret key of age');
  expect(() => createEncryption(undefined)).toThrow('require BACKUP_PUBLIC_KEY');
});
