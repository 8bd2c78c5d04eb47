import { describe, expect, test } from '@jest/globals';
import { type ModelRules, shareEventLoop, UpstreamError } from '#application';
import { readRuleSets } from '#catalogue';
import { type JsonObject } from '#kernel';
import { nodeTimers } from '#runtime';

import { toMessagesRequest } from './request.ts';

const RULES = readRuleSets();

const hello = { role: 'user', content: 'Hello' };
const said = { role: 'user', content: [{ type: 'text', text: 'Hello' }] };
const asked = { model: 'claude-sonnet-4-6', messages: [hello] };
const translated = (body: JsonObject, modelRules: ModelRules = {}) =>
  toMessagesRequest({ ...asked, ...body }, { defaultMaxTokens: 4_096, modelRules });

const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };
const call = (id: string, args = '{"city":"Ur"}') => {
  return { id, type: 'function', function: { name: 'weather', arguments: args } };
};
const calling = (args: string) => ({ messages: [{ role: 'assistant', tool_calls: [call('a', args)] }] });
const use = (id: string, input: object = { city: 'Ur' }) => ({ type: 'tool_use', id, name: 'weather', input });
const result = (id: string, content: unknown = 'sunny') => ({ type: 'tool_result', tool_use_id: id, content });

const ANY_CITY = { type: 'object', properties: { city: { type: 'string' } } };

