/**
 * Leases for jobs that only one process may run at a time. A lease is a row in PostgreSQL with a name and an expiry by
 * the database's clock, which its holder extends with a heartbeat. A holder that is suspended or hangs, or whose host
 * fails, loses the lease when it expires. A holder that dies loses it once the database notices its closed connection.
 *
 * The old holder may not have noticed that it lost the lease. So every acquisition gets a fencing token that is higher
 * than all before it, and a write is rejected if a holder with a higher token has already written.
 */
import type pg from 'pg';
import type { Lease, Timers } from '#kernel';
import { openPool, withClient } from '#postgres';
import { nodeTimers } from '#runtime';
import { toProcessConnectionName } from './running-contracts.ts';
import { StallDetector, type StallLimits, type WorkProbe } from './stall-detector.ts';

/**
 * A standby takes over within 15 s after the last heartbeat of a lost leader, even if one query of the standby gets no
 * response. The lease expires after 8 s, and a standby tries to acquire it at most 0.5 s later. A query without a
 * response times out after 2 s. The next attempt follows 0.5 s later, and its new connection takes at most 2 s. So the
 * lease is usually acquired within 8.5 s, and in this case after about 13 s. The rest of the 15 s is for other queries
 * and for starting the work. Within the 15 s PostgreSQL also releases the locks of the old leader, because it ends idle
 * transactions after 10 s (#postgres).
 */
const LEASE_DURATION_MS = 8_000;
/** Number of heartbeats in the lifetime of a lease. A heartbeat times out after the interval between two of them. */
const HEARTBEATS_PER_LEASE = 4;
/** How often standbys try to acquire the lease. */
const ACQUIRE_INTERVAL_MS = 500;
/** How often a leader checks whether it can work. */
const PROBE_INTERVAL_MS = 1_000;
/**
 * A leader that could not work acquires the lease again only after it was free for this time, so that a standby that
 * can work is first. Without a standby it works again soon after the cause has ended.
 */
const HANDICAP_MS = 5_000;
/** How long the handicap lasts. */
const HANDICAPPED_FOR_MS = 30_000;
/** Share of the lifetime that the holder relies on, because its clock may run more slowly than that of the database. */
const TRUSTED_SHARE = 0.95;

export const leaseMigrations = [
  {
    id: 'leases-1',
    sql: `create table public.leases (
            name    text primary key,
            drawn   bigint not null default 0, -- the highest token that was given out
            held    bigint not null default 0, -- the token of the holder
            backend integer not null default 0, -- the server process behind the holder's connection
            ends_at timestamptz not null default '-infinity'
          ) with (fillfactor = 50)`,
  },
] as const;

/**
 * At least the microseconds since 1970, so that tokens increase even if this table was lost and the events were not.
 */
const NEXT_TOKEN_SQL = 'greatest(drawn + 1, (extract(epoch from statement_timestamp()) * 1000000)::bigint)';

/** The rows of leases that all processes share. Times are those of the database. */
export interface LeaseTable {
  /**
   * Acquires a lease that has expired, or whose holder's connection no longer exists.
   * @returns the fencing token; undefined if another process holds the lease, or it has been free for less than
   *   `handicapMs`
   */
  acquire(name: string, durationMs: number, handicapMs: number): Promise<number | undefined>;
  /** @returns false if another process has acquired the lease */
  renew(name: string, token: number, durationMs: number): Promise<boolean>;
  release(name: string, token: number): Promise<void>;
  close(): Promise<void>;
}

export interface LeaseOptions {
  /** Name of the lease. */
  readonly name: string;
  /** Ends the leadership, or the wait for it. */
  readonly signal: AbortSignal;
  reportError(problem: string, error: unknown): void;
  /** How long a lease lasts without a heartbeat. */
  readonly durationMs?: number;
  /** Checks every second that the leader can work. Without it, only heartbeats count. */
  readonly probe?: WorkProbe;
  readonly stallLimits?: StallLimits;
  /** Records whether this process holds the lease. */
  readonly leaseStatus?: LeaseStatus;
}

