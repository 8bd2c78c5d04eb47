import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { extendTimeouts, waitUntil } from '#testing';
import { runCommand } from './run.ts';

/** No other timeout lasts as long. */
const TIMEOUT_MS = 599_000;
const inTime = { cwd: '/', env: { PATH: process.env.PATH ?? '' }, timeoutMs: TIMEOUT_MS };

/** Whether a process is running. One that has ended may still be listed as a zombie. */
const runs = (pid: string) => /^[^Z\s]/.test(spawnSync('ps', ['-o', 'stat=', '-p', pid]).stdout.toString());

describe('a command', () => {
  test('resolves with its exit code and all its output', async () => {
    const outcome = await runCommand(['sh', '-c', 'echo one; echo two >&2; exit 3'], inTime);
    expect(outcome.code).toBe(3);
    expect(outcome.output.split('\n').toSorted()).toEqual(['', 'one', 'two']);
  });

  test('is ended after its timeout, together with its child processes', async () => {
    const directory = mkdtempSync(path.join(tmpdir(), 'countinghouse-command-'));
    const limit = extendTimeouts(TIMEOUT_MS);
    const ending = runCommand(['sh', '-c', 'sleep 600 & echo $!; touch started; wait'], { ...inTime, cwd: directory });
    await waitUntil(() => existsSync(path.join(directory, 'started')));
    limit.end();
    const { code, output } = await ending;
    rmSync(directory, { recursive: true });
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
