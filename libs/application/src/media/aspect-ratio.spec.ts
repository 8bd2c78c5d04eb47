import { expect, test } from '@jest/globals';
import { toNearestAspectRatio } from './aspect-ratio.ts';

const RATIOS = ['1:1', '16:9', '9:16', '4:3', '3:4'];

test.each<[string, string | undefined]>([
  ['1:1', '1:1'],
  ['16:9', '16:9'],
  ['32:18', '16:9'],
  [' 9 : 16 ', '9:16'],
  ['1024x1024', '1:1'],
  ['512x512', '1:1'],
  ['1792x1024', '16:9'],
  ['1536x1024', '4:3'],
  ['1024X1536', '3:4'],
  ['1024×1792', '9:16'],
  ['1280*720', '16:9'],
  ['99999x1', '16:9'],
  ['21:9', undefined],
  ['0x0', undefined],
  ['1024x0', undefined],
  ['0:5', undefined],
  ['large', undefined],
  ['', undefined],
  ['1024x1024x3', undefined],
])('converts the size "%s" to the ratio %s', (said, ratio) => {
  expect(toNearestAspectRatio(said, RATIOS)).toBe(ratio);
});
