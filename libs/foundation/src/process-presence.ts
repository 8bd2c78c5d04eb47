/**
 * Shows that a process that owns holds is alive. The process has a row in PostgreSQL with an expiry by the database's
 * clock, which a heartbeat extends. Unlike with a lease, no other process competes for this row. A process that was
 * killed or lost its host is found by its row: it has expired, or the server process in it no longer exists.
 */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { StoreUnavailableError, type Timers } from '#kernel';
import { openPool } from '#postgres';
import { nodeTimers } from '#runtime';
import { toProcessConnectionName } from './running-contracts.ts';
import type { StartDeadline } from './start-deadline.ts';

const PRESENCE_DURATION_MS = 10_000;
/** Number of heartbeats in the time after which a row expires without them. */
const HEARTBEATS_PER_PRESENCE = 4;
/**
 * Share of this time that the process relies on, because its clock may run more slowly than that of the database.
 */
const TRUSTED_SHARE = 0.95;
const ID_LENGTH = 8;
/** Detects a full disk: it creates a temporary file. A heartbeat may need no new space, so it can succeed. */
const DISK_SPACE_PROBE = 'select count(*) from generate_series(1, 10000)';
const LOW_WORK_MEM_OPTION = '-c work_mem=64kB';
/** How long an expired row stays in the table: longer than any hold that its process may still own. */
const RETENTION = '1 day';

export const presenceMigrations = [
  {
    id: 'processes-1',
    sql: `create table public.processes (
            id      text primary key,
            backend integer not null, -- the server process behind its connection
            ends_at timestamptz not null
          ) with (fillfactor = 50)`,
  },
] as const;

/** The rows of processes that all processes share. Times are those of the database. */
export interface PresenceTable {
  /** Registers a process, or extends its row. */
  record(id: string, durationMs: number): Promise<void>;
  /** Returns whether the database has disk space. */
  hasDiskSpace(): Promise<boolean>;
  /** Ends a row, so that other processes need not wait until it expires. */
  end(id: string): Promise<void>;
  /** Removes the rows of processes that have long been dead. */
  removeOld(): Promise<void>;
  close(): Promise<void>;
}

interface HeartbeatOptions {
  reportError(problem: string, error: unknown): void;
  /** How long the process counts as alive without a heartbeat. */
  readonly durationMs?: number;
}

export interface PresenceOptions extends HeartbeatOptions {
  readonly databaseUrl: string;
  /** Such as `gateway`; the prefix of the process id. */
  readonly role: string;
  /** Until then, `start` retries while the database does not respond. */
  readonly startDeadline: StartDeadline;
}

export class ProcessPresence {
  private readonly durationMs: number;
  private readonly stopController = new AbortController();
  private presentUntil = Number.NEGATIVE_INFINITY;
  private canWrite = true;
  private heartbeat: Promise<void> = Promise.resolve();

  private constructor(
    readonly id: string,
    private readonly table: PresenceTable,
    private readonly timers: Timers,
    private readonly options: HeartbeatOptions,
  ) {
    this.durationMs = options.durationMs ?? PRESENCE_DURATION_MS;
  }

  /**
   * Registers this process under a new id, and starts its heartbeats. While the database does not respond, it retries
   * with a doubled time limit, up to the duration of a presence: at a constant load, equal limits would always fail.
   * The last limit then applies to the heartbeats too.
   * @throws StartError if the database did not respond until the deadline; any other error of the database
   */
  static async start(options: PresenceOptions): Promise<ProcessPresence> {
    const { durationMs = PRESENCE_DURATION_MS, startDeadline } = options;
    let timeoutMs = durationMs / HEARTBEATS_PER_PRESENCE / 2;
    return startDeadline.waitFor('the registration of this process in the database', () => {
      timeoutMs = Math.min(timeoutMs * 2, durationMs);
      const id = `${options.role}-${randomUUID().slice(0, ID_LENGTH)}`;
      return ProcessPresence.register(id, new PostgresPresenceTable(options, id, timeoutMs), nodeTimers, options);
    });
  }

