import { expect, test } from '@jest/globals';
import { ByteAccumulator } from './byte-accumulator.ts';

const MIB = 1024 * 1024;

function accumulate(chunkBytes: number, totalBytes: number, expectedBytes?: number) {
  const accumulator = new ByteAccumulator(expectedBytes);
  const buffers = new Set<ArrayBufferLike>();
  for (let size = 0; size < totalBytes; size += chunkBytes) {
    accumulator.add(Buffer.alloc(Math.min(chunkBytes, totalBytes - size), size / chunkBytes));
    if (accumulator.size > MIB) buffers.add(accumulator.bytes.buffer);
  }
  return { bytes: accumulator.bytes, largeBuffers: buffers.size };
}

test.each([1_000, 65_536, 3 * MIB])('chunks of %d bytes are joined in order', (chunkBytes) => {
  const total = 4 * MIB + 7;
  const expected = Buffer.concat(
    Array.from({ length: Math.ceil(total / chunkBytes) }, (_, i) => Buffer.alloc(chunkBytes, i)),
  ).subarray(0, total);
  for (const expectedBytes of [undefined, total, 5, 25 * MIB])
    expect(accumulate(chunkBytes, total, expectedBytes).bytes.equals(expected)).toBe(true);
});

test('bytes beyond the first MiB are not copied again if their number was expected', () => {
  expect(accumulate(65_536, 8 * MIB).largeBuffers).toBeGreaterThan(1);
  expect(accumulate(65_536, 8 * MIB, 8 * MIB).largeBuffers).toBe(1);
  expect(accumulate(65_536, 8 * MIB, 25 * MIB).largeBuffers).toBe(1);
});
