import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createLog, migrate, readSettings } from '#foundation';
import { openContext, openRole, type ReadinessReport } from '#modules';
import { createTestDatabase, type TestDatabase } from '#testing';
import { BackupModule } from './backup.module.ts';
import { listDatabases } from './databases.ts';
import { generateKeys } from './scheduled/encryption.ts';

let directory: string;
let database: TestDatabase;
let env: Record<string, string>;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-backup-role-'));
  database = await createTestDatabase();
  for (const { url, migrations } of listDatabases(database.url, undefined)) await migrate(url, migrations);
  const { publicKey } = await generateKeys();
  env = { DATABASE_URL: database.url, BACKUP_DIR: directory, BACKUP_PUBLIC_KEY: publicKey, HEALTH_PORT: '0' };
});
afterAll(async () => {
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
