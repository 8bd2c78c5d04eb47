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
const LENGTH_MS = 8_000;
/** A heartbeat may fail this often before the lease runs out; it is given up when the next one is due. */
const HEARTBEATS_PER_LENGTH = 4;
/** How often standbys try. */
const TRY_EVERY_MS = 500;
/** The holder counts on this part of the length: its clock may run more slowly than that of the database. */
const RELIED_ON = 0.95;

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
const NEXT_TOKEN = 'greatest(drawn + 1, (extract(epoch from statement_timestamp()) * 1000000)::bigint)';

export interface LeaderElectionOptions {
  readonly databaseUrl: string;
  /** Work for one process at a time. */
  readonly name: string;
  /** Ends the leadership, or the wait for it. */
  readonly signal: AbortSignal;
  alarm(problem: string, error: unknown): void;
  /** How long a lease lasts without a heartbeat. */
  readonly lengthMs?: number;
  /** Is told when a turn begins or ends. */
  readonly turns?: LeaseStatus;
}

/** The leases that this process competes for, by name, and whether it has each at the moment. */
export class LeaseStatus {
  private readonly held = new Map<string, boolean>();

  note(name: string, isLeading: boolean): void {
    this.held.set(name, isLeading);
  }

  get leading(): readonly string[] {
    return this.of(true);
  }

  get standingBy(): readonly string[] {
    return this.of(false);
  }

  private of(wanted: boolean): readonly string[] {
    return [...this.held].filter(([, isLeading]) => isLeading === wanted).map(([name]) => name);
  }
}

/**
 * Runs `work` while this process holds the lease of that name, and again each time it gets it back; others stand by.
 * `work` returns what runs side by side: when one of it fails, or the lease is lost, the turn of all of it ends.
 */
export async function runWhileLeader(
  leadership: LeaderElectionOptions,
  work: (lease: Lease) => readonly Promise<void>[],
): Promise<void> {
  const { name, signal, alarm } = leadership;
  const row = new LeaseRow(leadership);
  leadership.turns?.note(name, false);
  try {
    while (!signal.aborted) {
      try {
        await row.lead(work);
      } catch (error) {
        if (!signal.aborted) alarm(`${name} lost its turn; trying again`, error);
      }
      if (!signal.aborted) await delay(TRY_EVERY_MS, undefined, { signal }).catch(() => {});
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
      `update public.leases set drawn = ${NEXT_TOKEN} where name = $1 returning drawn`,
      [name],
    );
    return Number(rows[0]?.drawn);
  } finally {
    await client.end();
  }
}

/** The row of one name, as this process sees it. */
class LeaseRow {
  private readonly leadership: LeaderElectionOptions;
  private readonly lengthMs: number;
  /** One connection, kept open: its existence shows others that this process is alive. */
  private readonly pool: pg.Pool;
  private turn: Turn | undefined;

  constructor(leadership: LeaderElectionOptions) {
    const { name, databaseUrl, lengthMs = LENGTH_MS } = leadership;
    this.leadership = leadership;
    this.lengthMs = lengthMs;
    this.pool = openPool({
      connectionString: databaseUrl,
      name: `lease-${name}`,
      max: 1,
      allowsUnlimitedIdle: true,
      connectTimeoutMs: lengthMs / HEARTBEATS_PER_LENGTH,
      queryTimeoutMs: lengthMs / HEARTBEATS_PER_LENGTH,
      onIdleError: (error) => this.turn?.end(error),
    });
  }

  /** Tries to take the lease; the process that gets it works until the turn is over. */
  async lead(work: (lease: Lease) => readonly Promise<void>[]): Promise<void> {
    const turn = await this.take();
    if (!turn) return;
    this.turn = turn;
    const heartbeat = this.beat(turn);
    const { name, signal, turns } = this.leadership;
    const stop = () => turn.end();
    turns?.note(name, true);
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    try {
      const parts = work(turn).map((part) => part.catch((error) => turn.end(error)));
      await Promise.all(parts);
    } finally {
      turn.end();
      turns?.note(name, false);
      signal.removeEventListener('abort', stop);
      await heartbeat;
      await this.release(turn).catch(() => {}); // it expires by itself
    }
    if (turn.failure !== undefined) throw turn.failure;
  }

