import { describe, expect, test } from '@jest/globals';
import { readProviders } from '#catalogue';
import { mergeReportedBills, parseReportedBill } from './reported-bill.ts';

const FORMAT = {
  cost: 'usage.cost',
  paidElsewhere: 'usage.is_byok',
  terms: { service_tier: ['default'], 'usage.speed': ['standard'] },
};

describe('a reported cost', () => {
  test.each<[unknown, bigint]>([
    [0.0028, 2_800_000_000n],
    [0, 0n],
    [1.4e-7, 140_000n],
    ['1.4E-7', 140_000n],
    ['0.000000000001', 1n],
    [0.1 + 0.2, 300_000_000_000n],
    ['0.0000000000016', 2n],
    [10_000, 10_000_000_000_000_000n],
  ])('is %j USD in exact pico-USD', (cost, expected) => {
    expect(parseReportedBill({ usage: { cost } }, FORMAT)).toEqual({ cost: expected });
  });

  test.each([-0.01, 10_000.01, 1e300, Number.NaN, '', 'free', '0x10', ' 1', '1e400', true, {}, [1], '-1'])(
    'is ignored and marked if it is %j',
    (cost) => {
      expect(parseReportedBill({ usage: { cost } }, FORMAT)).toEqual({ isImplausible: true });
    },
  );

  test.each([undefined, null, {}, { usage: null }, { usage: {} }, { usage: { cost: null } }, 'text', []])(
    'is missing in %j',
    (response) => {
      expect(parseReportedBill(response, FORMAT)).toEqual({});
    },
  );

  test('is not compared if the operator pays another provider for the call', () => {
    expect(parseReportedBill({ usage: { cost: 0.001, is_byok: true } }, FORMAT)).toEqual({});
    expect(parseReportedBill({ usage: { cost: 0.001, is_byok: false } }, FORMAT)).toEqual({ cost: 1_000_000_000n });
  });

  test('is not read if the provider is not known to report one', () => {
    expect(parseReportedBill({ usage: { cost: 0.001 } }, {})).toEqual({});
  });
});

describe('the conditions of a price', () => {
  test('are those that a response names and the catalogue has no price for', () => {
    const response = { service_tier: 'priority', usage: { speed: 'fast' } };
    expect(parseReportedBill(response, FORMAT)).toEqual({ terms: { service_tier: 'priority', speed: 'fast' } });
  });

  test.each([{}, { service_tier: 'default', usage: { speed: 'standard' } }, { service_tier: null }])(
    'are none for %j',
    (response) => {
      expect(parseReportedBill(response, FORMAT)).toEqual({});
    },
  );

  test.each(['x'.repeat(41), 'a b', 'a\nb', 7, {}])('are ignored if they are no name: %j', (service_tier) => {
    expect(parseReportedBill({ service_tier }, FORMAT)).toEqual({});
  });
});

test('reports of several events are combined', () => {
  const earlier = { terms: { service_tier: 'priority' } };
  expect(mergeReportedBills(earlier, {})).toEqual(earlier);
  expect(mergeReportedBills(earlier, { cost: 7n as never, terms: { speed: 'fast' } })).toEqual({
    cost: 7n,
    terms: { service_tier: 'priority', speed: 'fast' },
  });
});

describe('tokens that only the total includes', () => {
  const tokens = { total: 'usage.total_tokens', parts: ['usage.prompt_tokens', 'usage.completion_tokens'] };
  test.each([
    [{ prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }, { uncountedTokens: 0 }],
    [{ prompt_tokens: 5, completion_tokens: 2, total_tokens: 107 }, { uncountedTokens: 100 }],
    [{ prompt_tokens: 5, completion_tokens: 2, total_tokens: 3 }, { uncountedTokens: 0 }],
    [{ prompt_tokens: 5, total_tokens: 7 }, { uncountedTokens: 2 }],
    [{ prompt_tokens: 5, completion_tokens: 2 }, {}],
    [{ prompt_tokens: 5, completion_tokens: 2, total_tokens: -1 }, {}],
    [{ prompt_tokens: 5, completion_tokens: 2, total_tokens: 'many' }, {}],
  ])('of the usage %j are %j', (usage, expected) => {
    expect(parseReportedBill({ usage }, { tokens })).toEqual(expected);
  });

  const chat = { usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 10 } };
  test.each([
    ['openai', chat],
    ['openai', { usage: { input_tokens: 5, output_tokens: 2, total_tokens: 10 } }],
    ['openrouter', chat],
    ['groq', chat],
    ['deepinfra', chat],
    [
      'google',
      { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 1, thoughtsTokenCount: 2, totalTokenCount: 10 } },
    ],
  ])('are found in the responses of %s', (slug, response) => {
    const { bill = {} } = readProviders().find((provider) => provider.slug === slug) ?? {};
    expect(parseReportedBill(response, bill)).toEqual({ uncountedTokens: 3 });
  });

  test('are those of the last event of a stream', () => {
    expect(mergeReportedBills({ uncountedTokens: 3 }, { uncountedTokens: 0 })).toEqual({ uncountedTokens: 0 });
  });
});
