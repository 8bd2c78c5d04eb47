import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { Base64File, createJsonBody } from './json-with-files.ts';

test('JSON without files is serialised to a string', () => {
  expect(createJsonBody({ prompt: 'é' })).toEqual({ body: '{"prompt":"é"}', length: 15 });
});

test.each([0, 1, 2, 3, 4, 65_535, 200_001])('a file of %d bytes is serialised as base64', async (size) => {
  const bytes = Buffer.from(Array.from({ length: size }, (_, i) => (i * 7) % 256));
  const value = {
    prompt: 'a "coin" é',
    images: [new Base64File(new Blob([bytes])), new Base64File(new Blob(['b']), 'data:,')],
  };
  const { body, length } = createJsonBody(value);
  const sent = await text(body as Readable);
  expect(JSON.parse(sent)).toEqual({ prompt: 'a "coin" é', images: [bytes.toString('base64'), 'data:,Yg=='] });
  expect(Buffer.byteLength(sent)).toBe(length);
});
