import { describe, expect, test } from '@jest/globals';
import { countPauses } from '../../../../testing/src/count-pauses.ts';
import { encodeReasoning } from '../responses/reasoning.ts';
import type { MessagesBody } from './body.ts';
import { parseMessagesRequest } from './request.ts';

const user = { role: 'user', content: 'Hello' };
const asked: MessagesBody = { model: 'm', max_tokens: 2_000, messages: [user] };
const read = (more: Partial<MessagesBody>) => parseMessagesRequest({ ...asked, ...more });
const chatOf = async (more: Partial<MessagesBody>) => (await read(more)).chat;
const messagesOf = async (...messages: object[]) => (await chatOf({ messages })).messages;

const LONDON = { type: 'approximate', city: 'London' };
const mark = { cache_control: { type: 'ephemeral' } };
const words = (text: string) => ({ type: 'text', text });
const tool = { name: 'f', description: 'F', input_schema: { type: 'object' } };
const declared = { type: 'function', function: { name: 'f', description: 'F', parameters: { type: 'object' } } };
const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: { a: 1 } });
const called = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{"a":1}' } });
const result = (id: string, content?: unknown) => ({ type: 'tool_result', tool_use_id: id, content });
const base64 = (type: string, media_type: string) => ({ type, source: { type: 'base64', media_type, data: 'AA==' } });
const image = base64('image', 'image/png');
const shown = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } };

