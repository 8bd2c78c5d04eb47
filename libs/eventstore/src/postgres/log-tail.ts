import type pg from 'pg';
import { START_POSITION } from '#kernel';
import { APPEND_LOCK_ID } from './schema.ts';

/** Maximum time for which new events are batched before subscribers are notified. */
export const MAX_BATCH_DELAY_MS = 25;
/** The delay grows with the size of the last batch: callers may be waiting to see the effect of a single event. */
const BATCH_DELAY_PER_EVENT_MS = 5;
/** Interval at which transactions in progress are checked again. */
const RECHECK_INTERVAL_MS = 1;
/** After this many polls without progress, polls also determine which of the running transactions append events. */
const POLLS_BEFORE_LOCK_CHECK = 8;
/** Interval at which the end of the log is polled without a wake-up. */
const IDLE_POLL_INTERVAL_MS = 500;

/**
 * Returns the highest position, the oldest running transaction and the next transaction id. On request, which takes
 * four times as long, it also returns the transactions that are appending.
 *
 * `next` is calculated with `age`, which counts from the next id to be assigned. The upper end of the snapshot is too
 * low: it is the id after the last transaction that ended. Later transactions may already hold positions below `head`.
 * Locks are read no earlier than the highest position. A transaction that had taken a smaller position therefore still
 * holds its lock, or has ended and is visible to the next read.
 */
const POLL_QUERY = {
  name: 'tail',
  text: `select (select max(position) from es.events) as head, oldest::text, (oldest::text::bigint + age(oldest::xid))::text as next,
                case when $1 then array(
                  select virtualtransaction from pg_locks
                   where locktype = 'advisory' and classid = 0 and objid = ${APPEND_LOCK_ID} and objsubid = 1 and granted
                     and database = (select oid from pg_database where datname = current_database())) end as appending
           from (select pg_snapshot_xmin(pg_current_snapshot()) as oldest) as s`,
};

/** Returns how long new events are batched after a notification about this many events. */
export function getBatchDelayMs(eventCount: number): number {
  return Math.min(MAX_BATCH_DELAY_MS, eventCount * BATCH_DELAY_PER_EVENT_MS);
}

/** The result of one poll. */
interface TailObservation {
  readonly head: bigint;
  /** The oldest running transaction. */
  readonly oldest: bigint;
  /** The first transaction that had not started. */
  readonly next: bigint;
  /** Transactions that were appending; undefined if the poll did not check locks. */
  readonly appending: readonly string[] | undefined;
  /** Polls are numbered in the order of their start. */
  readonly pollNumber: number;
  /** Number of the first poll that starts after the result of this one. */
  readonly nextPollNumber: number;
}

const INITIAL_OBSERVATION: TailObservation = {
  head: START_POSITION,
  oldest: 0n,
  next: 0n,
  appending: undefined,
  pollNumber: 0,
  nextPollNumber: 0,
};

/**
 * Determines up to which position the log can be read without skipping an event that commits later.
 *
 * Positions are assigned before transactions commit, so a smaller one can become visible after a larger one. The
 * highest position is safe once all transactions that were appending when it was read have ended. Transactions that
 * start later get higher positions. The first check is whether all transactions of that time have ended. Waiting for
 * them takes no longer than an append if nothing else writes on this PostgreSQL server. If other transactions run for
 * longer, those that append are identified by the lock that they hold (`APPEND_LOCK_ID`), and only they are waited for.
 */
export class LogTail {
  private readonly pool: pg.Pool;
  private readonly onProblem: (problem: string, error: unknown) => void;
  private safePosition = START_POSITION;
  /** An earlier observation. Its head is safe once the transactions that were running or appending then have ended. */
  private candidate = INITIAL_OBSERVATION;
  /** Number of polls without progress. */
  private failedPolls = 0;
  /** Number of polls that were started. */
  private pollCount = 0;
  private waiters = new Set<() => void>();
  /** Whether events may have been appended since the last poll. */
  private isPollDue = true;
  private isPolling = false;
  private notifiedPosition = START_POSITION;
  private notifiedAt = 0;
  private notifiedCount = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly idleTimer: NodeJS.Timeout;

  constructor(pool: pg.Pool, onProblem: (problem: string, error: unknown) => void) {
    this.pool = pool;
    this.onProblem = onProblem;
    this.idleTimer = setInterval(() => this.wake(), IDLE_POLL_INTERVAL_MS).unref();
  }

