/** Runs commands and ends them together with the processes that they have started in their process group. */
import { spawn } from 'node:child_process';

export interface ClientRunEnvironment {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export interface ClientRunOutcome {
  /** The exit code; null if the command was ended by a signal, for instance after its timeout. */
  readonly code: number | null;
  /** Standard output and standard error. */
  readonly output: string;
}

/** Maximum wait for the end of the output, which a process that has left the process group may still have open. */
const CLOSED_WITHIN_MS = 2_000;

export function runCommand(
  [file = '', ...args]: readonly string[],
  { cwd, env, timeoutMs }: ClientRunEnvironment,
): Promise<ClientRunOutcome> {
  return new Promise((resolve, reject) => {
    // The command gets its own process group, so that an agent's shells and servers end with it.
    const child = spawn(file, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const { stdout, stderr, pid } = child;
    let output = '';
    for (const stream of [stdout, stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    const end = () => endGroup(pid);
    const timer = setTimeout(end, timeoutMs);
    process.once('exit', end);
    const cleanUp = () => {
      clearTimeout(timer);
      process.off('exit', end);
    };
    child.once('error', (error) => {
      cleanUp();
      reject(error);
    });
    child.once('exit', (code) => {
      cleanUp();
      end();
      const closing = setTimeout(() => [stdout, stderr].forEach((stream) => void stream.destroy()), CLOSED_WITHIN_MS);
      child.once('close', () => {
        clearTimeout(closing);
        resolve({ code, output });
      });
    });
  });
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // The group has already ended.
  }
}
