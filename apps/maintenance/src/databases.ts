import { abuseLimitMigrations, contentMigrations } from '#connectors';
import { foundationMigrations, type Migration, type Settings, startEmbeddedPostgres } from '#foundation';

/** A database of the product, and which of it cannot be made again. */
export interface Database {
  readonly url: string;
  readonly migrations: readonly Migration[];
  /** Tables that a backup has, in the order in which they are filled. */
  readonly backupTables: readonly BackupTable[];
}

export interface BackupTable {
  readonly name: string;
  /** Of the rows in a backup; unset: any. */
  readonly order?: string;
}

/** Everything else is made again from these, by triggers or from the facts, or is worth nothing later: leases, counters. */
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
const MAIN_MIGRATIONS = [...foundationMigrations, ...abuseLimitMigrations];

export const BACKUP_TABLES = [...EVENT_TABLES, ...CONTENT_TABLES];

/** Of connections: a table of millions takes as long as it takes, and between two of them a disk may be slow. */
export const BACKUP_CONNECTION_OPTIONS = { queryTimeoutMs: null, idleTransactionTimeoutMs: null } as const;

/** Does something with the databases that are configured. The embedded one runs meanwhile. */
export async function withDatabases<T>(settings: Settings, work: (databases: readonly Database[]) => Promise<T>) {
  const embedded = settings.databaseUrl ? undefined : await startEmbeddedPostgres(settings.dataDir);
  try {
    return await work(listDatabases(settings.databaseUrl ?? (embedded?.url as string), settings.contentDatabaseUrl));
  } finally {
    await embedded?.close();
  }
}

export function listDatabases(url: string, contentUrl: string | undefined): readonly Database[] {
  if (contentUrl === undefined)
    return [{ url, migrations: [...MAIN_MIGRATIONS, ...contentMigrations], backupTables: BACKUP_TABLES }];
  // What is kept of an answer is newer than the facts, never older: then a repeated request would be charged again.
  return [
    { url, migrations: MAIN_MIGRATIONS, backupTables: EVENT_TABLES },
    { url: contentUrl, migrations: contentMigrations, backupTables: CONTENT_TABLES },
  ];
}
