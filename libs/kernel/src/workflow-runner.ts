/**
 * Runs a workflow while this process holds its lease. Events, hints and timers make a stream due. The runner folds a
 * due stream, plans its next steps and performs them. Changes by these steps arrive as events. A failure of a stream is
 * reported and retried with back-off, also if it is a programming error: the next state may not cause it.
 */
import { toStreamName } from './command-runner.ts';
import type { Message, StoredEvent } from './message.ts';
import { type Lease, LeaseLostError } from './ports.ts';
import { type EventSink, pump } from './pump.ts';
import { Rejection } from './rejection.ts';
import { calculateBackoffMs, retryWhileUnavailable } from './retry.ts';
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

/** How often due streams are looked up. After a call of `WorkflowRun.wake` they are looked up at once. */
const POLL_INTERVAL_MS = 250;
const BACKOFF = { minMs: 1_000, maxMs: 60_000 };
/** Minimum time for which recording the outcome of an effect is retried, even if the lease ends before. */
const OUTCOME_TIMEOUT_MS = 15_000;
/** Maximum number of streams that are processed concurrently, apart from detached ones. */
const MAX_ACTIVE_STREAMS = 256;
/** Maximum number of routine polls among the active streams: slow responses to polls must not delay urgent streams. */
const MAX_CONCURRENT_POLLS = 128;

export interface RunningWorkflow {
  /** Resolve when the lease ends; reject with `LeaseLostError` if a step fails because this process has lost it. */
  readonly tasks: readonly Promise<void>[];
  /** Makes a stream due on a hint that something has happened to it. The hint may be unfounded. */
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
  /** Active streams that do not count towards MAX_ACTIVE_STREAMS, because their effects may take long. */
  private readonly detachedIds = new Set<string>();
  private readonly runningWork = new Set<Promise<void>>();
  private readonly waitingStreams: WaitingStreamIndex;
  private completedStreams: RescheduledStream[] = [];
  /** More streams may be due than there were free slots. */
  private hasMoreDue = false;
  /** Texts of the errors that were reported since the last streams were started. */
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

