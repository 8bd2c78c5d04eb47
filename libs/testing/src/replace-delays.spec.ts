import { AsyncResource } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, describe, expect, test } from '@jest/globals';
import { extendTimeouts, replaceDelays, specFile } from './replace-delays.ts';

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

describe('extended timeouts', () => {
  const LIMIT_MS = 1_234;

  test('end when the test says so, with their arguments, unless they were cleared', async () => {
    const called: string[] = [];
    const extended = extendTimeouts(LIMIT_MS);
    setTimeout((name: string) => called.push(name), LIMIT_MS, 'first');
    clearTimeout(setTimeout(() => called.push('cleared'), LIMIT_MS));
    await extended.started;
    expect(called).toEqual([]);
    extended.end();
    expect(called).toEqual(['first']);
  });

  test('leave other timeouts, and those that follow their end, as they are', async () => {
    const extended = extendTimeouts(LIMIT_MS);
    await new Promise((resolve) => setTimeout(resolve, 1));
    extended.end();
    await new Promise((resolve) => setTimeout(resolve, LIMIT_MS));
  });
});
