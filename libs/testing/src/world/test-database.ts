import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import pg from 'pg';
import { startEmbeddedPostgres } from '#foundation';
import { POSTGRES_DIRECTORY } from '../jest/postgres-directory.ts';

/** Tests do not cover power cuts, so PostgreSQL does not wait for the disk. */
const POSTGRES_OPTIONS = ['fsync=off', 'full_page_writes=off', 'shared_buffers=64MB', 'log_min_messages=fatal'];

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
  const directory = process.env[POSTGRES_DIRECTORY];
  if (!directory || !existsSync(directory)) throw new Error('test databases exist only during a test run');
  const embedded = await startEmbeddedPostgres(directory, POSTGRES_OPTIONS);
  await embedded.abandon(); // the end of the test run stops it
  const server = new URL(embedded.url);
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const createUrl = (user: string, database: string) =>
    Object.assign(new URL(server), { username: user, pathname: `/${database}` }).href;

  const executeAsSuperuser = (sql: string) => execute(createUrl('postgres', 'postgres'), sql);
  await executeAsSuperuser(`create database ${name} owner ${server.username}`);
  return {
    url: createUrl(server.username, name),
    superuserUrl: createUrl('postgres', name),
    // A pool that has ended may still be closing its connections. PostgreSQL waits up to five seconds for them. A
    // forced drop would make them report an error to a test that has already ended.
    drop: () =>
      executeAsSuperuser(`drop database ${name}`).catch(() => executeAsSuperuser(`drop database ${name} with (force)`)),
  };
}

async function execute(connectionString: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
