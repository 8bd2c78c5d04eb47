import { type EventReader, withStoreTimeout } from '#kernel';
import { nodeTimers } from '#runtime';
import type { ProjectionProgress } from './progress.ts';

/** Maximum time for the event store and the read models together, so that a request waits less than five seconds. */
const MAX_WAIT_MS = 4_500;

/**
 * Checks whether the read models have processed every event that was committed before the call. If so, a missing row
 * means that the object does not exist, or that an event was skipped. Concurrent calls share queries, which start after
 * these calls.
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
   * Waits until the read models of `projections` are current.
   * @param timeoutMs maximum wait for a lagging read model; 0 checks once
   * @returns false if a read model lags at the end of the wait
   * @throws StoreUnavailableError if the event store or PostgreSQL is unavailable
   */
  waitUntilCurrent(projections: readonly string[], timeoutMs: number): Promise<boolean> {
    const wait = async () => this.progress.waitUntilApplied(projections, await this.readEndPosition(), timeoutMs, true);
    return withStoreTimeout(nodeTimers, this.maxWaitMs, wait());
  }

  /** Returns the last position of the event store, read after this call. */
  private readEndPosition(): Promise<bigint> {
    this.next ??= this.lastRead.then(() => {
      this.next = undefined;
      const end = this.store.readLastPosition();
      this.lastRead = end.catch(() => {}); // the caller gets the error
      return end;
    });
    return this.next;
  }
}
