/** Where something may have been kept: what the database says when it is asked for all it has, and files. */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';

const ROWS_AT_ONCE = 500;

/** Every row of every table as text, as a dump has them: what the files may hold compressed. */
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

/** All files below a directory that can still be read. */
export async function listFiles(directory: string): Promise<readonly string[]> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true });
  return names.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}

/** Of the project itself, without what is installed or built, such as a file that a program left where it was started. */
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
