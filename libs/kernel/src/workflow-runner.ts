/**
 * Runs a workflow while this process has the turn. Facts and hints make a stream due, and so does the time; a stream
 * that is due is folded, asked what is next, and its steps are done. What they change comes back as facts.
 */
import type { Cause } from './cause.ts';
import { type CommandRunner, toStreamName } from './command-runner.ts';
import type { Message, StoredEvent } from './message.ts';
import { type CheckpointStore, type EventReader, type Lease, LeaseLostError, type Runtime } from './ports.ts';
import { pump, type Sink } from './pump.ts';
import { Rejection } from './rejection.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';
import { WaitingStreamIndex } from './waiting-stream-index.ts';
import {
  type DueStream,
  LEASE_LOST,
  type RescheduledStream,
  type Workflow,
  type WorkflowPlan,
  type WorkflowSchedule,
  type WorkflowStep,
} from './workflow.ts';
import { WorkflowStateCache } from './workflow-state-cache.ts';

/** How long something that is due waits at most before it is found, unless this process has made it due. */
const LOOK_EVERY_MS = 250;
const RETRY_FIRST_WAIT_MS = 1_000;
const RETRY_LONGEST_WAIT_MS = 60_000;
/** So long it is tried to record what came of an effect, also behind the end of the turn. */
const OUTCOME_TRIED_FOR_MS = 15_000;
/** Streams that are worked on at the same time, */
const MAX_AT_WORK = 256;
/** and those of them that are only looked at again: where their answers are slow, they must not keep others out. */
const MAX_LOOKED_AT = 128;
type Of<S extends WorkflowStep, Kind extends S['step']> = Extract<S, { readonly step: Kind }>;

/** A question of a stream. */
export interface PendingQuery<S extends WorkflowStep> {
  readonly id: string;
  /** Something has happened to it: it is not only looked at again. */
  readonly ahead: boolean;
  readonly question: Of<S, 'ask'>['question'];
}

/** Where the steps of a workflow go. */
export interface WorkflowDependencies<Command extends Message, Event extends Message, S extends WorkflowStep> {
  readonly facts: Pick<EventReader, 'read' | 'follow'>;
  /** The write path of its own streams. */
  readonly own: CommandRunner<Command, Event>;
  send(step: Of<S, 'send'>, id: string, cause: Cause): Promise<void>;
  /** Asks together. @returns for each, in order, the commands for its own stream that follow from the answer */
  ask(questions: readonly PendingQuery<S>[]): readonly Promise<readonly Command[]>[];
  /** @returns the answer of the world, also where it is a refusal; throws when it is not known what came of it */
  perform(step: Of<S, 'do'>, id: string, signal: AbortSignal): Promise<unknown>;
  readonly due: WorkflowSchedule;
  readonly checkpoints: CheckpointStore;
  /** ISO 8601. */
  now(): string;
  readonly runtime: Pick<Runtime, 'sleep' | 'alarm'>;
}

export interface RunningWorkflow {
  /** They end with the turn; they reject with `LeaseLostError` when another process has it. */
  readonly parts: readonly Promise<void>[];
  /** A hint that something has happened to a stream. It can be wrong. */
  wake(id: string): Promise<void>;
}

export function startWorkflow<Command extends Message, State, Event extends Message, S extends WorkflowStep>(
  workflow: Workflow<Command, State, Event, S>,
  ports: WorkflowDependencies<Command, Event, S>,
  lease: Lease,
): RunningWorkflow {
  const turn = new WorkflowTurn(workflow, ports, lease);
  const follow = ports.facts.follow.bind(ports.facts);
  const parts = [pump(follow, turn.sink(), lease.signal, ports.runtime), turn.work()];
  return { parts, wake: (id) => turn.wake([id]) };
}

function isLost(error: unknown): boolean {
  return error instanceof LeaseLostError || (error instanceof Rejection && error.code === LEASE_LOST);
}

