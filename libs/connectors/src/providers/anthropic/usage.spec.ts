import { describe, expect, test } from '@jest/globals';
import { type TokenCounts, toTokenUsage } from '#testing';
import { mergeAnthropicUsage, parseAnthropicUsage } from './usage.ts';

describe('usage is split into classes that have no token in common', () => {
  test.each<[string, object, TokenCounts]>([
    [
      'input_tokens exclude those that were read from the cache and written to it',
      {
        input_tokens: 12,
        cache_read_input_tokens: 1_920,
        cache_creation_input_tokens: 400,
        cache_creation: { ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 0 },
        output_tokens: 300,
        service_tier: 'standard',
        server_tool_use: null,
      },
      [12, 1_920, 400, 300, 0],
    ],
    [
      'output_tokens include the thinking',
      { input_tokens: 9, output_tokens: 300, output_tokens_details: { thinking_tokens: 250 } },
      [9, 0, 0, 50, 250],
    ],
    [
      'more thinking than output is cut to what the sum allows',
      { input_tokens: 9, output_tokens: 5, output_tokens_details: { thinking_tokens: 99 } },
      [9, 0, 0, 0, 5],
    ],
    [
      'what is null was not there',
      {
        input_tokens: 9,
        output_tokens: 2,
        cache_read_input_tokens: null,
        cache_creation_input_tokens: null,
        output_tokens_details: null,
      },
      [9, 0, 0, 2, 0],
    ],
    [
      'nonsense counts nothing',
      { input_tokens: 9, output_tokens: 2, cache_read_input_tokens: -1, cache_creation_input_tokens: '7' },
      [9, 0, 0, 2, 0],
    ],
  ])('%s', (_, reported, expected) => {
    expect(parseAnthropicUsage(reported)).toEqual(toTokenUsage(expected));
  });

  test('an explicit zero is a value', () => {
    expect(parseAnthropicUsage({ input_tokens: 0, output_tokens: 0 })).toEqual(toTokenUsage([0, 0, 0, 0, 0]));
  });

  test.each([
    undefined,
    null,
    12,
    {},
    { input_tokens: 9 },
    { output_tokens: 2 },
    { input_tokens: '9', output_tokens: '2' },
    { input_tokens: 2 ** 53, output_tokens: 2 },
    { prompt_tokens: 9, completion_tokens: 2 },
  ])('%j is not usable, so tokens will be counted here', (reported) => {
    expect(parseAnthropicUsage(reported)).toBeUndefined();
  });
});

describe('the usage of a stream', () => {
  const start = { input_tokens: 12, cache_read_input_tokens: 100, cache_creation_input_tokens: 5, output_tokens: 1 };

  test.each<[string, unknown, unknown, TokenCounts]>([
    ['the end knows the output only', start, { output_tokens: 40 }, [12, 100, 5, 40, 0]],
    [
      'the end knows everything',
      start,
      { ...start, input_tokens: 13, output_tokens: 40, output_tokens_details: { thinking_tokens: 30 } },
      [13, 100, 5, 10, 30],
    ],
    [
      'the end says null of what has not changed',
      start,
      { input_tokens: null, cache_read_input_tokens: null, output_tokens: 40 },
      [12, 100, 5, 40, 0],
    ],
    ['the end says zero, and means it', start, { input_tokens: 0, output_tokens: 0 }, [0, 100, 5, 0, 0]],
    ['the start said nothing', undefined, { input_tokens: 3, output_tokens: 4 }, [3, 0, 0, 4, 0]],
  ])('%s', (_, atStart, atEnd, expected) => {
    expect(parseAnthropicUsage(mergeAnthropicUsage(atStart, atEnd))).toEqual(toTokenUsage(expected));
  });
});
