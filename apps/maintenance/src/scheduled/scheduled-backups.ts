import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '#application';
import { type Log, StalledLeaderError } from '#foundation';
import { saveBackup } from '../create.ts';
import type { Database } from '../databases.ts';
import { MANIFEST_FILE, type Manifest } from '../manifest.ts';
import {
  createBackupName,
  findNewest,
  type ListedBackup,
  listAbandoned,
  listBackups,
  listExpired,
  readBackupTime,
  toStoredPath,
} from './backup-names.ts';
import type { BackupStore } from './backup-store.ts';
import type { Encrypt } from './encryption.ts';

/** How often a process reads which backups there are. */
const POLL_INTERVAL_MS = 60_000;
/** Wait after a failed backup, at most the time between two backups. */
const RETRY_DELAY_MS = 600_000;
/** A backup is late once the last one is older than this multiple of the time between two. */
const MAX_AGE_FACTOR = 2;

export interface ScheduledBackupOptions {
  readonly store: BackupStore;
  /** Called for each backup, because the key may be replaced between two. */
  createEncryption(): Encrypt;
  readonly databases: readonly Database[];
  readonly eventStoreName: Manifest['factsIn'];
  readonly everyMs: number;
  readonly retentionMs: number;
  /** The clock of the database, which is the same for all processes. If it is not reliable, nothing is deleted. */
  readonly clock: Pick<Clock, 'nowMs' | 'isReliable'>;
  readonly log: Pick<Log, 'info'>;
  reportError(problem: string, error: unknown): void;
}

/** Makes encrypted backups on a schedule, and deletes expired ones. */
export class ScheduledBackups {
  private lastSuccessAt: number | undefined;
  /** By the monotonic clock of the process. */
  private retryAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: ScheduledBackupOptions) {}

  /** Returns the time of the last complete backup, of whatever process, and whether the next one is not late. */
  getStatus(): { readonly ok: boolean; readonly last_success: string | null } {
    const { lastSuccessAt, options } = this;
    if (lastSuccessAt === undefined) return { ok: false, last_success: null };
    const ok = options.clock.nowMs() - lastSuccessAt <= MAX_AGE_FACTOR * options.everyMs;
    return { ok, last_success: new Date(lastSuccessAt).toISOString() };
  }

  /** Reads again and again which backups there are, until `signal` aborts. */
  async pollStatus(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.list().catch((error) => this.options.reportError('the backups cannot be listed; retrying', error));
      await sleep(this.pollIntervalMs, signal);
    }
  }

  /**
   * Makes every backup that becomes due, until `signal` aborts. Only one process may do so at a time. After a failure the
   * next call waits before its first attempt.
   * @throws StalledLeaderError if a backup fails, so that another process tries
   */
  async run(signal: AbortSignal): Promise<void> {
    await sleep(this.retryAt - performance.now(), signal);
    while (!signal.aborted) {
      try {
        await this.runIfDue(signal);
      } catch (cause) {
        if (signal.aborted) return;
        this.retryAt = performance.now() + Math.min(this.options.everyMs, RETRY_DELAY_MS);
        const { message } = cause as Error;
        throw new StalledLeaderError(`a backup failed, so another process should try: ${message}`, { cause });
      }
      await sleep(this.pollIntervalMs, signal);
    }
  }

  /**
   * Makes a backup if the last complete one is old enough, and only then deletes expired ones.
   * @returns the name of the new backup; undefined if none is due
   */
  async runIfDue(signal: AbortSignal): Promise<string | undefined> {
    const { everyMs, retentionMs, log, clock } = this.options;
    const backups = await this.list();
    if (this.lastSuccessAt !== undefined && clock.nowMs() - this.lastSuccessAt < everyMs) return undefined;
    for (const abandoned of listAbandoned(backups, clock.nowMs())) await this.remove(abandoned);
    const name = await this.save(signal);
    log.info({ backup: name }, 'a backup is complete');
    const current = clock.isReliable() ? await this.list() : [];
    for (const expired of listExpired(current, clock.nowMs(), retentionMs)) await this.remove(expired);
    return name;
  }

  private get pollIntervalMs(): number {
    return Math.min(this.options.everyMs, POLL_INTERVAL_MS);
  }

  /** Removes the files of the backup again if it fails, as far as that is possible. */
  private async save(signal: AbortSignal): Promise<string> {
    const { store, createEncryption, databases, eventStoreName, clock, reportError } = this.options;
    const encrypt = createEncryption();
    const name = createBackupName(new Date(clock.nowMs()), randomBytes(4).toString('hex'));
    try {
      const write = (file: string, content: AsyncIterable<Uint8Array>) =>
        store.write(toStoredPath(name, file), encrypt(content));
      await saveBackup(databases, { write, signal }, eventStoreName);
      return name;
    } catch (error) {
      await this.removeByName(name).catch((cause) => reportError(`the partial backup ${name} was not removed`, cause));
      throw error;
    }
  }

  private async removeByName(name: string): Promise<void> {
    for (const backup of await this.list()) if (backup.name === name) await this.remove(backup);
  }

  private async list(): Promise<readonly ListedBackup[]> {
    const { store, clock } = this.options;
    const backups = listBackups(await store.list());
    const newest = findNewest(backups, clock.nowMs());
    this.lastSuccessAt = newest && readBackupTime(newest.name);
    return backups;
  }

  /** Removes the manifest first, so that the rest is never taken for a complete backup. */
  private async remove({ name, paths }: ListedBackup): Promise<void> {
    const manifest = toStoredPath(name, MANIFEST_FILE);
    if (paths.includes(manifest)) await this.options.store.remove([manifest]);
    await this.options.store.remove(paths.filter((path) => path !== manifest));
  }
}

/** Resolves early once `signal` has aborted. */
async function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (milliseconds > 0) await delay(milliseconds, undefined, { signal }).catch(() => {}); // aborted
}
