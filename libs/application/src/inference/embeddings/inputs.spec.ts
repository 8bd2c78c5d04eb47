import { describe, expect, test } from '@jest/globals';
import { countTokens as countWhole } from 'gpt-tokenizer/encoding/cl100k_base';
import { TokenCounter, type TokenCountOptions } from '../../tokens/token-counter.ts';
import { assertInputsFit, countEmbeddingTokens } from './inputs.ts';

const counter = new TokenCounter();
const countEach = (texts: readonly string[], options: TokenCountOptions) => counter.countEach('a', texts, options);
const counted = (text: string) => countWhole(text, { allowedSpecial: 'all' });
const fits = (input: string | readonly number[], limit: number) => assertInputsFit([input], limit, countEach);

describe('a text that is counted in parts', () => {
  test.each([
    ['words', ' hello'.repeat(8_192)],
    ['words before spaces', `${'hello '.repeat(8_191)}hello`],
    ['letters and digits', 'a1b2'.repeat(2_048)],
    ['Chinese', '，记账'.repeat(3_000)],
    ['more than one task of the counter', ' coin'.repeat(40_000)],
  ])('is rejected if it exceeds the limit by one token, and accepted at the limit: %s', async (_, text) => {
    const tokens = counted(text);
    await expect(fits(text, tokens)).resolves.toBeUndefined();
    await expect(fits(text, tokens - 1)).rejects.toMatchObject({ status: 400, param: 'input', isTooLong: true });
  });
});

test('names the first input that is too long', async () => {
  const inputs = ['a', 'word '.repeat(20), 'a', 'word '.repeat(200), 'word '.repeat(300)];
  await expect(assertInputsFit(inputs, 50, countEach)).rejects.toMatchObject({
    message: expect.stringContaining('but input 3 has more'),
  });
});

test('nothing is counted if every input has at most as many bytes as the limit, or is a list of tokens', async () => {
  const fail = () => Promise.reject(new Error('counted'));
  await expect(assertInputsFit(['x'.repeat(50), '每'.repeat(16)], 50, fail)).resolves.toBeUndefined();
  await expect(assertInputsFit([[1, 2], Array(51).fill(1)], 50, fail)).rejects.toMatchObject({ isTooLong: true });
});

test('counts the tokens of texts and of lists of tokens', async () => {
  expect(await countEmbeddingTokens(['one two', [1, 2, 3]], counter, 'a')).toBe(counted('one two') + 3);
});
