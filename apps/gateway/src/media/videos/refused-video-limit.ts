import type pg from 'pg';
import { type Clock, RejectedVideoLimit, UpstreamError } from '#application';
import { countRefusedVideos } from '#projections';

const HOUR_MS = 3_600_000;
const RETRY_AFTER_SECONDS = 600;

/** As the history has them: it follows within moments, and what is too much meanwhile is bounded by the money that is held. */
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
    const message = `Vendors refused ${refusedCount} prompts for videos of this account within an hour, and no more are taken`;
    throw new UpstreamError('rate_limited', message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
  }
}
