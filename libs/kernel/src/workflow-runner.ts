/**
 * Runs a workflow while this process has the turn. Facts and hints make a stream due, and so does the time; a stream
 * that is due is folded, asked what is next, and its steps are done. What they change comes back as facts.
 */
import { toStreamName } from './command-runner.ts';
import type { Message, StoredEvent } from './message.ts';
import { type Lease, LeaseLostError } from './ports.ts';
import { type EventSink, pump } from './pump.ts';
import { Rejection } from './rejection.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';
import { WaitingStreamIndex } from './waiting-stream-index.ts';
import {
  type DueStream,
  LEASE_LOST,
  type RescheduledStream,
  type Workflow,
  type WorkflowPlan,
  type WorkflowStep,
} from './workflow.ts';
import type { StepOfKind, WorkflowDependencies } from './workflow-dependencies.ts';
import { WorkflowStateCache } from './workflow-state-cache.ts';

/** How long something that is due waits at most before it is found, unless this process has made it due. */
const POLL_INTERVAL_MS = 250;
const MIN_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/** So long it is tried to record what came of an effect, also behind the end of the turn. */
const OUTCOME_TIMEOUT_MS = 15_000;
/** Streams that are worked on at the same time, */
const MAX_ACTIVE_STREAMS = 256;
/** and those of them that are only looked at again: where their answers are slow, they must not keep others out. */
const MAX_CONCURRENT_POLLS = 128;

export interface RunningWorkflow {
  /** They end with the turn; they reject with `LeaseLostError` when another process has it. */
  readonly tasks: readonly Promise<void>[];
  /** A hint that something has happened to a stream. It can be wrong. */
  wake(id: string): Promise<void>;
}

export function startWorkflow<Command extends Message, State, Event extends Message, S extends WorkflowStep>(
  workflow: Workflow<Command, State, Event, S>,
  dependencies: WorkflowDependencies<Command, Event, S>,
  lease: Lease,
): RunningWorkflow {
  const run = new WorkflowRun(workflow, dependencies, lease);
  const subscribe = dependencies.eventReader.subscribe.bind(dependencies.eventReader);
  const tasks = [pump(subscribe, run.createSink(), lease.signal, dependencies.runtime), run.processDueStreams()];
  return { tasks, wake: (id) => run.wake([id]) };
}

function isLeaseLost(error: unknown): boolean {
  return error instanceof LeaseLostError || (error instanceof Rejection && error.code === LEASE_LOST);
}

/** A stream that is worked on. */
interface PlannedStream<S extends WorkflowStep> {
  readonly due: DueStream;
  readonly plan: WorkflowPlan<S>;
}

class WorkflowRun<Command extends Message, State, Event extends Message, S extends WorkflowStep> {
  private readonly workflow: Workflow<Command, State, Event, S>;
  private readonly dependencies: WorkflowDependencies<Command, Event, S>;
  private readonly lease: Lease;
  private readonly stateCache: WorkflowStateCache<Command, State, Event, S>;
  private readonly activeStreams = new Map<string, DueStream>();
  /** Of those at work, whose effects occupy no place. */
  private readonly detachedIds = new Set<string>();
  private readonly runningWork = new Set<Promise<void>>();
  private readonly waitingStreams: WaitingStreamIndex;
  private completedStreams: RescheduledStream[] = [];
  /** Others are due and wait for those at work. */
  private hasMoreDue = false;
  /** Errors of the streams that were started last. */
  private readonly reportedErrors = new Set<string>();
  private sleepController = new AbortController();
  private leaseLostError: LeaseLostError | undefined;

  constructor(
    workflow: Workflow<Command, State, Event, S>,
    dependencies: WorkflowDependencies<Command, Event, S>,
    lease: Lease,
  ) {
    this.workflow = workflow;
    this.dependencies = dependencies;
    this.lease = lease;
    this.stateCache = new WorkflowStateCache(workflow, dependencies.eventReader);
    this.waitingStreams = new WaitingStreamIndex(workflow, dependencies.schedule);
    lease.signal.addEventListener('abort', () => this.sleepController.abort());
  }

