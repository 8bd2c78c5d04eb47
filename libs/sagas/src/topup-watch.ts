import type { Accounts, Clock, PaymentBackend, PaymentBackends, TopupPayments, Topups } from '#application';
import { type PaymentsWanted, type TopupCommand, type TopupEvent, type TopupStep, topupWorkflow } from '#domain';
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

const RESUBSCRIBE_MS = 1_000;
/** Looks at one back end at the same time. */
const LOOKS_AT_ONCE = 8;

export interface TopupWatchPorts {
  readonly facts: FactReader;
  readonly accounts: Accounts;
  readonly topups: Topups;
  readonly backends: PaymentBackends;
  readonly payments: TopupPayments;
  readonly due: DueTable;
  readonly checkpoints: CheckpointStore;
  readonly clock: Clock;
  readonly runtime: Runtime;
  /** The id of the top-up that a back end knows by a reference, where it is known already. */
  byReference(backend: string, reference: string): Promise<string | undefined>;
}

/** Looks for the payments of top-ups and credits them, as long as this process has the turn. */
export function watchTopups(ports: TopupWatchPorts, lease: Lease): readonly Promise<void>[] {
  const watch = startWorkflow(topupWorkflow, workflowPorts(ports), lease);
  const listening = ports.backends.all.map((backend) => listen(backend, ports, watch.wake, lease.signal));
  return [...watch.parts, ...listening];
}

function workflowPorts(ports: TopupWatchPorts): WorkflowPorts<TopupCommand, TopupEvent, TopupStep> {
  const { facts, topups, accounts, due, checkpoints, clock, runtime } = ports;
  return {
    facts,
    own: topups,
    async send({ command }, topupId, cause) {
      if (command.to === 'account') await accounts.run(command.id, command.command, cause);
      else await topups.run(topupId, command.command, cause);
    },
    ask: (questions) => look(questions, ports),
    perform: () => Promise.reject(new Error('a top-up does nothing in the world')),
    due,
    checkpoints,
    now: () => clock.now(),
    runtime,
  };
}

type Commands = readonly TopupCommand[];

/** A question that waits for its answer. */
interface Open {
  readonly wanted: PaymentsWanted;
  readonly answer: PromiseWithResolvers<Commands>;
}

/** Looks at each back end in batches, as large as it takes them. One that is not configured here is not asked. */
function look(questions: readonly Asked<TopupStep>[], ports: TopupWatchPorts): readonly Promise<Commands>[] {
  const open = questions.map(({ question }): Open => ({ wanted: question, answer: Promise.withResolvers<Commands>() }));
  const byBackend = Map.groupBy(open, ({ wanted }) => wanted.backend);
  for (const [name, asked] of byBackend) {
    const backend = ports.backends.named(name);
    if (backend) void lookAt(backend, asked, ports.payments);
    else for (const { answer } of asked) answer.resolve([]);
  }
  return open.map(({ answer }) => answer.promise);
}

async function lookAt(backend: PaymentBackend, asked: readonly Open[], payments: TopupPayments): Promise<void> {
  const batches = Array.from({ length: Math.ceil(asked.length / backend.batch) }, (_, i) =>
    asked.slice(i * backend.batch, (i + 1) * backend.batch),
  );
  const lookAtNext = async (): Promise<void> => {
    for (let batch = batches.shift(); batch; batch = batches.shift()) await lookAtBatch(backend, batch, payments);
  };
  await Promise.all(Array.from({ length: LOOKS_AT_ONCE }, lookAtNext));
}

async function lookAtBatch(backend: PaymentBackend, batch: readonly Open[], payments: TopupPayments): Promise<void> {
  try {
    const found = Map.groupBy(
      await backend.look(batch.map(({ wanted }) => wanted.reference)),
      (each) => each.reference,
    );
    for (const { wanted, answer } of batch)
      answer.resolve(payments.recording(wanted, found.get(wanted.reference) ?? []));
  } catch (error) {
    for (const { answer } of batch) answer.reject(error);
  }
}

/** Has what a back end hints at looked at now. A hint that comes before its top-up is known is found by looking later. */
async function listen(
  backend: PaymentBackend,
  { byReference, runtime }: TopupWatchPorts,
  wake: (topupId: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const reference of backend.hints(signal)) {
        const topupId = await byReference(backend.name, reference);
        if (topupId !== undefined) await wake(topupId);
      }
    } catch (error) {
      if (!signal.aborted) runtime.alarm(`${backend.name} no longer reports payments; asking it again`, error);
    }
    await runtime.sleep(RESUBSCRIBE_MS, signal);
  }
}
