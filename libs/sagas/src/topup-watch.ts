import type { Accounts, Clock, PaymentBackend, PaymentBackends, TopupPayments, Topups } from '#application';
import { type TopupCommand, type TopupEvent, type TopupStep, topupWorkflow } from '#domain';
import {
  type Asked,
  type CheckpointStore,
  type DueTable,
  type FactReader,
  type Lease,
  type Runtime,
  startWorkflow,
  type WorkflowPorts,
} from '#kernel';
import { type PacedLooks, pacedLooks } from './paced-looks.ts';

/** A back end whose hints break off is asked for them again after this long, which doubles each time up to a minute. */
const RESUBSCRIBE_MS = 1_000;
const LONGEST_RESUBSCRIBE_MS = 60_000;

export interface TopupWatchPorts {
  readonly facts: FactReader;
  readonly accounts: Accounts;
  readonly topups: Topups;
  readonly backends: PaymentBackends;
  readonly payments: TopupPayments;
  /** Requests to each back end in a second. */
  readonly looksPerSecond: number;
  readonly due: DueTable;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
  /** The id of the top-up that a back end knows by a reference, where it is known already. */
  byReference(backend: string, reference: string): Promise<string | undefined>;
}

/** Looks for the payments of top-ups and credits them, as long as this process has the turn. */
export function watchTopups(ports: TopupWatchPorts, lease: Lease): readonly Promise<void>[] {
  const watch = startWorkflow(topupWorkflow, workflowPorts(ports, lease.signal), lease);
  const listening = ports.backends.all.map((backend) => listen(backend, ports, watch.wake, lease.signal));
  return [...watch.parts, ...listening];
}

function workflowPorts(
  ports: TopupWatchPorts,
  signal: AbortSignal,
): WorkflowPorts<TopupCommand, TopupEvent, TopupStep> {
  const { facts, topups, accounts, payments, due, checkpoints, clock, runtime } = ports;
  const looks = pacedLooks(ports.backends, ports.looksPerSecond, runtime, signal);
  return {
    facts,
    own: topups,
    async send({ command }, topupId, cause) {
      if (command.to === 'account') await accounts.run(command.id, command.command, cause);
      else await topups.run(topupId, command.command, cause);
    },
    ask: (questions) => questions.map((each) => learn(each, looks, payments)),
    perform: () => Promise.reject(new Error('a top-up does nothing in the world')),
    due,
    checkpoints,
    now: () => clock.now(),
    runtime,
  };
}

/** What is to be recorded of what has come. A back end that is not configured here is not asked. */
async function learn(
  { question, ahead }: Asked<TopupStep>,
  looks: ReadonlyMap<string, PacedLooks>,
  payments: TopupPayments,
) {
  const backend = looks.get(question.backend);
  return backend ? payments.recording(question, await backend.look(question.reference, ahead, question.received)) : [];
}

/** Has what a back end hints at looked at now. A hint that comes before its top-up is known is found by looking later. */
async function listen(
  backend: PaymentBackend,
  { byReference, clock, runtime }: TopupWatchPorts,
  wake: (topupId: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let wait = RESUBSCRIBE_MS;
  while (!signal.aborted) {
    const began = clock.milliseconds();
    try {
      for await (const reference of backend.hints(signal)) {
        const topupId = await byReference(backend.name, reference);
        if (topupId !== undefined) await wake(topupId);
      }
    } catch (error) {
      if (!signal.aborted) runtime.alarm(`${backend.name} no longer reports payments; asking it again`, error);
    }
    if (clock.milliseconds() - began >= LONGEST_RESUBSCRIBE_MS) wait = RESUBSCRIBE_MS;
    await runtime.sleep(wait, signal);
    wait = Math.min(2 * wait, LONGEST_RESUBSCRIBE_MS);
  }
}
