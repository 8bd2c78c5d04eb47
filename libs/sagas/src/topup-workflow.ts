import type { Accounts, Clock, PaymentBackend, PaymentBackendRegistry, TopupPayments, Topups } from '#application';
import { type TopupCommand, type TopupEvent, type TopupStep, topupWorkflow } from '#domain';
import {
  type CheckpointStore,
  type EventReader,
  type Lease,
  type PendingQuery,
  type Runtime,
  startWorkflow,
  type WorkflowDependencies,
  type WorkflowSchedule,
} from '#kernel';
import { createPaymentPollers, type PaymentPoller } from './payment-poller.ts';

/** A back end whose hints break off is asked for them again after this long, which doubles each time up to a minute. */
const MIN_RESUBSCRIBE_DELAY_MS = 1_000;
const MAX_RESUBSCRIBE_DELAY_MS = 60_000;
/** How often the top-up of a hint is asked for, while what says so is late. */
const RETRY_INTERVAL_MS = 2_000;
/** How long it is waited for then. Between two appends it may never say all there is at once. */
const READ_MODEL_WAIT_MS = 2_000;
/** So many hints that may be of a top-up are kept; the oldest beyond are given up, since top-ups are looked at anyhow. */
const MAX_OPEN_HINTS = 5_000;

export interface TopupWorkflowDependencies {
  readonly eventReader: EventReader;
  readonly accounts: Accounts;
  readonly topups: Topups;
  readonly backends: PaymentBackendRegistry;
  readonly payments: TopupPayments;
  /** Requests to each back end in a second. */
  readonly pollsPerSecond: number;
  readonly schedule: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
  /**
   * The ids of the top-ups that a back end knows by these references; `isComplete` where there are no others. What knows them
   * and is late is waited for so long.
   */
  findTopups(
    backend: string,
    references: readonly string[],
    timeoutMs: number,
  ): Promise<{ readonly ids: ReadonlyMap<string, string>; readonly isComplete: boolean }>;
}

/** Looks for the payments of top-ups and credits them, as long as this process has the turn. */
export function runTopupWorkflow(dependencies: TopupWorkflowDependencies, lease: Lease): readonly Promise<void>[] {
  const workflow = startWorkflow(topupWorkflow, createWorkflowDependencies(dependencies, lease.signal), lease);
  const listeners = dependencies.backends.backends.flatMap((backend) => {
    const hints = new PaymentHints(backend.name, dependencies, workflow.wake);
    return [listen(backend, dependencies, hints, lease.signal), hints.retryOpenReferences(lease.signal)];
  });
  return [...workflow.tasks, ...listeners];
}

function createWorkflowDependencies(
  dependencies: TopupWorkflowDependencies,
  signal: AbortSignal,
): WorkflowDependencies<TopupCommand, TopupEvent, TopupStep> {
  const { eventReader, topups, accounts, payments, schedule, checkpoints, clock, runtime } = dependencies;
  const pollers = createPaymentPollers(dependencies.backends, dependencies.pollsPerSecond, runtime, signal);
  return {
    eventReader,
    runner: topups,
    async send({ command }, topupId, cause) {
      if (command.target === 'account') await accounts.run(command.id, command.command, cause);
      else await topups.run(topupId, command.command, cause);
    },
    query: (queries) => queries.map((query) => pollPayments(query, pollers, payments)),
    perform: () => Promise.reject(new Error('a top-up does nothing in the world')),
    schedule,
    checkpoints,
    now: () => clock.now(),
    runtime,
  };
}

/** What is to be recorded of what has come. A back end that is not configured here is not asked. */
async function pollPayments(
  { query, isUrgent }: PendingQuery<TopupStep>,
  pollers: ReadonlyMap<string, PaymentPoller>,
  payments: TopupPayments,
) {
  const backend = pollers.get(query.backend);
  return backend ? payments.createCommands(query, await backend.poll(query.reference, isUrgent, query.received)) : [];
}

/** Has what a back end hints at looked at now; a hint that may be of a top-up that is not known yet, as soon as it is. */
class PaymentHints {
  /** References of which it is not known so far whether they are a top-up's. */
  private readonly openReferences = new Set<string>();

  constructor(
    private readonly backend: string,
    private readonly dependencies: Pick<TopupWorkflowDependencies, 'findTopups' | 'runtime'>,
    private readonly wake: (topupId: string) => Promise<void>,
  ) {}

  /** What is not known at once is asked for again later: the hints behind it do not wait. */
  async add(reference: string): Promise<void> {
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
      await runtime.sleep(RETRY_INTERVAL_MS, signal);
      if (signal.aborted || this.openReferences.size === 0) continue;
      await this.find([...this.openReferences], READ_MODEL_WAIT_MS).catch((error) => {
        runtime.reportError(
          `the top-ups that ${this.backend} reports payments of could not be found; trying again`,
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
  let wait = MIN_RESUBSCRIBE_DELAY_MS;
  while (!signal.aborted) {
    const startedAt = clock.nowMs();
    try {
      for await (const reference of backend.subscribe(signal)) await hints.add(reference);
    } catch (error) {
      if (!signal.aborted) runtime.reportError(`${backend.name} no longer reports payments; asking it again`, error);
    }
    if (clock.nowMs() - startedAt >= MAX_RESUBSCRIBE_DELAY_MS) wait = MIN_RESUBSCRIBE_DELAY_MS;
    await runtime.sleep(wait, signal);
    wait = Math.min(2 * wait, MAX_RESUBSCRIBE_DELAY_MS);
  }
}
