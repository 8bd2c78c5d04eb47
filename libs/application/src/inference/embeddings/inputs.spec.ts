import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { countTokens as countWhole } from 'gpt-tokenizer/encoding/cl100k_base';
import { assertInputsFit, countEmbeddingTokens } from './inputs.ts';

const counted = (text: string) => countWhole(text, { allowedSpecial: 'all' });

const WORDS = fc.constantFrom(
  'every',
  ' coin',
  'That',
  "'s",
  " I'll",
  '2026',
  ' 12.345,67',
  '\n\n',
  '   ',
  '(a)',
  'ledger_',
  'é',
  '記帳',
  '。',
  '🎉',
  '\t',
  '-',
);

describe('a text that is counted in parts', () => {
  test('has the same number of tokens as the complete text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(WORDS, { minLength: 800, maxLength: 1_500 }), async (words) => {
        const text = words.join('');
        expect(await countEmbeddingTokens([text])).toBe(counted(text));
      }),
      { numRuns: 60 },
    );
  });

  test.each([
    ['words', ' hello'.repeat(8_192)],
    ['words before spaces', `${'hello '.repeat(8_191)}hello`],
    ['letters and digits', 'a1b2'.repeat(2_048)],
    ['Chinese', '，记账'.repeat(3_000)],
  ])('is rejected if it exceeds the limit by one token, and accepted at the limit: %s', async (_, text) => {
    const tokens = counted(text);
    await expect(assertInputsFit([text], tokens)).resolves.toBeUndefined();
    await expect(assertInputsFit([text], tokens - 1)).rejects.toMatchObject({
      status: 400,
      param: 'input',
      isTooLong: true,
    });
  });
});
