import { type EventReader, withStoreTimeout } from '#kernel';
import type { ProjectionProgress } from './progress.ts';

/** Longer nobody waits, for the end of the facts and for the read models together: whoever asks is to be told within five seconds. */
const MOST_MS = 4_500;

/**
 * Whether read models show all that was committed when that is asked: then what they do not have does not exist. One look at
 * the end of the facts serves all that wait for one; it begins after each of them has come. So does one at the read models.
 */
export class FreshnessCheck {
  private looking: Promise<unknown> = Promise.resolve();
  private next: Promise<bigint> | undefined;

  constructor(
    private readonly store: Pick<EventReader, 'readLastPosition'>,
    private readonly progress: Pick<ProjectionProgress, 'reached'>,
    private readonly mostMs = MOST_MS,
  ) {}

  /**
   * @returns false when they do not within so many milliseconds; 0: when they do not yet
   * @throws StoreUnavailableError where the store, or PostgreSQL, does not answer in time
   */
  are(projections: readonly string[], withinMs: number): Promise<boolean> {
    const shown = async () => this.progress.reached(projections, await this.end(), withinMs, true);
    return withStoreTimeout(this.mostMs, shown());
  }

  /** The end as of a moment after this was called. */
  private end(): Promise<bigint> {
    this.next ??= this.looking.then(() => {
      this.next = undefined;
      const end = this.store.readLastPosition();
      this.looking = end.catch(() => {});
      return end;
    });
    return this.next;
  }
}
