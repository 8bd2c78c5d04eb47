import {
  type Challenges,
  type Clock,
  type PaymentBackendRegistry,
  type PaymentRegistry,
  toReceivedAmount,
  UpstreamError,
} from '#application';
import { CHALLENGE, type ChallengeCommand, type ChallengeStep, challengeWorkflow } from '#domain';
import {
  type CheckpointStore,
  createRootCause,
  type EventReader,
  type Lease,
  type PendingQuery,
  type Runtime,
  startWorkflow,
  toStreamName,
  type WorkflowSchedule,
} from '#kernel';
import { createPaymentPollers, type PaymentPoller } from './payment-poller.ts';

export interface ChallengeWorkflowDependencies {
  readonly eventReader: EventReader;
  readonly challenges: Challenges;
  readonly registry: PaymentRegistry;
  readonly backends: PaymentBackendRegistry;
  /** Maximum polls per second of each payment backend by this workflow, on average. */
  readonly pollsPerSecond: number;
  readonly schedule: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
}

/**
 * Polls the payments of challenges until the lease ends. Finds payments whose proof was never presented, and reports
 * proofs without a payment.
 */
export function runChallengeWorkflow(
  dependencies: ChallengeWorkflowDependencies,
  lease: Lease,
): readonly Promise<void>[] {
  const { eventReader, challenges, backends, pollsPerSecond, schedule, checkpoints, clock, runtime } = dependencies;
  const pollers = createPaymentPollers(backends, pollsPerSecond, runtime, lease.signal);
  return startWorkflow(
    challengeWorkflow,
    {
      eventReader,
      runner: challenges,
      schedule,
      checkpoints,
      runtime,
      send: () => Promise.reject(new Error('the challenge workflow sends no commands')),
      query: (queries) => queries.map((query) => pollPayments(query, pollers, dependencies)),
      perform: () => Promise.reject(new Error('the challenge workflow has no effects')),
      now: () => clock.now(),
    },
    lease,
  ).tasks;
}

/** @returns a command that records the received amount; none if this is 0 or the payment backend is not configured */
async function pollPayments(
  { id, query: { backend, reference, isVerified } }: PendingQuery<ChallengeStep>,
  pollers: ReadonlyMap<string, PaymentPoller>,
  { registry, clock, runtime }: Pick<ChallengeWorkflowDependencies, 'registry' | 'clock' | 'runtime'>,
): Promise<readonly ChallengeCommand[]> {
  const payments = await pollers.get(backend)?.poll(reference, false);
  if (!payments) return [];
  const cause = createRootCause(`workflow:${challengeWorkflow.name}`, id);
  const claims = payments.map(({ id: paymentId, confirmations }) =>
    confirmations === 'final'
      ? registry.claim({ backend, id: paymentId }, toStreamName(CHALLENGE, id), cause)
      : Promise.resolve(true),
  );
  const areClaimed = await Promise.all(claims);
  const received = toReceivedAmount(payments.filter((_, i) => areClaimed[i]));
  if (received.units > 0n) return [{ type: 'RecordChallengePayment', data: { ...received, at: clock.now() } }];
  if (isVerified) {
    const error = new UpstreamError('upstream_error', `${backend} has no payment for ${reference}`);
    runtime.reportError(`challenge ${id} has a valid proof, but its payment backend reports no payment`, error);
  }
  return [];
}
