import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { START_POSITION } from '#kernel';
import type { ProjectorWakeup } from './projector-wakeup.ts';

/** Between two looks, however many wait. */
const POLL_INTERVAL_MS = 3;
/** Who has waited for long looks again after this part of that time. */
const POLL_DELAY_FACTOR = 0.1;
/** How long others wait for a projection that somebody has waited for in vain, as long as it does not move. */
const STUCK_TIMEOUT_MS = 200;

/** How far a projection is. */
export interface ProjectionPosition {
  /** Everything up to here is applied; `START_POSITION` also where it has never begun. */
  readonly position: bigint;
  /** How far the table is filled anew beside the one that is read, while that is done. */
  readonly rebuiltTo: bigint | undefined;
}

const INITIAL_POSITION: ProjectionPosition = { position: START_POSITION, rebuiltTo: undefined };

/** How far the projections have come, for readers that want to see what they have just written. */
export class ProjectionProgress {
  private readonly pool: pg.Pool;
  private readonly wakeup: ProjectorWakeup | undefined;
  private positions: ReadonlyMap<string, ProjectionPosition> = new Map();
  /** Projections that stand before a fact. */
  private blockedProjections: ReadonlySet<string> = new Set();
  /** Whether any fact was skipped and never applied since. */
  private hasSkippedEvents = false;
  /** Where projections stood when a wait timed out. */
  private readonly stuck = new Map<string, bigint>();
  private lastPoll: Promise<void> = Promise.resolve();
  private next: Promise<void> | undefined;
  private polledAt = Number.NEGATIVE_INFINITY;

  /** @param wakeup told of those who wait */
  constructor(pool: pg.Pool, wakeup?: ProjectorWakeup) {
    this.pool = pool;
    this.wakeup = wakeup;
  }

  /**
   * Waits until each of `projections` has applied everything up to `position`. Where one has not moved since a wait
   * timed out, no other caller waits; for one that stands before a fact, nobody does.
   * @param forcePoll looks once in any case: what a read model showed a moment ago is gone where its database was emptied,
   *   restored, or taken over by a standby that is behind
   * @returns false when that takes longer than `timeoutMs`: a reader then gets what there is
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

  /** Whether `projection` has skipped a fact of this type, as far as it was seen to have come: rows that it makes may be missing. */
  async hasSkippedType(projection: string, type: string): Promise<boolean> {
    if (!this.hasSkippedEvents) return false;
    const { rowCount } = await this.pool.query({
      name: 'lacks',
      text: 'select from es.skipped where reader = $1 and type = $2 and mended_at is null limit 1',
      values: [projection, type],
    });
    return rowCount !== 0;
  }

  /** Whether one of `projections` has skipped a fact of one of these streams: their rows are not what the facts say. */
  async hasSkippedStream(projections: readonly string[], streams: readonly string[]): Promise<boolean> {
    if (!this.hasSkippedEvents) return false;
    const { rowCount } = await this.pool.query({
      name: 'skips',
      text: 'select from es.skipped where stream = any($1) and reader = any($2) and mended_at is null limit 1',
      values: [streams, projections],
    });
    return rowCount !== 0;
  }

  /** The position up to which all of `projections` have applied everything. */
  async loadAppliedPosition(projections: readonly string[]): Promise<bigint> {
    await this.poll();
    return projections.map((name) => this.getPosition(name).position).reduce((a, b) => (a < b ? a : b));
  }

  /** Where each of `projections` is, without those that stand before a fact. */
  async loadActivePositions(projections: readonly string[]): Promise<ReadonlyMap<string, ProjectionPosition>> {
    await this.poll();
    const active = projections.filter((name) => !this.blockedProjections.has(name));
    return new Map(active.map((name) => [name, this.getPosition(name)]));
  }

  private getPosition(name: string): ProjectionPosition {
    return this.positions.get(name) ?? INITIAL_POSITION;
  }

  /** A look that begins after this was called; one query serves all that wait for it. */
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
    this.lastPoll = read.catch(() => {});
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
