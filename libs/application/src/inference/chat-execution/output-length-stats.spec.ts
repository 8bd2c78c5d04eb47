import { describe, expect, test } from '@jest/globals';
import { OutputLengthStats } from './output-length-stats.ts';

const MODEL = 'v/m';

function seen(lengths: OutputLengthStats, payer: string, tokens: readonly number[]): void {
  for (const each of tokens) lengths.recordLength(MODEL, payer, each);
}

describe('the initial hold', () => {
  test('covers 512 tokens of a model without samples or with short completions', () => {
    const lengths = new OutputLengthStats();
    expect(lengths.getInitialTokens(MODEL, 'a')).toBe(512);
    seen(lengths, 'a', Array(40).fill(20));
    expect(lengths.getInitialTokens(MODEL, 'a')).toBe(512);
  });

  test('covers three out of four completions of the model', () => {
    const lengths = new OutputLengthStats();
    seen(
      lengths,
      'a',
      Array.from({ length: 100 }, (_, i) => 100 * (i + 1)),
    );
    const first = lengths.getInitialTokens(MODEL, 'b');
    expect(first).toBeGreaterThanOrEqual(7_000);
    expect(first).toBeLessThanOrEqual(8_000);
    expect(lengths.getInitialTokens('v/other', 'a')).toBe(512);
  });

  test('follows the payer’s own latest completions from the 20th on', () => {
    const lengths = new OutputLengthStats();
    seen(lengths, 'long', Array(200).fill(6_000));
    seen(lengths, 'short', Array(19).fill(700));
    expect(lengths.getInitialTokens(MODEL, 'short')).toBe(6_000);
    seen(lengths, 'short', [700]);
    expect(lengths.getInitialTokens(MODEL, 'short')).toBe(700);
    seen(lengths, 'long', Array(200).fill(900));
    expect(lengths.getInitialTokens(MODEL, 'long')).toBe(900);
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