  /**
   * Registers a process, and starts its heartbeats.
   * @param id unique among all runs of all processes
   * @throws any error of the table, which is then closed
   */
  static async register(
    id: string,
    table: PresenceTable,
    timers: Timers,
    options: HeartbeatOptions,
  ): Promise<ProcessPresence> {
    const presence = new ProcessPresence(id, table, timers, options);
    try {
      await table.removeOld();
      await presence.recordPresence();
    } catch (error) {
      await table.close();
      throw error;
    }
    presence.heartbeat = presence.sendHeartbeats();
    return presence;
  }

  /**
   * Returns the id under which this process owns holds. The sagas process ends them once this process seems dead.
   * @throws StoreUnavailableError if heartbeats have failed for so long that the row has expired or is about to expire
   */
  getProcessId(): string {
    if (this.timers.now() < this.presentUntil) return this.id;
    throw new StoreUnavailableError('the presence of this process has expired');
  }

  /** Whether the database accepted the last heartbeat and had disk space. A read-only database accepts none. */
  get isDatabaseWritable(): boolean {
    return this.canWrite;
  }

  /** Ends the row, so that other processes need not wait until it expires. */
  async close(): Promise<void> {
    this.stopController.abort();
    await this.heartbeat;
    await this.table.end(this.id).catch(() => {}); // the row expires by itself
    await this.table.close();
  }

  private async sendHeartbeats(): Promise<void> {
    const { signal } = this.stopController;
    for (;;) {
      await this.timers.sleep(this.durationMs / HEARTBEATS_PER_PRESENCE, { signal });
      if (signal.aborted) return; // the process is stopping
      await this.recordPresence().catch((error) => {
        this.canWrite = false;
        this.options.reportError('heartbeat failed; retrying', error);
      });
    }
  }

  private async recordPresence(): Promise<void> {
    const sentAt = this.timers.now();
    await this.table.record(this.id, this.durationMs);
    // Measured from before the query was sent, so that this process stops relying on the row before the row expires.
    this.presentUntil = sentAt + this.durationMs * TRUSTED_SHARE;
    this.canWrite = await this.table.hasDiskSpace();
  }
}

class PostgresPresenceTable implements PresenceTable {
  /** One connection that stays open: its existence shows other processes that this process is alive. */
  private readonly pool: pg.Pool;

  /** @param timeoutMs maximum time for connecting and for a query */
  constructor(
    private readonly options: PresenceOptions,
    id: string,
    timeoutMs: number,
  ) {
    this.pool = openPool({
      connectionString: options.databaseUrl,
      name: toProcessConnectionName(id),
      max: 1,
      allowsUnlimitedIdle: true,
      connectTimeoutMs: timeoutMs,
      queryTimeoutMs: timeoutMs,
      options: LOW_WORK_MEM_OPTION,
    });
  }

  async record(id: string, durationMs: number): Promise<void> {
    await this.pool.query(
      `insert into public.processes (id, backend, ends_at)
       values ($1, pg_backend_pid(), clock_timestamp() + $2 * interval '1 ms')
       on conflict (id) do update set backend = excluded.backend, ends_at = excluded.ends_at`,
      [id, durationMs],
    );
  }

  /**
   * Uses the same connection, and does not close it after an error: then other processes would consider this process
   * dead.
   */
  async hasDiskSpace(): Promise<boolean> {
    const client = await this.pool.connect();
    try {
      await client.query(DISK_SPACE_PROBE);
      return true;
    } catch (error) {
      this.options.reportError('the disk space check of the database failed; retrying', error);
      return false;
    } finally {
      client.release();
    }
  }

  async end(id: string): Promise<void> {
    await this.pool.query('update public.processes set ends_at = clock_timestamp() where id = $1', [id]);
  }

  async removeOld(): Promise<void> {
    await this.pool.query(`delete from public.processes where ends_at < now() - interval '${RETENTION}'`);
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}

/**
 * Returns the ids of processes that seem dead. A live process may be among them until its next heartbeat, if its
 * connection broke, the database was unavailable, or the process was suspended.
 */
export async function findStaleProcesses(pool: pg.Pool): Promise<readonly string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'seemingly-dead',
    text: `select id from public.processes
            where ends_at <= clock_timestamp() or not exists (select from pg_stat_activity where pid = backend)`,
  });
  return rows.map(({ id }) => id);
}
