import { expect, test } from '@jest/globals';
import { parseExactJson, parseUnits, unixSecondsToInstant } from './exact-json.ts';

test.each<[string, bigint | undefined]>([
  ['0', 0n],
  ['9007199254740991', 9_007_199_254_740_991n],
  ['9007199254740993', 9_007_199_254_740_993n],
  ['18446744073709551615', 18_446_744_073_709_551_615n],
  ['-1', undefined],
  ['-9007199254740993', undefined],
  ['1.5', undefined],
  ['1e30', undefined],
  ['1e400', undefined],
  [`1${'0'.repeat(1_000_000)}`, undefined],
  ['"1"', undefined],
  ['null', undefined],
  ['[1]', undefined],
])('converts integers from 0 on with at most 20 digits to units, and no other values (case %#)', (text, units) => {
  const { amount } = parseExactJson(`{"amount":${text}}`) as { amount: unknown };
  expect(parseUnits(amount)).toBe(units);
});

test.each([[0], [-1], [1e11], [1.5], ['1795343932'], [undefined]])('rejects %p as Unix seconds', (seconds) => {
  expect(unixSecondsToInstant(seconds)).toBeUndefined();
});
