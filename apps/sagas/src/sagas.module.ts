import { type BeforeApplicationShutdown, Inject, Module, type OnApplicationBootstrap } from '@nestjs/common';
import pg from 'pg';
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
import { Foundation, LeaseStatus, waitForDrain } from '#foundation';
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
import { type LeaderTask, startLeaderTasks } from './leader-tasks.ts';
import { FILE_EXPIRY, HOLD_EXPIRY, sweepProviders, UNCLAIMED_PAYMENTS } from './sweeps.providers.ts';
import {
  AUTO_TOPUP_WORKFLOW,
  CHALLENGE_WORKFLOW,
  TOPUP_WORKFLOW,
  VIDEO_WORKFLOW,
  workflowProviders,
} from './workflows.providers.ts';

/** If a step of a workflow has been due for this long, the workflow is overloaded or does not run. */
const MAX_OVERDUE_MS = 60_000;
/** How long running steps may take. What a step has done is found again at the next start. */
const STOP_TIMEOUT_MS = 60_000;
const LEADER_TASKS = Symbol('workflows and sweeps');

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
      useFactory: (rates: ExchangeRates, paymentMethods: PaymentMethods, registry: PaymentRegistry, clock: Clock) =>
        new TopupPayments(rates, paymentMethods, registry, clock),
    },
    {
      provide: AutoTopupInvoices,
      inject: [Streams, PaymentMethods, ExchangeRates, Clock, Foundation],
      useFactory: (
        streams: Streams,
        paymentMethods: PaymentMethods,
        rates: ExchangeRates,
        clock: Clock,
        { runtime }: Foundation,
      ) =>
        new AutoTopupInvoices(
          streams.topups,
          new CreateTopupHandler({ streams, paymentMethods, rates, clock, runtime }),
        ),
    },
    {
      provide: VideoRequestStore,
      inject: [FileStore, Secrets, Foundation],
      useFactory: (files: FileStore, secrets: Secrets, { runtime }: Foundation) =>
        new VideoRequestStore(files, secrets, runtime),
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
    ...workflowProviders,
    ...sweepProviders,
    {
      provide: LEADER_TASKS,
      inject: [
        TOPUP_WORKFLOW,
        AUTO_TOPUP_WORKFLOW,
        CHALLENGE_WORKFLOW,
        VIDEO_WORKFLOW,
        FILE_EXPIRY,
        HOLD_EXPIRY,
        UNCLAIMED_PAYMENTS,
      ],
      useFactory: (...tasks: readonly (LeaderTask | undefined)[]) => tasks.filter((task) => task !== undefined),
    },
  ],
})
export class SagasModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly leaseStatus = new LeaseStatus();
  private stop = () => Promise.resolve();

  constructor(
    private readonly foundation: Foundation,
    @Inject(pg.Pool) private readonly pool: pg.Pool, // tsc emits no run-time type for this class
    @Inject(LEADER_TASKS) private readonly tasks: readonly LeaderTask[],
    private readonly schedule: PostgresWorkflowSchedule,
    private readonly readiness: Readiness,
  ) {}

  onApplicationBootstrap(): void {
    const { leaseStatus, schedule, pool } = this;
    this.stop = startLeaderTasks(this.tasks, this.foundation, leaseStatus);
    this.readiness.addOptional('workflows', async () => {
      const [overdue, leases] = await Promise.all([schedule.loadOverdueMs(), describeLeases(leaseStatus, pool)]);
      const isInTime = Object.values(overdue).every((delayMs) => delayMs < MAX_OVERDUE_MS);
      const ok = isInTime && leases.without_leader.length === 0;
      return { ok, leading: leaseStatus.leading, standing_by: leaseStatus.standby, ...leases, overdue_ms: overdue };
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    const { log } = this.foundation;
    const describe = () => ({ leading: this.leaseStatus.leading });
    await waitForDrain(this.stop(), { log, limitMs: STOP_TIMEOUT_MS, describe });
  }
}
