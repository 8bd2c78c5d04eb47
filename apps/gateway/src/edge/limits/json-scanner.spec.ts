import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { BadRequestError } from '../errors/errors.ts';
import { JsonScanner } from './json-scanner.ts';

/** Scans JSON in chunks of this many bytes. Returns the message of the rejection; undefined if it is accepted. */
function scan(json: string, chunkBytes = 65_536): string | undefined {
  const bytes = Buffer.from(json);
  const scanner = new JsonScanner();
  try {
    for (let at = 0; at < bytes.length; at += chunkBytes) scanner.scan(bytes.subarray(at, at + chunkBytes));
    return undefined;
  } catch (error) {
    if (error instanceof BadRequestError) return error.message;
    throw error;
  }
}

const object = (count: number, name = 'n') => `{${Array.from({ length: count }, (_, i) => `"${name}${i}":1`).join()}}`;
const objects = (count: number, each: string, more = '') => `[${Array(count).fill(each).join()}${more}]`;

describe('a body that is not parsed yet', () => {
  test.each<[what: string, accepted: string, rejected: string]>([
    ['objects and arrays', `[${'{},'.repeat(49_998)}{}]`, `[${'{},'.repeat(49_999)}{}]`],
    ['nested deeper than 64', '['.repeat(64), '['.repeat(65)],
    ['fields', objects(5, object(10_000)), objects(5, object(10_000), ',{"n":1}')],
    ['fields in one object', objects(1, object(10_000)), objects(1, object(10_001))],
    ['fields at the top level', object(1_000), object(1_001)],
    ['array elements', `[${'1,'.repeat(499_999)}1]`, `[${'1,'.repeat(500_001)}1]`],
    ['strings', objects(100_000, '"a"'), objects(100_001, '"a"')],
    [
      'bytes in names of fields',
      objects(2, object(5_000, 'x'.repeat(200))),
      objects(2, object(5_500, 'x'.repeat(200))),
    ],
    ['bytes of numbers', `[${'0.12345678,'.repeat(400_000)}1]`, `[${'0.123456789,'.repeat(400_000)}1]`],
  ])('is rejected with too many %s', (what, accepted, rejected) => {
    expect(scan(accepted)).toBeUndefined();
    expect(scan(rejected)).toContain(what);
  });

  test('is accepted with a long text of any characters, 300,000 tokens, or a file of 24 MB', () => {
    const messages = [{ role: 'user', content: 'x: {y}, [z] "\\'.repeat(150_000) }];
    const input = Array.from({ length: 300 }, () => Array(1_000).fill(123_456));
    expect(scan(JSON.stringify({ messages, input }))).toBeUndefined();
    expect(scan(JSON.stringify({ image: 'x'.repeat(24_000_000) }))).toBeUndefined();
  });

  test('is scanned with the same result wherever its chunks end', () => {
    const deep = fc.nat(70).map((depth) => `{"a\\"[[":${'['.repeat(depth)}"\\\\]"${']'.repeat(depth)}}`);
    fc.assert(fc.property(deep, fc.integer({ min: 1, max: 9 }), (json, size) => scan(json, size) === scan(json)));
  });
});
