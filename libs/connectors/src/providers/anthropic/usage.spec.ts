import { describe, expect, test } from '@jest/globals';
import { type TokenCounts, toTokenUsage } from '#testing';
import { mergeAnthropicUsage, parseAnthropicUsage } from './usage.ts';

describe('Anthropic’s usage is converted to disjoint units', () => {
  test.each<[string, object, TokenCounts]>([
    [
      'input_tokens exclude cache reads and cache writes',
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
      'thinking is limited to the output',
      { input_tokens: 9, output_tokens: 5, output_tokens_details: { thinking_tokens: 99 } },
      [9, 0, 0, 0, 5],
    ],
    [
      'null counts as a missing value',
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
      'an invalid number counts as zero',
      { input_tokens: 9, output_tokens: 2, cache_read_input_tokens: -1, cache_creation_input_tokens: '7' },
      [9, 0, 0, 2, 0],
    ],
  ])('%s', (_, reported, expected) => {
    expect(parseAnthropicUsage(reported)).toEqual(toTokenUsage(expected));
  });

  test.each([
    [400, { cacheWrite: 300, cacheWriteHour: 100 }],
    [100, { cacheWrite: 0, cacheWriteHour: 100 }],
    [60, { cacheWrite: 0, cacheWriteHour: 60 }], // the parts cannot exceed the total
  ])('of %d written tokens, those that are cached for an hour are a unit of their own', (written, expected) => {
    const cache_creation = { ephemeral_5m_input_tokens: 300, ephemeral_1h_input_tokens: 100 };
    const reported = { input_tokens: 1, cache_creation_input_tokens: written, cache_creation, output_tokens: 2 };
    expect(parseAnthropicUsage(reported)).toEqual({ ...toTokenUsage([1, 0, 0, 2, 0]), ...expected });
  });

  test('a reported zero is valid', () => {
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
  ])('%j is not a valid usage', (reported) => {
    expect(parseAnthropicUsage(reported)).toBeUndefined();
  });
});

describe('the usage of a stream is merged from its start and its end:', () => {
  const start = { input_tokens: 12, cache_read_input_tokens: 100, cache_creation_input_tokens: 5, output_tokens: 1 };

  test.each<[string, unknown, unknown, TokenCounts | undefined]>([
    ['the end reports only the output', start, { output_tokens: 40 }, [12, 100, 5, 40, 0]],
    [
      'the end reports everything',
      start,
      { ...start, input_tokens: 13, output_tokens: 40, output_tokens_details: { thinking_tokens: 30 } },
      [13, 100, 5, 10, 30],
    ],
    [
      'the end reports null for unchanged values',
      start,
      { input_tokens: null, cache_read_input_tokens: null, output_tokens: 40 },
      [12, 100, 5, 40, 0],
    ],
    ['the end reports zero', start, { input_tokens: 0, output_tokens: 0 }, [0, 100, 5, 0, 0]],
    ['the end reports no output: it is unknown, not the first token', start, { input_tokens: 12 }, undefined],
    ['the end reports nothing', start, undefined, undefined],
    ['the start reports nothing', undefined, { input_tokens: 3, output_tokens: 4 }, [3, 0, 0, 4, 0]],
  ])('%s', (_, atStart, atEnd, expected) => {
    expect(parseAnthropicUsage(mergeAnthropicUsage(atStart, atEnd))).toEqual(expected && toTokenUsage(expected));
  });
});
