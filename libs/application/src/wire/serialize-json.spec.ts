import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { countPauses } from '#testing';
import { serializeJson, stringifyJson } from './serialize-json.ts';

const MIN_PAUSES = 5;

async function serialize(value: unknown): Promise<string> {
  const result = await serializeJson(value);
  const text = typeof result === 'string' ? result : Buffer.concat(result).toString();
  expect((await stringifyJson(value)) === text).toBe(true);
  return text;
}

describe('a serialised value', () => {
  test('has the same text as that of JSON.stringify, whatever its size', async () => {
    const large = fc.jsonValue().map((value) => [value, 'x'.repeat(70_000), { value, n: Array(2_500).fill(value) }]);
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.jsonValue(), large), async (value) => {
        expect(await serialize(value)).toBe(JSON.stringify(value));
      }),
      { numRuns: 50 },
    );
  });

  test.each<[string, unknown]>([
    ['pairs of surrogates', `x${'😀'.repeat(50_000)}`],
    ['lone surrogates', `x${'\ud83d'.repeat(100_000)}`],
    ['escapes', '\n"\\\u0001'.repeat(40_000)],
    ['undefined members', [{ a: undefined, b: 'x'.repeat(100_000) }, undefined, {}, []]],
    ['many numbers', Array.from({ length: 100_000 }, (_, i) => i / 7)],
    ['many fields', Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`"${i}"`, null]))],
  ])('has the same text with %s', async (_, value) => {
    expect(await serialize(value)).toBe(JSON.stringify(value));
  });

  test.each<[string, unknown]>([
    ['a long text', { text: '"\n'.repeat(400_000) }],
    ['many values', { list: Array.from({ length: 100_000 }, (_, i) => i / 7) }],
  ])('holds the event loop only for a small part of the work: %s', async (_, value) => {
    const { pauses } = await countPauses(async () => serializeJson(value));
    expect(pauses).toBeGreaterThan(MIN_PAUSES);
  });
});
