import { expect, test } from '@jest/globals';
import { readStart } from './read-start.ts';

/** A body of chunks of these lengths. `read` contains the lengths of those that were read. */
function createBody(lengths: readonly number[]) {
  const read: number[] = [];
  const chunks = async function* () {
    for (const length of lengths) {
      read.push(length);
      yield new Uint8Array(length);
    }
  };
  return { body: chunks(), read };
}

async function sumLengths(body: AsyncIterable<Uint8Array>): Promise<number> {
  let sum = 0;
  for await (const { length } of body) sum += length;
  return sum;
}

test.each<[string, readonly number[], number | undefined, readonly number[]]>([
  ['an empty body', [], 0, []],
  ['a body up to the limit', [6, 4], 10, [6, 4]],
  ['a longer body', [6, 4, 1, 7], undefined, [6, 4, 1]],
])('the start of %s', async (_, lengths, length, readFirst) => {
  const { body, read } = createBody(lengths);
  const started = await readStart(body, 10);
  expect([started.length, read]).toEqual([length, readFirst]);
  expect(await sumLengths(started.body)).toBe(lengths.reduce((sum, each) => sum + each, 0));
});

test('a body that ends early fails when its start is read, or later', async () => {
  const fail = async function* (length: number) {
    yield new Uint8Array(length);
    throw new Error('gone');
  };
  await expect(readStart(fail(1), 10)).rejects.toMatchObject({ status: 400 });
  const { body } = await readStart(fail(11), 10);
  await expect(sumLengths(body)).rejects.toThrow('gone');
});
