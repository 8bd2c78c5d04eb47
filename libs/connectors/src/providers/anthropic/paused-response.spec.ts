import { describe, expect, test } from '@jest/globals';
import type { NativeSearch } from '#application';
import type { AnthropicContentBlock } from './blocks.ts';
import { createMessagesFilter } from './field-filter.ts';
import { createPausedResponse, MAX_PAUSED_CHARACTERS } from './paused-response.ts';
import { toMessagesRequest } from './request.ts';
import { parseAnthropicCompletion } from './response.ts';
import { AnthropicSearchTranslator } from './search-events.ts';

const identity = { id: 'gen-1', model: 'anthropic/claude-sonnet-4.6', provider: 'Anthropic', created: 7 };
const text = (words: string): AnthropicContentBlock => ({ type: 'text', text: words });
const search = (id: string): AnthropicContentBlock => ({
  type: 'server_tool_use',
  id,
  name: 'web_search',
  input: { query: 'q' },
});
const result = (tool_use_id: string): AnthropicContentBlock => ({
  type: 'web_search_tool_result',
  tool_use_id,
  content: [],
});

describe('a paused turn', () => {
  test.each<[string, readonly AnthropicContentBlock[], object]>([
    ['ended searches', [search('a'), result('a'), search('b'), result('b')], { searches: 2, isSearching: false }],
    ['a search that has not ended', [search('a'), result('a'), search('b')], { searches: 1, isSearching: true }],
  ])('counts %s', (_, content, expected) => {
    expect(createPausedResponse(content)).toEqual({ content, ...expected });
  });

  test('is continued without its empty texts', () => {
    expect(createPausedResponse([text(''), search('a'), text('b')])?.content).toEqual([search('a'), text('b')]);
  });

  test.each<[string, readonly AnthropicContentBlock[]]>([
    ['has no content', [text('')]],
    ['calls a tool of the caller', [text('a'), { type: 'tool_use', id: 't', name: 'f', input: {} }]],
    ['has a block of an unknown type', [{ type: 'code_execution_tool_result' } as never]],
    ['is too long', [text('a'.repeat(MAX_PAUSED_CHARACTERS))]],
  ])('is not continued if it %s', (_, content) => {
    expect(createPausedResponse(content)).toBeUndefined();
  });
});

describe('the request that continues a turn', () => {
  const native: NativeSearch = { maxUses: 2, isRequired: true, includeDomains: [], excludeDomains: [] };
  const content = [text('A'), search('a'), result('a')];
  const user = { role: 'user', content: 'Hello' };
  const body = { model: 'claude-haiku-4-5', messages: [user], max_tokens: 99 };
  const toRequest = (fields: object, options: Partial<NativeSearch> = {}) =>
    toMessagesRequest(
      { ...body, ...fields },
      { defaultMaxTokens: 99, search: { ...native, ...options }, modelRules: {}, paused: content },
    );

  test('ends with its content, and requires no search', async () => {
    const request = await toRequest({});
    expect(request.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
      { role: 'assistant', content },
    ]);
    expect(request).not.toHaveProperty('tool_choice');
    expect(createMessagesFilter(false)(request, '')).toEqual(request);
  });

  test('appends its content to a message that the caller has started', async () => {
    const request = await toRequest({ messages: [user, { role: 'assistant', content: 'Well, ' }] });
    expect(request.messages).toEqual([expect.anything(), { role: 'assistant', content: [text('Well, '), ...content] }]);
  });

  test('declares the search without permitting it if none is left', async () => {
    const request = await toRequest({}, { maxUses: 0 });
    expect(request).toMatchObject({ tools: [{ name: 'web_search', max_uses: 1 }], tool_choice: { type: 'none' } });
  });

  test('does not require a call again', async () => {
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const request = await toRequest({ tools, tool_choice: 'required', parallel_tool_calls: false });
    expect(request.tool_choice).toEqual({ type: 'auto', disable_parallel_tool_use: true });
  });
});

test('a continued completion counts only its own searches and text for billing', () => {
  const paused = [text('A'), search('a'), result('a'), search('b')];
  const message = JSON.stringify({ content: [result('b'), text('B')], stop_reason: 'end_turn' });
  const completion = parseAnthropicCompletion(message, identity, { hasSearched: true, paused });
  expect(completion.searches).toMatchObject({ statuses: [{ at: 0 }, { at: 1 }], invoiced: 1 });
  expect(completion.getDeliveredText()).toBe('B');
  expect(completion.body.choices).toMatchObject([{ message: { content: 'AB' } }]);
});

test('a stream of a turn that is too long ends as one that is cut off', () => {
  const translator = new AnthropicSearchTranslator(identity);
  const long = { ...result('a'), content: ['x'.repeat(MAX_PAUSED_CHARACTERS)] };
  const events = [
    { type: 'content_block_start', index: 0, content_block: long },
    { type: 'message_delta', delta: { stop_reason: 'pause_turn' }, usage: {} },
    { type: 'message_stop' },
  ];
  let out = '';
  for (const event of events)
    translator.accept(Buffer.from(`data: ${JSON.stringify(event)}\n\n`), (piece) => {
      out += Buffer.from(piece);
    });
  expect(translator.pausedResponse).toBeUndefined();
  expect(out).toContain('"finish_reason":"length","native_finish_reason":"pause_turn"');
});
