import type pg from 'pg';
import { type Clock, RejectedVideoLimit, UpstreamError } from '#application';
import { countRefusedVideos } from '#projections';

const HOUR_MS = 3_600_000;
const RETRY_AFTER_SECONDS = 600;

/**
 * Counts rejected prompts among the newest records of the query history. A rejection reaches the history some time
 * after its request was accepted, so more requests than the limit may pass. The money that they hold bounds their
 * number.
 */
export class HistoryRefusedVideoLimit extends RejectedVideoLimit {
  constructor(
    private readonly pool: pg.Pool,
    private readonly clock: Clock,
    private readonly perHour: number,
  ) {
    super();
  }

  async assertWithinLimit(accountId: string): Promise<void> {
    const refusedCount = await countRefusedVideos(this.pool, accountId, this.clock.fromNow(-HOUR_MS));
    if (refusedCount < this.perHour) return;
    const message = `Providers rejected ${refusedCount} video prompts of this account within an hour; retry later`;
    throw new UpstreamError('rate_limited', message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
  }
}
