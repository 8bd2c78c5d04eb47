import { getHeapStatistics } from 'node:v8';
import { Module, type OnModuleInit } from '@nestjs/common';
import pg from 'pg';
import {
  Accounts,
  AutoTopups,
  createStreams,
  PriceLists,
  RefusedRequests,
  Secrets,
  Streams,
  Topups,
} from '#application';
import { PostgresSnapshots } from '#eventstore';
import { Foundation } from '#foundation';
import { StreamStateCache } from '#kernel';
import { ProjectorLag } from '#projections';
import { Readiness } from './readiness.ts';
import { SecretsModule } from './secrets.module.ts';
import { StoresModule } from './stores.module.ts';

/** Share of the maximum heap. Stream states take about their estimated memory; requests need the rest. */
const STREAM_CACHE_SHARE = 0.25;

/** The write paths, one of each per process, for roles that run commands. They need secrets to sign snapshots. */
@Module({
  imports: [SecretsModule, StoresModule],
  providers: [
    {
      provide: Streams,
      inject: [Foundation, pg.Pool, ProjectorLag, Secrets],
      useFactory: ({ store, runtime }: Foundation, pool: pg.Pool, lag: ProjectorLag, secrets: Secrets) =>
        createStreams(
          lag.withLagTracking(store),
          new PostgresSnapshots(pool, secrets.derivePurposeKeys('countinghouse snapshots')),
          runtime,
          { cache: new StreamStateCache(STREAM_CACHE_SHARE * getHeapStatistics().heap_size_limit) },
        ),
    },
    { provide: Accounts, inject: [Streams], useFactory: ({ accounts }: Streams) => accounts },
    { provide: AutoTopups, inject: [Streams], useFactory: ({ autoTopups }: Streams) => autoTopups },
    { provide: Topups, inject: [Streams], useFactory: ({ topups }: Streams) => topups },
    { provide: PriceLists, inject: [Streams], useFactory: ({ priceLists }: Streams) => priceLists },
    { provide: RefusedRequests, inject: [Streams], useFactory: ({ refusedRequests }: Streams) => refusedRequests },
  ],
  exports: [Streams, Accounts, AutoTopups, Topups, PriceLists, RefusedRequests],
})
export class StreamsModule implements OnModuleInit {
  constructor(
    private readonly foundation: Foundation,
    private readonly readiness: Readiness,
  ) {}

  /** @throws StoreUnavailableError if the database user may not append */
  async onModuleInit(): Promise<void> {
    const { store, startDeadline } = this.foundation;
    await startDeadline.waitFor('the right to append', async () => store.checkAppendRight?.());
    this.readiness.addRequired('append', async () => {
      await store.checkAppendRight?.();
      return { ok: true };
    });
  }
}
