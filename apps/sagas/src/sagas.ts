import { Inject, Injectable } from '@nestjs/common';
import pg from 'pg';
import {
  AutoTopupInvoices,
  AutoTopupLimits,
  Clock,
  type FileStore,
  HoldCommandRouter,
  PaymentBackendRegistry,
  PaymentRegistry,
  ProviderRegistry,
  Secrets,
  Streams,
  TopupPayments,
  VideoRequestStore,
  VideoResults,
  VideoWebhooks,
  Wallets,
} from '#application';
import { autoTopupWorkflow, challengeWorkflow, videoWorkflow } from '#domain';
import { PostgresCheckpoints, PostgresWorkflowSchedule } from '#eventstore';
import {
  Foundation,
  findStaleProcesses,
  type LeaseStatus,
  type RunningProcess,
  runWhileLeader,
  type WorkProbe,
} from '#foundation';
import { formatUsd, type Lease, StoreUnavailableError } from '#kernel';
import {
  FreshnessCheck,
  findPayersByHoldOwner,
  findPayersWithOverdueHolds,
  findUnclaimedChallenges,
  ProjectionProgress,
  TopupFinder,
} from '#projections';
import {
  expireFiles,
  expireHolds,
  forfeitUnclaimedPayments,
  PAYMENT_CLAIMS,
  runAutoTopupWorkflow,
  runChallengeWorkflow,
  runTopupWorkflow,
  runVideoWorkflow,
} from '#sagas';

/** Dependencies that workflows and sweeps share. */
@Injectable()
export class SagaStores {
  constructor(
    readonly foundation: Foundation,
    @Inject(pg.Pool) readonly pool: pg.Pool,
    readonly clock: Clock,
    readonly streams: Streams,
  ) {}
}

@Injectable()
export class AutoTopupSagaDependencies {
  constructor(
    readonly invoices: AutoTopupInvoices,
    readonly wallets: Wallets,
    readonly secrets: Secrets,
    readonly limits: AutoTopupLimits,
  ) {}
}

@Injectable()
export class VideoSagaDependencies {
  constructor(
    readonly providers: ProviderRegistry,
    readonly requests: VideoRequestStore,
    readonly results: VideoResults,
    readonly webhooks: VideoWebhooks,
  ) {}
}

@Injectable()
export class TopupSagaDependencies {
  constructor(
    readonly backends: PaymentBackendRegistry,
    readonly payments: TopupPayments,
    readonly registry: PaymentRegistry,
  ) {}
}

/** All dependencies of `startSagas` except the file store and the lease status. */
@Injectable()
export class SagaDependencies {
  constructor(
    readonly stores: SagaStores,
    readonly topups: TopupSagaDependencies,
    readonly autoTopups: AutoTopupSagaDependencies,
    readonly videos: VideoSagaDependencies,
  ) {}
}

/** Starts the workflows and sweeps. Each has its own lease, so that only one process runs it at a time. */
export async function startSagas(
  dependencies: SagaDependencies,
  files: FileStore,
  leaseStatus: LeaseStatus,
): Promise<RunningProcess> {
  const { databaseUrl, runtime } = dependencies.stores.foundation;
  const stopController = new AbortController();
  const leadership = { databaseUrl, signal: stopController.signal, reportError: runtime.reportError, leaseStatus };
  const leaderTasks = [
    ...Object.entries(createWorkflows(dependencies)).map(([name, work]) => {
      return runWhileLeader({ ...leadership, name, probe: createWorkflowProbe(name, dependencies.stores) }, work);
    }),
    ...Object.entries(createSweeps(files, dependencies)).map(([name, work]) => {
      return runWhileLeader({ ...leadership, name, probe: createSweepProbe(dependencies.stores) }, work);
    }),
  ];
  const close = async () => {
    stopController.abort();
    await Promise.all(leaderTasks);
  };
  return { readyFields: {}, close };
}

/** A sweep follows no events, so it can work if the stores respond, and the database accepts writes and appends. */
function createSweepProbe({ foundation, pool }: SagaStores): WorkProbe {
  return async () => {
    const [{ rows }] = await Promise.all([
      pool.query<{ mode: string }>(`select current_setting('transaction_read_only') as mode`),
      foundation.store.readLastPosition(),
      foundation.store.checkAppendRight?.(),
    ]);
    if (rows[0]?.mode === 'on') throw new StoreUnavailableError('the database accepts no writes of this process');
    return new Map();
  };
}

