/** Writes all rows of a database to files, as PostgreSQL copies them, and reads them back. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { migrate } from '#foundation';
import { listDatabases } from '../../../../apps/maintenance/src/databases.ts';
import type { TestDatabase } from '../world/test-database.ts';
import { STORED_DATA_DIR } from './fixture.ts';

const MIGRATIONS = 'public.migrations';

type Columns = Readonly<Record<string, readonly string[]>>;

export async function withClient<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Returns the names of all tables with their columns, except generated columns. */
async function readColumns(client: pg.Client): Promise<Columns> {
  const { rows } = await client.query<{ name: string; columns: string[] }>(
    `select n.nspname || '.' || c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema') group by 1 order by 1`,
  );
  return Object.fromEntries(rows.map(({ name, columns }) => [name, columns]));
}

/** Returns the rows of a table in the text format of COPY. */
export function readTable(client: pg.Client, table: string, columns: readonly string[]): Promise<string> {
  return text(client.query(copyTo(`copy (select ${columns.join(', ')} from ${table} order by 1, 2) to stdout`)));
}

/** Writes the rows of all tables as of one point in time. */
export async function writeTables(databaseUrl: string): Promise<void> {
  await mkdir(path.join(STORED_DATA_DIR, 'tables'), { recursive: true });
  await withClient(databaseUrl, async (client) => {
    await client.query('begin isolation level repeatable read read only');
    const tables = await readColumns(client);
    for (const [table, columns] of Object.entries(tables)) {
      await writeFile(getTablePath(table), await readTable(client, table, columns));
    }
    await writeFile(path.join(STORED_DATA_DIR, 'tables.json'), `${JSON.stringify(tables, null, 2)}\n`);
  });
}

/** Writes the rows of one table that the fixture has already. */
export async function writeTable(databaseUrl: string, table: string): Promise<void> {
  const columns = (await readStoredColumns())[table] ?? [];
  await withClient(databaseUrl, async (client) =>
    writeFile(getTablePath(table), await readTable(client, table, columns)),
  );
}

/** Returns the columns of the tables in the fixture. */
export async function readStoredColumns(): Promise<Columns> {
  return JSON.parse(await readFile(path.join(STORED_DATA_DIR, 'tables.json'), 'utf8'));
}

/** Returns the rows of a table in the fixture, in the text format of COPY. */
export function readStoredRows(table: string): Promise<string> {
  return readFile(getTablePath(table), 'utf8');
}

function getTablePath(table: string): string {
  return path.join(STORED_DATA_DIR, 'tables', `${table}.copy`);
}

/**
 * Creates the tables of the fixture with their rows. Rows that expire by the clock of the database are made valid
 * again. All leases and processes, and the leases of idempotency keys, have expired.
 */
export async function loadTables({ url, superuserUrl }: TestDatabase): Promise<void> {
  const ids = (await readStoredRows(MIGRATIONS)).split('\n').map((row) => row.split('\t')[0]);
  const migrations = listDatabases(url, undefined)[0]?.migrations ?? [];
  await migrate(
    url,
    migrations.filter(({ id }) => ids.includes(id)),
  );
  await withClient(superuserUrl, async (client) => {
    await client.query('set session_replication_role = replica'); // without triggers
    for (const [table, columns] of Object.entries(await readStoredColumns())) {
      if (table === MIGRATIONS) continue;
      const target = client.query(copyFrom(`copy ${table} (${columns.join(', ')}) from stdin`));
      await pipeline(Readable.from([await readStoredRows(table)]), target);
    }
    await client.query(`
      select setval(pg_get_serial_sequence('es.events', 'position'), (select max(position) from es.events));
      update public.leases set ends_at = now() - interval '1 minute';
      update public.processes set ends_at = now() - interval '1 minute';
      update gateway.answers set expires_at = now() + interval '1 day', leased_until = now() - interval '1 minute';
      update limits.counted set expire = (extract(epoch from now()) * 1000)::bigint + 3600000;
    `);
  });
}
