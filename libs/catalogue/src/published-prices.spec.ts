/** The costs of chat models, compared with arithmetic that shares no code with tariffs. */
import { describe, expect, test } from '@jest/globals';
import { type Catalogue, readCatalogue, type TokenPricedModel } from '#catalogue';
import { calculateCost, type Usage } from '#domain';
import models from '../data/models.json' with { type: 'json' };

const catalogue: Catalogue = readCatalogue();

interface PricedEndpoint {
  readonly provider: string;
  readonly usdPerMillionTokens: Readonly<Record<string, string>>;
  readonly tiers?: readonly {
    readonly above: number;
    readonly usdPerMillionTokens: Readonly<Record<string, string>>;
  }[];
  readonly usdPerRequest?: string;
}
const endpoints = (models as readonly { readonly id: string; readonly endpoints: readonly PricedEndpoint[] }[]).flatMap(
  ({ id, endpoints }) => endpoints.map((endpoint) => ({ id, endpoint })),
);

function findTariff(id: string, provider: string) {
  const model = catalogue.models.find((candidate) => candidate.id === id) as TokenPricedModel | undefined;
  const endpoint = model?.endpoints.find((candidate) => candidate.provider === provider);
  if (!endpoint) throw new Error(`${id} is not served by ${provider}`);
  return endpoint.tariff;
}

/** Multiplies a decimal by an integer, and shifts it by `decimals`: `multiply('0.125', 3, 6)` is 375000. */
function multiply(decimal: string, by: number, decimals: number): string {
  const [integer = '', fraction = ''] = decimal.split('.');
  const digits = `${integer}${fraction.padEnd(decimals, '0')}`;
  if (fraction.length > decimals) throw new Error(`${decimal} has too many decimals`);
  return (BigInt(digits) * BigInt(by)).toString();
}

/** An odd number of tokens, so that no rounding can hide, below the lowest tier. */
const TOKENS = 98_765;
/** A price per million tokens has this many decimals per token in pico-USD. */
const DECIMALS = 6;

const isInput = (unit: string) => unit !== 'output' && unit !== 'reasoning';
const costOf = (usage: Usage, id: string, provider: string) =>
  calculateCost(usage, findTariff(id, provider).prices).toString();

const classes = endpoints.flatMap(({ id, endpoint: { provider, usdPerMillionTokens } }) =>
  Object.entries(usdPerMillionTokens).map(([unit, usd]) => [id, provider, unit, usd] as const),
);

test.each(classes)('%s by %s: %s tokens cost %s USD per million', (id, provider, unit, usd) => {
  expect(costOf({ [unit]: TOKENS }, id, provider)).toBe(multiply(usd, TOKENS, DECIMALS));
});

const tiers = endpoints.flatMap(({ id, endpoint: { provider, usdPerMillionTokens: base, tiers = [] } }) =>
  tiers.flatMap(({ above, usdPerMillionTokens }) =>
    Object.entries(usdPerMillionTokens).map(
      ([unit, usd]) => [id, provider, above, unit, usd, base, usdPerMillionTokens] as const,
    ),
  ),
);

test.each(tiers)(
  '%s by %s: with more than %d tokens of input, %s tokens cost %s USD per million',
  (id, provider, above, unit, usd, base, tier) => {
    const long = above + 1;
    if (isInput(unit)) {
      expect(costOf({ [unit]: long }, id, provider)).toBe(multiply(usd, long, DECIMALS));
      return expect(costOf({ [unit]: above }, id, provider)).toBe(multiply(base[unit] as string, above, DECIMALS));
    }
    const calculate = (prices: Readonly<Record<string, string>>, input: number) =>
      BigInt(multiply(prices.input as string, input, DECIMALS)) +
      BigInt(multiply(prices[unit] as string, TOKENS, DECIMALS));
    expect(costOf({ input: long, [unit]: TOKENS }, id, provider)).toBe(calculate(tier, long).toString());
    expect(costOf({ input: above, [unit]: TOKENS }, id, provider)).toBe(calculate(base, above).toString());
  },
);

const perRequest = endpoints.flatMap(({ id, endpoint: { provider, usdPerRequest } }) =>
  usdPerRequest === undefined ? [] : [[id, provider, usdPerRequest] as const],
);

test.each(perRequest)('%s by %s: a request costs %s USD', (id, provider, usd) => {
  expect(costOf({ request: 3 }, id, provider)).toBe(multiply(usd, 3, 12));
});

/** Amounts that follow from the prices that the providers publish, written by hand in USD. */
describe('the published price of', () => {
  test.each<[string, string, Usage, string]>([
    ['openai/gpt-5-mini', 'OpenAI', { input: 1_000_000 }, '0.25'],
    ['openai/gpt-5-mini', 'OpenAI', { cacheRead: 1_000_000 }, '0.025'],
    ['openai/gpt-5-mini', 'OpenAI', { input: 900, cacheRead: 100, output: 40, reasoning: 60 }, '0.0004275'],
    ['openai/gpt-5.4', 'OpenAI', { input: 272_000 }, '0.68'],
    ['openai/gpt-5.4', 'OpenAI', { input: 272_001 }, '1.360005'],
    ['openai/gpt-5.4', 'OpenAI', { input: 172_001, cacheRead: 100_000, output: 1_000 }, '0.932505'],
    ['google/gemini-2.5-pro', 'Google Vertex', { input: 200_000, output: 1_000 }, '0.26'],
    [
      'google/gemini-3.8-flash',
      'Google AI Studio',
      { input: 1_000, cacheRead: 1_000, output: 1_000, reasoning: 1_000 },
      '0.008325',
    ],
    ['google/gemini-3.1-pro', 'Google AI Studio', { input: 200_001, output: 1_000 }, '0.818004'],
    ['google/gemini-2.5-pro', 'Google Vertex', { input: 200_001, output: 1_000 }, '0.5150025'],
    ['anthropic/claude-haiku-4.5', 'Anthropic', { cacheWrite: 100_000 }, '0.125'],
    ['anthropic/claude-haiku-4.5', 'Anthropic', { cacheWriteHour: 100_000 }, '0.2'],
    ['anthropic/claude-haiku-4.5', 'Anthropic', { cacheRead: 100_000 }, '0.01'],
    ['anthropic/claude-opus-4.7', 'Anthropic', { input: 10, cacheRead: 20, cacheWrite: 30, output: 40 }, '0.0012475'],
    ['openai/gpt-oss-120b', 'Groq', { input: 1_000_000, cacheRead: 1_000_000 }, '0.225'],
    ['openai/gpt-oss-20b', 'Groq', { input: 1_000_000, cacheRead: 1_000_000 }, '0.1125'],
    ['openai/gpt-oss-120b', 'DeepInfra', { input: 1_000_000, output: 1_000_000 }, '0.209'],
    ['meta-llama/llama-4-scout', 'DeepInfra', { input: 1_000_000, output: 1_000_000 }, '0.4'],
    ['deepseek/deepseek-r1', 'DeepSeek', { input: 1_000_000, output: 1_000_000 }, '2.65'],
    ['deepseek/deepseek-chat-v3.1', 'DeepSeek', { input: 1_000_000, output: 1_000_000 }, '1'],
    ['perplexity/sonar', 'Perplexity', { input: 1_000, output: 1_000, request: 1 }, '0.007'],
  ])('%s by %s for %j is %s USD', (id, provider, usage, usd) => {
    expect(costOf(usage, id, provider)).toBe(multiply(usd, 1, 12));
  });
});