  get position(): bigint {
    return this.safePosition;
  }

  /**
   * Called after an append by any process, and every `IDLE_POLL_INTERVAL_MS`. Polls once a subscriber waits and the
   * batch delay has ended.
   */
  wake(): void {
    this.isPollDue = true;
    this.schedulePoll();
  }

  /** Resolves when the safe position is higher than `position`, or when `signal` aborts. */
  async waitForEventsAfter(position: bigint, signal: AbortSignal): Promise<void> {
    while (this.safePosition <= position && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = () => {
          this.waiters.delete(done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        this.waiters.add(done);
        signal.addEventListener('abort', done, { once: true });
        this.schedulePoll();
      });
    }
  }

  /** Returns the current highest position once it is safe. */
  async readEndPosition(): Promise<bigint> {
    const target = await this.observe();
    while (this.safePosition < target) await this.poll();
    return target;
  }

  stop(): void {
    clearInterval(this.idleTimer);
    clearTimeout(this.timer);
    this.notify();
  }

  private schedulePoll(): void {
    if (!this.isPollDue || this.isPolling || this.timer || this.waiters.size === 0) return;
    const wait = this.notifiedAt + getBatchDelayMs(this.notifiedCount) - performance.now();
    if (wait <= 0) return void this.pollAndNotify();
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.pollAndNotify();
    }, wait);
  }

  private async pollAndNotify(): Promise<void> {
    this.isPollDue = false;
    this.isPolling = true;
    try {
      await this.poll();
    } catch (error) {
      this.onProblem('the end of the event log could not be read; retrying', error);
    }
    this.isPolling = false;
    if (this.safePosition > this.notifiedPosition) this.notify();
    this.schedulePoll();
  }

  /** Wakes all subscribers together, so that those at the same position share a page. */
  private notify(): void {
    this.notifiedCount = Number(this.safePosition - this.notifiedPosition);
    this.notifiedPosition = this.safePosition;
    this.notifiedAt = performance.now();
    for (const waiter of this.waiters) waiter();
  }

  private async poll(): Promise<void> {
    const head = await this.observe();
    while (this.safePosition < head) {
      await new Promise((resolve) => setTimeout(resolve, RECHECK_INTERVAL_MS));
      await this.observe();
    }
  }

  /** Polls once, advances the safe position if possible, and returns the highest position. */
  private async observe(): Promise<bigint> {
    const pollNumber = this.pollCount++;
    const checksLocks = this.failedPolls >= POLLS_BEFORE_LOCK_CHECK;
    const { rows } = await this.pool.query<Row>({ ...POLL_QUERY, values: [checksLocks] });
    const [row] = rows;
    if (!row) return this.safePosition;
    const head = row.head === null ? START_POSITION : BigInt(row.head);
    const appending = row.appending ?? undefined;
    this.evaluate({
      head,
      oldest: BigInt(row.oldest),
      next: BigInt(row.next),
      appending,
      pollNumber,
      nextPollNumber: this.pollCount,
    });
    return head;
  }

  private evaluate(observation: TailObservation): void {
    const { candidate } = this;
    if (haveAppendsEnded(observation, observation)) this.advance(observation.head);
    else if (haveAppendsEnded(candidate, observation)) this.advance(candidate.head);
    else if (candidate.appending || !observation.appending) return void this.failedPolls++;
    this.candidate = observation;
    // Locks are checked until all transactions of the candidate have ended: polls without locks make no progress.
    if (observation.oldest >= candidate.next) this.failedPolls = 0;
  }

  private advance(to: bigint): void {
    if (to > this.safePosition) this.safePosition = to;
  }
}

interface Row {
  readonly head: string | null;
  readonly oldest: string;
  readonly next: string;
  readonly appending: string[] | null;
}

/**
 * Returns whether the transactions that could append at the time of `earlier` had ended at the time of `later`. If both
 * are the same observation, the result is whether no transaction was running, or none was appending.
 */
function haveAppendsEnded(earlier: TailObservation, later: TailObservation): boolean {
  if (later.oldest >= earlier.next) return true;
  // A poll on another connection that started before `earlier` returned may not include the appends of `earlier`.
  if (!earlier.appending || !later.appending || (later !== earlier && later.pollNumber < earlier.nextPollNumber))
    return false;
  return !earlier.appending.some((transaction) => later.appending?.includes(transaction));
}