/** A workflow advances with its own checkpoint, and the top-ups with that of the payment claims before. */
function createWorkflowProbe(name: string, { foundation, pool }: SagaStores): WorkProbe {
  const checkpoints = new PostgresCheckpoints(pool);
  const readers = name === TOPUPS_LEASE ? [PAYMENT_CLAIMS, name] : [name];
  return async () => {
    const [end, positions] = await Promise.all([
      foundation.store.readLastPosition(),
      Promise.all(readers.map((reader) => checkpoints.load(reader))),
      foundation.store.checkAppendRight?.(),
    ]);
    const isLagging = positions.some((position) => position < end);
    return new Map([[name, { isLagging, state: positions.join(' ') }]]);
  };
}

/** Creates the sweeps by lease name. They find their work in read models and stores. */
function createSweeps(files: FileStore, { stores }: SagaDependencies): LeaderTasks {
  const { foundation, pool, clock, streams } = stores;
  const { reportError } = foundation.runtime;
  const { unclaimedAfterDays: afterDays } = foundation.settings;
  const { challenges } = streams;
  return {
    'file-expiry': ({ signal }) => [expireFiles({ files, clock, reportError }, signal)],
    'hold-expiry': ({ signal }) => [
      expireHolds(
        {
          ...{ payers: new HoldCommandRouter(streams), clock, reportError },
          findOverduePayers: (now) => findPayersWithOverdueHolds(pool, now),
          findStaleProcesses: () => findStaleProcesses(pool),
          findPayersByOwner: (owners) => findPayersByHoldOwner(pool, owners),
        },
        signal,
      ),
    ],
    ...(afterDays === undefined
      ? {}
      : {
          unclaimed: ({ signal }) => [
            forfeitUnclaimedPayments(
              {
                ...{ challenges, clock, reportError, unclaimedAfterDays: afterDays },
                findUnclaimed: (before) => findUnclaimedChallenges(pool, before),
                onForfeit: ({ challenges, amount }) =>
                  foundation.log.warn({ challenges, usd: formatUsd(amount) }, 'unclaimed payments became income'),
              },
              signal,
            ),
          ],
        }),
  };
}

const TOPUPS_LEASE = 'topups';

type LeaderTasks = Readonly<Record<string, (lease: Lease) => readonly Promise<void>[]>>;

/** Creates the workflows by lease name. */
function createWorkflows({
  stores,
  topups: { backends, payments, registry },
  autoTopups,
  videos,
}: SagaDependencies): LeaderTasks {
  const { foundation, pool, clock, streams } = stores;
  const { accounts, topups, challenges } = streams;
  const { runtime } = foundation;
  const events = foundation.store.lenient;
  const payers = new HoldCommandRouter(streams);
  const topupsByReference = new TopupFinder(pool, new FreshnessCheck(events, new ProjectionProgress(pool)));
  return {
    [TOPUPS_LEASE]: (lease) =>
      runTopupWorkflow(
        {
          ...{ eventReader: events, accounts, topups, challenges, backends, payments, registry, clock, runtime },
          pollsPerSecond: foundation.settings.pollsPerSecond,
          schedule: new PostgresWorkflowSchedule(pool),
          checkpoints: new PostgresCheckpoints(pool),
          findTopups: (...args) => topupsByReference.find(...args),
        },
        lease,
      ),
    [autoTopupWorkflow.name]: (lease) =>
      runAutoTopupWorkflow(
        {
          ...{ eventReader: events, streams, backends, clock, runtime, ...autoTopups },
          schedule: new PostgresWorkflowSchedule(pool),
          checkpoints: new PostgresCheckpoints(pool),
        },
        lease,
      ),
    [challengeWorkflow.name]: (lease) =>
      runChallengeWorkflow(
        {
          ...{ eventReader: events, challenges, registry, backends, clock, runtime },
          pollsPerSecond: foundation.settings.pollsPerSecond,
          schedule: new PostgresWorkflowSchedule(pool),
          checkpoints: new PostgresCheckpoints(pool),
        },
        lease,
      ),
    [videoWorkflow.name]: (lease) =>
      runVideoWorkflow(
        {
          ...{ eventReader: events, streams, payers, clock, runtime, ...videos },
          pollsPerSecond: foundation.settings.videoPollsPerSecond,
          schedule: new PostgresWorkflowSchedule(pool),
          checkpoints: new PostgresCheckpoints(pool),
        },
        lease,
      ),
  };
}
