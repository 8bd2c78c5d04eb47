import type pg from 'pg';
import { Clock } from '#application';

const POLL_INTERVAL_MS = 5_000;
/** At the start: of several looks the quickest says most. */
const INITIAL_POLLS = 3;
/** A clock that is further from the store's is worth an alarm. */
const REPORTED_SKEW_MS = 2_000;

export interface StoreClockOptions {
  /** Milliseconds since 1970, as the store has them. */
  readonly queryStoreTime: () => Promise<number>;
  /** This machine's clock may be so far from the store's. */
  readonly maxSkewMs: number;
  readonly reportError: (problem: string, error: unknown) => void;
  /** This machine's clock, and one that no one sets. */
  readonly getMachineTime?: () => number;
  readonly getMonotonicMs?: () => number;
}

/** How the store's time is asked for. */
export const createStoreTimeQuery = (pool: pg.Pool) => async (): Promise<number> => {
  const text = 'select extract(epoch from clock_timestamp()) * 1000 as now';
  const { rows } = await pool.query<{ now: string }>({ name: 'store-time', text });
  return Number(rows[0]?.now);
};

/**
 * The time of the one store that all processes share, so that a machine whose clock is wrong decides nothing about money by
 * it. Between two looks a monotonic clock goes on, and within a process time never goes back.
 */
export class StoreClock extends Clock {
  private readonly getMachineTime: () => number;
  private readonly getMonotonicMs: () => number;
  /** The store's time less the monotonic clock's. */
  private offset = Number.NaN;
  private latest = Number.NEGATIVE_INFINITY;
  private isSkewed = false;
  private timer: NodeJS.Timeout | undefined;

  private constructor(private readonly options: StoreClockOptions) {
    super();
    this.getMachineTime = options.getMachineTime ?? (() => Date.now());
    this.getMonotonicMs = options.getMonotonicMs ?? (() => performance.now());
  }

  /** @throws when the store does not say what time it is */
  static async open(options: StoreClockOptions): Promise<StoreClock> {
    const clock = new StoreClock(options);
    for (let polls = 0; polls < INITIAL_POLLS; polls++) await clock.synchronize();
    clock.timer = setInterval(() => void clock.synchronize().catch(() => {}), POLL_INTERVAL_MS).unref(); // the store is away: it goes on
    return clock;
  }

  nowMs(): number {
    this.latest = Math.max(this.latest, Math.floor(this.getMonotonicMs() + this.offset));
    return this.latest;
  }

  /** How far this machine's clock is ahead of the store's. */
  get skewMs(): number {
    return Math.round(this.getMachineTime() - this.getMonotonicMs() - this.offset);
  }

  /** How far what is decided by is ahead of the store: it stands still since the store's clock went back. */
  get leadMs(): number {
    return Math.max(0, Math.round(this.latest - this.getMonotonicMs() - this.offset));
  }

  /** Two clocks that disagree: one of them is wrong, and it may be the store's. Nor is one sure that a jump has left ahead. */
  override isReliable(): boolean {
    return Math.max(Math.abs(this.skewMs), this.leadMs) <= this.options.maxSkewMs;
  }

  close(): void {
    clearInterval(this.timer);
  }

  /**
   * The store read its clock between question and answer, which bounds what the offset can be. As long as what is known is
   * within these bounds nothing is learnt.
   */
  async synchronize(): Promise<void> {
    const sentAt = this.getMonotonicMs();
    const now = await this.options.queryStoreTime();
    const [minOffset, maxOffset] = [now - this.getMonotonicMs(), now - sentAt];
    const previous = this.offset;
    if (previous >= minOffset && previous <= maxOffset) return this.reportSkew();
    this.offset = (minOffset + maxOffset) / 2;
    const jump = Math.round(this.offset - previous);
    if (Math.abs(jump) > REPORTED_SKEW_MS)
      this.options.reportError(`the store's clock has jumped by ${jump} ms`, undefined);
    this.reportSkew();
  }

  /** An alarm for each change. */
  private reportSkew(): void {
    const { skewMs } = this;
    const isSkewed = Math.abs(skewMs) > REPORTED_SKEW_MS;
    if (isSkewed === this.isSkewed) return;
    this.isSkewed = isSkewed;
    const what = isSkewed ? `is ${skewMs} ms ahead of the store's` : "agrees with the store's again";
    this.options.reportError(`this machine's clock ${what}`, undefined);
  }
}