describe('a request to Anthropic', () => {
  test('has the required fields, and no optional ones by default', async () => {
    expect(await translated({})).toEqual({ model: 'claude-sonnet-4-6', max_tokens: 4_096, messages: [said] });
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['the output limit', { max_completion_tokens: 7 }, { max_tokens: 7 }],
    ['the output limit of the legacy field', { max_tokens: 7 }, { max_tokens: 7 }],
    ['the temperature', { temperature: 0 }, { temperature: 0 }],
    ['the maximum temperature for a higher one', { temperature: 1.7 }, { temperature: 1 }],
    ['top_p and top_k', { top_p: 0.9, top_k: 40 }, { top_p: 0.9, top_k: 40 }],
    ['the temperature without top_p if both are set', { temperature: 0.5, top_p: 0.9 }, { temperature: 0.5 }],
    ['one stop sequence', { stop: 'END' }, { stop_sequences: ['END'] }],
    ['several stop sequences', { stop: ['a', 'b'] }, { stop_sequences: ['a', 'b'] }],
    ['the user', { user: 'u-1' }, { metadata: { user_id: 'u-1' } }],
    [
      'the output schema',
      {
        response_format: { type: 'json_schema', json_schema: { name: 'x', strict: true, schema: ANY_CITY } },
      },
      { output_config: { format: { type: 'json_schema', schema: { ...ANY_CITY, additionalProperties: false } } } },
    ],
    [
      'an instruction for JSON without a schema',
      { response_format: { type: 'json_object' } },
      { system: [{ type: 'text', text: expect.stringContaining('valid JSON object') }] },
    ],
    ['no field for a parameter that is null', { temperature: null, stop: null, tools: null, n: null, user: null }, {}],
    [
      'no field for parameters that only OpenAI supports',
      { seed: 1, logit_bias: {}, n: 1, stream_options: {}, response_format: { type: 'text' } },
      {},
    ],
  ])('has %s', async (_, more, expected) => {
    expect(await translated(more)).toEqual({ ...(await translated({})), ...expected });
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['a tool', {}, {}],
    ['auto', { tool_choice: 'auto' }, { tool_choice: { type: 'auto' } }],
    ['none', { tool_choice: 'none' }, { tool_choice: { type: 'none' } }],
    ['required', { tool_choice: 'required' }, { tool_choice: { type: 'any' } }],
    [
      'a named one',
      { tool_choice: { type: 'function', function: { name: 'weather' } } },
      { tool_choice: { type: 'tool', name: 'weather' } },
    ],
    [
      'one at a time',
      { parallel_tool_calls: false },
      { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    ],
    [
      'exactly one',
      { parallel_tool_calls: false, tool_choice: 'required' },
      { tool_choice: { type: 'any', disable_parallel_tool_use: true } },
    ],
    ['parallel calls', { parallel_tool_calls: true }, {}],
  ])('has tools with their choice: %s', async (_, more, expected) => {
    const tools = [{ name: 'weather', input_schema: { type: 'object' } }];
    expect(await translated({ tools: [weather], ...more })).toEqual({ ...(await translated({})), tools, ...expected });
  });

  test('has the descriptions of tools, and marks the strict ones', async () => {
    const declared = { name: 'now', description: 'The time', strict: true };
    expect(
      (await translated({ tools: [{ type: 'function', function: { ...declared, parameters: ANY_CITY } }] })).tools,
    ).toEqual([{ ...declared, input_schema: { ...ANY_CITY, additionalProperties: false } }]);
  });

  test('has no tool choice without tools', async () => {
    expect(await translated({ tool_choice: 'auto', parallel_tool_calls: false, tools: [] })).toEqual(
      await translated({}),
    );
  });
});

describe('a conversation', () => {
  test.each<[string, JsonObject[], JsonObject]>([
    [
      'system and developer messages are separated',
      [{ role: 'system', content: 'A' }, hello, { role: 'developer', content: [{ type: 'text', text: 'B' }] }],
      {
        system: [
          { type: 'text', text: 'A' },
          { type: 'text', text: 'B' },
        ],
        messages: [said],
      },
    ],
    [
      'consecutive messages of one role are one turn',
      [hello, { role: 'user', content: 'You' }, { role: 'assistant', content: 'Hi' }],
      {
        messages: [
          { role: 'user', content: [said.content[0], { type: 'text', text: 'You' }] },
          { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] },
        ],
      },
    ],
    [
      'the results of parallel tool calls are in one turn, before the next user message',
      [
        hello,
        { role: 'assistant', content: 'Wait', tool_calls: [call('call_1'), call('call_2', '')] },
        { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
        { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'rainy' }] },
        hello,
      ],
      {
        messages: [
          said,
          { role: 'assistant', content: [{ type: 'text', text: 'Wait' }, use('call_1'), use('call_2', {})] },
          {
            role: 'user',
            content: [result('call_1'), result('call_2', [{ type: 'text', text: 'rainy' }]), said.content[0]],
          },
        ],
      },
    ],
    [
      'a tool result can be an error',
      [
        hello,
        { role: 'assistant', content: null, tool_calls: [call('call_1')] },
        { role: 'tool', tool_call_id: 'call_1', content: 'sunny', is_error: true },
      ],
      {
        messages: [
          said,
          { role: 'assistant', content: [use('call_1')] },
          { role: 'user', content: [{ ...result('call_1'), is_error: true }] },
        ],
      },
    ],
    [
      'ids of other providers are converted to characters that Anthropic allows',
      [
        { role: 'assistant', content: null, tool_calls: [call('functions.weather:0')] },
        { role: 'tool', tool_call_id: 'functions.weather:0', content: 'sunny' },
      ],
      {
        messages: [
          { role: 'assistant', content: [use('functions_weather_0')] },
          { role: 'user', content: [result('functions_weather_0')] },
        ],
      },
    ],
    [
      'reasoning that the client has stored comes first',
      [
        {
          role: 'assistant',
          content: 'Hi',
          reasoning: 'Hm',
          reasoning_details: [
            { type: 'reasoning.text', text: 'Hm', signature: 's' },
            { type: 'reasoning.encrypted', data: 'd' },
            { type: 'reasoning.text', text: 'without signature' },
          ],
        },
      ],
      {
        messages: [
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking: 'Hm', signature: 's' },
              { type: 'redacted_thinking', data: 'd' },
              { type: 'text', text: 'Hi' },
            ],
          },
        ],
      },
    ],
    [
      'empty texts are left out',
      [hello, { role: 'assistant', content: '' }, { role: 'user', content: '' }],
      { messages: [said] },
    ],
  ])('%s', async (_, messages, expected) => {
    expect(await translated({ messages })).toEqual({ model: 'claude-sonnet-4-6', max_tokens: 4_096, ...expected });
  });

  test.each<[string, JsonObject, JsonObject]>([
    [
      'an image in base64',
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
    ],
    [
      'an image by URL',
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
    ],
    [
      'a PDF',
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' }, title: 'a.pdf' },
    ],
    [
      'a plain text file, decoded',
      { type: 'file', file: { file_data: 'data:text/plain;charset=utf-8;base64,SGk=' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hi' } },
    ],
    ['a refusal', { type: 'refusal', refusal: 'No' }, { type: 'text', text: 'No' }],
    [
      'cache_control with its lifetime',
      { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } },
      { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } },
    ],
    [
      'cache_control of which only the known fields are sent',
      { type: 'text', text: 'Hi', cache_control: { type: 'persistent', ttl: null, scope: 'global' } },
      { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral' } },
    ],
  ])('has %s', async (_, part, block) => {
    expect((await translated({ messages: [{ role: 'user', content: [part] }] })).messages).toEqual([
      { role: 'user', content: [block] },
    ]);
  });
});

