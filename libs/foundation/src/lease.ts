/**
 * One process at a time. A lease is a row in PostgreSQL with a name and an end by the database's clock; its holder extends
 * it with a heartbeat. A holder that stops, hangs or loses its host loses the lease when it runs out; one that
 * dies loses it as soon as the database notices that its connection is gone.
 *
 * The old holder may not know yet that it has lost the lease, so every turn has a token that is higher than all before
 * it, and what a holder writes is checked against the highest one that was seen.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Lease } from '#kernel';
import { createClient, openPool } from '#postgres';

/**
 * Behind the last heartbeat of a leader that is lost, its work is taken up within 15 s, also by a slow machine: 8 s until
 * the lease has run out, 0.5 s until a standby tries, and where its first try gets no answer, 2 s until it is given up, 0.5 s
 * until the next one and 2 s for a new connection. That is 13 s at worst, and 8.5 s usually; the rest is for the work to begin.
 * What the old leader has locked in PostgreSQL is free by then: a transaction that says nothing more is ended after 10 s (#postgres).
 */
const LEASE_DURATION_MS = 8_000;
/** A heartbeat may fail this often before the lease runs out; it is given up when the next one is due. */
const HEARTBEATS_PER_LEASE = 4;
/** How often standbys try. */
const ACQUIRE_INTERVAL_MS = 500;
/** The holder counts on this part of the length: its clock may run more slowly than that of the database. */
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

/** Microseconds since 1970, so that tokens also grow where this table was lost and the event store was not. */
const NEXT_TOKEN_SQL = 'greatest(drawn + 1, (extract(epoch from statement_timestamp()) * 1000000)::bigint)';

export interface LeaderElectionOptions {
  readonly databaseUrl: string;
  /** Work for one process at a time. */
  readonly name: string;
  /** Ends the leadership, or the wait for it. */
  readonly signal: AbortSignal;
  reportError(problem: string, error: unknown): void;
  /** How long a lease lasts without a heartbeat. */
  readonly durationMs?: number;
  /** Is told when a turn begins or ends. */
  readonly leaseStatus?: LeaseStatus;
}

/** The leases that this process competes for, by name, and whether it has each at the moment. */
export class LeaseStatus {
  private readonly leadershipByName = new Map<string, boolean>();

  record(name: string, isLeading: boolean): void {
    this.leadershipByName.set(name, isLeading);
  }

  get leading(): readonly string[] {
    return this.listByLeadership(true);
  }

  get standby(): readonly string[] {
    return this.listByLeadership(false);
  }

  private listByLeadership(expected: boolean): readonly string[] {
    return [...this.leadershipByName].filter(([, isLeading]) => isLeading === expected).map(([name]) => name);
  }
}

/**
 * Runs `work` while this process holds the lease of that name, and again each time it gets it back; others stand by.
 * `work` returns what runs side by side: when one of it fails, or the lease is lost, the turn of all of it ends.
 */
export async function runWhileLeader(
  options: LeaderElectionOptions,
  work: (lease: Lease) => readonly Promise<void>[],
): Promise<void> {
  const { name, signal, reportError } = options;
  const row = new LeaseRow(options);
  options.leaseStatus?.record(name, false);
  try {
    while (!signal.aborted) {
      try {
        await row.lead(work);
      } catch (error) {
        if (!signal.aborted) reportError(`${name} lost its turn; trying again`, error);
      }
      if (!signal.aborted) await delay(ACQUIRE_INTERVAL_MS, undefined, { signal }).catch(() => {});
    }
  } finally {
    await row.close();
  }
}

/** Draws a token that is higher than the current holder's, without taking the lease. */
export async function issueFencingToken(databaseUrl: string, name: string): Promise<number> {
  const client = createClient({ connectionString: databaseUrl, name: 'token' });
  await client.connect();
  try {
    await client.query('insert into public.leases (name) values ($1) on conflict do nothing', [name]);
    const { rows } = await client.query<{ drawn: string }>(
      `update public.leases set drawn = ${NEXT_TOKEN_SQL} where name = $1 returning drawn`,
      [name],
    );
    return Number(rows[0]?.drawn);
  } finally {
    await client.end();
  }
}

/** The row of one name, as this process sees it. */
class LeaseRow {
  private readonly options: LeaderElectionOptions;
  private readonly durationMs: number;
  /** One connection, kept open: its existence shows others that this process is alive. */
  private readonly pool: pg.Pool;
  private lease: HeldLease | undefined;

  constructor(options: LeaderElectionOptions) {
    const { name, databaseUrl, durationMs = LEASE_DURATION_MS } = options;
    this.options = options;
    this.durationMs = durationMs;
    this.pool = openPool({
      connectionString: databaseUrl,
      name: `lease-${name}`,
      max: 1,
      allowsUnlimitedIdle: true,
      connectTimeoutMs: durationMs / HEARTBEATS_PER_LEASE,
      queryTimeoutMs: durationMs / HEARTBEATS_PER_LEASE,
      onIdleError: (error) => this.lease?.end(error),
    });
  }

