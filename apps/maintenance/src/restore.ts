import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { APPEND_LOCK_ID } from '#eventstore';
import { dropCaches, migrate, migratePartly, StartError, type StartProgress } from '#foundation';
import { connectClient } from '#postgres';
import { checkBackup } from './check.ts';
import { BACKUP_CONNECTION_OPTIONS, BACKUP_TABLES, type Database } from './databases.ts';
import type { Manifest, SavedTable } from './manifest.ts';
import { readWithProgress } from './read-with-progress.ts';

/** Maximum wait for a lock. If another process holds a conflicting lock for longer, the restore fails. */
const LOCK_TIMEOUT = '10s';
/** SQLSTATE lock_not_available. */
const LOCK_NOT_AVAILABLE = '55P03';
/** Tables that may have rows, because a role was started before the restore. Their rows are deleted. */
const CLEARED_TABLES = new Set(['es.master_keys']);

/**
 * Restores a backup into empty databases. Creates the tables in the format of the backup, fills those of each database
 * in one transaction, and then applies the newer migrations. Until that transaction ends, no process appends events to
 * the database, and no other restore begins to fill it.
 * @throws StartError if the backup is invalid, was created by a newer version, or a database is not empty or was
 * created by a newer version than the backup
 */
export async function restoreBackup(
  databases: readonly Database[],
  directory: string,
  lockTimeout = LOCK_TIMEOUT,
  startProgress?: StartProgress,
): Promise<Manifest> {
  const manifest = await checkBackup(directory, startProgress);
  assertSupportedBackup(databases, manifest);
  for (const database of databases) {
    const { url, migrations } = database;
    await migratePartly(
      url,
      migrations.filter(({ id }) => manifest.migrations.includes(id)),
    );
    await fillDatabase(database, manifest, { directory, lockTimeout, startProgress });
    await migrate(url, migrations, { startProgress });
  }
  return manifest;
}

function assertSupportedBackup(databases: readonly Database[], { migrations, tables }: Manifest): void {
  const knownIds = new Set(databases.flatMap((database) => database.migrations.map(({ id }) => id)));
  const isKnown =
    migrations.every((id) => knownIds.has(id)) &&
    tables.every(({ name }) => BACKUP_TABLES.some((table) => table.name === name));
  if (!isKnown) throw new StartError('The backup was created by a newer version: restore it with that version.');
}

interface FillOptions {
  readonly directory: string;
  readonly lockTimeout: string;
  readonly startProgress: StartProgress | undefined;
}

async function fillDatabase(
  { url, backupTables, migrations }: Database,
  manifest: Manifest,
  { directory, lockTimeout, startProgress }: FillOptions,
): Promise<void> {
  const client = await connectClient({ connectionString: url, name: 'restore', ...BACKUP_CONNECTION_OPTIONS });
  try {
    await client.query(`begin; set local lock_timeout = '${lockTimeout}'`);
    // Not a lock of the table: that requires rights which the owner of the events does not have, such as to delete them.
    await client.query('select pg_advisory_xact_lock($1)', [APPEND_LOCK_ID]);
    const { rows } = await client.query<{ id: string }>('select id from public.migrations');
    const currentIds = new Set(migrations.map(({ id }) => id));
    if (rows.some(({ id }) => currentIds.has(id) && !manifest.migrations.includes(id)))
      throw new StartError('The database was created by a newer version than the backup: use an empty one.');
    const tables = backupTables.flatMap(({ name }) => manifest.tables.filter((table) => table.name === name));
    for (const table of tables) await fillTable(client, table, directory, startProgress);
    if (tables.some(({ name }) => name.startsWith('es.'))) await dropCaches(client);
    if (tables.some(({ name }) => name === 'es.events')) await client.query(SET_NEXT_POSITION_SQL);
    await client.query('commit');
    await client.query('analyze');
  } catch (error) {
    if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
    throw new StartError('Another process writes to the database: stop all roles, and restore again.');
  } finally {
    await client.end(); // this also ends a failed transaction
  }
}

const SET_NEXT_POSITION_SQL = `select setval(pg_get_serial_sequence('es.events', 'position'), coalesce(max(position), 1), count(*) > 0)
                         from es.events`;

async function fillTable(
  client: pg.Client,
  { name, columns, file, rows }: SavedTable,
  directory: string,
  startProgress: StartProgress | undefined,
): Promise<void> {
  if (CLEARED_TABLES.has(name)) await client.query(`delete from ${name}`);
  const { rowCount } = await client.query(`select from ${name} limit 1`);
  if (rowCount !== 0) throw new StartError(`${name} has rows: a backup can only be restored into an empty database.`);
  const target = client.query(copyFrom(`copy ${name} (${columns.join(', ')}) from stdin`));
  const content = readWithProgress(path.join(directory, file), `restore ${name}`, startProgress);
  await pipeline(content, createGunzip(), target);
  if (target.rowCount !== rows) throw new Error(`${name} received ${target.rowCount} rows instead of ${rows}`);
}
