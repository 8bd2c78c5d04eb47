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
  readonly facts: EventReader;
  readonly challenges: Challenges;
  readonly backends: PaymentBackendRegistry;
  /** Requests to each back end in a second. */
  readonly looksPerSecond: number;
  readonly due: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
}

/** Finds payments of challenges whose proofs nobody shows, and proofs without a payment, as long as this process has the turn. */
export function watchChallenges(ports: ChallengeWorkflowDependencies, lease: Lease): readonly Promise<void>[] {
  const { facts, challenges, backends, looksPerSecond, due, checkpoints, clock, runtime } = ports;
  const looks = createPaymentPollers(backends, looksPerSecond, runtime, lease.signal);
  return startWorkflow(
    challengeWorkflow,
    {
      ...{ eventReader: facts, runner: challenges, schedule: due, checkpoints, runtime },
      send: () => Promise.reject(new Error('a challenge sends nothing')),
      query: (questions) => questions.map((each) => learn(each, looks, ports)),
      perform: () => Promise.reject(new Error('a challenge does nothing in the world')),
      now: () => clock.now(),
    },
    lease,
  ).tasks;
}

/** A back end that is not configured here is not asked. */
async function learn(
  { id, query: { backend, reference, isVerified: isProven } }: PendingQuery<ChallengeStep>,
  looks: ReadonlyMap<string, PaymentPoller>,
  { clock, runtime }: Pick<ChallengeWorkflowDependencies, 'clock' | 'runtime'>,
): Promise<readonly ChallengeCommand[]> {
  const found = await looks.get(backend)?.look(reference, false);
  if (!found) return [];
  const received = toReceivedAmount(found);
  if (received.units > 0n) return [{ type: 'RecordChallengePayment', data: { ...received, at: clock.now() } }];
  if (isProven) {
    const why = new UpstreamError('upstream_error', `${backend} has no payment for ${reference}`);
    runtime.reportError(`the payment of challenge ${id} was proven, and its back end does not know it`, why);
  }
  return [];
}