describe('converting a Messages request to a chat', () => {
  test.each<[string, Partial<MessagesBody>, object]>([
    ['the output limit', {}, { model: 'm', max_completion_tokens: 2_000, messages: [user] }],
    ['sampling parameters', { temperature: 0.5, top_p: 0.9, top_k: 4 }, { temperature: 0.5, top_p: 0.9, top_k: 4 }],
    ['stop sequences', { stop_sequences: ['END'] }, { stop: ['END'] }],
    ['the user id', { metadata: { user_id: 'ada' } }, { user: 'ada' }],
    ['routing preferences', { provider: { zdr: true } }, { provider: { zdr: true } }],
    ['a system prompt', { system: 'Be brief' }, { messages: [{ role: 'system', content: 'Be brief' }, user] }],
    [
      'a system prompt in blocks',
      { system: [words('a'), words('b')] },
      { messages: [{ role: 'system', content: 'a\nb' }, user] },
    ],
    [
      'a system prompt with cache_control',
      { system: [words('a'), { ...words('b'), ...mark }] },
      { messages: [{ role: 'system', content: [words('a'), { ...words('b'), ...mark }] }, user] },
    ],
    [
      'a top-level cache_control field',
      mark,
      { messages: [{ role: 'user', content: [{ ...words('Hello'), ...mark }] }] },
    ],
    ['tools', { tools: [{ ...tool, ...mark }] }, { tools: [{ ...declared, ...mark }] }],
    [
      'a strict tool',
      { tools: [{ ...tool, strict: true }] },
      { tools: [{ ...declared, function: { ...declared.function, strict: true } }] },
    ],
    [
      'a web search',
      {
        tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2, user_location: LONDON }],
        tool_choice: { type: 'tool', name: 'web_search' },
      },
      { tools: [{ type: 'web_search', max_uses: 2, user_location: LONDON }], tool_choice: { type: 'web_search' } },
    ],
    ['tool choice any', { tools: [tool], tool_choice: { type: 'any' } }, { tool_choice: 'required' }],
    ['tool choice none', { tools: [tool], tool_choice: { type: 'none' } }, { tool_choice: 'none' }],
    [
      'the choice of one tool without parallel calls',
      { tools: [tool], tool_choice: { type: 'tool', name: 'f', disable_parallel_tool_use: true } },
      { tool_choice: { type: 'function', function: { name: 'f' } }, parallel_tool_calls: false },
    ],
    [
      'a thinking budget',
      { thinking: { type: 'enabled', budget_tokens: 1_024 } },
      { reasoning: { max_tokens: 1_024 } },
    ],
    ['adaptive thinking', { thinking: { type: 'adaptive' } }, { reasoning: { enabled: true } }],
    [
      'adaptive thinking with an effort',
      { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
      { reasoning: { effort: 'low' } },
    ],
    [
      'an output schema',
      { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'answer', schema: { type: 'object' }, strict: true },
        },
      },
    ],
  ])('converts %s', async (_, more, chat) => {
    expect(await chatOf(more)).toMatchObject(chat);
  });

  test.each<[string, Partial<MessagesBody>, string]>([
    ['a tool choice without tools', { tool_choice: { type: 'any' } }, 'tool_choice'],
    ['disabled thinking', { thinking: { type: 'disabled' } }, 'reasoning'],
    ['a user id that OpenAI would reject', { metadata: { user_id: 'x'.repeat(65) } }, 'user'],
    ['an unknown field', { seed: 3 }, 'seed'],
  ])('omits %s', async (_, more, field) => {
    expect(await chatOf(more)).not.toHaveProperty(field);
  });

  test('puts tool results before the other content of their turn', async () => {
    const results = [
      words('And?'),
      result('a', 'fine'),
      { ...result('b', [words('so'), words(' so')]), is_error: true },
    ];
    expect(
      await messagesOf(
        user,
        { role: 'assistant', content: [words('I look'), use('a'), use('b')] },
        { role: 'user', content: results },
      ),
    ).toEqual([
      user,
      { role: 'assistant', content: 'I look', tool_calls: [called('a'), called('b')] },
      { role: 'tool', tool_call_id: 'a', content: 'fine' },
      { role: 'tool', tool_call_id: 'b', content: 'so so', is_error: true },
      { role: 'user', content: 'And?' },
    ]);
  });

  test('retains cache_control on a tool result', async () => {
    const marked = { ...result('a', 'fine'), ...mark };
    const turns = await messagesOf({ role: 'assistant', content: [use('a')] }, { role: 'user', content: [marked] });
    expect(turns.at(-1)).toEqual({ role: 'tool', tool_call_id: 'a', content: 'fine', ...mark });
    const top = await chatOf({
      ...mark,
      messages: [
        { role: 'assistant', content: [use('a')] },
        { role: 'user', content: [result('a')] },
      ],
    });
    expect(top.messages.at(-1)).toEqual({ role: 'tool', tool_call_id: 'a', content: '', ...mark });
  });

  test('retains signatures of calls in the format of Gemini, and rejects changed ones', async () => {
    const detail = { type: 'reasoning.encrypted', data: 'x', id: 'a', format: 'google-gemini-v1', index: 0 };
    const block = { type: 'redacted_thinking', data: encodeReasoning([detail]) };
    const [, message] = await messagesOf(user, { role: 'assistant', content: [block, use('a')] });
    expect(message?.reasoning_details).toEqual([detail]);
    const changed = { ...block, data: `${block.data.slice(0, -8)}AAAA` };
    await expect(messagesOf(user, { role: 'assistant', content: [changed] })).rejects.toMatchObject({
      status: 400,
      param: 'messages[1].content[0].data',
    });
  });

  test('retains signed and redacted reasoning, but no unsigned reasoning', async () => {
    const content = [
      { type: 'thinking', thinking: 'Hm', signature: 's' },
      { type: 'thinking', thinking: 'Ah', signature: '' },
      { type: 'redacted_thinking', data: 'x' },
      use('a'),
    ];
    const format = 'anthropic-claude-v1';
    expect((await messagesOf(user, { role: 'assistant', content }))[1]).toEqual({
      role: 'assistant',
      content: null,
      reasoning_details: [
        { type: 'reasoning.text', text: 'Hm', signature: 's', format, index: 0 },
        { type: 'reasoning.encrypted', data: 'x', format, index: 1 },
      ],
      tool_calls: [called('a')],
    });
  });

  test('converts images and documents, including images in tool results', async () => {
    const pdf = { ...base64('document', 'application/pdf'), title: 'T' };
    const plain = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } };
    const far = { type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } };
    const found = { type: 'search_result', source: 's', title: 'T', content: [words('fine')] };
    expect(
      (await messagesOf({ role: 'user', content: [image, { ...far, ...mark }, pdf, plain, found, words('')] }))[0]
        ?.content,
    ).toEqual([
      shown,
      { type: 'image_url', image_url: { url: 'https://a.example/b.png' }, ...mark },
      words('T\n'),
      { type: 'file', file: { filename: 'T', file_data: 'data:application/pdf;base64,AA==' } },
      words('x'),
      words('T\ns\n'),
      words('fine'),
    ]);
    const returned = { role: 'user', content: [result('a', [words('Look'), image])] };
    expect((await messagesOf({ role: 'assistant', content: [use('a')] }, returned))[1]?.content).toEqual([
      words('Look'),
      shown,
    ]);
  });

  test('omits blocks of tools that the provider ran, apart from those of a turn that the provider continues', async () => {
    const search = [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
    ];
    const turn = { role: 'assistant', content: [...search, words('Yes')] };
    const next = { role: 'user', content: 'And?' };
    expect(await messagesOf(turn, next)).toEqual([{ role: 'assistant', content: 'Yes' }, next]);
    expect(await messagesOf(turn)).toEqual([{ role: 'assistant', content: 'Yes', content_blocks: turn.content }]);
    const call = { type: 'tool_use', id: 'a', name: 'f', input: {} };
    const calling = { ...turn, content: [search[0], call] };
    const [sent] = await messagesOf(calling, { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] });
    expect(sent).toMatchObject({ tool_calls: [{ id: 'a' }], content_blocks: calling.content });
  });

  test.each([
    [undefined, 'hidden'],
    [{ type: 'disabled' }, 'hidden'],
    [{ type: 'adaptive' }, 'visible'],
    [{ type: 'enabled', budget_tokens: 1_024, display: 'omitted' }, 'signed'],
  ])('derives the visibility of reasoning from thinking: %j', async (thinking, thoughts) => {
    expect((await read(thinking ? { thinking } : {})).thinkingVisibility).toBe(thoughts);
  });
});

