import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isModelAllowed } from '#domain';

test.each([
  ['openai/gpt-5', ['openai/gpt-5'], true],
  ['openai/gpt-5', ['openai/gpt-5-mini'], false],
  ['openai/gpt-5-mini', ['openai/gpt-5'], false],
  ['openai/gpt-5-mini', ['openai/*'], true],
  ['xopenai/gpt-5', ['openai/*'], false],
  ['openai/gpt-5-mini', ['*-mini'], true],
  ['openai/gpt-5-mini:free', ['*-mini'], false],
  ['openai/gpt-5-mini', ['openai/*-mini', 'x'], true],
  ['openai/-mini', ['openai/*-mini'], true],
  ['openai/mini', ['openai/*-mini'], false],
  ['aa', ['a*a'], true],
  ['a', ['a*a'], false],
  ['abcabd', ['a*b*d'], true],
  ['abcabd', ['*abd*abd'], false],
  ['anything', ['*'], true],
  ['anything', ['**'], true],
  ['a.b', ['a?b', 'a[.]b', 'A.B'], false],
  ['anything', null, true],
] as const)('%s is permitted by %j: %s', (model, patterns, isAllowed) => {
  expect(isModelAllowed(model, patterns)).toBe(isAllowed);
});

test('a pattern matches the ids that the corresponding regular expression matches', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '*', '/'), maxLength: 8 });
  const id = fc.string({ unit: fc.constantFrom('a', 'b', '/'), maxLength: 10 });
  fc.assert(
    fc.property(text, id, (pattern, model) => {
      const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(model);
      expect(isModelAllowed(model, [pattern])).toBe(expected);
    }),
    { numRuns: 2_000 },
  );
});

test('a pattern with many wildcards is matched in linear time', () => {
  // Trying each way to match the wildcards would take longer than a test may.
  expect(isModelAllowed('a'.repeat(200), [`${'*a'.repeat(99)}*b`])).toBe(false);
});
