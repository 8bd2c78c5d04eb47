import type pg from 'pg';
import { Listener, toNotifyQuery } from '#postgres';

const CHANNEL = 'countinghouse_wanted';

/**
 * Tells the projector that somebody waits for a read model, where the store does not tell it of what is appended: it looks by
 * itself only now and then.
 */
export class ProjectorWakeup {
  private notifying: Promise<unknown> | undefined;

  constructor(private readonly pool: Pick<pg.Pool, 'query'>) {}

  /** One word at a time: it is for all that wait. One that is lost makes them wait for the next look. */
  notify(): void {
    this.notifying ??= this.pool
      .query(toNotifyQuery(CHANNEL))
      .catch(() => {})
      .finally(() => {
        this.notifying = undefined;
      });
  }
}

/** What `ProjectorWakeup` tells, in whatever process. */
export function listenForWakeups(options: Omit<ConstructorParameters<typeof Listener>[0], 'channel'>): Listener {
  return new Listener({ ...options, channel: CHANNEL });
}