describe('thinking', () => {
  const enabled = (budget_tokens: number) => ({ type: 'enabled', budget_tokens });
  const limit = { max_completion_tokens: 10_000 };

  test.each<[string, JsonObject, unknown]>([
    ['is off by default', limit, undefined],
    [
      'has a share of the limit as its budget, depending on the effort',
      { ...limit, reasoning: { effort: 'medium' } },
      enabled(5_000),
    ],
    ['has a budget of at most 0.95 of the limit', { ...limit, reasoning: { effort: 'max' } }, enabled(9_500)],
    ['can be enabled without an effort', { ...limit, reasoning: { enabled: true } }, enabled(5_000)],
    ['has at least the budget that Anthropic requires', { ...limit, reasoning: { effort: 'minimal' } }, enabled(1_024)],
    ['can have a budget in tokens', { ...limit, reasoning: { max_tokens: 2_000 } }, enabled(2_000)],
    ['leaves a token for the completion', { ...limit, reasoning: { max_tokens: 20_000 } }, enabled(9_999)],
    [
      'can be hidden',
      { ...limit, reasoning: { max_tokens: 2_000, exclude: true } },
      { ...enabled(2_000), display: 'omitted' },
    ],
    ['is off if it is disabled', { ...limit, reasoning: { enabled: false, max_tokens: 2_000 } }, undefined],
    ['is off with a budget of zero', { ...limit, reasoning: { max_tokens: 0 } }, undefined],
    ['is off if it is only hidden', { ...limit, reasoning: { exclude: true } }, undefined],
    ['is off if the effort is none', { ...limit, reasoning: { effort: 'none' } }, undefined],
    [
      'is off if the output limit is too small',
      { max_completion_tokens: 1_024, reasoning: { effort: 'high' } },
      undefined,
    ],
    [
      'is off if a tool must be called',
      { ...limit, reasoning: { effort: 'high' }, tools: [weather], tool_choice: 'required' },
      undefined,
    ],
    [
      'is off if the thinking before a tool call is missing',
      {
        ...limit,
        reasoning: { effort: 'high' },
        messages: [
          hello,
          { role: 'assistant', tool_calls: [call('a')] },
          { role: 'tool', tool_call_id: 'a', content: 'x' },
        ],
      },
      undefined,
    ],
  ])('%s', async (_, body, thinking) => {
    expect((await translated(body)).thinking).toEqual(thinking);
  });

  test('stays on with a tool result if the thinking before the call is included', async () => {
    const reasoning_details = [{ type: 'reasoning.text', text: 'Hm', signature: 's' }];
    const messages = [
      hello,
      { role: 'assistant', reasoning_details, tool_calls: [call('a')] },
      { role: 'tool', tool_call_id: 'a', content: 'x' },
    ];
    expect((await translated({ ...limit, reasoning: { effort: 'low' }, messages })).thinking).toEqual(enabled(2_000));
  });

  test('excludes sampling parameters', async () => {
    const request = await translated({ ...limit, reasoning: { effort: 'low' }, temperature: 0, top_p: 0.5, top_k: 3 });
    expect([request.temperature, request.top_p, request.top_k]).toEqual([undefined, undefined, undefined]);
  });
});

