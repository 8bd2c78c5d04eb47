import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { createClient } from '#postgres';
import { StartError } from './start-error.ts';

export interface Migration {
  readonly id: string;
  readonly sql: string;
}

/** Any number; the same for every process that migrates the same database. */
const MIGRATION_LOCK = 7_301_964;
/**
 * A migration that waits for a table has everybody else who comes wait behind it, also those who only read. So it waits
 * briefly, and tries again a little later.
 */
const WAITS_FOR_TABLE_MS = 200;
const TRIES_AGAIN_AFTER_MS = 400;
const PATIENCE_MS = 120_000;
/** SQLSTATE lock_not_available. */
const LOCKED = '55P03';

/** Whether roles migrate when they start, or leave that to `npm run migrate`. */
export type MigrationMode = 'start' | 'command';

/**
 * Applies what was not yet applied, each in a transaction of its own. Safe when several processes start at once, and beside
 * running ones, whose reads it delays by no more than a fraction of a second each time it tries.
 * @throws StartError when a table is in use for too long
 */
export async function migrate(
  connectionString: string,
  migrations: readonly Migration[],
  patienceMs = PATIENCE_MS,
): Promise<void> {
  await connected(connectionString, async (client) => {
    if ((await missing(client, migrations)).length === 0) return;
    const deadline = performance.now() + patienceMs;
    await client.query(`set lock_timeout = ${WAITS_FOR_TABLE_MS}`);
    await patiently(deadline, () => client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]));
    await client.query(
      'create table if not exists public.migrations (id text primary key, applied_at timestamptz not null default now())',
    );
    for (const migration of await missing(client, migrations))
      await patiently(deadline, () => apply(client, migration));
  });
}

/** What roles do at their start. @throws StartError when something is missing that they are not to apply themselves */
export async function prepareDatabase(
  connectionString: string,
  migrations: readonly Migration[],
  who: MigrationMode,
): Promise<void> {
  if (who === 'start') return migrate(connectionString, migrations);
  const left = await connected(connectionString, (client) => missing(client, migrations));
  if (left.length === 0) return;
  const ids = left.map(({ id }) => id).join(', ');
  throw new StartError(`The database lacks ${ids}: run "npm run migrate" first, or set MIGRATE=start.`);
}

async function missing(client: pg.Client, migrations: readonly Migration[]): Promise<readonly Migration[]> {
  const known = await client.query(`select to_regclass('public.migrations') is not null as known`);
  if (!known.rows[0].known) return migrations;
  const { rows } = await client.query<{ id: string }>('select id from public.migrations');
  const applied = new Set(rows.map(({ id }) => id));
  return migrations.filter(({ id }) => !applied.has(id));
}

async function apply(client: pg.Client, { id, sql }: Migration): Promise<void> {
  try {
    await client.query('begin');
    await client.query(sql);
    await client.query('insert into public.migrations (id) values ($1)', [id]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => {}); // where the connection is lost, so is the transaction
    throw error;
  }
}

async function patiently(deadline: number, work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work();
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== LOCKED) throw error;
      if (performance.now() > deadline)
        throw new StartError(
          'The database cannot be migrated while a transaction, or another migration, holds what is to be changed: end it, and start again.',
        );
      await delay(TRIES_AGAIN_AFTER_MS);
    }
  }
}

async function connected<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = createClient({ connectionString, name: 'migrate', queryTimeoutMs: null });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end(); // ends the lock and a transaction that failed
  }
}
