import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { getQuantity, type Usage } from '#domain';
import { type TokenCounts, toTokenUsage } from '#testing';
import { parseOpenAiUsage } from './usage.ts';

describe('OpenAI’s usage is converted to disjoint units', () => {
  test.each<[string, object, TokenCounts]>([
    [
      'OpenAI: prompt tokens include cached tokens, completion tokens include reasoning tokens',
      {
        prompt_tokens: 2006,
        completion_tokens: 300,
        total_tokens: 2306,
        prompt_tokens_details: { cached_tokens: 1920, audio_tokens: 0 },
        completion_tokens_details: {
          reasoning_tokens: 64,
          audio_tokens: 0,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
        },
      },
      [86, 1920, 0, 236, 64],
    ],
    [
      'OpenAI, a model with priced cache writes: prompt tokens include them as well',
      {
        prompt_tokens: 2600,
        completion_tokens: 300,
        total_tokens: 2900,
        prompt_tokens_details: { cached_tokens: 2000, cache_write_tokens: 400 },
      },
      [200, 2000, 400, 300, 0],
    ],
    [
      'OpenRouter: reported costs are ignored',
      {
        prompt_tokens: 194,
        completion_tokens: 2,
        total_tokens: 196,
        cost: 0.95,
        is_byok: false,
        prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 100, audio_tokens: 0, video_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0, image_tokens: 0 },
        cost_details: {
          upstream_inference_cost: null,
          upstream_inference_prompt_cost: 0.9,
          upstream_inference_completions_cost: 0.05,
        },
      },
      [94, 0, 100, 2, 0],
    ],
    [
      'OpenRouter with Anthropic: most tokens are cache writes',
      {
        prompt_tokens: 25_612,
        completion_tokens: 4,
        prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 25_600 },
      },
      [12, 0, 25_600, 4, 0],
    ],
    [
      'DeepSeek: cached tokens have another name',
      {
        prompt_tokens: 1000,
        completion_tokens: 500,
        total_tokens: 1500,
        prompt_cache_hit_tokens: 896,
        prompt_cache_miss_tokens: 104,
        completion_tokens_details: { reasoning_tokens: 450 },
      },
      [104, 896, 0, 50, 450],
    ],
    [
      'DeepSeek: cached tokens with both names count once',
      {
        prompt_tokens: 1000,
        completion_tokens: 5,
        prompt_cache_hit_tokens: 896,
        prompt_tokens_details: { cached_tokens: 896 },
      },
      [104, 896, 0, 5, 0],
    ],
    ['only the two sums', { prompt_tokens: 9, completion_tokens: 2 }, [9, 0, 0, 2, 0]],
    [
      'details that are null',
      { prompt_tokens: 9, completion_tokens: 2, prompt_tokens_details: null, completion_tokens_details: null },
      [9, 0, 0, 2, 0],
    ],
    [
      'numbers that are null',
      {
        prompt_tokens: 9,
        completion_tokens: 2,
        prompt_tokens_details: { cached_tokens: null, cache_write_tokens: null },
        completion_tokens_details: { reasoning_tokens: null },
      },
      [9, 0, 0, 2, 0],
    ],
  ])('%s', (_, reported, expected) => {
    expect(parseOpenAiUsage(reported)).toEqual(toTokenUsage(expected));
  });
});

