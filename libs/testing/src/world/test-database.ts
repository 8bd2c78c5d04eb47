import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import pg from 'pg';
import { migrate, startEmbeddedPostgres } from '#foundation';
import { listDatabases } from '../../../../apps/maintenance/src/databases.ts';
import { POSTGRES_DIRECTORY } from '../jest/postgres-directory.ts';

const POSTGRES_OPTIONS = [
  // Tests do not cover power cuts, so PostgreSQL neither waits for the disk nor logs more than it must.
  'fsync=off',
  'full_page_writes=off',
  'wal_level=minimal',
  'max_wal_senders=0',
  'checkpoint_timeout=1h',
  'max_wal_size=256MB',
  'autovacuum=off', // databases live for seconds
  'shared_buffers=128MB',
  'log_min_messages=fatal',
  'scram_iterations=1', // each test opens many connections
];

/** The database that `createMigratedDatabase` copies. */
const TEMPLATE = 'migrated';
/** Held by the worker that creates the template. The number is arbitrary. */
const TEMPLATE_LOCK = 7_301_966;

export interface TestDatabase {
  /** URL with the PostgreSQL user of the service, who owns the database and has no other rights. */
  readonly url: string;
  /** URL of the same database for a superuser. */
  readonly superuserUrl: string;
  /** Removes the database, even if connections to it are still open. */
  drop(): Promise<void>;
}

/** Creates an empty database in the PostgreSQL of this test run, which the first caller starts. */
export async function createTestDatabase(): Promise<TestDatabase> {
  return createDatabase(await findServer(), 'template1');
}

/** Creates a database with all tables of the service. The migrations run once per test run. */
export async function createMigratedDatabase(): Promise<TestDatabase> {
  const server = await findServer();
  template ??= createTemplate(server);
  await template;
  return createDatabase(server, TEMPLATE);
}

let template: Promise<void> | undefined;
let running: { readonly directory: string; readonly url: Promise<string> } | undefined;

/** Returns a URL of this run's PostgreSQL with the user of the service. */
function findServer(): Promise<string> {
  const directory = process.env[POSTGRES_DIRECTORY];
  if (!directory || !existsSync(directory)) throw new Error('test databases exist only during a test run');
  if (running?.directory !== directory) {
    template = undefined;
    running = { directory, url: startServer(directory) };
  }
  return running.url;
}

async function startServer(directory: string): Promise<string> {
  const embedded = await startEmbeddedPostgres(directory, POSTGRES_OPTIONS);
  await embedded.abandon(); // the end of the test run stops it
  return embedded.url;
}

async function createTemplate(server: string): Promise<void> {
  const draft = `${TEMPLATE}_draft`;
  await withSuperuser(server, async (client) => {
    await client.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK]);
    const { rows } = await client.query('select from pg_database where datname = $1', [TEMPLATE]);
    if (rows.length > 0) return;
    await client.query(`create database ${draft} owner ${new URL(server).username}`);
    for (const { url, migrations } of listDatabases(toUrl(server, draft), undefined)) await migrate(url, migrations);
    await client.query(`alter database ${draft} rename to ${TEMPLATE}`);
  });
}

async function createDatabase(server: string, source: string): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const execute = (sql: string) => withSuperuser(server, (client) => client.query(sql));
  // By default PostgreSQL would write each page of the copy to its log.
  await execute(`create database ${name} template ${source} strategy file_copy owner ${new URL(server).username}`);
  return {
    url: toUrl(server, name),
    superuserUrl: toUrl(server, name, 'postgres'),
    // A pool that has ended may still be closing its connections. PostgreSQL waits up to five seconds for them. A
    // forced drop would make them report an error to a test that has already ended.
    drop: async () =>
      void (await execute(`drop database ${name}`).catch(() => execute(`drop database ${name} with (force)`))),
  };
}

function toUrl(server: string, database: string, user = new URL(server).username): string {
  return Object.assign(new URL(server), { username: user, pathname: `/${database}` }).href;
}

async function withSuperuser<T>(server: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: toUrl(server, 'postgres', 'postgres') });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
