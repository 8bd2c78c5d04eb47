import { spawnSync } from 'node:child_process';
import { describe, expect, test } from '@jest/globals';
import { runCommand } from './run.ts';

const inTime = { cwd: '/', env: { PATH: process.env.PATH ?? '' }, timeoutMs: 10_000 };

/** Whether a process is running. One that has ended may still be listed as a zombie. */
const runs = (pid: string) => /^[^Z\s]/.test(spawnSync('ps', ['-o', 'stat=', '-p', pid]).stdout.toString());

describe('a command', () => {
  test('resolves with its exit code and all its output', async () => {
    const outcome = await runCommand(['sh', '-c', 'echo one; echo two >&2; exit 3'], inTime);
    expect(outcome.code).toBe(3);
    expect(outcome.output.split('\n').toSorted()).toEqual(['', 'one', 'two']);
  });

  test('is ended after its timeout, together with its child processes', async () => {
    const { code, output } = await runCommand(['sh', '-c', 'sleep 60 & echo $!; wait'], { ...inTime, timeoutMs: 200 });
    expect(code).toBeNull();
    expect(runs(output.trim())).toBe(false);
  });

  test('leaves no child process running when it ends', async () => {
    const { code, output } = await runCommand(['sh', '-c', 'sleep 60 & echo $!'], inTime);
    expect(code).toBe(0);
    expect(runs(output.trim())).toBe(false);
  });

  test('rejects if its program does not exist', async () => {
    await expect(runCommand(['no-such-command'], inTime)).rejects.toThrow('ENOENT');
  });
});