  /** Makes due what something has happened to. The checkpoint moves behind it. */
  createSink(): EventSink {
    const { name, category, lowPriorityEvents } = this.workflow;
    const { checkpoints } = this.dependencies;
    const prefix = toStreamName(category, '');
    const getId = ({ stream }: StoredEvent) => stream.slice(prefix.length);
    return {
      name,
      loadCheckpoint: () => checkpoints.load(name),
      apply: async ({ events, position, unreadable = [] }) => {
        // One that cannot be read is found where its own stream is folded, and stops nothing but that.
        const all = [...events, ...unreadable.map(({ event }) => event)];
        const ownEvents = all.filter(({ stream }) => stream.startsWith(prefix));
        const ids = [...new Set(ownEvents.map(getId))];
        for (const id of ids) this.stateCache.invalidate(id);
        await this.wakeOwn(ids, new Set(ownEvents.filter(({ type }) => !lowPriorityEvents?.has(type)).map(getId)));
        const affectedIds = await this.waitingStreams.findAffected(events, ids);
        if (affectedIds.length > 0) await this.dependencies.schedule.wake(name, affectedIds, this.dependencies.now()); // found in a moment
        await checkpoints.save(name, position);
      },
    };
  }

  private async wakeOwn(ids: readonly string[], urgent: ReadonlySet<string>): Promise<void> {
    const lowPriorityIds = ids.filter((id) => !urgent.has(id));
    if (lowPriorityIds.length > 0) await this.wake(lowPriorityIds, false);
    if (urgent.size > 0) await this.wake([...urgent]);
  }

  async wake(ids: readonly string[], isUrgent = true): Promise<void> {
    await this.dependencies.schedule.wake(this.workflow.name, ids, this.dependencies.now(), isUrgent);
    this.sleepController.abort();
  }

  /** Until the turn is over. */
  async processDueStreams(): Promise<void> {
    const { signal } = this.lease;
    while (!signal.aborted && !this.leaseLostError) {
      this.sleepController = new AbortController();
      try {
        await this.rescheduleDone();
        await this.startDueStreams();
      } catch (error) {
        this.dependencies.runtime.reportError(`${this.workflow.name} could not find what is due; trying again`, error);
      }
      if (!this.sleepController.signal.aborted)
        await this.dependencies.runtime.sleep(POLL_INTERVAL_MS, this.sleepController.signal);
    }
    await Promise.all(this.runningWork);
    if (this.leaseLostError) throw this.leaseLostError;
    await this.rescheduleDone().catch(() => {}); // then it is due still, and done again
  }

  private async rescheduleDone(): Promise<void> {
    const rows = this.completedStreams;
    if (rows.length === 0) return;
    await this.dependencies.schedule.reschedule(this.workflow.name, this.lease.token, rows);
    this.completedStreams = this.completedStreams.slice(rows.length);
    for (const { id } of rows) {
      this.activeStreams.delete(id);
      this.detachedIds.delete(id);
    }
  }

  private async startDueStreams(): Promise<void> {
    this.hasMoreDue = true;
    if (this.freeSlots <= 0) return;
    const dueStreams = await this.dependencies.schedule.findDue(
      this.workflow.name,
      this.dependencies.now(),
      2 * MAX_ACTIVE_STREAMS + this.detachedIds.size,
    );
    const waiting = dueStreams.filter(({ id }) => !this.activeStreams.has(id));
    const rows = this.selectStreams(waiting);
    this.hasMoreDue = rows.length < waiting.length;
    if (rows.length === 0) return;
    this.reportedErrors.clear();
    const planned = (await Promise.all(rows.map((due) => this.planStream(due)))).filter(
      (stream) => stream !== undefined,
    );
    const results = this.queryAll(planned);
    for (const [i, stream] of planned.entries()) {
      this.activeStreams.set(stream.due.id, stream.due);
      const work = this.finish(stream, results[i] ?? []).finally(() => this.runningWork.delete(work));
      this.runningWork.add(work);
    }
  }

