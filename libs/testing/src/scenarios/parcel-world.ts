import { setImmediate } from 'node:timers/promises';
import {
  type CheckpointStore,
  createCommandRunner,
  type EventBatch,
  type EventStore,
  type Lease,
  type Runtime,
  startWorkflow,
  type WorkflowDependencies,
  type WorkflowSchedule,
} from '#kernel';
import { MemoryCheckpoints } from '../simulation/memory-checkpoints.ts';
import { TEST_CAUSE } from '../test-cause.ts';
import { createTestRuntime } from '../test-runtime.ts';
import { type ParcelCommand, type ParcelEvent, type ParcelStep, parcels } from './parcels.ts';

/** Thrown to kill a process. Afterwards the intercepted calls of that process throw it too. */
export class ProcessKilledError extends Error {}

interface ParcelWorldOptions {
  readonly checkpoints: CheckpointStore;
  readonly sleep: Runtime['sleep'];
}

/** The parts of the parcel tests that outlive a process, with a record of what happened. */
export class ParcelWorld {
  /** Milliseconds since 1970. Sleeping advances it. */
  time = Date.parse('2026-11-20T12:00:00.000Z');
  /** Time from which there is stock. */
  stockAvailableAtMs = 0;
  readonly shipped: string[] = [];
  /** Ids of the parcels whose customers were notified, once or repeatedly. */
  readonly announced = new Set<string>();
  announcements = 0;
  readonly queryTimes: number[] = [];
  readonly reportedErrors: string[] = [];
  private readonly checkpoints: CheckpointStore;
  private readonly sleep: Runtime['sleep'];
  private token = 0;

  /** By default, checkpoints are in memory and `sleep` waits for one turn of the event loop. */
  constructor(
    readonly store: EventStore,
    readonly due: WorkflowSchedule,
    { checkpoints = new MemoryCheckpoints(), sleep = () => setImmediate() }: Partial<ParcelWorldOptions> = {},
  ) {
    this.checkpoints = checkpoints;
    this.sleep = sleep;
  }

  /** The workflow that runs. A test can replace it by one with other rules. */
  workflow: typeof parcels = parcels;

  readonly now = () => new Date(this.time).toISOString();

  /** Creates a lease with a higher token than all leases before. */
  createLease(stop: AbortController): Lease {
    return { token: ++this.token, signal: stop.signal, isHeld: () => !stop.signal.aborted };
  }

  async orderParcel(id: string): Promise<void> {
    await this.createRunner(this.store).run(id, { type: 'OrderParcel', data: { at: this.now() } }, TEST_CAUSE);
  }

  async listEventTypes(id: string): Promise<readonly string[]> {
    const types: string[] = [];
    for await (const batch of this.store.read(`parcel-${id}`, -1)) types.push(...batch.map(({ type }) => type));
    return types;
  }

  /**
   * Runs the workflow as one process, until `until` returns true, the process dies, its lease ends or a task fails.
   * @param intercept wraps appends, steps, and all calls of the schedule and the checkpoints; throws
   *   ProcessKilledError to kill the process
   * @throws the error of a task that fails
   */
  async runProcess(
    until: () => boolean | Promise<boolean>,
    intercept: <T>(what: string, work: () => Promise<T>) => Promise<T> = (_, work) => work(),
    lease?: (stop: AbortController) => Lease,
  ): Promise<void> {
    const stop = new AbortController();
    let dead = false;
    const runUnlessDead = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
      if (dead) throw new ProcessKilledError();
      try {
        return await intercept(what, work);
      } catch (error) {
        if (error instanceof ProcessKilledError) {
          dead = true;
          stop.abort();
        }
        throw error;
      }
    };
    const running = startWorkflow(
      this.workflow,
      this.createDependencies(runUnlessDead),
      (lease ?? ((s) => this.createLease(s)))(stop),
    );
    let failure: unknown;
    const parts = running.tasks.map((part) =>
      part.catch((error) => {
        if (!stop.signal.aborted) failure = error;
        stop.abort();
      }),
    );
    while (!dead && !stop.signal.aborted && !(await until())) await setImmediate();
    stop.abort();
    await Promise.all(parts);
    if (failure && !dead) throw failure;
  }

  private createRunner(store: EventStore) {
    const runtime = createTestRuntime({ sleep: async () => {} });
    return createCommandRunner({ category: parcels.category, decider: parcels.decider, store, runtime });
  }

  private createDependencies(
    intercept: <T>(what: string, work: () => Promise<T>) => Promise<T>,
  ): WorkflowDependencies<ParcelCommand, ParcelEvent, ParcelStep> {
    const { store, due } = this;
    const appending: EventStore = Object.create(store, {
      append: {
        value: (...args: Parameters<EventStore['append']>) => intercept('append', () => store.append(...args)),
      },
    });
    const runner = this.createRunner(appending);
    const at = () => ({ at: this.now() });
    const runQuery = async (id: string, query: 'stock' | 'shipping'): Promise<readonly ParcelCommand[]> => {
      this.queryTimes.push(this.time);
      if (query === 'stock') return this.time >= this.stockAvailableAtMs ? [{ type: 'NoteStock', data: at() }] : [];
      return this.shipped.includes(id) ? [{ type: 'EndShipping', data: { shipped: true, ...at() } }] : [];
    };
    return {
      eventReader: {
        read: (stream, after) => store.read(stream, after),
        subscribe: (after, signal): AsyncIterable<EventBatch> => store.subscribe(after, signal),
      },
      runner,
      send: ({ command }, id) =>
        intercept(`send ${command}`, async () => {
          if (command === 'note announced') await runner.run(id, { type: 'NoteAnnounced', data: at() }, TEST_CAUSE);
          else this.announce(id);
        }),
      query: (queries) => queries.map(({ id, query }) => intercept('ask', () => runQuery(id, query))),
      perform: (_, id) => intercept('ship', async () => void this.shipped.push(id)),
      schedule: {
        findDue: (...args) => intercept('due', () => due.findDue(...args)),
        listWaiting: (...args) => intercept('waiting', () => due.listWaiting(...args)),
        wake: (...args) => intercept('wake', () => due.wake(...args)),
        reschedule: (...args) => intercept('reschedule', () => due.reschedule(...args)),
      },
      checkpoints: {
        load: (reader) => intercept('load', () => this.checkpoints.load(reader)),
        save: (reader, position) => intercept('save', () => this.checkpoints.save(reader, position)),
      },
      now: this.now,
      runtime: {
        reportError: (problem) => void this.reportedErrors.push(problem),
        chance: () => 0,
        sleep: async (milliseconds, options) => {
          await this.sleep(milliseconds, options);
          if (!options?.signal?.aborted) this.time += milliseconds;
        },
      },
    };
  }

  private announce(id: string): void {
    this.announcements++;
    this.announced.add(id);
  }
}
