/** The running server: found through its pid file, started, joined, stopped. */
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { StartError } from '../start-error.ts';
import { dataPath, spawnAsUser } from './binaries.ts';
import type { PostgresCluster } from './cluster.ts';

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 20_000;
export const POLL_MS = 10;
/** All processes that use the server share this lock. Any number would do. */
export const IN_USE = 7_301_965;
/** SQL states of a server that starts, stops or is full: it may be asked again. */
const NOT_NOW = /^(08|53|57)/;

/** Durable as by default; sized for one machine that also runs everything else. */
const SERVER_OPTIONS = [
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=400',
  'shared_buffers=256MB',
  'max_wal_size=1GB',
  'checkpoint_timeout=15min',
  'jit=off',
];

export interface Server {
  readonly pid: number;
  readonly port: number;
}

export interface SharedServer extends Server {
  /** Holds the lock that marks the server as in use. */
  readonly presence: pg.Client;
}

/** Joins the server of a cluster, or starts it when there is none. */
export async function joinOrStart(cluster: PostgresCluster, extraOptions: readonly string[]): Promise<SharedServer> {
  const { dir, password } = cluster;
  const log = path.join(dir, '..', 'postgres.log');
  const deadline = performance.now() + START_TIMEOUT_MS;
  let started: Server | undefined;
  try {
    while (performance.now() < deadline) {
      const server = runningServer(dir);
      const presence = server && (await join(server, password));
      if (presence) return { ...server, presence };
      if (!server && !(started && isServerProcess(started))) {
        if (started && !/lock file|shared memory/.test(lastComplaint(log, dir))) break;
        started = await start(cluster, log, extraOptions);
      }
      await sleep(POLL_MS);
    }
    throw new StartError(`The embedded database in ${dir} does not start: ${lastComplaint(log, dir)}.`);
  } catch (error) {
    if (started) await stop(started);
    throw error;
  }
}

async function start(
  { dir, binaries, user }: PostgresCluster,
  log: string,
  extraOptions: readonly string[],
): Promise<Server> {
  const port = await freePort();
  const options = [...SERVER_OPTIONS, `port=${port}`, ...extraOptions].flatMap((option) => ['-c', option]);
  const out = openSync(log, 'w', 0o600);
  const command = [binaries.postgres, '-D', dataPath(dir, user), ...options];
  const child = spawnAsUser(dir, user, command, ['ignore', out, out]);
  closeSync(out);
  child.unref();
  await once(child, 'spawn');
  return { pid: child.pid as number, port };
}

/** The server that the pid file names, if it lives and serves this directory: a copy of another one has that one's file. */
function runningServer(dir: string): Server | undefined {
  const file = path.join(dir, 'postmaster.pid');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  const server = { pid: Number(lines[0]), port: Number(lines[3]) };
  if (!(server.pid > 0 && server.port > 0 && isAlive(server.pid))) return undefined;
  if (isServerProcess(server) && worksIn(dir, server, lines[1])) return server;
  rmSync(file, { force: true }); // PostgreSQL would take the other process for a server
  return undefined;
}

/**
 * Whether the process is still the server. After a crash of the machine, or of its container, another one may have its
 * id, and a zombie process has no command line.
 */
export function isServerProcess({ pid, port }: Server): boolean {
  if (!isAlive(pid)) return false;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(`port=${port}`);
  } catch {
    return true; // there is no /proc on this system
  }
}

/** By the working directory of the process or, on a system without /proc, by what the pid file says. */
function worksIn(dir: string, { pid }: Server, named = ''): boolean {
  const place = (where: string) => statSync(where, { throwIfNoEntry: false });
  try {
    const own = place(dir);
    const its = place(`/proc/${pid}/cwd`) ?? place(named);
    return own === undefined || its === undefined || (own.dev === its.dev && own.ino === its.ino);
  } catch {
    return true; // it cannot be seen
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

/** A connection that marks the server as in use; undefined while the server accepts none. */
async function join(server: Server, password: string): Promise<pg.Client | undefined> {
  const client = new pg.Client({
    connectionString: toConnectionUrl(server, password, 'postgres', 'postgres'),
    application_name: 'countinghouse-presence',
    keepAlive: true,
  });
  client.on('error', () => {}); // users of the server notice by themselves
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

export async function stop(server: Server): Promise<void> {
  if (isServerProcess(server)) process.kill(server.pid, 'SIGINT');
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while (isServerProcess(server) && performance.now() < deadline) await sleep(POLL_MS);
}

export function toConnectionUrl({ port }: Server, password: string, user: string, database: string): string {
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

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
