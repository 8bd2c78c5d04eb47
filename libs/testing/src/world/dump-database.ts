/** Collects stored rows and log lines, for tests that search them for data that must not be there. */
import pg from 'pg';

/** Returns all rows of all tables of a database as text. */
export async function dumpDatabase(databaseUrl: string): Promise<string> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows: tables } = await client.query(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables
        where schemaname not in ('pg_catalog', 'information_schema')`,
    );
    let all = '';
    for (const { name } of tables) {
      const { rows } = await client.query(`select t::text as row from ${name} t`);
      all += rows.map(({ row }) => row).join('\n');
    }
    return all;
  } finally {
    await client.end();
  }
}

/** Collects the standard output of this process, and prints only what is not a log line. */
export class LogTap {
  text = '';
  private readonly write = process.stdout.write;

  constructor() {
    const { write } = this;
    process.stdout.write = ((text: string | Uint8Array, ...rest: unknown[]) => {
      this.text += String(text);
      return rest.length > 0 || typeof text !== 'string' || !text.startsWith('{"level"')
        ? write.call(process.stdout, text as string, ...(rest as []))
        : true;
    }) as typeof process.stdout.write;
  }

  restore(): void {
    process.stdout.write = this.write;
  }
}
