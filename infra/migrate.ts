import pg from 'pg';

export interface Migration {
  readonly id: string;
  readonly sql: string;
}

/** Any number; the same for every process that migrates the same database. */
const MIGRATION_LOCK = 7_301_964;

/** Applies what was not yet applied, each in a transaction of its own. Safe when several processes start at once. */
export async function migrate(connectionString: string, migrations: readonly Migration[]): Promise<void> {
  const client = new pg.Client({ connectionString, application_name: 'countinghouse-migrate' });
  client.on('error', () => {}); // the query in progress fails with it
  await client.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await client.query(
      'create table if not exists public.migrations (id text primary key, applied_at timestamptz not null default now())',
    );
    const { rows } = await client.query<{ id: string }>('select id from public.migrations');
    const applied = new Set(rows.map(({ id }) => id));
    for (const { id, sql } of migrations.filter((each) => !applied.has(each.id))) {
      await client.query('begin');
      await client.query(sql);
      await client.query('insert into public.migrations (id) values ($1)', [id]);
      await client.query('commit');
    }
  } finally {
    await client.end(); // ends the lock and a transaction that failed
  }
}
