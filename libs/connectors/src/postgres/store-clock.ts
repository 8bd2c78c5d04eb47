import type pg from 'pg';
import { Clock } from '#application';

const LOOK_EVERY_MS = 5_000;
/** At the start: of several looks the quickest says most. */
const FIRST_LOOKS = 3;
/** A clock that is further from the store's is worth an alarm. */
const NOTEWORTHY_MS = 2_000;

export interface StoreClockOptions {
  /** Milliseconds since 1970, as the store has them. */
  readonly storeTime: () => Promise<number>;
  /** This machine's clock may be so far from the store's. */
  readonly maxSkewMs: number;
  readonly alarm: (problem: string, error: unknown) => void;
  /** This machine's clock, and one that no one sets. */
  readonly machineTime?: () => number;
  readonly monotonic?: () => number;
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
  private readonly machineTime: () => number;
  private readonly monotonic: () => number;
  /** The store's time less the monotonic clock's. */
  private offset = Number.NaN;
  private latest = Number.NEGATIVE_INFINITY;
  private isApart = false;
  private timer: NodeJS.Timeout | undefined;

  private constructor(private readonly options: StoreClockOptions) {
    super();
    this.machineTime = options.machineTime ?? (() => Date.now());
    this.monotonic = options.monotonic ?? (() => performance.now());
  }

  /** @throws when the store does not say what time it is */
  static async open(options: StoreClockOptions): Promise<StoreClock> {
    const clock = new StoreClock(options);
    for (let looks = 0; looks < FIRST_LOOKS; looks++) await clock.look();
    clock.timer = setInterval(() => void clock.look().catch(() => {}), LOOK_EVERY_MS).unref(); // the store is away: it goes on
    return clock;
  }

  nowMs(): number {
    this.latest = Math.max(this.latest, Math.floor(this.monotonic() + this.offset));
    return this.latest;
  }

  /** How far this machine's clock is ahead of the store's. */
  get skewMs(): number {
    return Math.round(this.machineTime() - this.monotonic() - this.offset);
  }

  /** How far what is decided by is ahead of the store: it stands still since the store's clock went back. */
  get aheadMs(): number {
    return Math.max(0, Math.round(this.latest - this.monotonic() - this.offset));
  }

  /** Two clocks that disagree: one of them is wrong, and it may be the store's. Nor is one sure that a jump has left ahead. */
  override isReliable(): boolean {
    return Math.max(Math.abs(this.skewMs), this.aheadMs) <= this.options.maxSkewMs;
  }

  close(): void {
    clearInterval(this.timer);
  }

  /**
   * The store read its clock between question and answer, which bounds what the offset can be. As long as what is known is
   * within these bounds nothing is learnt.
   */
  async look(): Promise<void> {
    const asked = this.monotonic();
    const now = await this.options.storeTime();
    const [least, most] = [now - this.monotonic(), now - asked];
    const known = this.offset;
    if (known >= least && known <= most) return this.compare();
    this.offset = (least + most) / 2;
    const jump = Math.round(this.offset - known);
    if (Math.abs(jump) > NOTEWORTHY_MS) this.options.alarm(`the store's clock has jumped by ${jump} ms`, undefined);
    this.compare();
  }

  /** An alarm for each change. */
  private compare(): void {
    const { skewMs } = this;
    const isApart = Math.abs(skewMs) > NOTEWORTHY_MS;
    if (isApart === this.isApart) return;
    this.isApart = isApart;
    const what = isApart ? `is ${skewMs} ms ahead of the store's` : "agrees with the store's again";
    this.options.alarm(`this machine's clock ${what}`, undefined);
  }
}
