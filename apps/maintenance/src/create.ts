import { createHash } from 'node:crypto';
import { mkdir, rename, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { listKnownMasterKeys, StartError, type StartProgress, trackProgress } from '#foundation';
import { connectClient } from '#postgres';
import { LineCounter } from './check.ts';
import { BACKUP_CONNECTION_OPTIONS, type BackupTable, type Database } from './databases.ts';
import { createManifest, MANIFEST_FILE, type Manifest, type SavedTable, toTableFileName } from './manifest.ts';

/** Only the owner may read a backup, because it contains data of customers. */
const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;

/** Stores a file of a backup. Resolves once the complete content is on the disk. */
export type WriteFile = (file: string, content: AsyncIterable<Uint8Array>) => Promise<void>;

export interface BackupTarget {
  readonly write: WriteFile;
  /** Ends the backup with an error once it has aborted. */
  readonly signal?: AbortSignal;
  /** Shows the progress of each table; by default nothing shows it. */
  readonly startProgress?: StartProgress | undefined;
}

/**
 * Saves the data that cannot be rebuilt, except events in EventStoreDB, in a directory. It gets its final name after all
 * data is on the disk.
 * @throws StartError if the directory exists
 */
export async function createBackup(
  databases: readonly Database[],
  directory: string,
  eventStoreName: Manifest['factsIn'],
  startProgress?: StartProgress,
): Promise<Manifest> {
  return fillNewDirectory(directory, (write) => saveBackup(databases, { write, startProgress }, eventStoreName));
}

/**
 * Creates a directory with files that only its owner can read. It gets its final name after `work`.
 * @throws StartError if the directory exists
 */
export async function fillNewDirectory<T>(directory: string, work: (write: WriteFile) => Promise<T>): Promise<T> {
  const directoryExists = await stat(directory).then(
    () => true,
    () => false, // a directory that cannot be read fails below
  );
  if (directoryExists) throw new StartError(`${directory} already exists: a backup requires a new directory.`);
  const partialDirectory = `${directory}.partial`;
  await mkdir(partialDirectory, { recursive: true, mode: DIRECTORY_MODE });
  const result = await work((file, content) =>
    writeFile(path.join(partialDirectory, file), content, { mode: FILE_MODE, flush: true }),
  );
  await rename(partialDirectory, directory);
  return result;
}

/**
 * Saves the data that cannot be rebuilt, except events in EventStoreDB. The tables of a database are saved as of one
 * moment. Roles may be running. The manifest is the last file: without it a backup is incomplete.
 * @throws the reason of the signal once it has aborted
 */
export async function saveBackup(
  databases: readonly Database[],
  target: BackupTarget,
  eventStoreName: Manifest['factsIn'],
): Promise<Manifest> {
  const createdAt = new Date().toISOString();
  const savedDatabases: Pick<Manifest, 'masterKeys' | 'migrations' | 'tables'>[] = [];
  for (const database of databases)
    savedDatabases.push(await saveDatabase(database, target, eventStoreName === 'PostgreSQL'));
  const manifest = createManifest({
    createdAt,
    factsIn: eventStoreName,
    masterKeys: savedDatabases.flatMap(({ masterKeys }) => masterKeys),
    migrations: savedDatabases.flatMap(({ migrations }) => migrations),
    tables: savedDatabases.flatMap(({ tables }) => tables),
  });
  target.signal?.throwIfAborted();
  await target.write(MANIFEST_FILE, Readable.from([Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)]));
  return manifest;
}

async function saveDatabase({ url, backupTables }: Database, target: BackupTarget, includesEvents: boolean) {
  const client = await connectClient({ connectionString: url, name: 'backup', ...BACKUP_CONNECTION_OPTIONS });
  try {
    await client.query('begin isolation level repeatable read read only');
    const migrations = (await client.query<{ id: string }>('select id from public.migrations')).rows.map(
      ({ id }) => id,
    );
    const tables: SavedTable[] = [];
    for (const table of backupTables) {
      target.signal?.throwIfAborted();
      const columns = await listColumns(client, table.name);
      if (columns.length === 0 || (table.name === 'es.events' && !includesEvents)) continue;
      tables.push(await saveTable(client, table, columns, target));
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
  { write, signal, startProgress }: BackupTarget,
): Promise<SavedTable> {
  const file = toTableFileName(name);
  const columnList = columns.join(', ');
  const task = { name: `backup ${name}`, total: startProgress ? await countRows(client, name) : 0, unit: 'rows' };
  const rows = client.query(
    copyTo(`copy (select ${columnList} from ${name}${order ? ` order by ${order}` : ''}) to stdout`),
  );
  const lineCounter = new LineCounter();
  const reportRows = (chunks: AsyncIterable<Buffer>) =>
    trackProgress(chunks, task, (chunk) => lineCounter.addChunk(chunk), startProgress);
  const hash = createHash('sha256');
  const updateHash = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
  };
  const save = (content: AsyncIterable<Uint8Array>) => write(file, content);
  await pipeline(rows, reportRows, createGzip({ level: 3 }), updateHash, save, ...(signal ? [{ signal }] : []));
  return { name, columns, file, rows: rows.rowCount, sha256: hash.digest('hex') };
}

async function countRows(client: pg.Client, table: string): Promise<number> {
  const { rows } = await client.query<{ count: string }>(`select count(*) from ${table}`);
  return Number(rows[0]?.count);
}
