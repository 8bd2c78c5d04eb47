import { type BeforeApplicationShutdown, Module, type OnApplicationBootstrap } from '@nestjs/common';
import {
  AutoTopupInvoices,
  Clock,
  CreateTopupHandler,
  Downloader,
  ExchangeRates,
  FileStore,
  PaymentMethods,
  PaymentRegistry,
  Secrets,
  Streams,
  TopupPayments,
  VideoRequestStore,
  VideoResults,
  VideoWebhooks,
} from '#application';
import { detectMediaType } from '#connectors';
import { PostgresWorkflowSchedule } from '#eventstore';
import { LeaseStatus, type RunningProcess, waitForDrain } from '#foundation';
import {
  describeLeases,
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

/** If a step of a workflow has been due for this long, the workflow is overloaded or does not run. */
const MAX_OVERDUE_MS = 60_000;
/** How long running steps may take. What a step has done is found again at the next start. */
const STOP_TIMEOUT_MS = 60_000;

/** Runs workflows and sweeps, which react to events and to the time. */
@Module({
  imports: [StoresModule, FilesModule, PaymentsModule, ProvidersModule, SecretsModule, StreamsModule, WalletsModule],
  providers: [
    {
      provide: PaymentRegistry,
      inject: [Streams, Clock],
      useFactory: ({ paymentClaims }: Streams, clock: Clock) => new PaymentRegistry(paymentClaims, clock),
    },
    {
      provide: TopupPayments,
      inject: [ExchangeRates, PaymentMethods, PaymentRegistry, Clock],
      useFactory: (...dependencies: ConstructorParameters<typeof TopupPayments>) => new TopupPayments(...dependencies),
    },
    {
      provide: AutoTopupInvoices,
      inject: [Streams, PaymentMethods, ExchangeRates, Clock],
      useFactory: (...dependencies: ConstructorParameters<typeof CreateTopupHandler>) =>
        new AutoTopupInvoices(dependencies[0].topups, new CreateTopupHandler(...dependencies)),
    },
    {
      provide: VideoRequestStore,
      inject: [FileStore, Secrets],
      useFactory: (files: FileStore, secrets: Secrets) => new VideoRequestStore(files, secrets),
    },
    {
      provide: VideoResults,
      inject: [FileStore, Downloader],
      useFactory: (files: FileStore, downloader: Downloader) => new VideoResults(files, downloader, detectMediaType),
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
  private readonly leaseStatus = new LeaseStatus();
  private running: RunningProcess | undefined;

  constructor(
    private readonly dependencies: SagaDependencies,
    private readonly files: FileStore,
    private readonly readiness: Readiness,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { leaseStatus } = this;
    this.running = await startSagas(this.dependencies, this.files, leaseStatus);
    const schedule = new PostgresWorkflowSchedule(this.dependencies.stores.pool);
    this.readiness.addOptional('workflows', async () => {
      const [overdue, leases] = await Promise.all([
        schedule.loadOverdueMs(),
        describeLeases(leaseStatus, this.dependencies.stores.pool),
      ]);
      const isInTime = Object.values(overdue).every((delayMs) => delayMs < MAX_OVERDUE_MS);
      const ok = isInTime && leases.without_leader.length === 0;
      return { ok, leading: leaseStatus.leading, standing_by: leaseStatus.standby, ...leases, overdue_ms: overdue };
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    const { log } = this.dependencies.stores.foundation;
    const describe = () => ({ leading: this.leaseStatus.leading });
    await waitForDrain(this.running?.close() ?? Promise.resolve(), { log, limitMs: STOP_TIMEOUT_MS, describe });
  }
}
