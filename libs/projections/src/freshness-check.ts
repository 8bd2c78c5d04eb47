import { type EventReader, withStoreTimeout } from '#kernel';
import type { ProjectionProgress } from './progress.ts';

/** Longer nobody waits, for the end of the facts and for the read models together: whoever asks is to be told within five seconds. */
const MAX_WAIT_MS = 4_500;

/**
 * Whether read models show all that was committed when that is asked: then what they do not have does not exist. One look at
 * the end of the facts serves all that wait for one; it begins after each of them has come. So does one at the read models.
 */
export class FreshnessCheck {
  private lastRead: Promise<unknown> = Promise.resolve();
  private next: Promise<bigint> | undefined;

  constructor(
    private readonly store: Pick<EventReader, 'readLastPosition'>,
    private readonly progress: Pick<ProjectionProgress, 'waitUntilApplied'>,
    private readonly maxWaitMs = MAX_WAIT_MS,
  ) {}

  /**
   * @returns false when they do not within so many milliseconds; 0: when they do not yet
   * @throws StoreUnavailableError where the store, or PostgreSQL, does not answer in time
   */
  waitUntilCurrent(projections: readonly string[], timeoutMs: number): Promise<boolean> {
    const wait = async () => this.progress.waitUntilApplied(projections, await this.readEndPosition(), timeoutMs, true);
    return withStoreTimeout(this.maxWaitMs, wait());
  }

  /** The end as of a moment after this was called. */
  private readEndPosition(): Promise<bigint> {
    this.next ??= this.lastRead.then(() => {
      this.next = undefined;
      const end = this.store.readLastPosition();
      this.lastRead = end.catch(() => {});
      return end;
    });
    return this.next;
  }
}
