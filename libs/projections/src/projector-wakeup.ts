import type pg from 'pg';
import { Listener, toNotifyQuery } from '#postgres';

const CHANNEL = 'countinghouse_wanted';

/**
 * Notifies the projector that a caller waits for a read model. Not every event store announces its appends: the
 * projector polls the others only at intervals.
 */
export class ProjectorWakeup {
  private notifying: Promise<unknown> | undefined;

  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  /** Sends at most one notification at a time. If it is lost, the caller waits for the next poll of the projector. */
  notify(): void {
    this.notifying ??= this.pool
      .query(toNotifyQuery(CHANNEL))
      .catch(() => {}) // like a lost notification
      .finally(() => {
        this.notifying = undefined;
      });
  }
}

/** Listens for the notifications that `ProjectorWakeup` sends in any process. */
export function listenForWakeups(options: Omit<ConstructorParameters<typeof Listener>[0], 'channel'>): Listener {
  return new Listener({ ...options, channel: CHANNEL });
}
