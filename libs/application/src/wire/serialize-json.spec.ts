import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { serializeJson, stringifyJson } from './serialize-json.ts';

async function serialize(value: unknown): Promise<string> {
  const result = await serializeJson(value);
  const text = typeof result === 'string' ? result : Buffer.concat(result).toString();
  expect((await stringifyJson(value)) === text).toBe(true);
  return text;
}

/** Returns the longest time for which the event loop was held until the promise resolved. */
async function measureLongestTurn(work: Promise<unknown>): Promise<number> {
  let [longestMs, isOver] = [0, false];
  void work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const { user } = process.threadCpuUsage();
    await new Promise((resolve) => setImmediate(resolve));
    longestMs = Math.max(longestMs, (process.threadCpuUsage().user - user) / 1_000);
  }
  return longestMs;
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
    ['a text of 24 MB', { text: '"\n'.repeat(12_000_000) }],
    ['500,000 values', { list: Array.from({ length: 500_000 }, (_, i) => i / 7) }],
  ])('holds the event loop for far less time than JSON.stringify needs: %s', async (_, value) => {
    await serialize(value); // warms up
    let longestMs = Number.POSITIVE_INFINITY;
    for (let attempt = 1; attempt <= 3; attempt++)
      longestMs = Math.min(longestMs, await measureLongestTurn(Promise.resolve(serializeJson(value))));
    const { user } = process.threadCpuUsage();
    JSON.stringify(value);
    const stringifyMs = (process.threadCpuUsage().user - user) / 1_000;
    expect({ longestMs, stringifyMs, isFar: longestMs < stringifyMs / 2 }).toMatchObject({ isFar: true });
  });
});
