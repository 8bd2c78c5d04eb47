import { expect, test } from '@jest/globals';
import type { EventBatch } from '#kernel';
import { readPagesAfter } from './pages.ts';

/** Reads pages of at most ten positions, and returns the positions of the batches. */
async function positionsOf(end: bigint): Promise<readonly bigint[]> {
  const read = async (after: bigint) => {
    const full = end - after >= 10n;
    return { events: [], position: full ? after + 10n : end, isFull: full };
  };
  const batches: EventBatch[] = [];
  for await (const batch of readPagesAfter(0n, read)) batches.push(batch);
  return batches.map(({ position }) => position);
}

test('returns all pages up to the end, and omits an empty one', async () => {
  expect(await positionsOf(0n)).toEqual([]);
  expect(await positionsOf(5n)).toEqual([5n]);
  expect(await positionsOf(20n)).toEqual([10n, 20n]);
  expect(await positionsOf(25n)).toEqual([10n, 20n, 25n]);
});

test('requests the next page before the current one is processed', async () => {
  const asked: bigint[] = [];
  const read = async (after: bigint) => {
    asked.push(after);
    return { events: [], position: after + 10n, isFull: after === 0n };
  };
  const pages = readPagesAfter(0n, read);
  await pages.next();
  expect(asked).toEqual([0n, 10n]);
});
