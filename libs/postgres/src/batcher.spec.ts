import { expect, test } from '@jest/globals';
import { Batcher } from './batcher.ts';

function createBatcher() {
  const written: (readonly number[])[] = [];
  const batcher = new Batcher(async (items: readonly number[]) => {
    written.push(items);
    if (items.includes(0)) throw new Error('zero');
    return items.map((item) => -item);
  });
  return { batcher, written };
}

test('items of one turn are written together, and each gets its own result', async () => {
  const { batcher, written } = createBatcher();
  expect(await Promise.all([1, 2, 3].map((item) => batcher.add(item)))).toEqual([-1, -2, -3]);
  expect(await batcher.add(4)).toBe(-4);
  expect(written).toEqual([[1, 2, 3], [4]]);
});

test('an error concerns all items that were written together, and no later ones', async () => {
  const { batcher } = createBatcher();
  const outcomes = await Promise.allSettled([1, 0].map((item) => batcher.add(item)));
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await batcher.add(2)).toBe(-2);
});
