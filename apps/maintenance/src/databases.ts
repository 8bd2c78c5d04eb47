import { abuseLimitMigrations, contentMigrations, rateMigrations, sampleMigrations } from '#connectors';
import { foundationMigrations, type Migration, type Settings, startEmbeddedPostgres } from '#foundation';
import type { Manifest } from './manifest.ts';

/** A database of the installation, with its migrations and the tables that a backup includes. */
export interface Database {
  readonly url: string;
  readonly migrations: readonly Migration[];
  /** Tables in a backup, in the order in which they are restored. */
  readonly backupTables: readonly BackupTable[];
}

export interface BackupTable {
  readonly name: string;
  /** Column by which the rows are sorted in a backup; any order by default. */
  readonly order?: string;
}

/**
 * Tables of the main database that a backup requires. All others, except CONTENT_TABLES, are rebuilt from the events,
 * by triggers or by migrations, or are useless later, such as leases, counters and exchange rates.
 */
const EVENT_TABLES: readonly BackupTable[] = [
  { name: 'es.events', order: 'position' },
  { name: 'es.master_keys' },
  { name: 'es.skipped' },
];
const CONTENT_TABLES: readonly BackupTable[] = [
  { name: 'app.responses' },
  { name: 'app.response_items' },
  { name: 'gateway.answers' },
];
const MAIN_MIGRATIONS = [...foundationMigrations, ...abuseLimitMigrations, ...sampleMigrations, ...rateMigrations];

export const BACKUP_TABLES = [...EVENT_TABLES, ...CONTENT_TABLES];

/** No timeouts: copying a large table takes long, and writing to a slow disk may leave the transaction idle. */
export const BACKUP_CONNECTION_OPTIONS = { queryTimeoutMs: null, idleTransactionTimeoutMs: null } as const;

/**
 * Runs `work` with the databases and the URL of the main one. Starts the embedded PostgreSQL for that time if no main
 * database is configured.
 */
export async function withDatabases<T>(
  settings: Settings,
  work: (databases: readonly Database[], databaseUrl: string) => Promise<T>,
): Promise<T> {
  const embedded = settings.databaseUrl ? undefined : await startEmbeddedPostgres(settings.dataDir);
  try {
    const databaseUrl = settings.databaseUrl ?? (embedded?.url as string);
    return await work(listDatabases(databaseUrl, settings.contentDatabaseUrl), databaseUrl);
  } finally {
    await embedded?.close();
  }
}

/** Returns the store that has the events. */
export function nameEventStore({ eventStoreUrl }: Settings): Manifest['factsIn'] {
  return eventStoreUrl === undefined ? 'PostgreSQL' : 'EventStoreDB';
}

export function listDatabases(url: string, contentUrl: string | undefined): readonly Database[] {
  if (contentUrl === undefined)
    return [{ url, migrations: [...MAIN_MIGRATIONS, ...contentMigrations], backupTables: BACKUP_TABLES }];
  // Saved responses must not be older than the events: otherwise a repeated request would be charged again. So the
  // database with the events is saved first.
  return [
    { url, migrations: MAIN_MIGRATIONS, backupTables: EVENT_TABLES },
    { url: contentUrl, migrations: contentMigrations, backupTables: CONTENT_TABLES },
  ];
}
