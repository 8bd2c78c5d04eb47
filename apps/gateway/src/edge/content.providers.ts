/** The database for stored Responses and saved HTTP responses. It may be separate from that of the read models. */
import type { Provider } from '@nestjs/common';
import pg from 'pg';
import { StorageQuota } from '#application';
import { contentMigrations } from '#connectors';
import { Foundation, prepareDatabase, prepareTables, StartError } from '#foundation';
import { followContentCredentials, openPool, ProcessRole, Readiness } from '#modules';
import { ConnectionProbe } from '#postgres';
import { IS_FUNDED, type IsFunded } from './limits/memory-budget.ts';

export class ContentDatabase {
  constructor(readonly pool: pg.Pool) {}
}

export const contentProviders: readonly Provider[] = [
  { provide: ContentDatabase, inject: [ProcessRole, Foundation, pg.Pool, Readiness], useFactory: openContentDatabase },
  {
    provide: StorageQuota,
    inject: [ProcessRole, IS_FUNDED],
    useFactory: ({ settings }: ProcessRole, isFunded: IsFunded) =>
      new StorageQuota(settings.storedBytesPerAccount, isFunded),
  },
];

async function openContentDatabase(
  role: ProcessRole,
  foundation: Foundation,
  readModelPool: pg.Pool,
  readiness: Readiness,
): Promise<ContentDatabase> {
  const { contentDatabaseUrl, migrate } = role.settings;
  if (contentDatabaseUrl === undefined) {
    await prepareTables(foundation, contentMigrations);
    return new ContentDatabase(readModelPool);
  }
  await foundation.startDeadline
    .waitFor('the database in CONTENT_DATABASE_URL', (step) =>
      prepareDatabase(contentDatabaseUrl, contentMigrations, migrate, step),
    )
    .catch((cause) => {
      if (cause instanceof StartError) throw cause;
      throw new StartError(`CONTENT_DATABASE_URL: the database cannot be prepared: ${cause.message || cause.code}.`, {
        cause,
      });
    });
  followContentCredentials(role, contentDatabaseUrl);
  const newConnections = new ConnectionProbe({ connectionString: contentDatabaseUrl });
  readiness.addOptional('content', () => newConnections.check().then(() => ({ ok: true })));
  return new ContentDatabase(await openPool(role, contentDatabaseUrl));
}