export interface LeaderElectionOptions extends LeaseOptions {
  readonly databaseUrl: string;
}

/**
 * Whether this process leads, stands by, or could not work when it last led. In the last case it leaves the lease to
 * others for a while, and if it then acquires the lease again, it leads only once a probe shows that it can work.
 */
export type LeaseRole = 'leading' | 'standby' | 'unable';

/** The names of the leases that this process competes for, and its role for each one. */
export class LeaseStatus {
  private readonly roleByName = new Map<string, LeaseRole>();

  record(name: string, role: LeaseRole): void {
    this.roleByName.set(name, role);
  }

  get names(): readonly string[] {
    return [...this.roleByName.keys()];
  }

  get leading(): readonly string[] {
    return this.listByRole('leading');
  }

  get standby(): readonly string[] {
    return this.listByRole('standby');
  }

  get unable(): readonly string[] {
    return this.listByRole('unable');
  }

  private listByRole(expected: LeaseRole): readonly string[] {
    return [...this.roleByName].filter(([, role]) => role === expected).map(([name]) => name);
  }
}

/** Returns those of the leases that no process holds. */
export async function listUnheldLeases(
  database: Pick<pg.Pool, 'query'>,
  names: readonly string[],
): Promise<readonly string[]> {
  const { rows } = await database.query<{ name: string }>(
    `select name from unnest($1::text[]) as name
      where name not in (select l.name from public.leases l where l.ends_at > clock_timestamp())`,
    [names],
  );
  return rows.map(({ name }) => name);
}

/** The leader cannot work, although it could renew its lease. A task throws it so that another process tries. */
export class StalledLeaderError extends Error {}

/** Runs `work` while this process holds the lease in PostgreSQL, see `competeForLease`. */
export function runWhileLeader(
  options: LeaderElectionOptions,
  work: (lease: Lease) => readonly Promise<void>[],
): Promise<void> {
  return competeForLease(options, nodeTimers, (onLost) => new PostgresLeaseTable(options, onLost), work);
}

/**
 * Runs `work` while this process holds the lease, and again each time it acquires the lease. Other processes stand by.
 * `work` returns concurrent tasks. If one of them fails or the lease is lost, the lease ends for all of them. A leader
 * that cannot work releases the lease at once, and competes with a handicap for a while.
 * @param openTable gets a function to be called if the lease may be lost
 */
export async function competeForLease(
  options: LeaseOptions,
  timers: Timers,
  openTable: (onLost: (error: unknown) => void) => LeaseTable,
  work: (lease: Lease) => readonly Promise<void>[],
): Promise<void> {
  const { name, signal, reportError } = options;
  const competition = new LeaseCompetition(options, timers, openTable);
  options.leaseStatus?.record(name, 'standby');
  let handicappedUntil = Number.NEGATIVE_INFINITY;
  try {
    while (!signal.aborted) {
      const isHandicapped = timers.now() < handicappedUntil;
      options.leaseStatus?.record(name, isHandicapped ? 'unable' : 'standby');
      try {
        await competition.lead(work, isHandicapped ? HANDICAP_MS : 0);
      } catch (error) {
        if (error instanceof StalledLeaderError) handicappedUntil = timers.now() + HANDICAPPED_FOR_MS;
        if (!signal.aborted) reportError(`${name} does not hold its lease; retrying`, error);
      }
      if (!signal.aborted) await timers.sleep(ACQUIRE_INTERVAL_MS, { signal });
    }
  } finally {
    await competition.close();
  }
}

/** Issues a token that is higher than that of the current holder, without acquiring the lease. */
export async function issueFencingToken(databaseUrl: string, name: string): Promise<number> {
  return withClient({ connectionString: databaseUrl, name: 'token' }, async (client) => {
    await client.query('insert into public.leases (name) values ($1) on conflict do nothing', [name]);
    const { rows } = await client.query<{ drawn: string }>(
      `update public.leases set drawn = ${NEXT_TOKEN_SQL} where name = $1 returning drawn`,
      [name],
    );
    return Number(rows[0]?.drawn);
  });
}

