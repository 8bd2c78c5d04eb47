import { expect, test } from '@jest/globals';
import { isDataUri, parseDataUri } from './data-uri.ts';

test.each([
  ['data:image/png;base64,AAEC', 'image/png', [0, 1, 2]],
  ['DATA:Image/PNG;BASE64,AAE=', 'image/png', [0, 1]],
  ['data:image/png;charset=utf-8;base64,AA==', 'image/png', [0]],
  ['data:;base64,//+/', undefined, [255, 255, 191]],
])('parses %s', (text, declaredType, bytes) => {
  expect(isDataUri(text)).toBe(true);
  expect(parseDataUri(text, 3)).toEqual({ declaredType, bytes: Buffer.from(bytes) });
});

test.each([
  ...[
    '',
    'data:',
    'data:,abc',
    'data:image/png,abc',
    'data:image/png;base64,',
    'data:image/png;base64',
    'image/png;base64,AA==',
  ],
  ...['data:image/png;base64,A', 'data:image/png;base64,AA', 'data:image/png;base64,AA=', 'data:image/png;base64,A=AA'],
  ...[
    'data:image/png;base64,AA==\n',
    'data:image/png;base64, AA==',
    'data:image/png;base64,A_-A',
    'data:image/png;base64,AA%3D%3D',
  ],
  ...['http://data:image/png;base64,AA==', 'data:image;base64,AA==', `data:image/${'x'.repeat(300)};base64,AA==`],
])('rejects %s', (text) => {
  expect(() => parseDataUri(text, 100)).toThrow(expect.objectContaining({ name: 'DownloadError', reason: 'rejected' }));
});

test('rejects a data URI that is too large, and accepts one of the maximum size', () => {
  for (const bytes of [4, 5, 6, 1_000_000]) {
    const text = `data:image/png;base64,${Buffer.alloc(bytes).toString('base64')}`;
    expect(() => parseDataUri(text, 3)).toThrow(expect.objectContaining({ reason: 'too_large' }));
  }
  expect(
    parseDataUri(`data:image/png;base64,${Buffer.alloc(3_000_000).toString('base64')}`, 3_000_000).bytes,
  ).toHaveLength(3_000_000);
});
