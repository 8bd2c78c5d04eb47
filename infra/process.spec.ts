import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';

test('a process whose log is no longer read still ends in order', async () => {
  const env = { ...process.env, SANDBOX_PORT: '0' };
  const child = spawn(process.execPath, ['dist/apps/sandbox/src/main.js'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  for (let log = ''; !log.includes('"ready"'); ) log += String((await once(child.stdout, 'data'))[0]);
  child.stdout.destroy();
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});
