/** The database for stored Responses and saved HTTP responses. It may be separate from that of the read models. */
import type { Provider } from '@nestjs/common';
import pg from 'pg';
import { StorageQuota } from '#application';
import { contentMigrations } from '#connectors';
import { Foundation, prepareDatabase, retryUntilStartDeadline, StartError } from '#foundation';
import { openPool, ProcessRole } from '#modules';
import { IS_FUNDED, type IsFunded } from './limits/memory-budget.ts';

export class ContentDatabase {
  constructor(readonly pool: pg.Pool) {}
}

export const contentProviders: readonly Provider[] = [
  { provide: ContentDatabase, inject: [ProcessRole, Foundation, pg.Pool], useFactory: openContentDatabase },
  {
    provide: StorageQuota,
    inject: [ProcessRole, IS_FUNDED],
    useFactory: ({ settings }: ProcessRole, isFunded: IsFunded) =>
      new StorageQuota(settings.storedBytesPerAccount, isFunded),
  },
];

async function openContentDatabase(
  role: ProcessRole,
  { databaseUrl, runtime }: Foundation,
  readModelPool: pg.Pool,
): Promise<ContentDatabase> {
  const { contentDatabaseUrl, migrate } = role.settings;
  await retryUntilStartDeadline(
    () => prepareDatabase(contentDatabaseUrl ?? databaseUrl, contentMigrations, migrate),
    (error) => runtime.reportError('the database for stored content is not available yet; retrying', error),
  ).catch((cause) => {
    if (contentDatabaseUrl === undefined) throw cause;
    throw new StartError(`CONTENT_DATABASE_URL: the database cannot be prepared: ${cause.message || cause.code}.`, {
      cause,
    });
  });
  return new ContentDatabase(
    contentDatabaseUrl === undefined ? readModelPool : await openPool(role, contentDatabaseUrl),
  );
}