/** A stream that is worked on. */
interface Opened<S extends WorkflowStep> {
  readonly due: DueStream;
  readonly next: WorkflowPlan<S>;
}

class WorkflowTurn<Command extends Message, State, Event extends Message, S extends WorkflowStep> {
  private readonly workflow: Workflow<Command, State, Event, S>;
  private readonly ports: WorkflowDependencies<Command, Event, S>;
  private readonly lease: Lease;
  private readonly streams: WorkflowStateCache<Command, State, Event, S>;
  private readonly atWork = new Map<string, DueStream>();
  /** Of those at work, whose effects occupy no place. */
  private readonly aside = new Set<string>();
  private readonly working = new Set<Promise<void>>();
  private readonly waiting: WaitingStreamIndex;
  private done: RescheduledStream[] = [];
  /** Others are due and wait for those at work. */
  private crowded = false;
  /** Errors of the streams that were started last. */
  private readonly alarmed = new Set<string>();
  private sleep = new AbortController();
  private lost: LeaseLostError | undefined;

  constructor(
    workflow: Workflow<Command, State, Event, S>,
    ports: WorkflowDependencies<Command, Event, S>,
    lease: Lease,
  ) {
    this.workflow = workflow;
    this.ports = ports;
    this.lease = lease;
    this.streams = new WorkflowStateCache(workflow, ports.facts);
    this.waiting = new WaitingStreamIndex(workflow, ports.due);
    lease.signal.addEventListener('abort', () => this.sleep.abort());
  }

  /** Makes due what something has happened to. The checkpoint moves behind it. */
  sink(): Sink {
    const { name, category, patient } = this.workflow;
    const { checkpoints } = this.ports;
    const prefix = toStreamName(category, '');
    const idIn = ({ stream }: StoredEvent) => stream.slice(prefix.length);
    return {
      name,
      checkpoint: () => checkpoints.load(name),
      apply: async ({ events, position, unread = [] }) => {
        // One that cannot be read is found where its own stream is folded, and stops nothing but that.
        const all = [...events, ...unread.map(({ fact }) => fact)];
        const own = all.filter(({ stream }) => stream.startsWith(prefix));
        const ids = [...new Set(own.map(idIn))];
        for (const id of ids) this.streams.outdate(id);
        await this.wakeOwn(ids, new Set(own.filter(({ type }) => !patient?.has(type)).map(idIn)));
        const concerned = await this.waiting.concernedBy(events, ids);
        if (concerned.length > 0) await this.ports.due.wake(name, concerned, this.ports.now()); // found in a moment
        await checkpoints.save(name, position);
      },
    };
  }

  private async wakeOwn(ids: readonly string[], urgent: ReadonlySet<string>): Promise<void> {
    const patient = ids.filter((id) => !urgent.has(id));
    if (patient.length > 0) await this.wake(patient, false);
    if (urgent.size > 0) await this.wake([...urgent]);
  }

  async wake(ids: readonly string[], ahead = true): Promise<void> {
    await this.ports.due.wake(this.workflow.name, ids, this.ports.now(), ahead);
    this.sleep.abort();
  }

  /** Until the turn is over. */
  async work(): Promise<void> {
    const { signal } = this.lease;
    while (!signal.aborted && !this.lost) {
      this.sleep = new AbortController();
      try {
        await this.putOffDone();
        await this.begin();
      } catch (error) {
        this.ports.runtime.alarm(`${this.workflow.name} could not find what is due; trying again`, error);
      }
      if (!this.sleep.signal.aborted) await this.ports.runtime.sleep(LOOK_EVERY_MS, this.sleep.signal);
    }
    await Promise.all(this.working);
    if (this.lost) throw this.lost;
    await this.putOffDone().catch(() => {}); // then it is due still, and done again
  }

