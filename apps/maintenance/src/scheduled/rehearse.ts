import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { type Settings, StartError, type StartProgress, startEmbeddedPostgres } from '#foundation';
import { connectClient, listAddresses } from '#postgres';
import { listDatabases } from '../databases.ts';
import { finishRestore } from '../finish-restore.ts';
import { restoreBackup } from '../restore.ts';
import type { BackupStore } from './backup-store.ts';
import type { Encrypt } from './encryption.ts';
import { fetchBackup } from './fetch-backup.ts';

/** Arbitrary number, but the same for all processes. */
const REHEARSAL_LOCK_ID = 7_301_967;
/** The comment on a database that a rehearsal has created, and that the next one may therefore drop. */
const SCRATCH_COMMENT = 'created by "backup rehearse", which drops it';
const MAX_NAME_BYTES = 63;
/** SQLSTATE insufficient_privilege. */
const INSUFFICIENT_PRIVILEGE = '42501';

/** Scheduled backups, and the function that decrypts them. */
export interface RehearsalSource {
  readonly store: Pick<BackupStore, 'list' | 'read'>;
  readonly decrypt: Encrypt;
}

/**
 * Restores the newest scheduled backup into a scratch database, verifies it and drops the database. That is one next to
 * the database in DATABASE_URL, or without that setting one on an embedded PostgreSQL of its own.
 * @param print receives the name of the backup, then the lines of `verify`
 * @returns whether there is no difference
 * @throws StartError if the backup or the scratch database cannot be used, or another rehearsal runs
 */
export async function rehearse(
  settings: Settings,
  { store, decrypt }: RehearsalSource,
  print: (line: string) => void,
  startProgress?: StartProgress,
): Promise<boolean> {
  const scratch = path.join(settings.dataDir, 'rehearsal');
  await createScratchDirectory(scratch);
  try {
    const directory = path.join(scratch, 'backup');
    print(`backup ${await fetchBackup(store, decrypt, directory)}`);
    return await withScratchDatabase(settings, scratch, async (databaseUrl) => {
      await restoreBackup(listDatabases(databaseUrl, undefined), directory, undefined, startProgress);
      return finishRestore({ ...settings, databaseUrl, contentDatabaseUrl: undefined }, print, startProgress);
    });
  } finally {
    await rm(scratch, { recursive: true });
  }
}

async function createScratchDirectory(directory: string): Promise<void> {
  await mkdir(path.dirname(directory), { recursive: true, mode: 0o700 });
  await mkdir(directory, { mode: 0o700 }).catch((error) => {
    if (error.code !== 'EEXIST') throw error;
    throw new StartError(`${directory} exists: another rehearsal is running, or one was interrupted; then delete it.`);
  });
}

async function withScratchDatabase<T>(
  { databaseUrl }: Settings,
  directory: string,
  work: (databaseUrl: string) => Promise<T>,
): Promise<T> {
  if (databaseUrl === undefined) {
    const embedded = await startEmbeddedPostgres(directory);
    return work(embedded.url).finally(() => embedded.close());
  }
  const client = await connectClient({ connectionString: databaseUrl, name: 'rehearse', queryTimeoutMs: null });
  try {
    const { rows } = await client.query<{ database: string; user: string; isFree: boolean }>(
      'select current_database() as database, current_user as user, pg_try_advisory_lock($1) as "isFree"',
      [REHEARSAL_LOCK_ID],
    );
    const { database = '', user = '', isFree } = rows[0] ?? {};
    if (!isFree) throw new StartError('Another rehearsal is running.');
    const name = `${database}_rehearsal`;
    if (Buffer.byteLength(name) > MAX_NAME_BYTES)
      throw new StartError(`The name of the database ${database} is too long: ${name} cannot be created.`);
    await createScratchDatabase(client, name, user);
    try {
      const addresses = listAddresses(databaseUrl).map((address) => new URL(address));
      return await work(addresses.map((address) => Object.assign(address, { pathname: `/${name}` }).href).join(' '));
    } finally {
      await dropDatabase(client, name);
    }
  } finally {
    await client.end();
  }
}

/** Also drops a database that an interrupted rehearsal has left, but never another one of this name. */
async function createScratchDatabase(client: pg.Client, name: string, user: string): Promise<void> {
  const { rows } = await client.query<{ comment: string | null }>(
    "select shobj_description(oid, 'pg_database') as comment from pg_database where datname = $1",
    [name],
  );
  if (rows[0] && rows[0].comment !== SCRATCH_COMMENT)
    throw new StartError(`The database ${name} exists, and was not created by a rehearsal: drop or rename it.`);
  if (rows[0]) await dropDatabase(client, name);
  await client.query(`create database ${pg.escapeIdentifier(name)}`).catch((error) => {
    if (error.code !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new StartError(
      `The role ${user} may not create databases: run "alter role ${user} createdb", or set DATABASE_URL to another server.`,
    );
  });
  await client.query(`comment on database ${pg.escapeIdentifier(name)} is ${pg.escapeLiteral(SCRATCH_COMMENT)}`);
}

async function dropDatabase(client: pg.Client, name: string): Promise<void> {
  await client.query(`drop database ${pg.escapeIdentifier(name)} with (force)`);
}
