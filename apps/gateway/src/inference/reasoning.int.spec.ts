import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(105);
});
afterAll(() => world.close());

/** Models whose providers return the reasoning, each in its own field. */
const TELLING = [
  ['anthropic with a budget', 'anthropic/claude-haiku-4.5'],
  ['anthropic by effort', 'anthropic/claude-opus-4.7'],
  ['openrouter', 'google/gemini-2.5-pro'],
  ['groq', 'openai/gpt-oss-20b'],
  ['deepinfra', 'qwen/qwen3-235b-a22b-thinking'],
] as const;
const SILENT = 'openai/gpt-5-mini';
const THOUGHT = 'every coin that comes';

const ask = (model: string, more: object) =>
  world.sendChat(account, 'text=Yes reasoning=4', { model, max_tokens: 4_000, ...more });

describe.each([false, true])('reasoning, streamed: %s', (stream) => {
  test.each(TELLING)('is returned by %s', async (_, model) => {
    const { status, text } = await ask(model, { stream, reasoning: { effort: 'medium' } });
    expect(status).toBe(200);
    expect(text).toContain(THOUGHT);
  });

  test.each(TELLING)('is not returned by %s if it is excluded, but is counted in the usage', async (_, model) => {
    const { status, text } = await ask(model, { stream, reasoning: { effort: 'medium', exclude: true } });
    expect(status).toBe(200);
    expect(text).toContain('Yes');
    expect(text).not.toMatch(/every|"reasoning(_content|_details)?":(?!null)/);
    expect(text).toContain('"reasoning_tokens":4');
  });
});

test.each<[string, object]>([
  ['OpenAI’s effort', { reasoning_effort: 'low' }],
  ['OpenRouter’s object with an effort', { reasoning: { effort: 'low' } }],
  ['a number of tokens', { reasoning: { max_tokens: 1_024 } }],
  ['enabled reasoning', { reasoning: { enabled: true } }],
  ['both an effort and tokens', { reasoning_effort: 'low', reasoning: { max_tokens: 1_024, exclude: false } }],
  ['an empty object', { reasoning: {} }],
  ['null', { reasoning: null, reasoning_effort: null }],
])('accepts reasoning options with models of OpenAI, Anthropic, a router, Groq and DeepInfra: %s', async (_, more) => {
  for (const model of [SILENT, ...TELLING.map(([, each]) => each)]) {
    expect([model, (await ask(model, more)).status]).toEqual([model, 200]);
  }
});

test('replaces an effort that the model does not support, and charges its reasoning', async () => {
  const { status, body } = await ask(SILENT, { reasoning: { enabled: false } });
  expect([status, body.usage.completion_tokens_details.reasoning_tokens]).toEqual([200, 4]);
  expect(body.usage.cost).toBeGreaterThan(0);
});

describe('an invalid reasoning option', () => {
  test.each<[string, object]>([
    ['reasoning', { reasoning: 'low' }],
    ['reasoning', { reasoning: [] }],
    ['reasoning_effort', { reasoning_effort: 'extreme' }],
    ['reasoning_effort', { reasoning_effort: 3 }],
    ['reasoning.effort', { reasoning: { effort: 'extreme' } }],
    ['reasoning.max_tokens', { reasoning: { max_tokens: -1 } }],
    ['reasoning.max_tokens', { reasoning: { max_tokens: '5' } }],
    ['reasoning.enabled', { reasoning: { enabled: 'yes' } }],
    ['reasoning.exclude', { reasoning: { exclude: 1 } }],
  ])('is rejected before money is held: %s', async (param, more) => {
    const before = (await world.listEvents(account)).length;
    const { status, body } = await ask(SILENT, more);
    expect([status, body.error.param]).toEqual([400, param]);
    expect(await world.listEvents(account)).toHaveLength(before);
  });
});

test('records the cost that is billed', async () => {
  const { total_usd } = await world.bill.fetchTotal();
  const facts = await world.listEvents(account);
  const costs = facts.flatMap((fact) => (fact.type === 'HoldSettled' ? [BigInt(fact.data.charge.cost)] : []));
  const owed = costs.reduce((sum, cost) => sum + cost, 0n);
  expect(Number(owed) / 1e12).toBe(Number(total_usd));
});