  private async putOffDone(): Promise<void> {
    const rows = this.done;
    if (rows.length === 0) return;
    await this.ports.due.putOff(this.workflow.name, this.lease.token, rows);
    this.done = this.done.slice(rows.length);
    for (const { id } of rows) {
      this.atWork.delete(id);
      this.aside.delete(id);
    }
  }

  private async begin(): Promise<void> {
    this.crowded = true;
    if (this.places <= 0) return;
    const found = await this.ports.due.due(this.workflow.name, this.ports.now(), 2 * MAX_AT_WORK + this.aside.size);
    const waiting = found.filter(({ id }) => !this.atWork.has(id));
    const rows = this.takenOf(waiting);
    this.crowded = rows.length < waiting.length;
    if (rows.length === 0) return;
    this.alarmed.clear();
    const opened = (await Promise.all(rows.map((due) => this.opened(due)))).filter((each) => each !== undefined);
    const answers = this.asked(opened);
    for (const [i, each] of opened.entries()) {
      this.atWork.set(each.due.id, each.due);
      const work = this.finish(each, answers[i] ?? []).finally(() => this.working.delete(work));
      this.working.add(work);
    }
  }

  private get places(): number {
    return MAX_AT_WORK - this.atWork.size + this.aside.size;
  }

  private takenOf(rows: readonly DueStream[]): readonly DueStream[] {
    const lookedAt = [...this.atWork.values()].filter(({ id, ahead }) => !ahead && !this.aside.has(id)).length;
    const ahead = rows.filter((row) => row.ahead);
    const again = rows.filter((row) => !row.ahead).slice(0, Math.max(0, MAX_LOOKED_AT - lookedAt));
    return [...ahead, ...again].slice(0, Math.max(0, this.places));
  }

  /** What is next for a stream; undefined where that cannot be found out now. */
  private async opened(due: DueStream): Promise<Opened<S> | undefined> {
    try {
      return { due, next: this.workflow.next(await this.state(due.id), this.ports.now()) };
    } catch (error) {
      this.failed(due, error);
      return undefined;
    }
  }

  /** All questions go out together; each stream waits for its own answers. */
  private asked(opened: readonly Opened<S>[]): readonly (readonly Promise<readonly Command[]>[])[] {
    const questions = opened.map(({ due: { id, ahead }, next: { steps } }) =>
      steps.flatMap((step) => (step.step === 'ask' ? [{ id, ahead, question: step.question }] : [])),
    );
    const all = questions.flat();
    const answers = all.length > 0 ? [...this.ports.ask(all)] : [];
    for (const answer of answers) answer.catch(() => {}); // it is waited for below
    return questions.map((each) => answers.splice(0, each.length));
  }

  private async finish({ due, next }: Opened<S>, answers: readonly Promise<readonly Command[]>[]): Promise<void> {
    const work = [this.takeAll(next.steps, due.id), ...answers.map((answer) => this.learn(answer, due.id))];
    const failures = (await Promise.allSettled(work)).filter((each) => each.status === 'rejected');
    const error = failures.map(({ reason }) => reason).toSorted((a, b) => Number(isLost(b)) - Number(isLost(a)))[0];
    if (failures.length > 0) this.failed(due, error);
    else this.finished({ ...due, at: next.dueAt ?? null, failures: 0 });
  }

  /** One answer that is refused must not keep others from it. */
  private async learn(answer: Promise<readonly Command[]>, id: string): Promise<void> {
    const learnt = (await answer).map((command) => this.run(id, command));
    const failure = (await Promise.allSettled(learnt)).find((each) => each.status === 'rejected');
    if (failure) throw failure.reason;
  }

  private async takeAll(steps: readonly S[], id: string): Promise<void> {
    for (const step of steps) await this.take(step, id);
  }

  private async take(step: S, id: string): Promise<void> {
    this.assertHolds();
    if (step.step === 'send') await this.ports.send(step as Of<S, 'send'>, id, this.streams.causeOf(id));
    if (step.step === 'do') await this.perform(step as Of<S, 'do'>, id);
  }

