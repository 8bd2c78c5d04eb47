/** The built program of `npm start`, as a process. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const APPS = path.resolve(import.meta.dirname, '../../../../dist/apps');
export const STANDALONE_MAIN = path.join(APPS, 'standalone/src/main.js');
export const LEDGER_MAIN = path.join(APPS, 'ledger/src/main.js');

export interface BuiltProgram {
  readonly api: string;
  /** Undefined if the sandbox does not run. */
  readonly sandbox: string | undefined;
  /** The text on standard error. */
  readonly welcome: string;
  /** The lines of the log until the program was ready. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  stop(): Promise<void>;
}

/** Starts the program on a free port, and waits until it is ready. `settings` are its environment variables. */
export function startBuiltProgram(settings: Readonly<Record<string, string | undefined>>): Promise<BuiltProgram> {
  const env = { PATH: process.env.PATH, PORT: '0', DRAIN_DELAY_MS: '0', ...settings };
  return waitUntilReady(spawn(process.execPath, [STANDALONE_MAIN], { env, stdio: ['ignore', 'pipe', 'pipe'] }));
}

/** @throws Error if the process ends before it is ready */
export async function waitUntilReady(child: ChildProcess): Promise<BuiltProgram> {
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new TypeError('the process must have pipes');
  const ended = once(child, 'close');
  let welcome = '';
  stderr.on('data', (text) => {
    welcome += text;
  });
  const log: Record<string, unknown>[] = [];
  for await (const line of createInterface(stdout)) {
    const entry = JSON.parse(line);
    log.push(entry);
    if (entry.msg !== 'ready') continue;
    stdout.resume();
    const stop = async () => void (child.kill('SIGTERM') && (await ended));
    return { api: entry.api, sandbox: entry.sandbox, welcome, log, stop };
  }
  throw new Error(`the program ended before it was ready: ${welcome}${JSON.stringify(log)}`);
}

/** Runs a command of the built ledger program and returns the lines that it prints. */
export async function runBuiltLedger(
  settings: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [LEDGER_MAIN, ...args], { env: settings });
  return stdout.split('\n').slice(0, -1);
}
