import { expect, test } from '@jest/globals';
import { GATHER_MS, gatherMs } from './tail.ts';

test('facts gather only where there are many: a reader that waits for one or two hardly waits', () => {
  expect([0, 1, 2].map(gatherMs)).toEqual([0, 5, 10]);
  expect([5, 100, 1_000_000].map(gatherMs)).toEqual([GATHER_MS, GATHER_MS, GATHER_MS]);
});
