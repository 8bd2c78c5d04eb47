import { Module } from '@nestjs/common';
import pg from 'pg';
import {
  Accounts,
  AutoTopups,
  Clock,
  openStreams,
  PriceLists,
  RefusedRequests,
  Streams,
  SystemClock,
  Topups,
} from '#application';
import { PostgresSnapshots } from '#eventstore';
import { Foundation, openFoundation } from '#infra';
import { ProjectorLag } from '#projections';
import { Role } from './role.ts';

const CONNECTIONS = 10;
/** A statement to a host that is lost would be waited for in vain. */
const STATEMENT_TIMEOUT_MS = 30_000;

/** The stores that every role stands on, one of each in a process: the database, the event store and the write paths. */
@Module({
  providers: [
    { provide: Clock, useClass: SystemClock },
    ProjectorLag,
    {
      provide: Foundation,
      inject: [Role],
      useFactory: async (role: Role) => role.keep(await openFoundation(role.settings, role.log)),
    },
    { provide: pg.Pool, inject: [Role, Foundation], useFactory: openPool },
    {
      provide: Streams,
      inject: [Foundation, pg.Pool, ProjectorLag],
      useFactory: ({ store, runtime }: Foundation, pool: pg.Pool, lag: ProjectorLag) =>
        openStreams(lag.watching(store), new PostgresSnapshots(pool), runtime),
    },
    { provide: Accounts, inject: [Streams], useFactory: ({ accounts }: Streams) => accounts },
    { provide: AutoTopups, inject: [Streams], useFactory: ({ autoTopups }: Streams) => autoTopups },
    { provide: Topups, inject: [Streams], useFactory: ({ topups }: Streams) => topups },
    { provide: PriceLists, inject: [Streams], useFactory: ({ priceLists }: Streams) => priceLists },
    { provide: RefusedRequests, inject: [Streams], useFactory: ({ refusedRequests }: Streams) => refusedRequests },
  ],
  exports: [
    RefusedRequests,
    Clock,
    ProjectorLag,
    Foundation,
    pg.Pool,
    Streams,
    Accounts,
    AutoTopups,
    Topups,
    PriceLists,
  ],
})
export class StoresModule {}

async function openPool(role: Role, { databaseUrl, log }: Foundation): Promise<pg.Pool> {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: CONNECTIONS,
    query_timeout: STATEMENT_TIMEOUT_MS,
    application_name: `countinghouse-${role.name}`,
  });
  pool.on('error', (err) => log.warn({ err }, 'an idle database connection broke'));
  await role.keep({ close: () => pool.end() });
  return pool;
}