  /** Returns the sink that makes streams due when events concern them. The checkpoint advances after that. */
  createSink(): EventSink {
    const { name, category, lowPriorityEvents } = this.workflow;
    const { checkpoints, schedule } = this.dependencies;
    const { token } = this.lease;
    const prefix = toStreamName(category, '');
    const getId = ({ stream }: StoredEvent) => stream.slice(prefix.length);
    return {
      name,
      loadCheckpoint: () => checkpoints.load(name),
      apply: async ({ events, position, unreadable = [] }) => {
        // An unreadable event also makes its stream due. Folding fails then, but only for that stream.
        const all = [...events, ...unreadable.map(({ event }) => event)];
        const ownEvents = all.filter(({ stream }) => stream.startsWith(prefix));
        const ids = [...new Set(ownEvents.map(getId))];
        for (const id of ids) this.stateCache.invalidate(id);
        await this.wakeOwn(ids, new Set(ownEvents.filter(({ type }) => !lowPriorityEvents?.has(type)).map(getId)));
        const affectedIds = await this.waitingStreams.findAffected(events, ids);
        // The next poll finds these streams, so the loop is not woken.
        if (affectedIds.length > 0) await schedule.wake(name, affectedIds, this.dependencies.now(), { token });
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
    const { token } = this.lease;
    await this.dependencies.schedule.wake(this.workflow.name, ids, this.dependencies.now(), { isUrgent, token });
    this.sleepController.abort();
  }

  /** Runs until the lease ends. @throws LeaseLostError if a step fails because this process has lost the lease */
  async processDueStreams(): Promise<void> {
    const { signal } = this.lease;
    while (!signal.aborted && !this.leaseLostError) {
      this.sleepController = new AbortController();
      try {
        await this.rescheduleDone();
        await this.startDueStreams();
      } catch (error) {
        this.dependencies.runtime.reportError(`${this.workflow.name} could not process due streams; retrying`, error);
      }
      if (!this.sleepController.signal.aborted)
        await this.dependencies.runtime.sleep(POLL_INTERVAL_MS, { signal: this.sleepController.signal });
    }
    await Promise.all(this.runningWork);
    if (this.leaseLostError) throw this.leaseLostError;
    await this.rescheduleDone().catch(() => {}); // on failure they stay due and are processed again
  }

  private async rescheduleDone(): Promise<void> {
    const rows = [...this.completedStreams]; // streams that complete during the update are for the next one
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

  /** Plans the next steps of a stream. Returns undefined after a failure, which is reported and retried later. */
  private async planStream(due: DueStream): Promise<PlannedStream<S> | undefined> {
    try {
      return { due, plan: this.workflow.plan(await this.loadState(due.id), this.dependencies.now()) };
    } catch (error) {
      this.handleFailure(due, error);
      return undefined;
    }
  }

  /** Starts the queries of all streams together. Every stream waits only for its own results. */
  private queryAll(planned: readonly PlannedStream<S>[]): readonly (readonly Promise<readonly Command[]>[])[] {
    const queries = planned.map(({ due: { id, ahead: isUrgent }, plan: { steps } }) =>
      steps.flatMap((step) => (step.step === 'query' ? [{ id, isUrgent, query: step.query }] : [])),
    );
    const all = queries.flat();
    const results = all.length > 0 ? [...this.dependencies.query(all)] : [];
    for (const result of results) result.catch(() => {}); // awaited by `finish`
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

  /** Runs all commands of a query result: a rejected one must not prevent the others. */
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
   * Records that the effect starts, performs it, and records its outcome. The first append is rejected if a later lease
   * has written to the stream. The lease is checked again after this append, which may have outlasted the lease.
   */
  private async performEffect(step: StepOfKind<S, 'effect'>, id: string): Promise<void> {
    const { lease, workflow, dependencies } = this;
    const { effects } = workflow;
    if (!effects) throw new Error(`workflow ${workflow.name} plans an effect but does not define effects`);
    this.assertLeaseHeld();
    const started = await this.runCommand(id, effects.createStartCommand(step, lease.token, dependencies.now()));
    if (started.length === 0) return; // already started, or no longer allowed
    this.assertLeaseHeld();
    this.detach(id, effects.maxDetached);
    const outcome = await dependencies.perform(step, id, lease.signal).then(
      (result) => ({ isKnown: true, result }) as const,
      (error: unknown) => ({ isKnown: false, reason: error instanceof Error ? error.message : String(error) }) as const,
    );
    await this.recordOutcome(id, effects.createEndCommand(step.key, outcome, dependencies.now()));
  }

  /** Retries, because only this process knows the outcome. A later lease may have recorded it as unknown by then. */
  private recordOutcome(id: string, command: Command): Promise<unknown> {
    const { lease, workflow, dependencies } = this;
    const milliseconds = () => Date.parse(dependencies.now());
    const deadlineMs = milliseconds() + OUTCOME_TIMEOUT_MS;
    return retryWhileUnavailable(() => this.runCommand(id, command), {
      runtime: dependencies.runtime,
      problem: `${workflow.name} could not record an outcome; retrying`,
      shouldRetry: () => lease.isHeld() || milliseconds() < deadlineMs,
    });
  }

  private detach(id: string, limit = 0): void {
    if (this.detachedIds.size >= limit) return;
    this.detachedIds.add(id);
    if (this.hasMoreDue) this.sleepController.abort(); // a slot is free for a waiting stream
  }

  private assertLeaseHeld(): void {
    if (!this.lease.isHeld()) throw new LeaseLostError(`the lease of ${this.workflow.name} has ended`);
  }

  private async runCommand(id: string, command: Command): Promise<readonly Event[]> {
    try {
      return (await this.dependencies.runner.run(id, command, this.stateCache.getCause(id))).events;
    } finally {
      this.stateCache.invalidate(id);
    }
  }

  /** Loads a state. If an effect was started earlier and has no outcome, its outcome is first recorded as unknown. */
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
        { isKnown: false, reason: 'the process ended before the outcome was recorded' },
        this.dependencies.now(),
      ),
    );
    return this.stateCache.read(id);
  }

  /** Reports an error that many streams have at the same time, such as an unreachable node, only once. */
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
    if (this.hasMoreDue) this.sleepController.abort(); // a slot is free for a waiting stream
  }

  /** Schedules a retry with back-off unless the lease has ended. The retry plans again from the state at that time. */
  private handleFailure(due: DueStream, error: unknown): void {
    const { name } = this.workflow;
    if (this.lease.signal.aborted && !isLeaseLost(error)) return; // stays due; the next lease holder processes it
    if (isLeaseLost(error)) {
      this.leaseLostError ??=
        error instanceof LeaseLostError ? error : new LeaseLostError(`another process runs ${name}`);
      this.sleepController.abort();
      return;
    }
    this.reportError(`${name} ${due.id} ${error instanceof Rejection ? 'was rejected' : 'failed'}; retrying`, error);
    const wait = calculateBackoffMs({ ...BACKOFF, chance: this.dependencies.runtime.chance }, due.failures);
    const at = new Date(Date.parse(this.dependencies.now()) + wait).toISOString();
    this.complete({ ...due, at, failures: due.failures + 1 });
  }
}
