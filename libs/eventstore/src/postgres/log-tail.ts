import type pg from 'pg';
import { START_POSITION } from '#kernel';
import { APPEND_LOCK_ID } from './schema.ts';

/** How long facts gather at most before followers are notified of them. */
export const GATHER_MS = 25;
/** They gather the longer the more there were: few facts have nothing to wait for, and somebody waits to see them. */
const GATHER_PER_FACT_MS = 5;
/** How long until a transaction in progress is looked at again. */
const RECHECK_MS = 1;
/** After so many looks at transactions that still run it is asked which of them insert. */
const LOOKS_BY_ID = 8;
/** Without any wake-up the end of the log is looked at this often. */
const IDLE_MS = 500;

/**
 * The highest position, the oldest transaction that still runs, the next one that will begin, and, where that is asked for
 * (it takes four times as long), those that insert. `age` counts from the next id that is given out; the upper end of the
 * snapshot would not do, because that is only one behind the last transaction that ended: younger ones that already hold a
 * smaller position may be running. Locks are seen no earlier than the highest position: what had drawn a smaller one is among
 * their holders, or has ended and is there for whoever reads next.
 */
const LOOK = {
  name: 'tail',
  text: `select (select max(position) from es.events) as head, oldest::text, (oldest::text::bigint + age(oldest::xid))::text as next,
                case when $1 then array(
                  select virtualtransaction from pg_locks
                   where locktype = 'advisory' and classid = 0 and objid = ${APPEND_LOCK_ID} and objsubid = 1 and granted
                     and database = (select oid from pg_database where datname = current_database())) end as appending
           from (select pg_snapshot_xmin(pg_current_snapshot()) as oldest) as s`,
};

/** How long after so many facts the next ones are waited for, to be passed on together. */
export function getBatchDelayMs(facts: number): number {
  return Math.min(GATHER_MS, facts * GATHER_PER_FACT_MS);
}

/** What was seen at some moment. */
interface Seen {
  readonly head: bigint;
  /** The oldest transaction that ran, and the first that had not begun. */
  readonly oldest: bigint;
  readonly next: bigint;
  /** Transactions that were inserting, where that was asked. */
  readonly appending: readonly string[] | undefined;
  /** Looks by their order: when this one began, and the first that began after it. */
  readonly look: number;
  readonly behind: number;
}

const NOTHING: Seen = { head: START_POSITION, oldest: 0n, next: 0n, appending: undefined, look: 0, behind: 0 };

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
  private safe = START_POSITION;
  /** Its head is safe as soon as those have ended that ran or inserted then. */
  private candidate = NOTHING;
  /** How often it was looked at in vain. */
  private inVain = 0;
  /** Looks that have begun. */
  private looks = 0;
  private waiters = new Set<() => void>();
  /** Whether something may have been appended since the end was last looked at. */
  private stirred = true;
  private looking = false;
  private notifiedUpTo = START_POSITION;
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
    const wait = this.toldAt + getBatchDelayMs(this.told) - performance.now();
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
    const look = this.looks++;
    const closely = this.inVain >= LOOKS_BY_ID;
    const { rows } = await this.pool.query<Row>({ ...LOOK, values: [closely] });
    const [row] = rows;
    if (!row) return this.safe;
    const head = row.head === null ? START_POSITION : BigInt(row.head);
    const appending = row.appending ?? undefined;
    this.judge({ head, oldest: BigInt(row.oldest), next: BigInt(row.next), appending, look, behind: this.looks });
    return head;
  }

  private judge(seen: Seen): void {
    const { candidate } = this;
    if (haveEnded(seen, seen)) this.advance(seen.head);
    else if (haveEnded(candidate, seen)) this.advance(candidate.head);
    else if (candidate.appending || !seen.appending) return void this.inVain++;
    this.candidate = seen;
    // As long as something else runs, it would be looked at in vain again.
    if (seen.oldest >= candidate.next) this.inVain = 0;
  }

  private advance(to: bigint): void {
    if (to > this.safe) this.safe = to;
  }
}

interface Row {
  readonly head: string | null;
  readonly oldest: string;
  readonly next: string;
  readonly appending: string[] | null;
}

/** Whether those that ran or inserted at one moment had ended at another one, or at that moment already. */
function haveEnded(then: Seen, now: Seen): boolean {
  if (now.oldest >= then.next) return true;
  // A look that began before, on another connection, does not know those that were inserting then.
  if (!then.appending || !now.appending || (now !== then && now.look < then.behind)) return false;
  return !then.appending.some((each) => now.appending?.includes(each));
}