class PostgresLeaseTable implements LeaseTable {
  /** One connection that stays open: its existence shows other processes that this process is alive. */
  private readonly pool: pg.Pool;

  constructor(
    { name, databaseUrl, durationMs = LEASE_DURATION_MS }: LeaderElectionOptions,
    onLost: (error: unknown) => void,
  ) {
    this.pool = openPool({
      connectionString: databaseUrl,
      name: toProcessConnectionName(`lease-${name}`),
      max: 1,
      allowsUnlimitedIdle: true,
      connectTimeoutMs: durationMs / HEARTBEATS_PER_LEASE,
      queryTimeoutMs: durationMs / HEARTBEATS_PER_LEASE,
      onIdleError: onLost,
    });
  }

  async acquire(name: string, durationMs: number, handicapMs: number): Promise<number | undefined> {
    await this.pool.query('insert into public.leases (name) values ($1) on conflict do nothing', [name]);
    const { rows } = await this.pool.query<{ held: string }>(
      `update public.leases
          set drawn = ${NEXT_TOKEN_SQL}, held = ${NEXT_TOKEN_SQL}, backend = pg_backend_pid(),
              ends_at = clock_timestamp() + $2 * interval '1 ms'
        where name = $1
          and (ends_at <= clock_timestamp() - $3 * interval '1 ms'
               or $3 = 0 and not exists (select from pg_stat_activity where pid = backend))
       returning held`,
      [name, durationMs, handicapMs],
    );
    return rows[0] && Number(rows[0].held);
  }

  async renew(name: string, token: number, durationMs: number): Promise<boolean> {
    const { rowCount } = await this.pool.query(
      `update public.leases set backend = pg_backend_pid(), ends_at = clock_timestamp() + $3 * interval '1 ms'
        where name = $1 and held = $2`,
      [name, token, durationMs],
    );
    return rowCount === 1;
  }

  async release(name: string, token: number): Promise<void> {
    await this.pool.query(`update public.leases set ends_at = clock_timestamp() where name = $1 and held = $2`, [
      name,
      token,
    ]);
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}

/** Acquires, renews and releases one lease for one process. */
class LeaseCompetition {
  private readonly table: LeaseTable;
  private readonly durationMs: number;
  private lease: HeldLease | undefined;

  constructor(
    private readonly options: LeaseOptions,
    private readonly timers: Timers,
    openTable: (onLost: (error: unknown) => void) => LeaseTable,
  ) {
    this.durationMs = options.durationMs ?? LEASE_DURATION_MS;
    this.table = openTable((error) => this.lease?.end(error));
  }

  /**
   * Acquires the lease and runs `work` under it. Returns at once if another process holds the lease, or if it has been
   * free for less than `handicapMs`.
   */
  async lead(work: (lease: Lease) => readonly Promise<void>[], handicapMs: number): Promise<void> {
    const lease = await this.acquire(handicapMs);
    if (!lease) return;
    this.lease = lease;
    const heartbeat = Promise.all([this.sendHeartbeats(lease), this.releaseIfStalled(lease)]);
    const { name, signal, probe, leaseStatus } = this.options;
    const stop = () => lease.end();
    if (handicapMs === 0 || !probe) leaseStatus?.record(name, 'leading');
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    try {
      const tasks = work(lease).map((part) => part.catch((error) => lease.end(error)));
      await Promise.all(tasks);
    } finally {
      lease.end();
      leaseStatus?.record(name, lease.failure instanceof StalledLeaderError ? 'unable' : 'standby');
      signal.removeEventListener('abort', stop);
      await heartbeat;
      await this.table.release(name, lease.token).catch(() => {}); // it expires by itself
    }
    if (lease.failure !== undefined) throw lease.failure;
  }

  close(): Promise<void> {
    return this.table.close();
  }

