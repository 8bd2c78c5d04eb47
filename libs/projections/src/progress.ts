import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { START } from '#kernel';

const LOOK_EVERY_MS = 3;

/** How far the projections have come, for readers that want to see what they have just written. */
export class Progress {
  private readonly pool: pg.Pool;
  private positions = new Map<string, bigint>();
  private looking: Promise<void> | undefined;

  constructor(pool: pg.Pool) {
    this.pool = pool;
  }

  /**
   * Waits until each of `projections` has applied everything up to `position`.
   * @returns false when that takes longer than `timeoutMs`: a reader then gets what there is
   */
  async reached(projections: readonly string[], position: bigint, timeoutMs: number): Promise<boolean> {
    const deadline = performance.now() + timeoutMs;
    const there = () => projections.every((name) => (this.positions.get(name) ?? START) >= position);
    while (!there()) {
      await this.look();
      if (there()) return true;
      if (performance.now() > deadline) return false;
      await delay(LOOK_EVERY_MS);
    }
    return true;
  }

  /** The position up to which all of `projections` have applied everything. */
  async applied(projections: readonly string[]): Promise<bigint> {
    await this.look();
    return projections.map((name) => this.positions.get(name) ?? START).reduce((a, b) => (a < b ? a : b));
  }

  /** One query serves all that wait. */
  private look(): Promise<void> {
    this.looking ??= this.read().finally(() => {
      this.looking = undefined;
    });
    return this.looking;
  }

  private async read(): Promise<void> {
    const { rows } = await this.pool.query<{ projection: string; position: string }>({
      name: 'progress',
      text: 'select projection, position from books.checkpoints',
    });
    this.positions = new Map(rows.map(({ projection, position }) => [projection, BigInt(position)]));
  }
}
