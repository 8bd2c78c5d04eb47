import { expect, test } from '@jest/globals';
import type { EventBatch } from '#kernel';
import { readPagesAfter } from './pages.ts';

/** Pages of ten positions each. */
async function positionsOf(end: bigint): Promise<readonly bigint[]> {
  const read = async (after: bigint) => {
    const full = end - after >= 10n;
    return { events: [], position: full ? after + 10n : end, isFull: full };
  };
  const batches: EventBatch[] = [];
  for await (const batch of readPagesAfter(0n, read)) batches.push(batch);
  return batches.map(({ position }) => position);
}

test('pages follow each other to the end, and one that has nothing is not given', async () => {
  expect(await positionsOf(0n)).toEqual([]);
  expect(await positionsOf(5n)).toEqual([5n]);
  expect(await positionsOf(20n)).toEqual([10n, 20n]);
  expect(await positionsOf(25n)).toEqual([10n, 20n, 25n]);
});

test('the next page is asked for before the last one is used', async () => {
  const asked: bigint[] = [];
  const read = async (after: bigint) => {
    asked.push(after);
    return { events: [], position: after + 10n, isFull: after === 0n };
  };
  const pages = readPagesAfter(0n, read);
  await pages.next();
  expect(asked).toEqual([0n, 10n]);
});
