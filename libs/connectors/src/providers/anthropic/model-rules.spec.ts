import { describe, expect, test } from '@jest/globals';
import type { ModelRules, NativeSearch } from '#application';
import { readRuleSets } from '#catalogue';
import { type JsonObject } from '#kernel';
import { toMessagesRequest } from './request.ts';
import { getThinkingLimit } from './thinking.ts';

const RULES = readRuleSets();
const rulesOf = (name: string) => RULES[name] as ModelRules;
const ALWAYS = rulesOf('claude-always-thinking');

const DROP_BLOCK = { prefix_mismatch_behavior: 'drop_block' };

const baseBody = { model: 'claude', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10_000 };
const translated = (body: JsonObject, modelRules: ModelRules, search?: NativeSearch) =>
  toMessagesRequest({ ...baseBody, ...body }, { defaultMaxTokens: 4_096, modelRules, search });

describe('a request without reasoning', () => {
  test.each<[string, JsonObject]>([
    ['anthropic-adaptive', {}],
    ['claude-5', { thinking: { type: 'disabled' } }],
    ['claude-sonnet-5.5', { thinking: { type: 'between_tools' } }],
    ['claude-always-thinking', { thinking: expect.any(Object), output_config: { effort: 'low' } }],
  ])('says so to a model with the rules %s in the way that it accepts', async (name, expected) => {
    for (const reasoning of [{ effort: 'none' }, { enabled: false }, { max_tokens: 0 }]) {
      const { thinking, output_config } = await translated({ reasoning }, rulesOf(name));
      expect({ ...(thinking ? { thinking } : {}), ...(output_config ? { output_config } : {}) }).toEqual(expected);
    }
  });

  test.each([
    ['anthropic-adaptive', 0],
    ['claude-5', 0],
    ['claude-sonnet-5.5', undefined],
    ['claude-always-thinking', undefined],
  ])('permits a model with the rules %s %s thinking tokens', async (name, limit) => {
    expect(getThinkingLimit(await translated({ reasoning: { effort: 'none' } }, rulesOf(name)), rulesOf(name))).toBe(
      limit,
    );
  });

  test('leaves a model to its default if the request does not say how to reason', async () => {
    for (const name of ['anthropic-adaptive', 'claude-5', 'claude-sonnet-5.5', 'claude-always-thinking']) {
      const request = await translated({}, rulesOf(name));
      const bound = rulesOf(name).preservedThinking ? { type: 'adaptive', block_binding: DROP_BLOCK } : undefined;
      expect([request.thinking, request.output_config]).toEqual([bound, undefined]);
      expect(getThinkingLimit(request, rulesOf(name))).toBe(name === 'anthropic-adaptive' ? 0 : undefined);
    }
  });
});

describe('a tool call that the request requires', () => {
  const tools = [{ type: 'function', function: { name: 'weather' } }];
  const named = { type: 'function', function: { name: 'weather' } };

  test.each([
    ['claude-4.6', undefined],
    ['anthropic-adaptive', undefined],
    ['claude-5', { type: 'disabled' }],
  ])('is forced for a model with the rules %s, which then must not think', async (name, thinking) => {
    const request = await translated({ tools, tool_choice: named, reasoning: { effort: 'high' } }, rulesOf(name));
    expect(request).toMatchObject({ tool_choice: { type: 'tool', name: 'weather' } });
    expect([request.thinking, request.system]).toEqual([thinking, undefined]);
  });

  test.each(['claude-sonnet-5.5', 'claude-always-thinking'])(
    'is required by the system message of a model with the rules %s, which rejects a forced call',
    async (name) => {
      const request = await translated({ tools, tool_choice: named, reasoning: { effort: 'high' } }, rulesOf(name));
      expect(request).toMatchObject({
        tool_choice: { type: 'auto' },
        thinking: { type: 'adaptive' },
        output_config: { effort: 'high' },
        system: [{ type: 'text', text: expect.stringContaining('"weather"') }],
      });
      const any = await translated({ tools, tool_choice: 'required', parallel_tool_calls: false }, rulesOf(name));
      expect(any).toMatchObject({
        tool_choice: { type: 'auto', disable_parallel_tool_use: true },
        system: [{ type: 'text', text: expect.stringContaining('at least one tool') }],
      });
    },
  );

  test('is not forced for a search by a model that thinks by default', async () => {
    const search = { maxUses: 1, isRequired: true, includeDomains: [], excludeDomains: [] };
    for (const modelRules of [ALWAYS, rulesOf('claude-5')]) {
      const request = await translated({}, modelRules, search);
      expect(request).toMatchObject({ system: [{ text: expect.stringContaining('Search') }] });
      expect(request.tool_choice).toBeUndefined();
    }
  });
});

test.each(['anthropic-adaptive', 'claude-5', 'claude-sonnet-5.5', 'claude-always-thinking'])(
  'a request to a model with the rules %s has no sampling parameters',
  async (name) => {
    const request = await translated({ temperature: 0.3, top_p: 0.5, top_k: 4 }, rulesOf(name));
    expect([request.temperature, request.top_p, request.top_k]).toEqual([undefined, undefined, undefined]);
  },
);

describe('thinking of earlier turns', () => {
  const format = 'anthropic-claude-v1';
  const details = [{ type: 'reasoning.text', text: 'Hm', signature: 'sig', format }];
  const messages = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Hi', reasoning_details: details },
    { role: 'user', content: 'How are you?' },
    { role: 'assistant', content: null, reasoning_details: details },
    { role: 'user', content: 'Well?' },
  ];
  const thought = { type: 'thinking', thinking: 'Hm', signature: 'sig' };

  test.each(['claude-always-thinking', 'claude-sonnet-5.5', 'claude-haiku-5.5'])(
    'may be dropped if it does not fit, by a model with the rules %s',
    async (name) => {
      const request = await translated({ messages, reasoning: { effort: 'low' } }, rulesOf(name));
      expect(request.thinking).toEqual({ type: 'adaptive', display: 'summarized', block_binding: DROP_BLOCK });
      expect(request.messages).toMatchObject([
        {},
        { content: [thought, { text: 'Hi' }] },
        {},
        { content: [thought] },
        {},
      ]);
    },
  );

  test.each(['claude-sonnet-5.5', 'claude-haiku-5.5'])(
    'is not sent to a model with the rules %s that must not think, which cannot drop it',
    async (name) => {
      const request = await translated({ messages, reasoning: { effort: 'none' } }, rulesOf(name));
      expect(request.messages).toEqual([
        { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
        { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] },
        { role: 'user', content: [{ type: 'text', text: 'How are you?' }] },
        { role: 'user', content: [{ type: 'text', text: 'Well?' }] },
      ]);
    },
  );

  test('is sent as it is to a model whose thinking is not bound', async () => {
    const request = await translated({ messages, reasoning: { effort: 'low' } }, rulesOf('claude-5'));
    expect(request.thinking).toEqual({ type: 'adaptive', display: 'summarized' });
  });
});
