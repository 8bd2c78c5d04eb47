import { describe, expect, test } from '@jest/globals';
import type { Reasoning } from '#application';
import { type ModelRules, readProviders, readRuleSets } from '#catalogue';
import { type Dialect, getReasoningLimit, toDialect, toResponsesDialect } from './dialect.ts';

/** The dialects of the shipped providers. */
const DIALECTS: Readonly<Record<string, Dialect>> = Object.fromEntries(
  readProviders().flatMap(({ slug, protocol, dialect = {} }) => (protocol === 'openai' ? [[slug, dialect]] : [])),
);
const dialectOf = (slug: string) => DIALECTS[slug] as Dialect;

const asked = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };

describe('the output limit', () => {
  test.each([
    ['openai', { max_completion_tokens: 7 }],
    ['groq', { max_completion_tokens: 7 }],
    ['openrouter', { max_tokens: 7 }],
    ['deepinfra', { max_tokens: 7 }],
  ] as const)('is sent to %s only under the name that it supports', (upstream, limit) => {
    expect(toDialect({ ...asked, max_completion_tokens: 7 }, dialectOf(upstream))).toEqual({ ...asked, ...limit });
  });
});

describe('tool results', () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } };
  const user = { role: 'user', content: 'Hello' };
  const tool = (tool_call_id: string, content: unknown) => ({ role: 'tool', tool_call_id, content });
  const sent = (messages: readonly object[]) => toDialect({ model: 'm', messages }, dialectOf('openai')).messages;

  test('are sent unchanged if they are only text', () => {
    const messages = [user, tool('1', 'Yes'), tool('2', [{ type: 'text', text: 'No' }])];
    expect(sent(messages)).toBe(messages);
  });

  test('have parts other than text in a user message after all consecutive results', () => {
    const text = { type: 'text', text: 'Look' };
    const rest = 'The rest of this result follows.';
    const shown = [{ type: 'text', text: 'Of the result of the tool:' }, image];
    expect(sent([tool('1', [text, image]), tool('2', 'Yes'), tool('3', [image]), user, tool('4', [image])])).toEqual([
      tool('1', `Look\n${rest}`),
      tool('2', 'Yes'),
      tool('3', rest),
      { role: 'user', content: [...shown, ...shown] },
      user,
      tool('4', rest),
      { role: 'user', content: shown },
    ]);
  });
});

describe('reasoning settings', () => {
  const limit = { max_completion_tokens: 10_000 };

  test.each<[Reasoning, string | undefined]>([
    [{ effort: 'none' }, 'none'],
    [{ effort: 'minimal' }, 'minimal'],
    [{ effort: 'low' }, 'low'],
    [{ effort: 'high' }, 'high'],
    [{ effort: 'xhigh' }, 'xhigh'],
    [{ effort: 'max' }, 'xhigh'],
    [{ enabled: true }, 'medium'],
    [{ enabled: true, effort: 'low' }, 'low'],
    [{ enabled: false }, 'none'],
    [{ enabled: false, effort: 'high' }, 'none'],
    [{ max_tokens: 0 }, 'none'],
    [{ max_tokens: 1_000 }, 'low'],
    [{ max_tokens: 4_000 }, 'medium'],
    [{ max_tokens: 7_000 }, 'high'],
    [{ max_tokens: 70_000 }, 'high'],
    [{ exclude: true }, undefined],
    [{ exclude: true, effort: 'low' }, 'low'],
  ])('%j are sent to OpenAI as the effort %s, and to OpenRouter unchanged', (reasoning, effort) => {
    const words = effort === undefined ? {} : { reasoning_effort: effort };
    expect(toDialect({ ...asked, ...limit, reasoning }, dialectOf('openai'))).toEqual({ ...asked, ...limit, ...words });
    expect(toDialect({ ...asked, ...limit, reasoning }, dialectOf('openrouter'))).toEqual({
      ...asked,
      max_tokens: 10_000,
      reasoning,
    });
  });

  test('use a default output limit for a token budget if the request has none', () => {
    const words = (max_tokens: number) => toDialect({ ...asked, reasoning: { max_tokens } }, dialectOf('openai'));
    expect([2_000, 16_000, 30_000].map((tokens) => words(tokens).reasoning_effort)).toEqual(['low', 'medium', 'high']);
  });
});

