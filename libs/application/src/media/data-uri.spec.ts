import { randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { countPauses } from '#testing';
import { isDataUri, parseDataUri } from './data-uri.ts';

test.each([
  ['data:image/png;base64,AAEC', 'image/png', [0, 1, 2]],
  ['DATA:Image/PNG;BASE64,AAE=', 'image/png', [0, 1]],
  ['data:image/png;charset=utf-8;base64,AA==', 'image/png', [0]],
  ['data:;base64,//+/', undefined, [255, 255, 191]],
])('parses %s', async (text, declaredType, bytes) => {
  expect(isDataUri(text)).toBe(true);
  expect(await parseDataUri(text, 3)).toEqual({ declaredType, bytes: Buffer.from(bytes) });
});

test.each([
  '',
  'data:',
  'data:,abc',
  'data:image/png,abc',
  'data:image/png;base64,',
  'data:image/png;base64',
  'image/png;base64,AA==',
  'data:image/png;base64,A',
  'data:image/png;base64,AA',
  'data:image/png;base64,AA=',
  'data:image/png;base64,A=AA',
  'data:image/png;base64,AA==\n',
  'data:image/png;base64, AA==',
  'data:image/png;base64,A_-A',
  'data:image/png;base64,AA%3D%3D',
  'http://data:image/png;base64,AA==',
  'data:image;base64,AA==',
  `data:image/${'x'.repeat(300)};base64,AA==`,
])('rejects %s', async (text) => {
  await expect(parseDataUri(text, 100)).rejects.toMatchObject({ name: 'DownloadError', reason: 'rejected' });
});

test('rejects a data URI that is too large, and accepts one of the maximum size', async () => {
  const toUri = (bytes: number) => `data:image/png;base64,${Buffer.alloc(bytes).toString('base64')}`;
  for (const bytes of [4, 5, 6, 1_000_000])
    await expect(parseDataUri(toUri(bytes), 3)).rejects.toMatchObject({ reason: 'too_large' });
  expect((await parseDataUri(toUri(3_000_000), 3_000_000)).bytes).toHaveLength(3_000_000);
});

describe('a long data URI', () => {
  const content = randomBytes(2_000_001);
  const base64 = content.toString('base64');
  const parse = (data: string) => parseDataUri(`data:image/png;base64,${data}`, 25_000_000);

  test('is decoded without holding the event loop', async () => {
    const { result, pauses } = await countPauses(() => parse(base64));
    expect(content.equals(result.bytes)).toBe(true);
    expect(pauses).toBeGreaterThan(1);
  });

  test.each(['=', '-', '\n', 'ł'])('is rejected with %j at any place', async (character) => {
    for (const at of [49_151, 49_152, 2_000_000]) {
      const data = base64.slice(0, at) + character + base64.slice(at + 1);
      await expect(parse(data)).rejects.toMatchObject({ reason: 'rejected' });
    }
  });
});
