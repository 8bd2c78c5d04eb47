import type pg from 'pg';
import { START_POSITION } from '#kernel';
import { APPEND_LOCK_ID } from './schema.ts';

/** How long facts gather at most before followers are notified of them. */
export const MAX_BATCH_DELAY_MS = 25;
/** They gather the longer the more there were: few facts have nothing to wait for, and somebody waits to see them. */
const BATCH_DELAY_PER_EVENT_MS = 5;
/** How long until a transaction in progress is looked at again. */
const RECHECK_INTERVAL_MS = 1;
/** After so many looks at transactions that still run it is asked which of them insert. */
const POLLS_BEFORE_LOCK_CHECK = 8;
/** Without any wake-up the end of the log is looked at this often. */
const IDLE_POLL_INTERVAL_MS = 500;

/**
 * The highest position, the oldest transaction that still runs, the next one that will begin, and, where that is asked for
 * (it takes four times as long), those that insert. `age` counts from the next id that is given out; the upper end of the
 * snapshot would not do, because that is only one behind the last transaction that ended: younger ones that already hold a
 * smaller position may be running. Locks are seen no earlier than the highest position: what had drawn a smaller one is among
 * their holders, or has ended and is there for whoever reads next.
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

/** How long after so many facts the next ones are waited for, to be passed on together. */
export function getBatchDelayMs(eventCount: number): number {
  return Math.min(MAX_BATCH_DELAY_MS, eventCount * BATCH_DELAY_PER_EVENT_MS);
}

/** What was seen at some moment. */
interface TailObservation {
  readonly head: bigint;
  /** The oldest transaction that ran, and the first that had not begun. */
  readonly oldest: bigint;
  readonly next: bigint;
  /** Transactions that were inserting, where that was asked. */
  readonly appending: readonly string[] | undefined;
  /** Looks by their order: when this one began, and the first that began after it. */
  readonly pollNumber: number;
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
 * How far the log can be read without skipping a fact that commits late.
 *
 * Positions are given out before transactions commit, so a smaller one can appear after a larger one. A position is
 * only safe once every transaction that was inserting when it was the highest has ended: those that begin later get
 * higher positions. That is so once all that ran then have ended, which takes no longer than an append where nothing else
 * writes on this PostgreSQL server. Where one runs for longer, those that insert are told from others by the lock that they
 * hold (`APPEND_LOCK_ID`): nobody else is waited for.
 */
export class LogTail {
  private readonly pool: pg.Pool;
  private readonly onProblem: (problem: string, error: unknown) => void;
  private safePosition = START_POSITION;
  /** Its head is safe as soon as those have ended that ran or inserted then. */
  private candidate = INITIAL_OBSERVATION;
  /** How often it was looked at in vain. */
  private failedPolls = 0;
  /** Looks that have begun. */
  private pollCount = 0;
  private waiters = new Set<() => void>();
  /** Whether something may have been appended since the end was last looked at. */
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

  /** Something was appended, here or elsewhere: worth a look once anybody waits for it. */
  wake(): void {
    this.isPollDue = true;
    this.schedulePoll();
  }

  /** Resolves when there may be something safe behind `position`, or when `signal` aborts. */
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

  /** The end of the log as it is now, once it is safe. */
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
      this.onProblem('the end of the event log could not be read; trying again', error);
    }
    this.isPolling = false;
    if (this.safePosition > this.notifiedPosition) this.notify();
    this.schedulePoll();
  }

  /** All at once, so that those that have come equally far read the same. */
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

  /** Looks once, moves what is safe, and returns the highest position there is. */
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
    // As long as something else runs, it would be looked at in vain again.
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

/** Whether those that ran or inserted at one moment had ended at another one, or at that moment already. */
function haveAppendsEnded(earlier: TailObservation, later: TailObservation): boolean {
  if (later.oldest >= earlier.next) return true;
  // A look that began before, on another connection, does not know those that were inserting then.
  if (!earlier.appending || !later.appending || (later !== earlier && later.pollNumber < earlier.nextPollNumber))
    return false;
  return !earlier.appending.some((transaction) => later.appending?.includes(transaction));
}
