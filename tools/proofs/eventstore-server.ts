/**
 * Kills and freezes the event store in proofs, if the settings specify its start command and the file with its process
 * ids. Afterwards, a server that the proof has started is stopped; a server that was already running continues.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { EventStoreDbEventStore } from '#eventstore';
import { StartError } from '#foundation';

/** Includes the time in which a cluster elects its leader. */
const STARTED_WITHIN_MS = 120_000;
const ENDED_WITHIN_MS = 30_000;
const POLL_INTERVAL_MS = 100;
/** Maximum delay before a killed server is started again. */
const MAX_DOWNTIME_MS = 2_000;
/** Longer than any request may wait for the event store. */
const FROZEN_SECONDS = 10;
/** The five seconds that requests may wait for the event store, and a margin for a busy host. */
const MAX_RESPONSE_MS = 7_000;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export interface ServerSettings {
  readonly url: string;
  /** A command for `sh` that starts the server. */
  readonly start: string;
  /** A file with the id of one server process per line. */
  readonly pidFile: string;
}

/**
 * @returns undefined if the event store is not to be killed
 * @throws StartError if required settings are missing
 */
export function readServerSettings(env: Readonly<Record<string, string | undefined>>): ServerSettings | undefined {
  const { EVENTSTORE_URL: url, PROVE_EVENTSTORE_START: start, PROVE_EVENTSTORE_PID_FILE: pidFile } = env;
  if (!start && !pidFile) return undefined;
  if (!start || !pidFile)
    throw new StartError(
      `PROVE_EVENTSTORE_START and PROVE_EVENTSTORE_PID_FILE must be set together: ${start ? 'the second' : 'the first'} is not set.`,
    );
  if (!url)
    throw new StartError(
      'PROVE_EVENTSTORE_START and PROVE_EVENTSTORE_PID_FILE require EVENTSTORE_URL, which is not set.',
    );
  return { url, start, pidFile };
}

/**
 * Returns the server that is to be killed, if any. Ends the process with a message if the settings are invalid or the
 * server does not start.
 */
export async function openServerToKill(): Promise<EventStoreServer | undefined> {
  try {
    const settings = readServerSettings(process.env);
    return settings && (await EventStoreServer.open(settings));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(1);
  }
}

export class EventStoreServer {
  /**
   * Requests that overlapped with a freeze. Those in `served` were sent before the freeze and got a complete response:
   * they waited for their charge.
   */
  private readonly waited = { waiting: { requests: 0, maxWaitMs: 0 }, served: { requests: 0, maxWaitMs: 0 } };
  private readonly frozen: { readonly from: number; until: number }[] = [];

  private constructor(
    private readonly settings: ServerSettings,
    private readonly directory: string,
    private readonly hasStarted: boolean,
  ) {}

  /** Starts the server if none of its processes is running. */
  static async open(settings: ServerSettings): Promise<EventStoreServer> {
    const hasStarted = listRunningProcesses(settings).length === 0;
    const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-eventstore-'));
    const server = new EventStoreServer(settings, directory, hasStarted);
    try {
      await (hasStarted ? server.start() : server.waitUntilReady());
    } catch (error) {
      await server.close();
      throw error;
    }
    return server;
  }

  /** Kills one process of the server with SIGKILL and starts it again. Resolves when the store responds. */
  async kill(): Promise<void> {
    const pid = this.one();
    process.kill(pid, 'SIGKILL');
    await waitUntilEnded(pid);
    await sleep(Math.random() * MAX_DOWNTIME_MS);
    await this.start(pid);
  }

  /** Pauses one server process with SIGSTOP, which closes no connection. Resolves when the store responds again. */
  async freeze(): Promise<void> {
    const pid = this.one();
    const frozen = { from: performance.now(), until: Number.POSITIVE_INFINITY };
    this.frozen.push(frozen);
    // A separate shell continues the paused process even if the proof ends.
    const command = `kill -STOP ${pid} && sleep ${FROZEN_SECONDS}; kill -CONT ${pid}`;
    const [code] = await once(spawn('sh', ['-c', command], { stdio: 'ignore', detached: true }), 'exit');
    frozen.until = performance.now();
    if (code !== 0) throw new Error(`process ${pid} could not be paused and continued`);
    await this.waitUntilReady();
  }

  /** Records how long a request waited for a frozen server. Called when the request has ended. */
  recordResponse(sentAt: number, isComplete: boolean): void {
    const now = performance.now();
    for (const { from, until } of this.frozen) {
      if (sentAt > until || now < from) continue;
      const totals = this.waited[isComplete && sentAt < from ? 'served' : 'waiting'];
      totals.requests++;
      totals.maxWaitMs = Math.max(totals.maxWaitMs, now - Math.max(sentAt, from));
    }
  }

