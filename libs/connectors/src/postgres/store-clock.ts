import type pg from 'pg';
import { Clock } from '#application';

const POLL_INTERVAL_MS = 5_000;
/** Number of polls at the start. The fastest response gives the narrowest bounds. */
const INITIAL_POLLS = 3;
/** A larger difference between the clocks of host and store, or a larger jump of the store's clock, is reported. */
const REPORTED_SKEW_MS = 2_000;

export interface StoreClockOptions {
  /** Returns the store's time in milliseconds since 1970. */
  readonly queryStoreTime: () => Promise<number>;
  /** Maximum difference between the clocks of host and store for a reliable time. */
  readonly maxSkewMs: number;
  readonly reportError: (problem: string, error: unknown) => void;
  /** The host's clock, in milliseconds since 1970. */
  readonly getMachineTime?: () => number;
  /** A clock that nobody can set. */
  readonly getMonotonicMs?: () => number;
}

export const createStoreTimeQuery = (pool: pg.Pool) => async (): Promise<number> => {
  const text = 'select extract(epoch from clock_timestamp()) * 1000 as now';
  const { rows } = await pool.query<{ now: string }>({ name: 'store-time', text });
  return Number(rows[0]?.now);
};

/**
 * The time of the store: the PostgreSQL database that all processes share. Decisions about money use this time, because
 * the clock of a host may be set incorrectly. Between two polls the time advances by a monotonic clock. Within a
 * process it never goes back.
 */
export class StoreClock extends Clock {
  private readonly getMachineTime: () => number;
  private readonly getMonotonicMs: () => number;
  /** The store's time minus the monotonic time. */
  private offset = Number.NaN;
  private latest = Number.NEGATIVE_INFINITY;
  private isSkewed = false;
  private timer: NodeJS.Timeout | undefined;

  private constructor(private readonly options: StoreClockOptions) {
    super();
    this.getMachineTime = options.getMachineTime ?? (() => Date.now());
    this.getMonotonicMs = options.getMonotonicMs ?? (() => performance.now());
  }

  /** @throws the error of `queryStoreTime` */
  static async open(options: StoreClockOptions): Promise<StoreClock> {
    const clock = new StoreClock(options);
    for (let polls = 0; polls < INITIAL_POLLS; polls++) await clock.synchronize();
    // A failed poll is ignored, because the time advances without the store.
    clock.timer = setInterval(() => void clock.synchronize().catch(() => {}), POLL_INTERVAL_MS).unref();
    return clock;
  }

  nowMs(): number {
    this.latest = Math.max(this.latest, Math.floor(this.getMonotonicMs() + this.offset));
    return this.latest;
  }

  /** How far the host's clock is ahead of the store's clock. */
  get skewMs(): number {
    return Math.round(this.getMachineTime() - this.getMonotonicMs() - this.offset);
  }

  /** How far this clock is ahead of the store: if the store's clock is set back, this clock stops until both agree. */
  get leadMs(): number {
    return Math.max(0, Math.round(this.latest - this.getMonotonicMs() - this.offset));
  }

  /**
   * False if the clocks of host and store differ by more than `maxSkewMs`, because either can be incorrect. Also false
   * while this clock is ahead by more than that, after the store's clock was set back.
   */
  override isReliable(): boolean {
    return Math.max(Math.abs(this.skewMs), this.leadMs) <= this.options.maxSkewMs;
  }

  close(): void {
    clearInterval(this.timer);
  }

  /**
   * Updates the offset. The store reads its clock between request and response, which gives a lower and an upper bound
   * of the offset. An offset within these bounds can still be correct and does not change.
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

  /** Reports each change between a small and a large difference once. */
  private reportSkew(): void {
    const { skewMs } = this;
    const isSkewed = Math.abs(skewMs) > REPORTED_SKEW_MS;
    if (isSkewed === this.isSkewed) return;
    this.isSkewed = isSkewed;
    const what = isSkewed ? `is ${skewMs} ms ahead of the store's` : "agrees with the store's again";
    this.options.reportError(`this host's clock ${what}`, undefined);
  }
}
