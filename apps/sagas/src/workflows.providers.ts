import type { Provider } from '@nestjs/common';
import pg from 'pg';
import {
  AutoTopupInvoices,
  AutoTopupLimits,
  Clock,
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
import { autoTopupWorkflow, challengeWorkflow, topupWorkflow, videoWorkflow } from '#domain';
import { PostgresCheckpoints, PostgresWorkflowSchedule } from '#eventstore';
import { Foundation, type WorkProbe } from '#foundation';
import { injectByName } from '#modules';
import { FreshnessCheck, ProjectionProgress, TopupFinder } from '#projections';
import { PAYMENT_CLAIMS, runAutoTopupWorkflow, runChallengeWorkflow, runTopupWorkflow, runVideoWorkflow } from '#sagas';
import type { LeaderTask } from './leader-tasks.ts';

export const TOPUP_WORKFLOW = Symbol('top-up workflow');
export const AUTO_TOPUP_WORKFLOW = Symbol('auto top-up workflow');
export const CHALLENGE_WORKFLOW = Symbol('challenge workflow');
export const VIDEO_WORKFLOW = Symbol('video workflow');

/** Each workflow with what it uses. */
export const workflowProviders: readonly Provider[] = [
  {
    provide: PostgresWorkflowSchedule,
    inject: [pg.Pool],
    useFactory: (pool: pg.Pool) => new PostgresWorkflowSchedule(pool),
  },
  {
    provide: PostgresCheckpoints,
    inject: [pg.Pool],
    useFactory: (pool: pg.Pool) => new PostgresCheckpoints(pool),
  },
  injectByName(
    TOPUP_WORKFLOW,
    {
      foundation: Foundation,
      pool: pg.Pool,
      streams: Streams,
      backends: PaymentBackendRegistry,
      payments: TopupPayments,
      registry: PaymentRegistry,
      schedule: PostgresWorkflowSchedule,
      checkpoints: PostgresCheckpoints,
      clock: Clock,
    },
    ({ foundation, pool, streams, ...dependencies }): LeaderTask => {
      const eventReader = foundation.store.lenient;
      const finder = new TopupFinder(pool, new FreshnessCheck(eventReader, new ProjectionProgress(pool)));
      return {
        name: topupWorkflow.name,
        probe: createWorkflowProbe(topupWorkflow.name, foundation, dependencies.checkpoints, [PAYMENT_CLAIMS]),
        run: (lease) =>
          runTopupWorkflow(
            {
              ...dependencies,
              eventReader,
              accounts: streams.accounts,
              topups: streams.topups,
              challenges: streams.challenges,
              pollsPerSecond: foundation.settings.pollsPerSecond,
              runtime: foundation.runtime,
              findTopups: (backend, references, timeoutMs) => finder.find(backend, references, timeoutMs),
            },
            lease,
          ),
      };
    },
  ),
  injectByName(
    AUTO_TOPUP_WORKFLOW,
    {
      foundation: Foundation,
      streams: Streams,
      invoices: AutoTopupInvoices,
      backends: PaymentBackendRegistry,
      wallets: Wallets,
      secrets: Secrets,
      limits: AutoTopupLimits,
      schedule: PostgresWorkflowSchedule,
      checkpoints: PostgresCheckpoints,
      clock: Clock,
    },
    ({ foundation, ...dependencies }): LeaderTask => ({
      name: autoTopupWorkflow.name,
      probe: createWorkflowProbe(autoTopupWorkflow.name, foundation, dependencies.checkpoints),
      run: (lease) =>
        runAutoTopupWorkflow(
          { ...dependencies, eventReader: foundation.store.lenient, runtime: foundation.runtime },
          lease,
        ),
    }),
  ),
  injectByName(
    CHALLENGE_WORKFLOW,
    {
      foundation: Foundation,
      streams: Streams,
      registry: PaymentRegistry,
      backends: PaymentBackendRegistry,
      schedule: PostgresWorkflowSchedule,
      checkpoints: PostgresCheckpoints,
      clock: Clock,
    },
    ({ foundation, streams, ...dependencies }): LeaderTask => ({
      name: challengeWorkflow.name,
      probe: createWorkflowProbe(challengeWorkflow.name, foundation, dependencies.checkpoints),
      run: (lease) =>
        runChallengeWorkflow(
          {
            ...dependencies,
            eventReader: foundation.store.lenient,
            challenges: streams.challenges,
            pollsPerSecond: foundation.settings.pollsPerSecond,
            runtime: foundation.runtime,
          },
          lease,
        ),
    }),
  ),
  injectByName(
    VIDEO_WORKFLOW,
    {
      foundation: Foundation,
      streams: Streams,
      providers: ProviderRegistry,
      requests: VideoRequestStore,
      results: VideoResults,
      webhooks: VideoWebhooks,
      schedule: PostgresWorkflowSchedule,
      checkpoints: PostgresCheckpoints,
      clock: Clock,
    },
    ({ foundation, ...dependencies }): LeaderTask => ({
      name: videoWorkflow.name,
      probe: createWorkflowProbe(videoWorkflow.name, foundation, dependencies.checkpoints),
      run: (lease) =>
        runVideoWorkflow(
          {
            ...dependencies,
            eventReader: foundation.store.lenient,
            payers: new HoldCommandRouter(dependencies.streams),
            pollsPerSecond: foundation.settings.videoPollsPerSecond,
            runtime: foundation.runtime,
          },
          lease,
        ),
    }),
  ),
];

/** A workflow advances with its own checkpoint, and with those of the readers that must be current before it. */
function createWorkflowProbe(
  name: string,
  { store }: Foundation,
  checkpoints: PostgresCheckpoints,
  earlierReaders: readonly string[] = [],
): WorkProbe {
  return async () => {
    const [end, positions] = await Promise.all([
      store.readLastPosition(),
      Promise.all([...earlierReaders, name].map((reader) => checkpoints.load(reader))),
      store.checkAppendRight?.(),
    ]);
    const isLagging = positions.some((position) => position < end);
    return new Map([[name, { isLagging, state: positions.join(' ') }]]);
  };
}
