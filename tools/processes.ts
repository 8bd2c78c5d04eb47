/** Starts programs and built apps as processes, measures them through /proc, and ends them by their id. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { TEST_DAY } from '../libs/testing/src/world/test-catalogue.ts';

/** A host with other load may need a minute. */
const START_TIMEOUT_MS = 120_000;
/** Clock ticks of /proc/<pid>/stat: 100 per second on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4_096;
/** Bounds the output that is retained of a process. */
const MAX_OUTPUT_CHUNKS = 50_000;

export const root = path.resolve(import.meta.dirname, '../..');

export interface StartedProcess {
  readonly pid: number;
  /** The line of output that reported that the process was ready. */
  readonly readyLine: string;
  /** The most recent chunks of standard output and standard error. */
  readonly outputChunks: readonly string[];
  /** Sends SIGTERM, on which the process shuts down gracefully. Resolves when it has ended. */
  stop(): Promise<void>;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
  /** Resolves when the process has ended for any reason. */
  readonly ended: Promise<void>;
}

/** Starts a program and waits for a line of its standard output that matches `readyPattern`. */
export async function startProgram(
  command: string[],
  env: Record<string, string>,
  readyPattern: RegExp,
  { cwd = root, timeoutMs = START_TIMEOUT_MS } = {},
): Promise<StartedProcess> {
  const [file = '', ...args] = command;
  const child = spawn(file, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const outputChunks: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      outputChunks.push(String(chunk));
      if (outputChunks.length > MAX_OUTPUT_CHUNKS) outputChunks.splice(0, MAX_OUTPUT_CHUNKS / 2);
    });
  }
  child.stderr.pipe(process.stderr, { end: false });
  const line = await waitForLine(child, readyPattern, { what: command.join(' '), timeoutMs });
  return {
    ended,
    outputChunks,
    pid: child.pid as number,
    readyLine: line,
    stop: () => endProcess(child, 'SIGTERM'),
    kill: () => endProcess(child, 'SIGKILL'),
  };
}

/**
 * Starts a built app on the day of the specs; builds of earlier releases do not have the setting. The sandbox simulates
 * payments that are not configured, even if other services are real.
 */
export function startApp(
  name: string,
  env: Record<string, string>,
  build = root,
  timeoutMs = START_TIMEOUT_MS,
): Promise<StartedProcess> {
  return startProgram(
    [process.execPath, `dist/apps/${name}/src/main.js`],
    { LOG_LEVEL: 'info', ALLOW_SANDBOX: 'true', ...(build === root ? { CATALOGUE_DAY: TEST_DAY } : {}), ...env },
    /"msg":"ready"/,
    { cwd: build, timeoutMs },
  );
}

function waitForLine(
  child: ChildProcess,
  readyPattern: RegExp,
  { what, timeoutMs }: { readonly what: string; readonly timeoutMs: number },
): Promise<string> {
  return new Promise((resolve, reject) => {
    let pending = '';
    let last = ''; // the last line usually reports why the process ended
    const timer = setTimeout(() => {
      reject(new Error(`${what} did not become ready in time`));
      child.kill('SIGKILL'); // nobody else would end it
    }, timeoutMs);
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`${what} ended with code ${code}: ${last}${pending}`));
    });
    child.stdout?.on('data', (chunk) => {
      const lines = (pending + chunk).split('\n');
      pending = lines.pop() ?? '';
      last = lines.at(-1) ?? last;
      const line = lines.find((outputLine) => readyPattern.test(outputLine));
      if (line === undefined) return;
      clearTimeout(timer);
      resolve(line);
    });
  });
}

function endProcess(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill(signal);
  return ended;
}

export interface ProcessUsage {
  readonly cpuSeconds: number;
  readonly megabytes: number;
}

/**
 * Returns the CPU time so far and the current memory of processes. Pages of files and of shared memory are not counted.
 */
export function readProcessUsage(pids: readonly number[]): ProcessUsage {
  let ticks = 0;
  let pages = 0;
  for (const pid of pids) {
    // The fields after the command, which is in parentheses and may contain any character.
    const fields = readProc(pid, 'stat')
      .replace(/^.*\) /s, '')
      .split(' ');
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
    const [, resident = 0, shared = 0] = readProc(pid, 'statm').split(' ').map(Number);
    pages += resident - shared;
  }
  return { cpuSeconds: ticks / TICKS_PER_SECOND, megabytes: (pages * PAGE_BYTES) / 1e6 };
}

/** Returns the ids of a process and of its descendants, without those that other threads than the main one started. */
export function listProcessTree(pid: number): number[] {
  const children = readProc(pid, `task/${pid}/children`).trim().split(' ').filter(Boolean).map(Number);
  return [pid, ...children.flatMap(listProcessTree)];
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // the process has ended
  }
}
