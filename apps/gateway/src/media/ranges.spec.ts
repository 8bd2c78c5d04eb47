import { expect, test } from '@jest/globals';
import { parseRange } from './ranges.ts';

const part = (start: number, end: number) => ({ kind: 'part', range: { start, end } });
const whole = { kind: 'complete' };
const none = { kind: 'none' };

test.each<[string | undefined, object]>([
  [undefined, whole],
  ['bytes=0-0', part(0, 0)],
  ['bytes=0-99', part(0, 99)],
  ['bytes=0-1000000', part(0, 99)],
  ['bytes=10-', part(10, 99)],
  ['BYTES= 10-20 ', part(10, 20)],
  ['bytes=-1', part(99, 99)],
  ['bytes=-100', part(0, 99)],
  ['bytes=-5000', part(0, 99)],
  ['bytes=99-', part(99, 99)],
  ['bytes=100-', none],
  ['bytes=100-200', none],
  ['bytes=-0', none],
  ['bytes=20-10', whole],
  ['bytes=-', whole],
  ['bytes=', whole],
  ['bytes=a-b', whole],
  ['bytes=1-2,5-6', whole],
  ['bytes=0x1-2', whole],
  ['lines=1-2', whole],
  ['bytes=1-99999999999999999999', whole],
])('parses the range "%s" of a file of 100 bytes as %j', (range, wanted) => {
  expect(parseRange(range, undefined, '"e"', 100)).toEqual(wanted);
});

test('finds no satisfiable range in an empty file', () => {
  expect(parseRange('bytes=0-', undefined, '"e"', 0)).toEqual(none);
  expect(parseRange('bytes=-5', undefined, '"e"', 0)).toEqual(none);
  expect(parseRange(undefined, undefined, '"e"', 0)).toEqual(whole);
});

test.each([
  ['"e"', part(1, 2)],
  ['"other"', whole],
  ['W/"e"', whole],
  ['Sun, 22 Nov 2026 12:00:00 GMT', whole],
])('applies a range only if If-Range is the current tag: %s', (ifRange, wanted) => {
  expect(parseRange('bytes=1-2', ifRange, '"e"', 100)).toEqual(wanted);
});
