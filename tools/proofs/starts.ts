/**
 * `npm run prove:starts`: 8 gateways, 4 projectors and 4 sagas processes start at once against one PostgreSQL with 250
 * connections, while two busy processes take CPU time from them. The first time the database is running and empty. The
 * second time it starts a minute after the roles, as after a power failure. All become ready, and none ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#foundation';
import { connectClient } from '#postgres';
import { root, type StartedProcess, startApp } from '../processes.ts';
import { allocatePortNumbers } from './money/ports.ts';

const ROLES = { gateway: 8, projector: 4, sagas: 4 } as const;
const MAX_CONNECTIONS = 250;
const BUSY_PROCESSES = 2;
/** Leaves more than 20 s after all processes have loaded their modules and connect to the database. */
const DATABASE_DELAY_MS = 60_000;
/** A line every 5 s for 20 s. */
const MIN_WAITS = 4;
/** The roles share two cores, and each has to load all its modules. */
const START_TIMEOUT_MS = 400_000;
/** How long the processes run on after all were ready: none may end then either. */
const OBSERVED_MS = 15_000;
const POLL_INTERVAL_MS = 500;

const print = (line: string) => void process.stdout.write(`${line}\n`);
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
const seconds = (milliseconds: number) => (milliseconds / 1_000).toFixed(0);

interface Role {
  readonly name: string;
  readonly running: StartedProcess;
}

/** Starts all processes at once. @throws Error if one of them ends, or is not ready in time */
async function startRoles(env: Readonly<Record<string, string>>): Promise<readonly Role[]> {
  const names = Object.entries(ROLES).flatMap(([role, count]) => Array.from({ length: count }, () => role));
  const startedAt = performance.now();
  const starts = await Promise.allSettled(
    names.map(async (name) => {
      const running = await startApp(name, { ...env }, root, START_TIMEOUT_MS);
      await waitUntilReady(running);
      print(`${name} is ready after ${seconds(performance.now() - startedAt)} s`);
      return { name, running };
    }),
  );
  const roles = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const failures = starts.flatMap((start) => (start.status === 'rejected' ? [String(start.reason)] : []));
  if (failures.length === 0) return roles;
  await stopRoles(roles);
  throw new Error(`${failures.length} of ${starts.length} processes did not become ready:\n${failures.join('\n')}`);
}

async function waitUntilReady({ readyLine }: StartedProcess): Promise<void> {
  const { api, health } = JSON.parse(readyLine) as { readonly api?: string; readonly health?: string };
  const deadline = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const response = await fetch(`${api ?? health}/health/ready`).catch(() => undefined); // not started
    if (response?.ok) return;
    if (performance.now() > deadline) throw new Error(`not ready: ${await response?.text()}`);
    await delay(POLL_INTERVAL_MS);
  }
}

/** @throws Error that names the roles whose process has ended */
async function assertAllRun(roles: readonly Role[]): Promise<void> {
  const ended: string[] = [];
  for (const { name, running } of roles) void running.ended.then(() => ended.push(name));
  await delay(OBSERVED_MS);
  if (ended.length > 0) throw new Error(`these processes have ended: ${ended.join(', ')}`);
}

async function stopRoles(roles: readonly Role[]): Promise<void> {
  await Promise.all(roles.map(({ running }) => running.stop()));
}

async function countConnections(connectionString: string): Promise<number> {
  const client = await connectClient({ connectionString, name: 'proof' });
  const { rows } = await client.query(
    `select count(*)::int as n from pg_stat_activity where backend_type = 'client backend'`,
  );
  await client.end();
  return rows[0].n;
}

/** Counts the lines about what the start of each process waited for. */
function countWaits(roles: readonly Role[]): readonly number[] {
  const countLines = ({ running }: Role) => running.outputChunks.join('').split('the start is waiting for ').length - 1;
  return roles.map(countLines);
}

interface Scene {
  readonly what: string;
  readonly env: Readonly<Record<string, string>>;
  /** How many lines of each process state at least what it waits for. */
  readonly minWaits: number;
  /** Resolves when the database accepts connections. Called when the roles start. */
  readonly openDatabase: () => Promise<EmbeddedPostgres>;
}

async function prove({ what, env, minWaits, openDatabase }: Scene): Promise<void> {
  print(`\n${what}`);
  const opening = openDatabase();
  const startedAt = performance.now();
  const starting = startRoles(env);
  const [started, database] = await Promise.allSettled([starting, opening]);
  if (database.status === 'rejected') throw database.reason;
  try {
    if (started.status === 'rejected') throw started.reason;
    const roles = started.value;
    const readyAfter = seconds(performance.now() - startedAt);
    try {
      await assertAllRun(roles);
      const connections = await countConnections(database.value.url);
      const waits = countWaits(roles);
      if (waits.some((count) => count < minWaits))
        throw new Error(`not every process logged what it waited for: ${waits}`);
      print(
        `all ${roles.length} processes are ready after ${readyAfter} s and none has ended; ` +
          `${connections} of ${MAX_CONNECTIONS} connections; ${sum(waits)} lines stated what a start waited for`,
      );
    } finally {
      await stopRoles(roles);
    }
  } finally {
    await database.value.close();
  }
}

function startBusyProcesses(): readonly ChildProcess[] {
  const burn = () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
  return Array.from({ length: BUSY_PROCESSES }, burn);
}

async function proveAll(directory: string): Promise<void> {
  const { database: port } = await allocatePortNumbers('database');
  const startDatabase = () => startEmbeddedPostgres(directory, [`max_connections=${MAX_CONNECTIONS}`, `port=${port}`]);
  const first = await startDatabase();
  const sandbox = await startApp('sandbox', { SANDBOX_PORT: '0' });
  const busy = startBusyProcesses();
  const env = {
    DATABASE_URL: first.url,
    DATA_DIR: path.join(directory, 'roles'),
    MASTER_KEY: randomBytes(32).toString('hex'),
    SANDBOX_PORT: new URL((JSON.parse(sandbox.readyLine) as { url: string }).url).port,
    PORT: '0',
    HEALTH_PORT: '0',
    DRAIN_DELAY_MS: '0',
  };
  try {
    await prove({
      what: 'The database is running and empty',
      env,
      minWaits: 0,
      openDatabase: async () => first,
    });
    await prove({
      what: `The database starts ${seconds(DATABASE_DELAY_MS)} s later than the roles`,
      env,
      minWaits: MIN_WAITS,
      openDatabase: async () => {
        await delay(DATABASE_DELAY_MS);
        return startDatabase();
      },
    });
  } finally {
    for (const child of busy) child.kill('SIGKILL');
    await sandbox.stop();
  }
}

process.stderr.setMaxListeners(100); // each process forwards its own
const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-starts-'));
try {
  await proveAll(directory);
} catch (error) {
  print(String(error));
  process.exitCode = 1;
} finally {
  await rm(directory, { recursive: true, force: true });
}
