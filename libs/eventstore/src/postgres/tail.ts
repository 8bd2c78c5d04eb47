import type pg from 'pg';
import { START } from '#kernel';

/** How long facts gather at most before followers are notified of them. */
export const GATHER_MS = 25;
/** They gather the longer the more there were: few facts have nothing to wait for, and somebody waits to see them. */
const GATHER_PER_FACT_MS = 5;
/** How long until a transaction in progress is looked at again. */
const RECHECK_MS = 1;
/** Without any wake-up the end of the log is looked at this often. */
const IDLE_MS = 500;

/**
 * The highest position, the oldest transaction that still runs, and the next one that will begin. `age` counts from the
 * next id that is given out; the upper end of the snapshot would not do, because that is only one behind the last
 * transaction that ended: younger ones that already hold a smaller position may be running.
 */
const LOOK = {
  name: 'tail',
  text: `select (select max(position) from es.events) as head, oldest::text, (oldest::text::bigint + age(oldest::xid))::text as next
           from (select pg_snapshot_xmin(pg_current_snapshot()) as oldest) as s`,
};

/** How long after so many facts the next ones are waited for, to be passed on together. */
export function gatherMs(facts: number): number {
  return Math.min(GATHER_MS, facts * GATHER_PER_FACT_MS);
}

/**
 * How far the log can be read without skipping a fact that commits late.
 *
 * Positions are given out before transactions commit, so a smaller one can appear after a larger one. A position is
 * only safe once every transaction that was running when it was the highest has ended: those that begin later get
 * higher positions. Any long writing transaction on the same database cluster therefore delays readers.
 */
export class Tail {
  private readonly pool: pg.Pool;
  private readonly onProblem: (problem: string, error: unknown) => void;
  private safe = START;
  /** The highest position at some moment, and the first transaction id that had not started then. */
  private candidate: { readonly head: bigint; readonly next: bigint } | undefined;
  private waiters = new Set<() => void>();
  /** Whether something may have been appended since the end was last looked at. */
  private stirred = true;
  private looking = false;
  private notifiedUpTo = START;
  private toldAt = 0;
  private told = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly idle: NodeJS.Timeout;

  constructor(pool: pg.Pool, onProblem: (problem: string, error: unknown) => void) {
    this.pool = pool;
    this.onProblem = onProblem;
    this.idle = setInterval(() => this.wake(), IDLE_MS).unref();
  }

  get position(): bigint {
    return this.safe;
  }

  /** Something was appended, here or elsewhere: worth a look once anybody waits for it. */
  wake(): void {
    this.stirred = true;
    this.lookSoon();
  }

  /** Resolves when there may be something safe behind `position`, or when `signal` aborts. */
  async beyond(position: bigint, signal: AbortSignal): Promise<void> {
    while (this.safe <= position && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = () => {
          this.waiters.delete(done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        this.waiters.add(done);
        signal.addEventListener('abort', done, { once: true });
        this.lookSoon();
      });
    }
  }

  /** The end of the log as it is now, once it is safe. */
  async end(): Promise<bigint> {
    const target = await this.see();
    while (this.safe < target) await this.look();
    return target;
  }

  stop(): void {
    clearInterval(this.idle);
    clearTimeout(this.timer);
    this.notify();
  }

  private lookSoon(): void {
    if (!this.stirred || this.looking || this.timer || this.waiters.size === 0) return;
    const wait = this.toldAt + gatherMs(this.told) - performance.now();
    if (wait <= 0) return void this.lookAndTell();
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.lookAndTell();
    }, wait);
  }

  private async lookAndTell(): Promise<void> {
    this.stirred = false;
    this.looking = true;
    try {
      await this.look();
    } catch (error) {
      this.onProblem('the end of the event log could not be read; trying again', error);
    }
    this.looking = false;
    if (this.safe > this.notifiedUpTo) this.notify();
    this.lookSoon();
  }

  /** All at once, so that those that have come equally far read the same. */
  private notify(): void {
    this.told = Number(this.safe - this.notifiedUpTo);
    this.notifiedUpTo = this.safe;
    this.toldAt = performance.now();
    for (const waiter of this.waiters) waiter();
  }

  private async look(): Promise<void> {
    const head = await this.see();
    while (this.safe < head) {
      await new Promise((resolve) => setTimeout(resolve, RECHECK_MS));
      await this.see();
    }
  }

  /** Looks once, moves what is safe, and returns the highest position there is. */
  private async see(): Promise<bigint> {
    const { rows } = await this.pool.query<{ head: string | null; oldest: string; next: string }>(LOOK);
    const [row] = rows;
    if (!row) return this.safe;
    const head = row.head === null ? START : BigInt(row.head);
    const oldest = BigInt(row.oldest);
    const next = BigInt(row.next);
    if (oldest === next) this.advance(head);
    else {
      if (this.candidate && oldest >= this.candidate.next) {
        this.advance(this.candidate.head);
        this.candidate = undefined;
      }
      this.candidate ??= { head, next };
    }
    return head;
  }

  private advance(to: bigint): void {
    if (to > this.safe) this.safe = to;
  }
}
