import type { FactReader } from '#kernel';
import type { Progress } from './progress.ts';

/**
 * Whether read models show all that was committed when that is asked: then what they do not have does not exist. One look at
 * the end of the facts serves all that wait for one; it begins after each of them has come.
 */
export class UpToDate {
  private looking: Promise<unknown> = Promise.resolve();
  private next: Promise<bigint> | undefined;

  constructor(
    private readonly store: Pick<FactReader, 'end'>,
    private readonly progress: Pick<Progress, 'reached'>,
  ) {}

  /** @returns false when they do not within so many milliseconds; 0: when they do not yet */
  async are(projections: readonly string[], withinMs: number): Promise<boolean> {
    return this.progress.reached(projections, await this.end(), withinMs);
  }

  /** The end as of a moment after this was called. */
  private end(): Promise<bigint> {
    this.next ??= this.looking.then(() => {
      this.next = undefined;
      const end = this.store.end();
      this.looking = end.catch(() => {});
      return end;
    });
    return this.next;
  }
}
