import { AsyncResource } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, test } from '@jest/globals';
import { replaceDelays, specFile } from './replace-delays.ts';

const replaced: number[] = [];
afterAll(
  replaceDelays(async (milliseconds) => {
    replaced.push(milliseconds);
  }),
);

test('delays of the spec file are replaced, and those of tasks that an earlier spec file left running are not', async () => {
  await delay(60_000);
  const task = specFile.run('earlier.spec.ts', () => new AsyncResource('task'));
  await task.runInAsyncScope(() => delay(1));
  expect(replaced).toEqual([60_000]);
});
