import { type BeforeApplicationShutdown, Module, type OnApplicationBootstrap } from '@nestjs/common';
import {
  AutoTopupInvoices,
  Clock,
  CreateTopupHandler,
  Downloads,
  ExchangeRates,
  FileStore,
  KeptRequests,
  OfferedPayments,
  Secrets,
  Streams,
  TopupPayments,
  VideoHooks,
  VideoResults,
} from '#application';
import { mediaTypeOf } from '#connectors';
import { PostgresDueTable } from '#eventstore';
import { type Running, Turns } from '#foundation';
import {
  FilesModule,
  PaymentsModule,
  ProvidersModule,
  Readiness,
  Role,
  SecretsModule,
  StoresModule,
  StreamsModule,
  WalletsModule,
} from '#modules';
import { AutoTopupSurroundings, SagaPorts, SagaStores, startSagas, TopupSurroundings, VideoMakers } from './sagas.ts';

/** A workflow whose next step has been due for so long has more to do than it can, or stands still. */
const LATE_MS = 60_000;

/** The reaction side: facts become commands. */
@Module({
  imports: [StoresModule, FilesModule, PaymentsModule, ProvidersModule, SecretsModule, StreamsModule, WalletsModule],
  providers: [
    {
      provide: TopupPayments,
      inject: [ExchangeRates, OfferedPayments, Clock],
      useFactory: (...ports: ConstructorParameters<typeof TopupPayments>) => new TopupPayments(...ports),
    },
    {
      provide: AutoTopupInvoices,
      inject: [Streams, OfferedPayments, ExchangeRates, Clock],
      useFactory: (...ports: ConstructorParameters<typeof CreateTopupHandler>) =>
        new AutoTopupInvoices(ports[0].topups, new CreateTopupHandler(...ports)),
    },
    {
      provide: KeptRequests,
      inject: [FileStore, Secrets],
      useFactory: (files: FileStore, secrets: Secrets) => new KeptRequests(files, secrets),
    },
    {
      provide: VideoResults,
      inject: [FileStore, Downloads],
      useFactory: (files: FileStore, downloads: Downloads) => new VideoResults(files, downloads, mediaTypeOf),
    },
    {
      provide: VideoHooks,
      inject: [Role, Secrets],
      useFactory: ({ settings }: Role, secrets: Secrets) => new VideoHooks(settings.publicBaseUrl, secrets),
    },
    SagaStores,
    AutoTopupSurroundings,
    TopupSurroundings,
    VideoMakers,
    SagaPorts,
  ],
})
export class SagasModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private running: Running | undefined;

  constructor(
    private readonly ports: SagaPorts,
    private readonly files: FileStore,
    private readonly readiness: Readiness,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const turns = new Turns();
    this.running = await startSagas(this.ports, this.files, turns);
    const due = new PostgresDueTable(this.ports.stores.pool);
    this.readiness.show('workflows', async () => {
      const overdue = await due.overdueMs();
      const ok = Object.values(overdue).every((late) => late < LATE_MS);
      return { ok, leading: turns.leading, standing_by: turns.standingBy, overdue_ms: overdue };
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.running?.close();
  }
}