  async close(): Promise<void> {
    await this.pool.end();
  }

  /** A lease can be taken once it has run out, or when the connection of its holder is gone. */
  private async take(): Promise<Turn | undefined> {
    const { name } = this.leadership;
    await this.pool.query('insert into public.leases (name) values ($1) on conflict do nothing', [name]);
    const asked = performance.now();
    const { rows } = await this.pool.query<{ held: string }>(
      `update public.leases
          set drawn = ${NEXT_TOKEN}, held = ${NEXT_TOKEN}, backend = pg_backend_pid(),
              ends_at = clock_timestamp() + $2 * interval '1 ms'
        where name = $1
          and (ends_at <= clock_timestamp() or not exists (select from pg_stat_activity where pid = backend))
       returning held`,
      [name, this.lengthMs],
    );
    return rows[0] && new Turn(Number(rows[0].held), this.relyUntil(asked));
  }

  private async beat(turn: Turn): Promise<void> {
    const { name, alarm } = this.leadership;
    while (turn.isHeld()) {
      await delay(this.lengthMs / HEARTBEATS_PER_LENGTH, undefined, { signal: turn.signal }).catch(() => {});
      if (turn.signal.aborted) return;
      const asked = performance.now();
      try {
        if (await this.renew(turn)) turn.prolong(this.relyUntil(asked));
        else turn.end(new Error(`another process holds the lease of ${name}`));
      } catch (error) {
        if (!turn.signal.aborted) alarm(`the lease of ${name} could not be renewed; trying again`, error);
      }
    }
  }

  private async renew({ token }: Turn): Promise<boolean> {
    const { rowCount } = await this.pool.query(
      `update public.leases set backend = pg_backend_pid(), ends_at = clock_timestamp() + $3 * interval '1 ms'
        where name = $1 and held = $2`,
      [this.leadership.name, token, this.lengthMs],
    );
    return rowCount === 1;
  }

  private async release({ token }: Turn): Promise<void> {
    await this.pool.query(`update public.leases set ends_at = '-infinity' where name = $1 and held = $2`, [
      this.leadership.name,
      token,
    ]);
  }

  /** Counted from before the database was asked, so never longer than the database thinks. */
  private relyUntil(asked: number): number {
    return asked + this.lengthMs * RELIED_ON;
  }
}

/** One turn: from when the lease was taken until it is lost or given back. */
class Turn implements Lease {
  readonly token: number;
  failure: unknown;
  /** By the clock of this process that only ever runs forward; it also runs while the process is stopped. */
  private endsAt: number;
  private timer: NodeJS.Timeout;
  private readonly over = new AbortController();

  constructor(token: number, endsAt: number) {
    this.token = token;
    this.endsAt = endsAt;
    this.timer = this.endInTime();
  }

  get signal(): AbortSignal {
    return this.over.signal;
  }

  isHeld(): boolean {
    return !this.over.signal.aborted && performance.now() < this.endsAt;
  }

  prolong(endsAt: number): void {
    clearTimeout(this.timer);
    this.endsAt = endsAt;
    if (!this.over.signal.aborted) this.timer = this.endInTime();
  }

  /** @param failure why, unless it was wanted */
  end(failure?: unknown): void {
    if (this.over.signal.aborted) return;
    clearTimeout(this.timer);
    this.failure = failure;
    this.over.abort();
  }

  private endInTime(): NodeJS.Timeout {
    const wait = Math.max(0, this.endsAt - performance.now());
    return setTimeout(() => this.end(new Error('the lease has run out')), wait);
  }
}
