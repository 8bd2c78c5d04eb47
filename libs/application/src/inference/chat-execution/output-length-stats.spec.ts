import { describe, expect, test } from '@jest/globals';
import { OutputLengthStats } from './output-length-stats.ts';

const MODEL = 'v/m';
const model = { id: MODEL, maxOutput: 32_000 };

function seen(lengths: OutputLengthStats, payer: string, tokens: readonly number[]): void {
  for (const each of tokens) lengths.start(model, payer)({ tokens: each, isTruncated: false });
}

const lengthsOf = (stats: OutputLengthStats, payer = 'other', more: object = {}) =>
  stats.getLengths({ id: MODEL, maxOutput: 32_000, ...more }, payer);

describe('the expected output lengths', () => {
  test('are those of the catalogue, or 2,000 tokens, before the model has 20 samples', () => {
    const stats = new OutputLengthStats();
    seen(stats, 'a', Array(19).fill(20));
    expect(lengthsOf(stats)).toEqual({ initial: 1_500, long: 2_000, reserved: 2_000 });
    expect(lengthsOf(stats, 'a', { longOutput: 6_000 })).toEqual({ initial: 4_500, long: 6_000, reserved: 6_000 });
    expect(lengthsOf(stats, 'a', { longOutput: 600 })).toEqual({ initial: 512, long: 600, reserved: 600 });
    expect(lengthsOf(stats, 'a', { maxOutput: 1_000 })).toEqual({ initial: 750, long: 1_000, reserved: 1_000 });
    expect(lengthsOf(stats, 'a', { maxOutput: 100 })).toEqual({ initial: 100, long: 100, reserved: 100 });
  });

  test('are percentiles of the model, and at least 512 tokens', () => {
    const stats = new OutputLengthStats();
    seen(stats, 'a', Array(40).fill(20));
    expect(lengthsOf(stats)).toEqual({ initial: 512, long: 512, reserved: 512 });
    seen(
      stats,
      'a',
      Array.from({ length: 128 }, (_, i) => 100 * (i + 1)),
    );
    expect(lengthsOf(stats)).toEqual({ initial: 9_700, long: 11_800, reserved: 12_400 });
  });

  test('also follow completions that were truncated for lack of money, if they were long', () => {
    const stats = new OutputLengthStats();
    seen(stats, 'a', Array(20).fill(900));
    for (let i = 0; i < 20; i++) stats.start(model, 'b')({ tokens: 800, isTruncated: true });
    expect(lengthsOf(stats)).toEqual({ initial: 900, long: 900, reserved: 900 });
    stats.start(model, 'b')({ tokens: 3_000, isTruncated: true });
    expect(lengthsOf(stats)).toEqual({ initial: 900, long: 900, reserved: 3_000 });
  });

  test('do not follow the short completions that end first of many that start together', () => {
    const stats = new OutputLengthStats();
    seen(stats, 'a', Array(20).fill(900));
    const ends = Array.from({ length: 200 }, () => stats.start(model, 'b'));
    const [first, ...others] = ends;
    for (const end of others) end({ tokens: 100, isTruncated: false });
    expect(lengthsOf(stats).long).toBe(900);
    first?.();
    expect(lengthsOf(stats).initial).toBe(512);
  });

  test('at first follow the payer’s own latest completions from the 20th on', () => {
    const stats = new OutputLengthStats();
    seen(stats, 'long', Array(200).fill(6_000));
    seen(stats, 'short', Array(19).fill(700));
    expect(lengthsOf(stats, 'short').initial).toBe(6_000);
    seen(stats, 'short', [700]);
    expect(lengthsOf(stats, 'short')).toEqual({ initial: 700, long: 6_000, reserved: 6_000 });
    seen(stats, 'long', Array(200).fill(900));
    seen(stats, 'longest', Array(20).fill(9_000));
    expect(lengthsOf(stats, 'longest')).toEqual({ initial: 9_000, long: 9_000, reserved: 9_000 });
  });
});

describe('the ratio of the provider’s token count to the gateway’s', () => {
  test('starts at 1, rises at once up to 2, falls slowly, and ignores short texts', () => {
    const lengths = new OutputLengthStats();
    expect(lengths.getRatio(MODEL)).toBe(1);
    lengths.recordRatio(MODEL, 1_000, 1_300);
    expect(lengths.getRatio(MODEL)).toBe(1.3);
    lengths.recordRatio(MODEL, 1_000, 1_000);
    expect(lengths.getRatio(MODEL)).toBeCloseTo(1.24);
    lengths.recordRatio(MODEL, 1_000, 9_000);
    expect(lengths.getRatio(MODEL)).toBe(2);
    lengths.recordRatio('v/other', 20, 40);
    expect(lengths.getRatio('v/other')).toBe(1);
  });
});