  /**
   * The fact that it is about to be done goes before, and is refused where a later turn has written to the stream. The
   * clock is looked at once more behind it: the append may have taken longer than the lease.
   */
  private async perform(step: Of<S, 'do'>, id: string): Promise<void> {
    const { lease, workflow, ports } = this;
    const { effects } = workflow;
    if (!effects) throw new Error(`${workflow.name} does not say how it records an effect`);
    this.assertHolds();
    const started = await this.run(id, effects.begin(step, lease.token, ports.now()));
    if (started.length === 0) return; // it was started before
    this.assertHolds();
    this.setAside(id, effects.aside);
    const outcome = await ports.perform(step, id, lease.signal).then(
      (answer) => ({ known: true, answer }) as const,
      (error: unknown) => ({ known: false, why: error instanceof Error ? error.message : String(error) }) as const,
    );
    await this.recordOutcome(id, effects.end(step.key, outcome, ports.now()));
  }

  /** Nobody else knows it: it counts also where a later turn has said by then that it is unknown. */
  private recordOutcome(id: string, end: Command): Promise<unknown> {
    const { lease, ports } = this;
    const milliseconds = () => Date.parse(ports.now());
    const until = milliseconds() + OUTCOME_TRIED_FOR_MS;
    const sleep = (wait: number) => ports.runtime.sleep(wait);
    return retryWhileUnavailable(
      () => this.run(id, end),
      sleep,
      () => lease.holds() || milliseconds() < until,
    );
  }

  private setAside(id: string, most = 0): void {
    if (this.aside.size >= most) return;
    this.aside.add(id);
    if (this.crowded) this.sleep.abort(); // others wait
  }

  private assertHolds(): void {
    if (!this.lease.holds()) throw new LeaseLostError(`the turn of ${this.workflow.name} is over`);
  }

  private async run(id: string, command: Command): Promise<readonly Event[]> {
    try {
      return (await this.ports.own.run(id, command, this.streams.causeOf(id))).events;
    } finally {
      this.streams.outdate(id);
    }
  }

  /** The state of a stream without a started effect: one that a process left behind when it ended is marked as unknown. */
  private async state(id: string): Promise<State> {
    const { effects } = this.workflow;
    const state = await this.streams.read(id);
    const left = effects?.started(state);
    if (!effects || !left) return state;
    if (left.token > this.lease.token) throw new LeaseLostError(`another process runs ${this.workflow.name}`);
    await this.run(id, effects.end(left.key, { known: false, why: 'the process ended meanwhile' }, this.ports.now()));
    return this.streams.read(id);
  }

  /** What many streams meet at the same time, such as a node that is away, is one alarm. */
  private alarm(problem: string, error: unknown): void {
    const what = String(error);
    if (this.alarmed.has(what)) return;
    this.alarmed.add(what);
    this.ports.runtime.alarm(problem, error);
  }

  private finished(row: RescheduledStream): void {
    if (row.at === null) this.streams.forget(row.id);
    this.waiting.putOff(row);
    this.done.push(row);
    if (this.crowded) this.sleep.abort(); // others wait
  }

  /** It is tried again later, from its state as it is then. */
  private failed(due: DueStream, error: unknown): void {
    const { name } = this.workflow;
    if (this.lease.signal.aborted && !isLost(error)) return; // then it is due still, and done again
    if (isLost(error)) {
      this.lost ??= error instanceof LeaseLostError ? error : new LeaseLostError(`another process runs ${name}`);
      this.sleep.abort();
      return;
    }
    this.alarm(`${name} ${due.id} ${error instanceof Rejection ? 'was refused' : 'failed'}; trying again`, error);
    const wait = Math.min(RETRY_FIRST_WAIT_MS * 2 ** due.failures, RETRY_LONGEST_WAIT_MS);
    const at = new Date(Date.parse(this.ports.now()) + wait).toISOString();
    this.finished({ ...due, at, failures: due.failures + 1 });
  }
}