  private async acquire(handicapMs: number): Promise<HeldLease | undefined> {
    const sentAt = this.timers.now();
    const token = await this.table.acquire(this.options.name, this.durationMs, handicapMs);
    return token === undefined ? undefined : new HeldLease(token, this.getTrustedUntil(sentAt), this.timers);
  }

  private async sendHeartbeats(lease: HeldLease): Promise<void> {
    const { name, reportError } = this.options;
    while (lease.isHeld()) {
      await this.timers.sleep(this.durationMs / HEARTBEATS_PER_LEASE, { signal: lease.signal });
      if (lease.signal.aborted) return;
      const sentAt = this.timers.now();
      try {
        if (await this.table.renew(name, lease.token, this.durationMs))
          lease.extend(this.getTrustedUntil(sentAt), sentAt);
        else lease.end(new Error(`another process holds the lease of ${name}`));
      } catch (error) {
        if (!lease.signal.aborted) reportError(`the lease of ${name} could not be renewed; retrying`, error);
      }
    }
  }

  /**
   * Releases the lease if the leader cannot work, although it can renew its lease. If it cannot renew it either, as
   * while the database does not respond, the lease expires without a handicap.
   */
  private async releaseIfStalled(lease: HeldLease): Promise<void> {
    const { name, probe, stallLimits, leaseStatus } = this.options;
    if (!probe) return;
    const detector = new StallDetector(probe, stallLimits);
    while (lease.isHeld()) {
      await this.timers.sleep(PROBE_INTERVAL_MS, { signal: lease.signal });
      if (lease.signal.aborted) return;
      const reason = await detector.findStall();
      if (!lease.isHeld()) continue;
      if (detector.isWorking) leaseStatus?.record(name, 'leading');
      if (reason === undefined) continue;
      if (this.timers.now() - lease.renewedAt > (2 * this.durationMs) / HEARTBEATS_PER_LEASE) continue;
      lease.end(new StalledLeaderError(`${name} cannot work, so another process should: ${reason}`));
      leaseStatus?.record(name, 'unable');
      await this.table.release(name, lease.token).catch(() => {}); // it expires by itself
    }
  }

  /**
   * Measured from before the query was sent, so that the lease expires here before it expires in the database. It can
   * still be lost earlier: if the connection of this process ends, or the clock of the database jumps ahead.
   */
  private getTrustedUntil(sentAt: number): number {
    return sentAt + this.durationMs * TRUSTED_SHARE;
  }
}

/** A lease from its acquisition until it is lost or released. */
class HeldLease implements Lease {
  readonly token: number;
  failure: unknown;
  /** When the last heartbeat that succeeded was sent. */
  renewedAt: number;
  /** By the monotonic clock of this process, which continues while the process is suspended. */
  private endsAt: number;
  private stopTimer: () => void;
  private readonly abortController = new AbortController();

  constructor(
    token: number,
    endsAt: number,
    private readonly timers: Timers,
  ) {
    this.token = token;
    this.endsAt = endsAt;
    this.renewedAt = timers.now();
    this.stopTimer = this.scheduleEnd();
  }

  get signal(): AbortSignal {
    return this.abortController.signal;
  }

  isHeld(): boolean {
    return !this.abortController.signal.aborted && this.timers.now() < this.endsAt;
  }

  extend(endsAt: number, renewedAt: number): void {
    this.stopTimer();
    this.renewedAt = renewedAt;
    this.endsAt = endsAt;
    if (!this.abortController.signal.aborted) this.stopTimer = this.scheduleEnd();
  }

  /** @param failure the reason, unless the end was requested */
  end(failure?: unknown): void {
    if (this.abortController.signal.aborted) return;
    this.stopTimer();
    this.failure = failure;
    this.abortController.abort();
  }

  private scheduleEnd(): () => void {
    const wait = Math.max(0, this.endsAt - this.timers.now());
    return this.timers.startTimer(wait, () => this.end(new Error('the lease has expired')));
  }
}