  private get freeSlots(): number {
    return MAX_ACTIVE_STREAMS - this.activeStreams.size + this.detachedIds.size;
  }

  private selectStreams(rows: readonly DueStream[]): readonly DueStream[] {
    const pollCount = [...this.activeStreams.values()].filter(
      ({ id, ahead: isUrgent }) => !isUrgent && !this.detachedIds.has(id),
    ).length;
    const urgentRows = rows.filter((row) => row.ahead);
    const polledRows = rows.filter((row) => !row.ahead).slice(0, Math.max(0, MAX_CONCURRENT_POLLS - pollCount));
    return [...urgentRows, ...polledRows].slice(0, Math.max(0, this.freeSlots));
  }

  /** What is next for a stream; undefined where that cannot be found out now. */
  private async planStream(due: DueStream): Promise<PlannedStream<S> | undefined> {
    try {
      return { due, plan: this.workflow.plan(await this.loadState(due.id), this.dependencies.now()) };
    } catch (error) {
      this.handleFailure(due, error);
      return undefined;
    }
  }

  /** All questions go out together; each stream waits for its own answers. */
  private queryAll(planned: readonly PlannedStream<S>[]): readonly (readonly Promise<readonly Command[]>[])[] {
    const queries = planned.map(({ due: { id, ahead: isUrgent }, plan: { steps } }) =>
      steps.flatMap((step) => (step.step === 'query' ? [{ id, isUrgent, query: step.query }] : [])),
    );
    const all = queries.flat();
    const results = all.length > 0 ? [...this.dependencies.query(all)] : [];
    for (const result of results) result.catch(() => {}); // it is waited for below
    return queries.map((streamQueries) => results.splice(0, streamQueries.length));
  }

  private async finish(
    { due, plan }: PlannedStream<S>,
    results: readonly Promise<readonly Command[]>[],
  ): Promise<void> {
    const work = [
      this.performSteps(plan.steps, due.id),
      ...results.map((result) => this.applyQueryResult(result, due.id)),
    ];
    const failures = (await Promise.allSettled(work)).filter((outcome) => outcome.status === 'rejected');
    const error = failures
      .map(({ reason }) => reason)
      .toSorted((a, b) => Number(isLeaseLost(b)) - Number(isLeaseLost(a)))[0];
    if (failures.length > 0) this.handleFailure(due, error);
    else this.complete({ ...due, at: plan.dueAt ?? null, failures: 0 });
  }

  /** One answer that is refused must not keep others from it. */
  private async applyQueryResult(result: Promise<readonly Command[]>, id: string): Promise<void> {
    const runs = (await result).map((command) => this.runCommand(id, command));
    const failure = (await Promise.allSettled(runs)).find((outcome) => outcome.status === 'rejected');
    if (failure) throw failure.reason;
  }

  private async performSteps(steps: readonly S[], id: string): Promise<void> {
    for (const step of steps) await this.performStep(step, id);
  }

  private async performStep(step: S, id: string): Promise<void> {
    this.assertLeaseHeld();
    if (step.step === 'send')
      await this.dependencies.send(step as StepOfKind<S, 'send'>, id, this.stateCache.getCause(id));
    if (step.step === 'effect') await this.performEffect(step as StepOfKind<S, 'effect'>, id);
  }

