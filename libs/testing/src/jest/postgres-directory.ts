import { readFileSync, rmSync } from 'node:fs';
import { mkdtemp, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Environment variable with the directory of this test run's PostgreSQL. Set for all workers. */
export const POSTGRES_DIRECTORY = 'TEST_POSTGRES_DIRECTORY';

/** A file system in memory. PostgreSQL creates and removes hundreds of small files for each database. */
const MEMORY_DIRECTORY = '/dev/shm';
const MIN_FREE_BYTES = 2 * 1024 ** 3;
const STOP_TIMEOUT_MS = 60_000;
const POLL_MS = 5;

/** Reserves the directory. The first suite that needs a database starts the server there (`test-database.ts`). */
export async function reserve(): Promise<void> {
  process.env[POSTGRES_DIRECTORY] = await mkdtemp(path.join(await findParentDirectory(), 'countinghouse-test-'));
  process.once('exit', release); // an interrupted run does not call the global teardown
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
}

async function findParentDirectory(): Promise<string> {
  try {
    const { bavail, bsize } = await statfs(MEMORY_DIRECTORY);
    if (bavail * bsize >= MIN_FREE_BYTES) return MEMORY_DIRECTORY;
  } catch {
    // this operating system has none
  }
  return tmpdir();
}

/**
 * Stops the server, if one was started, and removes the directory. Synchronous, because an exit handler cannot wait.
 */
export function release(): void {
  const directory = process.env[POSTGRES_DIRECTORY];
  if (directory === undefined) return;
  delete process.env[POSTGRES_DIRECTORY];
  const server = findServerPid(directory);
  if (server !== undefined) {
    process.kill(server, 'SIGQUIT'); // does not wait for connections that a failed suite left open
    // The server removes its pid file at its end. An ended child process still seems alive while its parent waits here.
    for (let waited = 0; findServerPid(directory) && waited < STOP_TIMEOUT_MS; waited += POLL_MS) pause(POLL_MS);
  }
  rmSync(directory, { recursive: true, force: true });
}

/** Returns the process id from the server's pid file, if that process is alive. */
function findServerPid(directory: string): number | undefined {
  try {
    const pid = Number(readFileSync(path.join(directory, 'postgres/postmaster.pid'), 'utf8').split('\n')[0]);
    return pid > 1 && isAlive(pid) ? pid : undefined;
  } catch {
    return undefined; // no suite needed a database, or the server has ended
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false; // no such process
  }
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
