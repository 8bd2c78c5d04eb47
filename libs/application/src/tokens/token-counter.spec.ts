import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { countTokens as countWhole } from 'gpt-tokenizer/encoding/cl100k_base';
import type { Piscina } from 'piscina';
import { sampleSize } from '../../../testing/src/sample-cases.ts';
import { TokenCounter } from './token-counter.ts';

const counter = new TokenCounter();

const ENGLISH = 'Every coin that comes in is counted twice. ';
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
const cl100k = { encoding: 'cl100k_base' } as const;

test('a text that is counted in parts has the same number of tokens as the complete text', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(WORDS, { minLength: 800, maxLength: 9_000 }), async (words) => {
      const text = words.join('');
      expect(await counter.count('a', text, cl100k)).toBe(countWhole(text, { allowedSpecial: 'all' }));
    }),
    { numRuns: sampleSize(40, 8) },
  );
});

test('counts every text of a list, also the empty ones', async () => {
  const texts = ['', 'one', '', ...Array.from({ length: 1_000 }, () => ENGLISH), ENGLISH.repeat(1_000), ''];
  const counts = await counter.countEach('a', texts, cl100k);
  expect(counts).toEqual(texts.map((text) => countWhole(text)));
});

test('the tokenizer does not run in the thread of the event loop', async () => {
  await counter.count('a', ENGLISH, cl100k);
  const threads = Reflect.get(counter, 'threads') as Piscina;
  const before = threads.completed;
  await counter.count('a', ENGLISH.repeat(1_000), cl100k);
  expect(threads.completed - before).toBeGreaterThan(4);
});

describe('many texts of one owner', () => {
  test('do not delay the count of another owner', async () => {
    let isOver = false;
    const large = Array.from({ length: 20 }, () => counter.count('attacker', ENGLISH.repeat(5_000)));
    const all = Promise.all(large).then(() => {
      isOver = true;
    });
    for (let i = 0; i < 5; i++) await counter.count('customer', ENGLISH);
    expect(isOver).toBe(false);
    await all;
  });

  test('are rejected with 503 once too many characters wait, and those of others are not', async () => {
    const tokens = await counter.count('other', ENGLISH);
    const large = ENGLISH.repeat(550_000); // 24 MB
    const waiting = [1, 2].map(() => counter.count('flooder', large, { limit: 10_000 }));
    await expect(counter.count('flooder', large)).rejects.toMatchObject({ code: 'not_served', retryAfterSeconds: 2 });
    await expect(counter.count('other', ENGLISH)).resolves.toBe(tokens);
    await expect(counter.count('flooder', ENGLISH, { isRequired: true })).resolves.toBe(tokens);
    await Promise.all(waiting);
  });
});
