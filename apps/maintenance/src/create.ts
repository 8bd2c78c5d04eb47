import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rename, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { listKnownMasterKeys, StartError } from '#foundation';
import { createClient } from '#postgres';
import { BACKUP_CONNECTION_OPTIONS, type BackupTable, type Database } from './databases.ts';
import { createManifest, MANIFEST_FILE, type Manifest, type SavedTable, toTableFileName } from './manifest.ts';

/** Only the owner may read a backup, because it contains data of customers. */
const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;

/**
 * Saves the data that cannot be rebuilt, except events in EventStoreDB. The tables of a database are saved as of one
 * moment. Roles may be running. The directory gets its final name after all data is on the disk.
 * @throws StartError if the directory exists
 */
export async function createBackup(
  databases: readonly Database[],
  directory: string,
  eventStoreName: Manifest['factsIn'],
): Promise<Manifest> {
  const directoryExists = await stat(directory).then(
    () => true,
    () => false,
  );
  if (directoryExists) throw new StartError(`${directory} already exists: a backup requires a new directory.`);
  const partialDirectory = `${directory}.partial`;
  await mkdir(partialDirectory, { recursive: true, mode: DIRECTORY_MODE });
  const createdAt = new Date().toISOString();
  const savedDatabases: Pick<Manifest, 'masterKeys' | 'migrations' | 'tables'>[] = [];
  for (const database of databases)
    savedDatabases.push(await saveDatabase(database, partialDirectory, eventStoreName === 'PostgreSQL'));
  const manifest = createManifest({
    createdAt,
    factsIn: eventStoreName,
    masterKeys: savedDatabases.flatMap(({ masterKeys }) => masterKeys),
    migrations: savedDatabases.flatMap(({ migrations }) => migrations),
    tables: savedDatabases.flatMap(({ tables }) => tables),
  });
  const text = `${JSON.stringify(manifest, null, 2)}\n`;
  await writeFile(path.join(partialDirectory, MANIFEST_FILE), text, { mode: FILE_MODE, flush: true });
  await rename(partialDirectory, directory);
  return manifest;
}

async function saveDatabase({ url, backupTables }: Database, directory: string, includesEvents: boolean) {
  const client = createClient({ connectionString: url, name: 'backup', ...BACKUP_CONNECTION_OPTIONS });
  await client.connect();
  try {
    await client.query('begin isolation level repeatable read read only');
    const migrations = (await client.query<{ id: string }>('select id from public.migrations')).rows.map(
      ({ id }) => id,
    );
    const tables: SavedTable[] = [];
    for (const table of backupTables) {
      const columns = await listColumns(client, table.name);
      if (columns.length === 0 || (table.name === 'es.events' && !includesEvents)) continue;
      tables.push(await saveTable(client, table, columns, directory));
    }
    const hasKeys = backupTables.some(({ name }) => name === 'es.master_keys');
    const masterKeys = hasKeys ? (await listKnownMasterKeys(client)).filter(({ isRetired }) => !isRetired) : [];
    return { migrations, tables, masterKeys: masterKeys.map(({ id }) => id) };
  } finally {
    await client.end();
  }
}

/** @returns an empty list if the table does not exist yet */
async function listColumns(client: pg.Client, table: string): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
      where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [table],
  );
  return rows.map(({ name }) => name);
}

async function saveTable(
  client: pg.Client,
  { name, order }: BackupTable,
  columns: readonly string[],
  directory: string,
): Promise<SavedTable> {
  const file = toTableFileName(name);
  const columnList = columns.join(', ');
  const rows = client.query(
    copyTo(`copy (select ${columnList} from ${name}${order ? ` order by ${order}` : ''}) to stdout`),
  );
  const hash = createHash('sha256');
  const hashStream = new PassThrough().on('data', (chunk) => hash.update(chunk));
  const target = createWriteStream(path.join(directory, file), { mode: FILE_MODE, flush: true });
  await pipeline(rows, createGzip({ level: 3 }), hashStream, target);
  return { name, columns, file, rows: rows.rowCount, sha256: hash.digest('hex') };
}