describe('the rules of a model', () => {
  const rulesOf = (name: string) => readRuleSets()[name] as ModelRules;

  test.each<[string, Reasoning, string | undefined]>([
    ['gpt-5.4', { effort: 'minimal' }, 'low'],
    ['openai-o', { effort: 'none' }, 'low'],
    ['openai-o', { effort: 'xhigh' }, 'high'],
    ['gpt-5.6', { effort: 'max' }, 'max'],
    ['gpt-5.4', { effort: 'max' }, 'xhigh'],
    ['gpt-6', { enabled: false }, 'none'],
    ['gpt-6-always-reasoning', { enabled: false }, 'low'],
    ['gpt-oss', { effort: 'minimal' }, 'low'],
    ['groq-qwen', { effort: 'none' }, 'none'],
    ['groq-qwen', { effort: 'high' }, 'default'],
  ])('%s send the settings %j as the effort %s', (name, reasoning, effort) => {
    const modelRules = rulesOf(name);
    expect(toDialect({ ...asked, reasoning }, dialectOf('groq'), modelRules).reasoning_effort).toBe(effort);
    expect(toResponsesDialect({ model: 'm', reasoning }, modelRules)).toEqual({ model: 'm', reasoning: { effort } });
  });

  test.each<[Reasoning, Reasoning]>([
    [{ enabled: false }, { effort: 'minimal' }],
    [
      { effort: 'none', exclude: true },
      { effort: 'minimal', exclude: true },
    ],
    [{ effort: 'high' }, { effort: 'high' }],
    [{ max_tokens: 500 }, { max_tokens: 500 }],
    [{ exclude: true }, { exclude: true }],
  ])('send the settings %j as %j to a model of OpenRouter that always reasons', (reasoning, sent) => {
    const modelRules = rulesOf('always-reasoning');
    expect(toDialect({ ...asked, reasoning }, dialectOf('openrouter'), modelRules)).toEqual({
      ...asked,
      reasoning: sent,
    });
  });

  test('permit reasoning of a model that cannot stop, although the request disables it', () => {
    const body = { reasoning: { effort: 'none' } };
    expect(getReasoningLimit(body, dialectOf('openai'), rulesOf('openai-o'))).toBeUndefined();
    expect(getReasoningLimit(body, dialectOf('openai'), rulesOf('gpt-5.4'))).toBe(0);
  });
});

test('messages of the developer are sent to DeepInfra as those of the system', () => {
  const messages = [
    { role: 'developer', content: 'Be brief' },
    { role: 'user', content: 'Hi' },
  ];
  const sent = (slug: string) => toDialect({ model: 'm', messages }, dialectOf(slug)).messages;
  expect(sent('deepinfra')).toEqual([{ role: 'system', content: 'Be brief' }, messages[1]]);
  for (const slug of ['openai', 'openrouter', 'groq']) expect(sent(slug)).toBe(messages);
});

test.each(Object.entries(DIALECTS))('a simple request is sent to %s unchanged and without a copy', (_, dialect) => {
  expect(toDialect(asked, dialect)).toBe(asked);
});

describe('a Responses request', () => {
  test.each([
    [
      { effort: 'low', summary: 'auto' },
      { effort: 'low', summary: 'auto' },
    ],
    [{ effort: 'max' }, { effort: 'xhigh' }],
    [{ max_tokens: 400 }, { effort: 'medium' }],
    [
      { enabled: false, summary: 'auto' },
      { effort: 'none', summary: 'auto' },
    ],
    [{ exclude: true }, undefined],
  ])('has the reasoning settings %j in OpenAI’s format', (reasoning, said) => {
    const body = toResponsesDialect({ model: 'm', max_output_tokens: 800, reasoning });
    expect(body).toEqual({ model: 'm', max_output_tokens: 800, ...(said ? { reasoning: said } : {}) });
  });
});
