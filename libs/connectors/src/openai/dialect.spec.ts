import { describe, expect, test } from '@jest/globals';
import { DIALECTS, inDialect } from './dialect.ts';

const asked = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };

describe('the limit of the output', () => {
  test.each([
    ['openai', { max_completion_tokens: 7 }],
    ['groq', { max_completion_tokens: 7 }],
    ['openrouter', { max_tokens: 7 }],
    ['deepinfra', { max_tokens: 7 }],
  ] as const)('goes to %s by one name', (upstream, limit) => {
    expect(inDialect({ ...asked, max_completion_tokens: 7 }, DIALECTS[upstream])).toEqual({ ...asked, ...limit });
  });
});

test.each(Object.entries(DIALECTS))('a plain request goes to %s as it is, uncopied', (_, dialect) => {
  expect(inDialect(asked, dialect)).toBe(asked);
});
