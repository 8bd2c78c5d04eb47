/** Lists locations in which data may have been stored: all rows of the database, and files. */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';

const ROWS_AT_ONCE = 500;

/** Returns every row of every table as text, as in a dump. The files of the database may contain them compressed. */
export async function* dumpRows(database: pg.Pool): AsyncGenerator<Buffer> {
  const { rows } = await database.query<{ readonly name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
  );
  for (const { name } of rows) {
    yield Buffer.from(`\n${name}\n`);
    const client = await database.connect();
    try {
      await client.query('begin');
      await client.query(`declare all_rows cursor for select each::text as row from ${name} each`);
      for (;;) {
        const { rows } = await client.query<{ readonly row: string }>(`fetch ${ROWS_AT_ONCE} from all_rows`);
        if (rows.length === 0) break;
        yield Buffer.from(rows.map(({ row }) => row).join('\n'));
      }
      await client.query('rollback');
    } finally {
      client.release();
    }
  }
}

/** Returns all files below a directory. */
export async function listFiles(directory: string): Promise<readonly string[]> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true });
  return names.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}

/**
 * Returns files of the project that changed after `sinceMs`, such as one that a process wrote into its directory.
 * Installed and built files are omitted.
 */
export async function listChangedFiles(directory: string, sinceMs: number): Promise<readonly string[]> {
  const changed: string[] = [];
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (['node_modules', 'dist', '.git', '.proofs'].includes(entry.name)) continue;
    const full = path.join(directory, entry.name);
    if (entry.isDirectory()) changed.push(...(await listChangedFiles(full, sinceMs)));
    else if (entry.isFile() && (await stat(full)).mtimeMs > sinceMs) changed.push(full);
  }
  return changed;
}
