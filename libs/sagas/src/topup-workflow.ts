import type {
  Accounts,
  Clock,
  PaymentBackend,
  PaymentBackendRegistry,
  PaymentRegistry,
  Streams,
  TopupPayments,
  Topups,
} from '#application';
import { type TopupCommand, type TopupEvent, type TopupStep, topupWorkflow } from '#domain';
import {
  type CheckpointStore,
  calculateBackoffMs,
  type EventReader,
  type Lease,
  type PendingQuery,
  type Runtime,
  startWorkflow,
  type WorkflowDependencies,
  type WorkflowSchedule,
} from '#kernel';
import { followPaymentClaims } from './payment-claims.ts';
import { createPaymentPollers, type PaymentPoller } from './payment-poller.ts';

/**
 * Delay between the end of a subscription to hints and the next subscription. It doubles each time up to a minute, and
 * starts over after a subscription that lasted a minute.
 */
const RESUBSCRIBE_BACKOFF = { minMs: 1_000, maxMs: 60_000 };
/** How often the top-ups of open hints are looked up again. */
const RETRY_INTERVAL_MS = 2_000;
/** How long such a lookup waits for the read model, which is rarely up to date under constant traffic. */
const READ_MODEL_WAIT_MS = 2_000;
/**
 * Maximum number of open hints of a payment backend. Beyond that the oldest are dropped. This only delays a credit,
 * unless the top-up is too old to be polled without a hint.
 */
const MAX_OPEN_HINTS = 5_000;

export interface TopupWorkflowDependencies {
  readonly eventReader: EventReader;
  readonly accounts: Accounts;
  readonly topups: Topups;
  readonly backends: PaymentBackendRegistry;
  readonly payments: TopupPayments;
  readonly registry: PaymentRegistry;
  readonly challenges: Streams['challenges'];
  /** Maximum polls per second of each payment backend by this workflow, on average. */
  readonly pollsPerSecond: number;
  readonly schedule: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
  /**
   * Returns the ids of the top-ups of a payment backend by reference. Waits up to `timeoutMs` for a lagging read model.
   * `isComplete` means that a reference without an id belongs to no top-up.
   */
  findTopups(
    backend: string,
    references: readonly string[],
    timeoutMs: number,
  ): Promise<{ readonly ids: ReadonlyMap<string, string>; readonly isComplete: boolean }>;
}

/**
 * Finds the payments of top-ups and credits them until the lease ends. Before the first credit, the payments that were
 * recorded without a claim are claimed.
 */
export function runTopupWorkflow(dependencies: TopupWorkflowDependencies, lease: Lease): readonly Promise<void>[] {
  const { task, claimed } = followPaymentClaims(dependencies, lease);
  return [task, claimed.then(() => runClaimedTopups(dependencies, lease))];
}

async function runClaimedTopups(dependencies: TopupWorkflowDependencies, lease: Lease): Promise<void> {
  if (lease.signal.aborted) return;
  const { backends, pollsPerSecond, runtime } = dependencies;
  const pollers = createPaymentPollers(backends, pollsPerSecond, runtime, lease.signal);
  const workflow = startWorkflow(topupWorkflow, createWorkflowDependencies(dependencies, pollers), lease);
  const listeners = backends.backends.flatMap((backend) => {
    const hints = new PaymentHints(backend.name, dependencies, workflow.wake, pollers.get(backend.name));
    return [listen(backend, dependencies, hints, lease.signal), hints.retryOpenReferences(lease.signal)];
  });
  await Promise.all([...workflow.tasks, ...listeners]);
}

function createWorkflowDependencies(
  dependencies: TopupWorkflowDependencies,
  pollers: ReadonlyMap<string, PaymentPoller>,
): WorkflowDependencies<TopupCommand, TopupEvent, TopupStep> {
  const { eventReader, topups, accounts, payments, schedule, checkpoints, clock, runtime } = dependencies;
  return {
    eventReader,
    runner: topups,
    async send({ command }, topupId, cause) {
      if (command.target === 'account') await accounts.run(command.id, command.command, cause);
      else await topups.run(topupId, command.command, cause);
    },
    query: (queries) => queries.map((query) => pollPayments(query, pollers, payments)),
    perform: () => Promise.reject(new Error('the top-up workflow has no effects')),
    schedule,
    checkpoints,
    now: () => clock.now(),
    runtime,
  };
}

/** @returns commands that record the result of a poll; none if the payment backend is not configured here */
async function pollPayments(
  { id, query, isUrgent }: PendingQuery<TopupStep>,
  pollers: ReadonlyMap<string, PaymentPoller>,
  payments: TopupPayments,
) {
  const backend = pollers.get(query.backend);
  return backend
    ? payments.createCommands(id, query, await backend.poll(query.reference, isUrgent, query.received))
    : [];
}

/**
 * Wakes the top-ups that a payment backend hints at. A hint whose top-up the read model does not show yet stays open
 * and is looked up again.
 */
class PaymentHints {
  /** References that may belong to a top-up that the read model does not show yet, oldest first. */
  private readonly openReferences = new Set<string>();

  constructor(
    private readonly backend: string,
    private readonly dependencies: Pick<TopupWorkflowDependencies, 'findTopups' | 'runtime'>,
    private readonly wake: (topupId: string) => Promise<void>,
    private readonly poller: Pick<PaymentPoller, 'expedite'> | undefined,
  ) {}

  /** Searches for the top-up without waiting, so that a lagging read model does not delay the hints after this one. */
  async add(reference: string): Promise<void> {
    this.poller?.expedite(reference);
    this.openReferences.add(reference);
    for (const oldest of this.openReferences) {
      if (this.openReferences.size <= MAX_OPEN_HINTS) break;
      this.openReferences.delete(oldest);
    }
    await this.find([reference], 0);
  }

  private async find(references: readonly string[], timeoutMs: number): Promise<void> {
    const { ids, isComplete } = await this.dependencies.findTopups(this.backend, references, timeoutMs);
    for (const [reference, topupId] of ids) {
      await this.wake(topupId);
      this.openReferences.delete(reference);
    }
    if (isComplete) for (const reference of references) this.openReferences.delete(reference);
  }

  async retryOpenReferences(signal: AbortSignal): Promise<void> {
    const { runtime } = this.dependencies;
    while (!signal.aborted) {
      await runtime.sleep(RETRY_INTERVAL_MS, { signal });
      if (signal.aborted || this.openReferences.size === 0) continue;
      await this.find([...this.openReferences], READ_MODEL_WAIT_MS).catch((error) => {
        runtime.reportError(
          `top-ups of payments that ${this.backend} reported could not be looked up; retrying`,
          error,
        );
      });
    }
  }
}

async function listen(
  backend: PaymentBackend,
  { clock, runtime }: TopupWorkflowDependencies,
  hints: PaymentHints,
  signal: AbortSignal,
): Promise<void> {
  let shortSubscriptions = 0;
  while (!signal.aborted) {
    const startedAt = clock.nowMs();
    try {
      for await (const reference of backend.subscribe(signal)) await hints.add(reference);
    } catch (error) {
      if (!signal.aborted) runtime.reportError(`${backend.name} no longer reports payments; subscribing again`, error);
    }
    if (clock.nowMs() - startedAt >= RESUBSCRIBE_BACKOFF.maxMs) shortSubscriptions = 0;
    const backoff = { ...RESUBSCRIBE_BACKOFF, chance: runtime.chance };
    await runtime.sleep(calculateBackoffMs(backoff, shortSubscriptions++), { signal });
  }
}
