import {
  type Challenges,
  type Clock,
  type PaymentBackendRegistry,
  toReceivedAmount,
  UpstreamError,
} from '#application';
import { type ChallengeCommand, type ChallengeStep, challengeWorkflow } from '#domain';
import {
  type CheckpointStore,
  type EventReader,
  type Lease,
  type PendingQuery,
  type Runtime,
  startWorkflow,
  type WorkflowSchedule,
} from '#kernel';
import { createPaymentPollers, type PaymentPoller } from './payment-poller.ts';

export interface ChallengeWorkflowDependencies {
  readonly eventReader: EventReader;
  readonly challenges: Challenges;
  readonly backends: PaymentBackendRegistry;
  /** Requests to each back end in a second. */
  readonly pollsPerSecond: number;
  readonly schedule: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
}

/** Finds payments of challenges whose proofs nobody shows, and proofs without a payment, as long as this process has the turn. */
export function runChallengeWorkflow(
  dependencies: ChallengeWorkflowDependencies,
  lease: Lease,
): readonly Promise<void>[] {
  const { eventReader, challenges, backends, pollsPerSecond, schedule, checkpoints, clock, runtime } = dependencies;
  const pollers = createPaymentPollers(backends, pollsPerSecond, runtime, lease.signal);
  return startWorkflow(
    challengeWorkflow,
    {
      ...{ eventReader, runner: challenges, schedule, checkpoints, runtime },
      send: () => Promise.reject(new Error('a challenge sends nothing')),
      query: (queries) => queries.map((query) => pollPayments(query, pollers, dependencies)),
      perform: () => Promise.reject(new Error('a challenge does nothing in the world')),
      now: () => clock.now(),
    },
    lease,
  ).tasks;
}

/** A back end that is not configured here is not asked. */
async function pollPayments(
  { id, query: { backend, reference, isVerified } }: PendingQuery<ChallengeStep>,
  pollers: ReadonlyMap<string, PaymentPoller>,
  { clock, runtime }: Pick<ChallengeWorkflowDependencies, 'clock' | 'runtime'>,
): Promise<readonly ChallengeCommand[]> {
  const payments = await pollers.get(backend)?.poll(reference, false);
  if (!payments) return [];
  const received = toReceivedAmount(payments);
  if (received.units > 0n) return [{ type: 'RecordChallengePayment', data: { ...received, at: clock.now() } }];
  if (isVerified) {
    const error = new UpstreamError('upstream_error', `${backend} has no payment for ${reference}`);
    runtime.reportError(`the payment of challenge ${id} was proven, and its back end does not know it`, error);
  }
  return [];
}