describe('adaptive thinking', () => {
  const modelRules = RULES['anthropic-adaptive'] as ModelRules;
  const limit = { max_completion_tokens: 10_000 };
  const thinking = { type: 'adaptive', display: 'summarized' };

  test('is used for a model whose rules say so, whatever its name', async () => {
    const body = { ...limit, model: 'claude-next', reasoning: { effort: 'low' } };
    expect((await translated(body, modelRules)).thinking).toEqual(thinking);
    const request = await translated({ ...body, model: 'claude-opus-4-7' });
    expect([request.thinking, request.output_config]).toEqual([{ type: 'enabled', budget_tokens: 2_000 }, undefined]);
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['is off by default', {}, {}],
    ['has the requested effort', { effort: 'xhigh' }, { thinking, output_config: { effort: 'xhigh' } }],
    ['has the maximum effort', { effort: 'max' }, { thinking, output_config: { effort: 'max' } }],
    ['has at least a low effort', { effort: 'minimal' }, { thinking, output_config: { effort: 'low' } }],
    ['maps a small budget to low', { max_tokens: 1_000 }, { thinking, output_config: { effort: 'low' } }],
    ['maps half the limit to medium', { max_tokens: 5_000 }, { thinking, output_config: { effort: 'medium' } }],
    ['maps a large budget to high', { max_tokens: 9_000 }, { thinking, output_config: { effort: 'high' } }],
    ['can be enabled without an effort', { enabled: true }, { thinking, output_config: { effort: 'medium' } }],
    ['is off if it is disabled', { enabled: false }, {}],
    ['is off if the effort is none', { effort: 'none' }, {}],
    [
      'can be hidden',
      { effort: 'high', exclude: true },
      { thinking: { ...thinking, display: 'omitted' }, output_config: { effort: 'high' } },
    ],
  ])('%s', async (_, reasoning, expected) => {
    expect(await translated({ ...limit, temperature: 0.3, top_k: 4, reasoning }, modelRules)).toEqual({
      ...(await translated(limit)),
      ...expected,
    });
  });

  test('can be combined with an output schema', async () => {
    const schema = { type: 'object', properties: {}, additionalProperties: false };
    const response_format = { type: 'json_schema', json_schema: { schema } };
    const { output_config } = await translated({ response_format, reasoning: { effort: 'low' } }, modelRules);
    expect(output_config).toEqual({ format: { type: 'json_schema', schema }, effort: 'low' });
  });
});

const textFile = (base64Characters: number) => ({
  type: 'file',
  file: { file_data: `data:text/plain;base64,${'QUJD'.repeat(base64Characters / 4)}` },
});

test('text documents may have eight million characters in base64 each', async () => {
  const content = [textFile(8 * 1024 * 1024), textFile(8)];
  const { messages } = await translated({ messages: [{ role: 'user', content }] });
  expect(messages).toMatchObject([{ content: [{}, { source: { type: 'text', data: 'ABCABC' } }] }]);
});

describe('a parameter that Anthropic does not support is rejected:', () => {
  test.each<[string, JsonObject]>([
    ['several choices', { n: 2 }],
    ['audio', { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] }],
    [
      'a file that is stored at OpenAI',
      { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }] },
    ],
    [
      'an image with another URL scheme',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'ftp://a' } }] }] },
    ],
    [
      'a lifetime of a cache that Anthropic does not have',
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control: { ttl: '24h' } }] }] },
    ],
    ['custom tools of OpenAI', { tools: [{ type: 'custom', custom: {} }] }],
    ['a choice of several tools', { tools: [weather], tool_choice: { type: 'allowed_tools' } }],
    ['arguments that are not JSON', calling('{')],
    ['arguments that are too long', calling(`"${'x'.repeat(2 * 1024 * 1024)}"`)],
    ['a text document that is too long', { messages: [{ role: 'user', content: [textFile(8 * 1024 * 1024 + 4)] }] }],
    ['arguments that take long to parse', calling(`[${'{},'.repeat(16_400)}{}]`)],
  ])('%s', async (_, body) => {
    await expect(translated(body)).rejects.toThrow(UpstreamError);
    await expect(translated(body)).rejects.toThrow(expect.objectContaining({ code: 'invalid_request' }));
  });
});

