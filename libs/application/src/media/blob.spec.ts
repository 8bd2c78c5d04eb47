import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { toBlob } from '#application';
import { countPauses } from '#testing';

test('a large image is copied and read in short sections, without holding the event loop', async () => {
  const bytes = randomBytes(2_000_001);
  const { result: blob, pauses } = await countPauses(() => toBlob({ mediaType: 'image/png', bytes }));
  expect([blob.type, bytes.equals(Buffer.from(await blob.arrayBuffer()))]).toEqual(['image/png', true]);
  expect(pauses).toBeGreaterThan(1);
  for await (const section of blob.stream()) expect(section.byteLength).toBeLessThanOrEqual(64 * 1024);
});
