/**
 * Shows that a process is alive: a row of its own in PostgreSQL with an end by the database's clock, put off by a
 * heartbeat. Unlike a lease nobody competes for it. What died without an end of its own, by SIGKILL or with its host, is found
 * by its row: it has run out, or the server process behind its connection is gone.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { StoreUnavailableError } from '#kernel';
import { openPool } from '#postgres';

const PRESENCE_DURATION_MS = 10_000;
/** A heartbeat may fail this often before the row runs out. */
const HEARTBEATS_PER_PRESENCE = 4;
/** The process counts on this part of the length: its clock may run more slowly than that of the database. */
const TRUSTED_SHARE = 0.95;
const ID_LENGTH = 8;
/** A heartbeat of its own changes a row in place, and that needs no room: this query needs some, for a file that is gone after it. */
const DISK_SPACE_PROBE = 'select count(*) from generate_series(1, 10000)';
const LOW_WORK_MEM_OPTION = '-c work_mem=64kB';
/** Longer than anything is held: behind it nobody asks any more. */
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

export interface PresenceOptions {
  readonly databaseUrl: string;
  /** What the process is, such as `gateway`: its id begins with it. */
  readonly role: string;
  reportError(problem: string, error: unknown): void;
  /** How long it counts as alive without a heartbeat. */
  readonly durationMs?: number;
}

export class ProcessPresence {
  readonly id: string;
  private readonly durationMs: number;
  /** One connection, kept open: that it exists shows others that this process is alive. */
  private readonly pool: pg.Pool;
  private readonly stopController = new AbortController();
  private presentUntil = Number.NEGATIVE_INFINITY;
  private canWrite = true;
  private heartbeat: Promise<void> = Promise.resolve();

  private constructor(private readonly options: PresenceOptions) {
    const { databaseUrl, role, durationMs = PRESENCE_DURATION_MS } = options;
    this.id = `${role}-${randomUUID().slice(0, ID_LENGTH)}`;
    this.durationMs = durationMs;
    this.pool = openPool({
      connectionString: databaseUrl,
      name: this.id,
      max: 1,
      allowsUnlimitedIdle: true,
      connectTimeoutMs: durationMs / HEARTBEATS_PER_PRESENCE,
      queryTimeoutMs: durationMs / HEARTBEATS_PER_PRESENCE,
      options: LOW_WORK_MEM_OPTION,
    });
  }

  /** Shows this process from now on, under a new id. */
  static async start(options: PresenceOptions): Promise<ProcessPresence> {
    const presence = new ProcessPresence(options);
    try {
      await presence.pool.query(`delete from public.processes where ends_at < now() - interval '${RETENTION}'`);
      await presence.recordPresence();
    } catch (error) {
      await presence.pool.end();
      throw error;
    }
    presence.heartbeat = presence.sendHeartbeats();
    return presence;
  }

  /**
   * The id, for what this process alone takes care of, and what others end when it has seemed dead for as long as its row
   * lasts without a heartbeat.
   * @throws StoreUnavailableError before they may, because no heartbeat has reached the database for so long
   */
  getProcessId(): string {
    if (performance.now() < this.presentUntil) return this.id;
    throw new StoreUnavailableError('this process cannot show that it is alive');
  }

  /** Whether the database took the last heartbeat, and has room for more: one that is read-only takes none. */
  get isDatabaseWritable(): boolean {
    return this.canWrite;
  }

  /** Ends its row, so that others need not wait until it runs out. */
  async close(): Promise<void> {
    this.stopController.abort();
    await this.heartbeat;
    const end = 'update public.processes set ends_at = clock_timestamp() where id = $1';
    await this.pool.query(end, [this.id]).catch(() => {}); // it runs out by itself
    await this.pool.end();
  }

  private async sendHeartbeats(): Promise<void> {
    const { signal } = this.stopController;
    for (;;) {
      await delay(this.durationMs / HEARTBEATS_PER_PRESENCE, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await this.recordPresence().catch((error) => {
        this.canWrite = false;
        this.options.reportError('a heartbeat failed; trying again', error);
      });
    }
  }

  private async recordPresence(): Promise<void> {
    const sentAt = performance.now();
    await this.pool.query(
      `insert into public.processes (id, backend, ends_at)
       values ($1, pg_backend_pid(), clock_timestamp() + $2 * interval '1 ms')
       on conflict (id) do update set backend = excluded.backend, ends_at = excluded.ends_at`,
      [this.id, this.durationMs],
    );
    // Counted from before the database was asked, so never longer than the database thinks.
    this.presentUntil = sentAt + this.durationMs * TRUSTED_SHARE;
    this.canWrite = await this.hasDiskSpace();
  }

  /** Without a loss of the connection, by whose end others would see that this process has died. */
  private async hasDiskSpace(): Promise<boolean> {
    const client = await this.pool.connect();
    try {
      await client.query(DISK_SPACE_PROBE);
      return true;
    } catch (error) {
      this.options.reportError('the database has no room for more', error);
      return false;
    } finally {
      client.release();
    }
  }
}

/**
 * Ids of processes that seem dead at this moment. One that lives may be among them for a few seconds: its connection
 * broke, or the database was away.
 */
export async function findStaleProcesses(pool: pg.Pool): Promise<readonly string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'seemingly-dead',
    text: `select id from public.processes
            where ends_at <= clock_timestamp() or not exists (select from pg_stat_activity where pid = backend)`,
  });
  return rows.map(({ id }) => id);
}
