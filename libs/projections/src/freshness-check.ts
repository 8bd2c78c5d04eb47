import { type EventReader, withStoreTimeout } from '#kernel';
import type { ProjectionProgress } from './progress.ts';

/** Maximum time for the event store and the read models together. Callers get a response within five seconds. */
const MAX_WAIT_MS = 4_500;

/**
 * Checks whether the read models include every event that was committed before the call. If so, a missing row means
 * that the object does not exist. Concurrent calls share one query of the event store and one of the read models, which
 * start after each of these calls.
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
   * @param timeoutMs how long a lagging read model is waited for; 0 checks once
   * @returns false if a read model still lags then
   * @throws StoreUnavailableError if the event store or PostgreSQL does not respond in time
   */
  waitUntilCurrent(projections: readonly string[], timeoutMs: number): Promise<boolean> {
    const wait = async () => this.progress.waitUntilApplied(projections, await this.readEndPosition(), timeoutMs, true);
    return withStoreTimeout(this.maxWaitMs, wait());
  }

  /** Returns the last position of the event store, read after this call. */
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