  /** Tries to take the lease; the process that gets it works until the turn is over. */
  async lead(work: (lease: Lease) => readonly Promise<void>[]): Promise<void> {
    const lease = await this.acquire();
    if (!lease) return;
    this.lease = lease;
    const heartbeat = this.sendHeartbeats(lease);
    const { name, signal, leaseStatus } = this.options;
    const stop = () => lease.end();
    leaseStatus?.record(name, true);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    try {
      const tasks = work(lease).map((part) => part.catch((error) => lease.end(error)));
      await Promise.all(tasks);
    } finally {
      lease.end();
      leaseStatus?.record(name, false);
      signal.removeEventListener('abort', stop);
      await heartbeat;
      await this.release(lease).catch(() => {}); // it expires by itself
    }
    if (lease.failure !== undefined) throw lease.failure;
  }

  async close(): Promise<void> {
    await this.pool.end();
  }

  /** A lease can be taken once it has run out, or when the connection of its holder is gone. */
  private async acquire(): Promise<HeldLease | undefined> {
    const { name } = this.options;
    await this.pool.query('insert into public.leases (name) values ($1) on conflict do nothing', [name]);
    const sentAt = performance.now();
    const { rows } = await this.pool.query<{ held: string }>(
      `update public.leases
          set drawn = ${NEXT_TOKEN_SQL}, held = ${NEXT_TOKEN_SQL}, backend = pg_backend_pid(),
              ends_at = clock_timestamp() + $2 * interval '1 ms'
        where name = $1
          and (ends_at <= clock_timestamp() or not exists (select from pg_stat_activity where pid = backend))
       returning held`,
      [name, this.durationMs],
    );
    return rows[0] && new HeldLease(Number(rows[0].held), this.getTrustedUntil(sentAt));
  }

  private async sendHeartbeats(lease: HeldLease): Promise<void> {
    const { name, reportError } = this.options;
    while (lease.isHeld()) {
      await delay(this.durationMs / HEARTBEATS_PER_LEASE, undefined, { signal: lease.signal }).catch(() => {});
      if (lease.signal.aborted) return;
      const sentAt = performance.now();
      try {
        if (await this.renew(lease)) lease.extend(this.getTrustedUntil(sentAt));
        else lease.end(new Error(`another process holds the lease of ${name}`));
      } catch (error) {
        if (!lease.signal.aborted) reportError(`the lease of ${name} could not be renewed; trying again`, error);
      }
    }
  }

  private async renew({ token }: HeldLease): Promise<boolean> {
    const { rowCount } = await this.pool.query(
      `update public.leases set backend = pg_backend_pid(), ends_at = clock_timestamp() + $3 * interval '1 ms'
        where name = $1 and held = $2`,
      [this.options.name, token, this.durationMs],
    );
    return rowCount === 1;
  }

  private async release({ token }: HeldLease): Promise<void> {
    await this.pool.query(`update public.leases set ends_at = '-infinity' where name = $1 and held = $2`, [
      this.options.name,
      token,
    ]);
  }

  /** Counted from before the database was asked, so never longer than the database thinks. */
  private getTrustedUntil(sentAt: number): number {
    return sentAt + this.durationMs * TRUSTED_SHARE;
  }
}

/** One turn: from when the lease was taken until it is lost or given back. */
class HeldLease implements Lease {
  readonly token: number;
  failure: unknown;
  /** By the clock of this process that only ever runs forward; it also runs while the process is stopped. */
  private endsAt: number;
  private timer: NodeJS.Timeout;
  private readonly abortController = new AbortController();

  constructor(token: number, endsAt: number) {
    this.token = token;
    this.endsAt = endsAt;
    this.timer = this.scheduleEnd();
  }

  get signal(): AbortSignal {
    return this.abortController.signal;
  }

  isHeld(): boolean {
    return !this.abortController.signal.aborted && performance.now() < this.endsAt;
  }

  extend(endsAt: number): void {
    clearTimeout(this.timer);
    this.endsAt = endsAt;
    if (!this.abortController.signal.aborted) this.timer = this.scheduleEnd();
  }

  /** @param failure why, unless it was wanted */
  end(failure?: unknown): void {
    if (this.abortController.signal.aborted) return;
    clearTimeout(this.timer);
    this.failure = failure;
    this.abortController.abort();
  }

  private scheduleEnd(): NodeJS.Timeout {
    const wait = Math.max(0, this.endsAt - performance.now());
    return setTimeout(() => this.end(new Error('the lease has run out')), wait);
  }
}