  /**
   * Prints how long requests waited for a frozen server.
   * @returns whether they waited briefly enough, apart from waits for the charge of a complete response
   */
  isInTime(print: (line: string) => void): boolean {
    const { waiting, served } = this.waited;
    const formatWaits = ({ requests, maxWaitMs }: typeof waiting) =>
      `${requests} requests, at most ${(maxWaitMs / 1000).toFixed(1)} s`;
    print(
      `waited for a frozen event store: ${formatWaits(waiting)}; waited for the charge of a complete response: ${formatWaits(served)}`,
    );
    return waiting.maxWaitMs <= MAX_RESPONSE_MS;
  }

  async close(): Promise<void> {
    if (this.hasStarted) {
      const pids = listRunningProcesses(this.settings);
      for (const pid of pids) process.kill(pid, 'SIGTERM');
      await Promise.all(pids.map(waitUntilEnded));
    }
    await rm(this.directory, { recursive: true });
  }

  private one(): number {
    const pids = listRunningProcesses(this.settings);
    const pid = pids[Math.floor(Math.random() * pids.length)];
    if (pid === undefined) throw new Error(`no process in ${this.settings.pidFile} is running`);
    return pid;
  }

  /**
   * Runs the start command, which may become the server or exit after starting it. Resolves when the store responds.
   */
  private async start(killed?: number): Promise<void> {
    const output = path.join(this.directory, 'output');
    const to = openSync(output, 'w');
    // EventStoreDB treats variables that begin with EVENTSTORE_ as its options, and does not start with unknown ones.
    const { EVENTSTORE_URL: _, EVENTSTORE_TEST_URL: __, ...env } = process.env;
    const extraEnv = killed === undefined ? {} : { PROVE_EVENTSTORE_KILLED: String(killed) };
    const child = spawn('sh', ['-c', this.settings.start], {
      env: { ...env, ...extraEnv },
      stdio: ['ignore', to, to],
      detached: true,
    });
    closeSync(to);
    child.unref();
    const failed = once(child, 'exit').then(([code]) => {
      if (code === 0) return new Promise<never>(() => {}); // the command has started the server and is not needed
      throw new Error(`PROVE_EVENTSTORE_START ended with ${code}: ${readFileSync(output, 'utf8').trim()}`);
    });
    failed.catch(() => {}); // a command that has become the server exits when the server is killed
    await Promise.race([failed, this.waitUntilBack(killed)]);
  }

  private async waitUntilBack(killed: number | undefined): Promise<void> {
    const deadline = performance.now() + STARTED_WITHIN_MS;
    while (
      listRunningProcesses(this.settings).length === 0 ||
      (killed !== undefined && readProcessIds(this.settings).includes(killed))
    ) {
      if (performance.now() > deadline) throw new Error(`${this.settings.pidFile} does not contain the new process id`);
      await sleep(POLL_INTERVAL_MS);
    }
    await this.waitUntilReady();
  }

  private async waitUntilReady(): Promise<void> {
    const deadline = performance.now() + STARTED_WITHIN_MS;
    for (;;) {
      const store = new EventStoreDbEventStore({ connectionString: this.settings.url, streamPrefixes: ['account-'] });
      const problem = await store.check().then(
        () => undefined,
        (error: Error) => error,
      );
      await store.close();
      if (!problem) return;
      if (performance.now() > deadline) throw problem;
      await sleep(POLL_INTERVAL_MS);
    }
  }
}

/** Returns the ids in the file, also of processes that have ended; an empty array if the file does not exist. */
function readProcessIds({ pidFile }: ServerSettings): readonly number[] {
  try {
    return readFileSync(pidFile, 'utf8')
      .split(/\s+/)
      .map(Number)
      .filter((id) => Number.isInteger(id) && id > 1);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

const listRunningProcesses = (settings: ServerSettings): readonly number[] =>
  readProcessIds(settings).filter(isRunning);

/** A zombie, whose parent has not collected its exit status yet, does not count as running. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false; // no such process
  }
}

async function waitUntilEnded(pid: number): Promise<void> {
  const deadline = performance.now() + ENDED_WITHIN_MS;
  while (isRunning(pid)) {
    if (performance.now() > deadline) throw new Error(`process ${pid} did not end in time`);
    await sleep(POLL_INTERVAL_MS);
  }
}
