import { describe, expect, test } from '@jest/globals';
import { OutputLengthStats } from './output-length-stats.ts';

const MODEL = 'v/m';

function seen(lengths: OutputLengthStats, payer: string, tokens: readonly number[]): void {
  for (const each of tokens) lengths.recordLength(MODEL, payer, each);
}

describe('what is held for at first', () => {
  test('is 512 tokens of a model that nothing is known of, and of one with short answers', () => {
    const lengths = new OutputLengthStats();
    expect(lengths.getInitialTokens(MODEL, 'a')).toBe(512);
    seen(lengths, 'a', Array(40).fill(20));
    expect(lengths.getInitialTokens(MODEL, 'a')).toBe(512);
  });

  test('is enough for three of four answers of the model', () => {
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

  test('is what a payer’s own answers take, once there have been twenty, and follows the latest', () => {
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

describe('the count of a vendor', () => {
  test('is taken for ours until it was higher, and falls slowly', () => {
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
