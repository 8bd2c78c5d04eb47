import { type BeforeApplicationShutdown, Module, type OnApplicationBootstrap } from '@nestjs/common';
import {
  AutoTopupInvoices,
  Clock,
  CreateTopupHandler,
  Downloader,
  ExchangeRates,
  FileStore,
  PaymentMethods,
  Secrets,
  Streams,
  TopupPayments,
  VideoRequestStore,
  VideoResults,
  VideoWebhooks,
} from '#application';
import { detectMediaType } from '#connectors';
import { PostgresWorkflowSchedule } from '#eventstore';
import { LeaseStatus, type Running } from '#foundation';
import {
  FilesModule,
  PaymentsModule,
  ProcessRole,
  ProvidersModule,
  Readiness,
  SecretsModule,
  StoresModule,
  StreamsModule,
  WalletsModule,
} from '#modules';
import {
  AutoTopupSagaDependencies,
  SagaDependencies,
  SagaStores,
  startSagas,
  TopupSagaDependencies,
  VideoSagaDependencies,
} from './sagas.ts';

/** A workflow whose next step has been due for so long has more to do than it can, or stands still. */
const LATE_MS = 60_000;

/** The reaction side: facts become commands. */
@Module({
  imports: [StoresModule, FilesModule, PaymentsModule, ProvidersModule, SecretsModule, StreamsModule, WalletsModule],
  providers: [
    {
      provide: TopupPayments,
      inject: [ExchangeRates, PaymentMethods, Clock],
      useFactory: (...ports: ConstructorParameters<typeof TopupPayments>) => new TopupPayments(...ports),
    },
    {
      provide: AutoTopupInvoices,
      inject: [Streams, PaymentMethods, ExchangeRates, Clock],
      useFactory: (...ports: ConstructorParameters<typeof CreateTopupHandler>) =>
        new AutoTopupInvoices(ports[0].topups, new CreateTopupHandler(...ports)),
    },
    {
      provide: VideoRequestStore,
      inject: [FileStore, Secrets],
      useFactory: (files: FileStore, secrets: Secrets) => new VideoRequestStore(files, secrets),
    },
    {
      provide: VideoResults,
      inject: [FileStore, Downloader],
      useFactory: (files: FileStore, downloads: Downloader) => new VideoResults(files, downloads, detectMediaType),
    },
    {
      provide: VideoWebhooks,
      inject: [ProcessRole, Secrets],
      useFactory: ({ settings }: ProcessRole, secrets: Secrets) => new VideoWebhooks(settings.publicBaseUrl, secrets),
    },
    SagaStores,
    AutoTopupSagaDependencies,
    TopupSagaDependencies,
    VideoSagaDependencies,
    SagaDependencies,
  ],
})
export class SagasModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private running: Running | undefined;

  constructor(
    private readonly ports: SagaDependencies,
    private readonly files: FileStore,
    private readonly readiness: Readiness,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const turns = new LeaseStatus();
    this.running = await startSagas(this.ports, this.files, turns);
    const due = new PostgresWorkflowSchedule(this.ports.stores.pool);
    this.readiness.show('workflows', async () => {
      const overdue = await due.loadOverdueMs();
      const ok = Object.values(overdue).every((late) => late < LATE_MS);
      return { ok, leading: turns.leading, standing_by: turns.standingBy, overdue_ms: overdue };
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.running?.close();
  }
}