describe('a reported usage', () => {
  test('is valid if it is zero, and not taken for missing', () => {
    expect(parseOpenAiUsage({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 })).toEqual(
      toTokenUsage([0, 0, 0, 0, 0]),
    );
    expect(parseOpenAiUsage({ prompt_tokens: 7, completion_tokens: 0 })).toEqual(toTokenUsage([7, 0, 0, 0, 0]));
  });

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a number', 12],
    ['text', '{"prompt_tokens":1,"completion_tokens":1}'],
    ['a list', [9, 2]],
    ['no numbers', {}],
    ['only the total', { total_tokens: 11 }],
    ['no prompt', { completion_tokens: 2 }],
    ['no completion', { prompt_tokens: 9 }],
    ['a prompt that is null', { prompt_tokens: null, completion_tokens: 2 }],
    ['a completion that is null', { prompt_tokens: 9, completion_tokens: null }],
    ['a negative number of tokens', { prompt_tokens: -1, completion_tokens: 2 }],
    ['a fraction of a token', { prompt_tokens: 9, completion_tokens: 2.5 }],
    ['a number as text', { prompt_tokens: '9', completion_tokens: '2' }],
    ['more than can be counted', { prompt_tokens: 1e300, completion_tokens: 2 }],
    ['more than any model can read', { prompt_tokens: 100_000_001, completion_tokens: 2 }],
    ['an integer that is not safe', { prompt_tokens: 2 ** 53, completion_tokens: 2 }],
    ['numbers that JSON does not have', { prompt_tokens: Number.NaN, completion_tokens: Number.POSITIVE_INFINITY }],
    ['another protocol', { input_tokens: 9, output_tokens: 2 }],
  ])('is invalid with %s', (_, reported) => {
    expect(parseOpenAiUsage(reported)).toBeUndefined();
  });

  test.each<[string, object, TokenCounts]>([
    ['more cached tokens than the prompt has', { prompt_tokens_details: { cached_tokens: 99 } }, [0, 10, 0, 5, 0]],
    [
      'more written tokens than the prompt has',
      { prompt_tokens_details: { cache_write_tokens: 99 } },
      [0, 0, 10, 5, 0],
    ],
    [
      'read and written tokens that are together more than the prompt',
      { prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 8 } },
      [0, 8, 2, 5, 0],
    ],
    [
      'more reasoning tokens than the completion has',
      { completion_tokens_details: { reasoning_tokens: 99 } },
      [10, 0, 0, 0, 5],
    ],
  ])('is limited to its sums with %s', (_, details, expected) => {
    expect(parseOpenAiUsage({ prompt_tokens: 10, completion_tokens: 5, ...details })).toEqual(toTokenUsage(expected));
  });

  test.each([-1, 2.5, '3', Number.NaN, 1e300, true, [3], {}])(
    'has no tokens from its details if they are %p',
    (nonsense) => {
      const reported = {
        prompt_tokens: 10,
        completion_tokens: 5,
        prompt_cache_hit_tokens: nonsense,
        prompt_tokens_details: { cached_tokens: nonsense, cache_write_tokens: nonsense },
        completion_tokens_details: { reasoning_tokens: nonsense },
      };
      expect(parseOpenAiUsage(reported)).toEqual(toTokenUsage([10, 0, 0, 5, 0]));
    },
  );

  test.each(['cached', 7, true, [1, 2]])('is valid if its details are %p', (details) => {
    const sums = { prompt_tokens: 10, completion_tokens: 5 };
    const reported = { ...sums, prompt_tokens_details: details, completion_tokens_details: details };
    expect(parseOpenAiUsage(reported)).toEqual(toTokenUsage([10, 0, 0, 5, 0]));
  });

  test('adds up to its two sums with arbitrary details', () => {
    const tokens = fc.oneof(fc.nat({ max: 100_000_000 }), fc.nat({ max: 100 }));
    const anything = fc.oneof(tokens, fc.maxSafeNat(), fc.anything());
    const details = (...names: readonly string[]) =>
      fc.oneof(fc.record(Object.fromEntries(names.map((name) => [name, anything]))), fc.anything());
    const reported = fc.record({
      prompt_tokens: tokens,
      completion_tokens: tokens,
      prompt_cache_hit_tokens: anything,
      prompt_tokens_details: details('cached_tokens', 'cache_write_tokens'),
      completion_tokens_details: details('reasoning_tokens'),
    });
    fc.assert(
      fc.property(reported, (each) => {
        const usage = parseOpenAiUsage(each) as Usage;
        expect(getQuantity('input', usage)).toBe(each.prompt_tokens);
        expect(getQuantity('output', usage)).toBe(each.completion_tokens);
        expect(Object.values(usage).every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
      }),
    );
  });
});
