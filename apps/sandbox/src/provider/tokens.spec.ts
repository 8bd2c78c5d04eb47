import { describe, expect, test } from '@jest/globals';
import { countTokens, findTokenStarts, generateProse } from './tokens.ts';

describe('the simulated tokenizer', () => {
  test.each([
    ['', 0],
    [' \n\t', 0],
    ['Hello, world!', 4],
    ["don't", 1],
    ['eightlet', 1],
    ['ninechars', 2],
    ['internationalisation', 3],
    ['a-b', 3],
    ['日本', 2],
    ['😀', 1],
  ])('counts the tokens of %j', (text, tokens) => {
    expect(countTokens(text)).toBe(tokens);
    expect(findTokenStarts(text)).toHaveLength(tokens);
  });

  test('generates a text of exactly the requested number of tokens', () => {
    for (const tokens of [0, 1, 16, 64, 1_000]) expect(countTokens(generateProse(tokens))).toBe(tokens);
  });

  test('finds starts between which there is exactly one token', () => {
    const text = 'An answer, in 2 halves: 日本!';
    const starts = findTokenStarts(text);
    const tokens = starts.map((start, index) => text.slice(start, starts[index + 1]));
    expect(tokens.map(countTokens)).toEqual(tokens.map(() => 1));
    expect(tokens.join('')).toBe(text);
  });
});