test('other work runs while the long input of a tool is converted to the text of JSON.stringify', async () => {
  const input = { text: '\n"\ud800'.repeat(2_000_000) };
  const { result: messages, pauses } = await countPauses(() =>
    messagesOf(user, { role: 'assistant', content: [{ ...use('a'), input }] }),
  );
  expect(pauses).toBeGreaterThan(0);
  const [converted] = (messages[1]?.tool_calls ?? []) as readonly {
    readonly function: { readonly arguments: string };
  }[];
  expect(converted?.function.arguments === JSON.stringify(input)).toBe(true);
});

describe('an invalid Messages request', () => {
  const assistant = (...content: unknown[]) => ({ messages: [{ role: 'assistant', content }] });
  const from = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] });

  test.each<[string, Partial<MessagesBody>]>([
    ['mcp_servers', { mcp_servers: [{}] }],
    ['container', { container: 'c' }],
    ['tools[0]', { tools: [null] }],
    ['tools[1].name', { tools: [tool, { type: 'bash_20250124', name: 'shell' }] }],
    ['tools[0].type', { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }],
    ['tools[0].name', { tools: [{ ...tool, name: 3 }] }],
    ['tools[0].input_schema', { tools: [{ name: 'f' }] }],
    ['tool_choice.type', { tools: [tool], tool_choice: { type: 'some' } }],
    ['tool_choice.name', { tools: [tool], tool_choice: { type: 'tool', name: 'g' } }],
    ['thinking.type', { thinking: { type: 'much' } }],
    ['thinking.budget_tokens', { thinking: { type: 'enabled' } }],
    ['max_tokens', { thinking: { type: 'enabled', budget_tokens: 2_000 } }],
    ['output_config.effort', { output_config: { effort: 'huge' } }],
    ['output_config.format', { output_config: { format: { type: 'json_schema' } } }],
    ['system[0]', { system: [null] }],
    ['system[0]', { system: [image] }],
    ['messages', { messages: [{ role: 'user', content: [words('')] }] }],
    ['messages[0]', { messages: [null] }],
    ['messages[0].role', { messages: [{ role: 'tool', content: 'x' }] }],
    ['messages[0].content', { messages: [{ role: 'user' }] }],
    ['messages[0].content[0]', from(null)],
    ['messages[0].content[0].type', from({ type: 'sound' })],
    ['messages[0].content[0].text', from({ type: 'text' })],
    ['messages[0].content[0].source', from({ type: 'image', source: { type: 'file', file_id: 'f' } })],
    ['messages[0].content[0].source', from({ type: 'image' })],
    ['messages[0].content[0].tool_use_id', from(result('nobody'))],
    ['messages[0].content[0].content', from({ type: 'search_result' })],
    ['messages[0].content[0].id', assistant({ type: 'tool_use', name: 'f' })],
    ['messages[0].content[0].name', assistant({ type: 'tool_use', id: 'a' })],
  ])('is rejected with the path of the invalid field: %s', async (param, more) => {
    await expect(read(more)).rejects.toThrow(expect.objectContaining({ status: 400, param }));
  });
});
