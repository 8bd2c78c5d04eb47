/**
 * Names of scheduled backups, and decisions by the times in them. All times are those of the database's clock. A backup
 * that seems to come from the future, because that clock was incorrect, is ignored until its time has come.
 */
import { MANIFEST_FILE } from '../manifest.ts';

/** Such as `2026-11-28T22-50-03Z-1f0a9c3e`: sorted by time, and different for two processes in the same second. */
const BACKUP_NAME = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]{8}$/;
const ENCRYPTED = '.age';
/** Maximum number of expired backups that are deleted after a new one. So an incorrect clock cannot delete all of them. */
const MAX_EXPIRED = 2;
/**
 * Age at which the files of a backup without a manifest are deleted. Its process has died or lost its lease: in this
 * time its connections have ended.
 */
const ABANDONED_AFTER_MS = 3_600_000;

export function createBackupName(now: Date, suffix: string): string {
  return `${now.toISOString().slice(0, 19).replaceAll(':', '-')}Z-${suffix}`;
}

export function isBackupName(name: string): boolean {
  return BACKUP_NAME.test(name);
}

export function readBackupTime(name: string): number {
  const [date, time = ''] = name.slice(0, 20).split('T');
  return Date.parse(`${date}T${time.replaceAll('-', ':')}`);
}

export function toStoredPath(backup: string, file: string): string {
  return `${backup}/${file}${ENCRYPTED}`;
}

/** Paths of the files of one backup. */
export interface ListedBackup {
  readonly name: string;
  readonly paths: readonly string[];
  /** Whether it has a manifest, which is written after all other files. */
  readonly isComplete: boolean;
}

/** Groups paths by backup, from the oldest to the newest. Paths that no backup has are ignored. */
export function listBackups(paths: readonly string[]): readonly ListedBackup[] {
  const pathsByName = Map.groupBy(
    paths.filter((path) => {
      const [name = '', file = '', ...rest] = path.split('/');
      return isBackupName(name) && file !== '' && rest.length === 0;
    }),
    (path) => path.split('/', 1)[0] as string,
  );
  return [...pathsByName]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, files]) => ({ name, paths: files, isComplete: files.includes(toStoredPath(name, MANIFEST_FILE)) }));
}

/** Returns the newest complete backup that is not from the future. */
export function findNewest(backups: readonly ListedBackup[], now: number): ListedBackup | undefined {
  return backups.findLast(({ name, isComplete }) => isComplete && readBackupTime(name) <= now);
}

/** Returns the oldest complete backups that are older than `retentionMs`, but never the newest one. */
export function listExpired(
  backups: readonly ListedBackup[],
  now: number,
  retentionMs: number,
): readonly ListedBackup[] {
  const newest = findNewest(backups, now);
  return backups
    .filter((backup) => backup.isComplete && backup !== newest && readBackupTime(backup.name) < now - retentionMs)
    .slice(0, MAX_EXPIRED);
}

/** Returns backups without a manifest that no process writes any more. */
export function listAbandoned(backups: readonly ListedBackup[], now: number): readonly ListedBackup[] {
  return backups.filter(({ name, isComplete }) => !isComplete && readBackupTime(name) < now - ABANDONED_AFTER_MS);
}
