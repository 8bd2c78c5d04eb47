import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { START_POSITION } from '#kernel';
import type { ProjectorWakeup } from './projector-wakeup.ts';

/** Between two looks, however many wait. */
const LOOK_EVERY_MS = 3;
/** Who has waited for long looks again after this part of that time. */
const LOOK_AGAIN_AFTER = 0.1;
/** How long others wait for a projection that somebody has waited for in vain, as long as it does not move. */
const IMPATIENT_MS = 200;

/** How far a projection is. */
export interface ProjectionPosition {
  /** Everything up to here is applied; `START_POSITION` also where it has never begun. */
  readonly position: bigint;
  /** How far the table is filled anew beside the one that is read, while that is done. */
  readonly rebuiltTo: bigint | undefined;
}

const NOWHERE: ProjectionPosition = { position: START_POSITION, rebuiltTo: undefined };

/** How far the projections have come, for readers that want to see what they have just written. */
export class ProjectionProgress {
  private readonly pool: pg.Pool;
  private readonly wanted: ProjectorWakeup | undefined;
  private places: ReadonlyMap<string, ProjectionPosition> = new Map();
  /** Projections that stand before a fact. */
  private stopped: ReadonlySet<string> = new Set();
  /** Whether any fact was skipped and never applied since. */
  private skipped = false;
  /** Where projections stood when a wait timed out. */
  private readonly stuck = new Map<string, bigint>();
  private looking: Promise<void> = Promise.resolve();
  private next: Promise<void> | undefined;
  private lookedAt = Number.NEGATIVE_INFINITY;

  /** @param wanted told of those who wait */
  constructor(pool: pg.Pool, wanted?: ProjectorWakeup) {
    this.pool = pool;
    this.wanted = wanted;
  }

  /**
   * Waits until each of `projections` has applied everything up to `position`. Where one has not moved since a wait
   * timed out, no other caller waits; for one that stands before a fact, nobody does.
   * @param fresh looks once in any case: what a read model showed a moment ago is gone where its database was emptied,
   *   restored, or taken over by a standby that is behind
   * @returns false when that takes longer than `timeoutMs`: a reader then gets what there is
   */
  async reached(projections: readonly string[], position: bigint, timeoutMs: number, fresh = false): Promise<boolean> {
    const started = performance.now();
    const at = (name: string) => this.placeOf(name).position;
    const behind = () => projections.filter((name) => at(name) < position);
    for (let looks = 0; (fresh && looks === 0) || behind().length > 0; looks++) {
      await this.look();
      const late = behind();
      if (late.length === 0) return true;
      if (looks === 0) this.wanted?.tell();
      if (late.some((name) => this.stopped.has(name))) return false;
      const stuck = late.some((name) => this.stuck.get(name) === at(name));
      const waited = performance.now() - started;
      if (waited > (stuck ? Math.min(IMPATIENT_MS, timeoutMs) : timeoutMs)) {
        if (timeoutMs > IMPATIENT_MS) for (const name of late) this.stuck.set(name, at(name));
        return false;
      }
      await delay(waited * LOOK_AGAIN_AFTER);
    }
    return true;
  }

  /** Whether `projection` has skipped a fact of this type, as far as it was seen to have come: rows that it makes may be missing. */
  async lacks(projection: string, type: string): Promise<boolean> {
    if (!this.skipped) return false;
    const { rowCount } = await this.pool.query({
      name: 'lacks',
      text: 'select from es.skipped where reader = $1 and type = $2 and mended_at is null limit 1',
      values: [projection, type],
    });
    return rowCount !== 0;
  }

  /** Whether one of `projections` has skipped a fact of one of these streams: their rows are not what the facts say. */
  async skips(projections: readonly string[], streams: readonly string[]): Promise<boolean> {
    if (!this.skipped) return false;
    const { rowCount } = await this.pool.query({
      name: 'skips',
      text: 'select from es.skipped where stream = any($1) and reader = any($2) and mended_at is null limit 1',
      values: [streams, projections],
    });
    return rowCount !== 0;
  }

  /** The position up to which all of `projections` have applied everything. */
  async applied(projections: readonly string[]): Promise<bigint> {
    await this.look();
    return projections.map((name) => this.placeOf(name).position).reduce((a, b) => (a < b ? a : b));
  }

  /** Where each of `projections` is, without those that stand before a fact. */
  async moving(projections: readonly string[]): Promise<ReadonlyMap<string, ProjectionPosition>> {
    await this.look();
    const moving = projections.filter((name) => !this.stopped.has(name));
    return new Map(moving.map((name) => [name, this.placeOf(name)]));
  }

  private placeOf(name: string): ProjectionPosition {
    return this.places.get(name) ?? NOWHERE;
  }

  /** A look that begins after this was called; one query serves all that wait for it. */
  private look(): Promise<void> {
    this.next ??= this.lookNext();
    return this.next;
  }

  private async lookNext(): Promise<void> {
    await this.looking;
    const wait = this.lookedAt + LOOK_EVERY_MS - performance.now();
    if (wait > 0) await delay(Math.ceil(wait));
    this.next = undefined;
    const read = this.read().finally(() => {
      this.lookedAt = performance.now();
    });
    this.looking = read.catch(() => {});
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
    this.stopped = new Set(rows.flatMap(({ projection, stopped }) => (stopped ? [projection] : [])));
    this.skipped = rows.some(({ skipped }) => skipped);
    this.places = new Map(
      rows.map(({ projection, position, rebuilt_to: to }) => {
        return [projection, { position: BigInt(position), rebuiltTo: to === null ? undefined : BigInt(to) }];
      }),
    );
  }
}
