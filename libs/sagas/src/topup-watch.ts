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
const RESUBSCRIBE_MS = 1_000;
const LONGEST_RESUBSCRIBE_MS = 60_000;
/** How often the top-up of a hint is asked for, while what says so is late. */
const LATE_AGAIN_MS = 2_000;
/** How long it is waited for then. Between two appends it may never say all there is at once. */
const LATE_WAIT_MS = 2_000;
/** So many hints that may be of a top-up are kept; the oldest beyond are given up, since top-ups are looked at anyhow. */
const MOST_OPEN = 5_000;

export interface TopupWorkflowDependencies {
  readonly facts: EventReader;
  readonly accounts: Accounts;
  readonly topups: Topups;
  readonly backends: PaymentBackendRegistry;
  readonly payments: TopupPayments;
  /** Requests to each back end in a second. */
  readonly looksPerSecond: number;
  readonly due: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
  /**
   * The ids of the top-ups that a back end knows by these references; `complete` where there are no others. What knows them
   * and is late is waited for so long.
   */
  byReference(
    backend: string,
    references: readonly string[],
    withinMs: number,
  ): Promise<{ readonly ids: ReadonlyMap<string, string>; readonly complete: boolean }>;
}

/** Looks for the payments of top-ups and credits them, as long as this process has the turn. */
export function watchTopups(ports: TopupWorkflowDependencies, lease: Lease): readonly Promise<void>[] {
  const watch = startWorkflow(topupWorkflow, workflowPorts(ports, lease.signal), lease);
  const listening = ports.backends.backends.flatMap((backend) => {
    const hints = new Hints(backend.name, ports, watch.wake);
    return [listen(backend, ports, hints, lease.signal), hints.followUp(lease.signal)];
  });
  return [...watch.tasks, ...listening];
}

function workflowPorts(
  ports: TopupWorkflowDependencies,
  signal: AbortSignal,
): WorkflowDependencies<TopupCommand, TopupEvent, TopupStep> {
  const { facts, topups, accounts, payments, due, checkpoints, clock, runtime } = ports;
  const looks = createPaymentPollers(ports.backends, ports.looksPerSecond, runtime, signal);
  return {
    eventReader: facts,
    runner: topups,
    async send({ command }, topupId, cause) {
      if (command.target === 'account') await accounts.run(command.id, command.command, cause);
      else await topups.run(topupId, command.command, cause);
    },
    query: (questions) => questions.map((each) => learn(each, looks, payments)),
    perform: () => Promise.reject(new Error('a top-up does nothing in the world')),
    schedule: due,
    checkpoints,
    now: () => clock.now(),
    runtime,
  };
}

/** What is to be recorded of what has come. A back end that is not configured here is not asked. */
async function learn(
  { query: question, isUrgent: ahead }: PendingQuery<TopupStep>,
  looks: ReadonlyMap<string, PaymentPoller>,
  payments: TopupPayments,
) {
  const backend = looks.get(question.backend);
  return backend
    ? payments.createCommands(question, await backend.look(question.reference, ahead, question.received))
    : [];
}

/** Has what a back end hints at looked at now; a hint that may be of a top-up that is not known yet, as soon as it is. */
class Hints {
  /** References of which it is not known so far whether they are a top-up's. */
  private readonly open = new Set<string>();

  constructor(
    private readonly backend: string,
    private readonly ports: Pick<TopupWorkflowDependencies, 'byReference' | 'runtime'>,
    private readonly wake: (topupId: string) => Promise<void>,
  ) {}

  /** What is not known at once is asked for again later: the hints behind it do not wait. */
  async take(reference: string): Promise<void> {
    this.open.add(reference);
    for (const oldest of this.open) {
      if (this.open.size <= MOST_OPEN) break;
      this.open.delete(oldest);
    }
    await this.find([reference], 0);
  }

  private async find(references: readonly string[], withinMs: number): Promise<void> {
    const { ids, complete } = await this.ports.byReference(this.backend, references, withinMs);
    for (const [reference, topupId] of ids) {
      await this.wake(topupId);
      this.open.delete(reference);
    }
    if (complete) for (const reference of references) this.open.delete(reference);
  }

  async followUp(signal: AbortSignal): Promise<void> {
    const { runtime } = this.ports;
    while (!signal.aborted) {
      await runtime.sleep(LATE_AGAIN_MS, signal);
      if (signal.aborted || this.open.size === 0) continue;
      await this.find([...this.open], LATE_WAIT_MS).catch((error) => {
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
  hints: Hints,
  signal: AbortSignal,
): Promise<void> {
  let wait = RESUBSCRIBE_MS;
  while (!signal.aborted) {
    const began = clock.nowMs();
    try {
      for await (const reference of backend.subscribe(signal)) await hints.take(reference);
    } catch (error) {
      if (!signal.aborted) runtime.reportError(`${backend.name} no longer reports payments; asking it again`, error);
    }
    if (clock.nowMs() - began >= LONGEST_RESUBSCRIBE_MS) wait = RESUBSCRIBE_MS;
    await runtime.sleep(wait, signal);
    wait = Math.min(2 * wait, LONGEST_RESUBSCRIBE_MS);
  }
}
