import { expect, test } from '@jest/globals';
import type pg from 'pg';
import { Progress } from './progress.ts';

const WAIT_MS = 600;

/** A database whose checkpoint stands where `at` says. */
function progressOf(at: () => bigint) {
  const rows = () => [{ projection: 'keys', position: String(at()), rebuilt_to: null }];
  return new Progress({ query: async () => ({ rows: rows() }) } as unknown as pg.Pool);
}

async function waited(progress: Progress, position: bigint): Promise<readonly [boolean, boolean]> {
  const started = performance.now();
  const reached = await progress.reached(['keys'], position, WAIT_MS);
  return [reached, performance.now() - started >= WAIT_MS];
}

test('one look serves all that wait, and looks keep a distance', async () => {
  let looks = 0;
  const query = async () => ({ rows: [{ projection: 'keys', position: String(++looks), rebuilt_to: null }] });
  const progress = new Progress({ query } as unknown as pg.Pool);
  const began = performance.now();
  await Promise.all(Array.from({ length: 100 }, () => progress.reached(['keys'], 10n, WAIT_MS)));
  expect(looks).toBe(10);
  expect(performance.now() - began).toBeGreaterThan(9 * 2);
});

test('where a wait has timed out, others are shorter until it moves', async () => {
  let at = 1n;
  const progress = progressOf(() => at);
  expect(await waited(progress, 2n)).toEqual([false, true]);
  expect(await waited(progress, 2n)).toEqual([false, false]);
  expect(await waited(progress, 1n)).toEqual([true, false]);
  at = 2n;
  expect(await waited(progress, 2n)).toEqual([true, false]);
  expect(await waited(progress, 3n)).toEqual([false, true]);
});
