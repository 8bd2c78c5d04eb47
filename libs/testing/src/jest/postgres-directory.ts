import { readFileSync, rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Where the PostgreSQL of this test run lives, once a suite has asked for one. Set for all workers. */
export const POSTGRES_DIRECTORY = 'TEST_POSTGRES_DIRECTORY';

const STOP_TIMEOUT_MS = 3_000;
const POLL_MS = 5;

/** Reserves the place; the first suite that needs a database starts the server there (`test-database.ts`). */
export async function reserve(): Promise<void> {
  process.env[POSTGRES_DIRECTORY] = await mkdtemp(path.join(tmpdir(), 'countinghouse-test-'));
  process.once('exit', release); // a run that is interrupted tears nothing down
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
}

/** Stops the server, if one was started, and leaves nothing behind. Synchronously: an exit handler cannot wait. */
export function release(): void {
  const directory = process.env[POSTGRES_DIRECTORY];
  if (directory === undefined) return;
  delete process.env[POSTGRES_DIRECTORY];
  const server = findServerPid(directory);
  if (server !== undefined) {
    process.kill(server, 'SIGQUIT'); // without a goodbye to connections that a failed suite left open
    // Its file goes with it. A process that has ended seems to live while its parent waits here.
    for (let waited = 0; findServerPid(directory) && waited < STOP_TIMEOUT_MS; waited += POLL_MS) pause(POLL_MS);
  }
  rmSync(directory, { recursive: true, force: true });
}

/** The process id in the server's own pid file, if that process lives. */
function findServerPid(directory: string): number | undefined {
  try {
    const pid = Number(readFileSync(path.join(directory, 'postgres/postmaster.pid'), 'utf8').split('\n')[0]);
    return pid > 1 && isAlive(pid) ? pid : undefined;
  } catch {
    return undefined; // no suite needed a database
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