describe('Anthropic’s web search', () => {
  const search = { maxUses: 2, isRequired: false, includeDomains: [], excludeDomains: [] };
  const searching = (body: JsonObject, more: object = {}) =>
    toMessagesRequest(
      { ...asked, ...body },
      { defaultMaxTokens: 4_096, search: { ...search, ...more }, modelRules: {} },
    );
  const tool = { type: 'web_search_20250305', name: 'web_search', max_uses: 2 };

  test.each<[string, JsonObject, object, JsonObject]>([
    ['is a tool', {}, {}, { tools: [tool] }],
    [
      'is added to other tools',
      { tools: [weather], tool_choice: 'auto' },
      {},
      {
        tools: [{ name: 'weather', input_schema: { type: 'object' } }, tool],
        tool_choice: { type: 'auto' },
      },
    ],
    ['can be limited to domains', {}, { includeDomains: ['a.b'] }, { tools: [{ ...tool, allowed_domains: ['a.b'] }] }],
    ['can exclude domains', {}, { excludeDomains: ['a.b'] }, { tools: [{ ...tool, blocked_domains: ['a.b'] }] }],
    ['can be forced', {}, { isRequired: true }, { tools: [tool], tool_choice: { type: 'tool', name: 'web_search' } }],
    [
      'is required by the system message if the model thinks',
      { reasoning: { max_tokens: 2_000 } },
      { isRequired: true },
      {
        tools: [tool],
        thinking: { type: 'enabled', budget_tokens: 2_000 },
        system: [{ type: 'text', text: expect.stringContaining('Search') }],
      },
    ],
  ])('%s', async (_, body, more, expected) => {
    expect(await searching(body, more)).toEqual({ ...(await translated({})), ...expected });
  });
});

test.each<[string, JsonObject]>([
  ['calls', { messages: Array.from({ length: 64 }, () => calling(`[${'{},'.repeat(16_000)}{}]`).messages).flat() }],
  ['text documents', { messages: [{ role: 'user', content: Array(8).fill(textFile(4 * 1024 * 1024)) }] }],
  [
    'an output schema',
    {
      response_format: {
        type: 'json_schema',
        json_schema: {
          schema: { anyOf: Array.from({ length: 50_000 }, (_, i) => ({ properties: { [i]: { type: 'null' } } })) },
        },
      },
    },
  ],
])('other work runs while a long list is translated: %s', async (_, body) => {
  shareEventLoop(nodeTimers);
  let hasRun = false;
  setImmediate(() => {
    hasRun = true;
  });
  await translated(body);
  expect(hasRun).toBe(true);
});

describe('a turn with searches of Anthropic that the client has sent back', () => {
  const search = { maxUses: 3, isRequired: false, includeDomains: [], excludeDomains: [] };
  const pending = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'Ur' } };
  const content_blocks = [{ type: 'text', text: 'I search' }, pending, use('a')];
  const turn = { role: 'assistant', content: 'I search', tool_calls: [call('a')], content_blocks };
  const withSearch = (messages: readonly JsonObject[], more: JsonObject = {}) =>
    toMessagesRequest(
      { ...asked, tools: [weather], ...more, messages },
      { defaultMaxTokens: 4_096, modelRules: {}, search },
    );

  test('has a search that has not ended, in its position before a call of a function', async () => {
    const { messages } = await withSearch([hello, turn, { role: 'tool', tool_call_id: 'a', content: 'sunny' }]);
    expect(messages).toEqual([
      said,
      { role: 'assistant', content: content_blocks },
      { role: 'user', content: [result('a')] },
    ]);
  });

  test('is continued, so that a required call is not required again', async () => {
    const paused = { ...turn, tool_calls: undefined, content_blocks: content_blocks.slice(0, 2) };
    const { messages, tool_choice } = await withSearch([hello, paused], { tool_choice: 'required' });
    expect(messages).toEqual([said, { role: 'assistant', content: content_blocks.slice(0, 2) }]);
    expect(tool_choice).toEqual({ type: 'auto' });
  });

  test('has only its text if the request does not search', async () => {
    const messages = [hello, { ...turn, tool_calls: undefined }];
    expect((await translated({ messages })).messages).toEqual([
      said,
      { role: 'assistant', content: [{ type: 'text', text: 'I search' }] },
    ]);
  });
});