  /**
   * The fact that it is about to be done goes before, and is refused where a later turn has written to the stream. The
   * clock is looked at once more behind it: the append may have taken longer than the lease.
   */
  private async performEffect(step: StepOfKind<S, 'effect'>, id: string): Promise<void> {
    const { lease, workflow, dependencies } = this;
    const { effects } = workflow;
    if (!effects) throw new Error(`${workflow.name} does not say how it records an effect`);
    this.assertLeaseHeld();
    const started = await this.runCommand(id, effects.createStartCommand(step, lease.token, dependencies.now()));
    if (started.length === 0) return; // it was started before
    this.assertLeaseHeld();
    this.detach(id, effects.maxDetached);
    const outcome = await dependencies.perform(step, id, lease.signal).then(
      (result) => ({ isKnown: true, result }) as const,
      (error: unknown) => ({ isKnown: false, reason: error instanceof Error ? error.message : String(error) }) as const,
    );
    await this.recordOutcome(id, effects.createEndCommand(step.key, outcome, dependencies.now()));
  }

  /** Nobody else knows it: it counts also where a later turn has said by then that it is unknown. */
  private recordOutcome(id: string, command: Command): Promise<unknown> {
    const { lease, dependencies } = this;
    const milliseconds = () => Date.parse(dependencies.now());
    const deadlineMs = milliseconds() + OUTCOME_TIMEOUT_MS;
    const sleep = (wait: number) => dependencies.runtime.sleep(wait);
    return retryWhileUnavailable(
      () => this.runCommand(id, command),
      sleep,
      () => lease.isHeld() || milliseconds() < deadlineMs,
    );
  }

  private detach(id: string, limit = 0): void {
    if (this.detachedIds.size >= limit) return;
    this.detachedIds.add(id);
    if (this.hasMoreDue) this.sleepController.abort(); // others wait
  }

  private assertLeaseHeld(): void {
    if (!this.lease.isHeld()) throw new LeaseLostError(`the turn of ${this.workflow.name} is over`);
  }

  private async runCommand(id: string, command: Command): Promise<readonly Event[]> {
    try {
      return (await this.dependencies.runner.run(id, command, this.stateCache.getCause(id))).events;
    } finally {
      this.stateCache.invalidate(id);
    }
  }

  /** The state of a stream without a started effect: one that a process left behind when it ended is marked as unknown. */
  private async loadState(id: string): Promise<State> {
    const { effects } = this.workflow;
    const state = await this.stateCache.read(id);
    const unfinished = effects?.findStarted(state);
    if (!effects || !unfinished) return state;
    if (unfinished.token > this.lease.token) throw new LeaseLostError(`another process runs ${this.workflow.name}`);
    await this.runCommand(
      id,
      effects.createEndCommand(
        unfinished.key,
        { isKnown: false, reason: 'the process ended meanwhile' },
        this.dependencies.now(),
      ),
    );
    return this.stateCache.read(id);
  }

  /** What many streams meet at the same time, such as a node that is away, is one alarm. */
  private reportError(problem: string, error: unknown): void {
    const message = String(error);
    if (this.reportedErrors.has(message)) return;
    this.reportedErrors.add(message);
    this.dependencies.runtime.reportError(problem, error);
  }

  private complete(row: RescheduledStream): void {
    if (row.at === null) this.stateCache.evict(row.id);
    this.waitingStreams.reschedule(row);
    this.completedStreams.push(row);
    if (this.hasMoreDue) this.sleepController.abort(); // others wait
  }

  /** It is tried again later, from its state as it is then. */
  private handleFailure(due: DueStream, error: unknown): void {
    const { name } = this.workflow;
    if (this.lease.signal.aborted && !isLeaseLost(error)) return; // then it is due still, and done again
    if (isLeaseLost(error)) {
      this.leaseLostError ??=
        error instanceof LeaseLostError ? error : new LeaseLostError(`another process runs ${name}`);
      this.sleepController.abort();
      return;
    }
    this.reportError(`${name} ${due.id} ${error instanceof Rejection ? 'was refused' : 'failed'}; trying again`, error);
    const wait = Math.min(MIN_BACKOFF_MS * 2 ** due.failures, MAX_BACKOFF_MS);
    const at = new Date(Date.parse(this.dependencies.now()) + wait).toISOString();
    this.complete({ ...due, at, failures: due.failures + 1 });
  }
}
