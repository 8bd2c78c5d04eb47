import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { START_POSITION } from '#kernel';
import type { ProjectorWakeup } from './projector-wakeup.ts';

/** Minimum time between two queries, for all waiting callers together. */
const POLL_INTERVAL_MS = 3;
/** A caller polls again after this fraction of the time that it has already waited. */
const POLL_DELAY_FACTOR = 0.1;
/** Maximum wait for a projection that has not advanced since an earlier wait for it timed out. */
const STUCK_TIMEOUT_MS = 200;

/** How far a projection has come. */
export interface ProjectionPosition {
  /** Position up to which all events are applied; `START_POSITION` if the projection has never run. */
  readonly position: bigint;
  /** During a rebuild, the position up to which the new table is filled; else undefined. */
  readonly rebuiltTo: bigint | undefined;
}

const INITIAL_POSITION: ProjectionPosition = { position: START_POSITION, rebuiltTo: undefined };

/** Polls how far the projections have come, for readers that must see their own writes. */
export class ProjectionProgress {
  private readonly pool: pg.Pool;
  private readonly wakeup: ProjectorWakeup | undefined;
  private positions: ReadonlyMap<string, ProjectionPosition> = new Map();
  /** Projections that are blocked by an event. */
  private blockedProjections: ReadonlySet<string> = new Set();
  /** Whether any event was skipped and not applied by a rebuild since. */
  private hasSkippedEvents = false;
  /** Position of each projection when a wait for it timed out. */
  private readonly stuck = new Map<string, bigint>();
  private lastPoll: Promise<void> = Promise.resolve();
  private next: Promise<void> | undefined;
  private polledAt = Number.NEGATIVE_INFINITY;

  /** @param wakeup notifies the projector that a caller waits */
  constructor(pool: pg.Pool, wakeup?: ProjectorWakeup) {
    this.pool = pool;
    this.wakeup = wakeup;
  }

  /**
   * Waits until each of `projections` has applied all events up to `position`. If a lagging one has not advanced since
   * an earlier wait timed out, the wait is short. If a query shows that a lagging one is blocked by an event, the wait
   * ends.
   * @param forcePoll queries at least once. The cached positions do not hold after the database was emptied, restored,
   *   or replaced by a lagging standby.
   * @returns false if these events are not applied in time: readers then get an older state
   */
  async waitUntilApplied(
    projections: readonly string[],
    position: bigint,
    timeoutMs: number,
    forcePoll = false,
  ): Promise<boolean> {
    const startedAt = performance.now();
    const at = (name: string) => this.getPosition(name).position;
    const listLagging = () => projections.filter((name) => at(name) < position);
    for (let polls = 0; (forcePoll && polls === 0) || listLagging().length > 0; polls++) {
      await this.poll();
      const lagging = listLagging();
      if (lagging.length === 0) return true;
      if (polls === 0) this.wakeup?.notify();
      if (lagging.some((name) => this.blockedProjections.has(name))) return false;
      const stuck = lagging.some((name) => this.stuck.get(name) === at(name));
      const waited = performance.now() - startedAt;
      if (waited > (stuck ? Math.min(STUCK_TIMEOUT_MS, timeoutMs) : timeoutMs)) {
        if (timeoutMs > STUCK_TIMEOUT_MS) for (const name of lagging) this.stuck.set(name, at(name));
        return false;
      }
      await delay(waited * POLL_DELAY_FACTOR);
    }
    return true;
  }

  /**
   * Whether `projection` has skipped an event of this type, so that rows of such events may be missing. False without a
   * query if there was no skipped event at the last poll.
   */
  async hasSkippedType(projection: string, type: string): Promise<boolean> {
    if (!this.hasSkippedEvents) return false;
    const { rowCount } = await this.pool.query({
      name: 'lacks',
      text: 'select from es.skipped where reader = $1 and type = $2 and mended_at is null limit 1',
      values: [projection, type],
    });
    return rowCount !== 0;
  }

  /** Like `hasSkippedType`, for events of these streams. Rows of such a stream may then differ from its events. */
  async hasSkippedStream(projections: readonly string[], streams: readonly string[]): Promise<boolean> {
    if (!this.hasSkippedEvents) return false;
    const { rowCount } = await this.pool.query({
      name: 'skips',
      text: 'select from es.skipped where stream = any($1) and reader = any($2) and mended_at is null limit 1',
      values: [streams, projections],
    });
    return rowCount !== 0;
  }

  /** Returns the position up to which all of `projections` have applied all events. */
  async loadAppliedPosition(projections: readonly string[]): Promise<bigint> {
    await this.poll();
    return projections.map((name) => this.getPosition(name).position).reduce((a, b) => (a < b ? a : b));
  }

  /** Returns the position of each of `projections` that is not blocked by an event. */
  async loadActivePositions(projections: readonly string[]): Promise<ReadonlyMap<string, ProjectionPosition>> {
    await this.poll();
    const active = projections.filter((name) => !this.blockedProjections.has(name));
    return new Map(active.map((name) => [name, this.getPosition(name)]));
  }

  private getPosition(name: string): ProjectionPosition {
    return this.positions.get(name) ?? INITIAL_POSITION;
  }

  /** Reads the positions with a query that starts after this call. Concurrent callers share the query. */
  private poll(): Promise<void> {
    this.next ??= this.pollNext();
    return this.next;
  }

  private async pollNext(): Promise<void> {
    await this.lastPoll;
    const wait = this.polledAt + POLL_INTERVAL_MS - performance.now();
    if (wait > 0) await delay(Math.ceil(wait));
    this.next = undefined;
    const read = this.read().finally(() => {
      this.polledAt = performance.now();
    });
    this.lastPoll = read.catch(() => {}); // the caller gets the error
    return read;
  }

  private async read(): Promise<void> {
    const { rows } = await this.pool.query<{
      readonly projection: string;
      readonly position: string;
      readonly rebuilt_to: string | null;
      readonly stopped: boolean;
      readonly skipped: boolean;
    }>({
      name: 'progress',
      text: `select projection, position, rebuilt_to, stopped_at is not null as stopped,
                    exists (select from es.skipped where mended_at is null) as skipped from books.checkpoints`,
    });
    this.blockedProjections = new Set(rows.flatMap(({ projection, stopped }) => (stopped ? [projection] : [])));
    this.hasSkippedEvents = rows.some(({ skipped }) => skipped);
    this.positions = new Map(
      rows.map(({ projection, position, rebuilt_to: to }) => {
        return [projection, { position: BigInt(position), rebuiltTo: to === null ? undefined : BigInt(to) }];
      }),
    );
  }
}
