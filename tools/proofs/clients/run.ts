/** Commands that end by themselves, or are ended with all that they started. */
import { spawn } from 'node:child_process';

export interface Surroundings {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly withinMs: number;
}

export interface Outcome {
  /** null for one that was ended. */
  readonly code: number | null;
  /** What it said, complaints included. */
  readonly output: string;
}

export function run([file = '', ...args]: readonly string[], { cwd, env, withinMs }: Surroundings): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    // In a process group of its own: an agent's shells and servers end with it.
    const child = spawn(file, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (piece) => {
        output += piece;
      });
    }
    const timer = setTimeout(() => endGroup(child.pid), withinMs);
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(timer);
      endGroup(child.pid);
      child.once('close', () => resolve({ code, output }));
    });
  });
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
