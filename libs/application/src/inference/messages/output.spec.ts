import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ChatDelta, TypedEvent } from '../chat/translating-writer.ts';
import { encodeReasoning } from '../responses/reasoning.ts';
import { MessageOutput } from './output.ts';
import type { ThinkingVisibility } from './request.ts';

const GEMINI_SIGNATURE = { type: 'reasoning.encrypted', data: 'x', id: 'a', format: 'google-gemini-v1', index: 0 };

const call = (index: number, name?: string, args?: string, id = name && `call_${index}`) => ({
  tool_calls: [{ index, ...(id ? { id } : {}), function: { ...(name ? { name } : {}), arguments: args ?? '' } }],
});

function answered(deltas: readonly ChatDelta[], thoughts: ThinkingVisibility = 'visible') {
  const output = new MessageOutput('1', thoughts);
  const events = deltas.flatMap((delta) => output.accept(delta));
  return { events: [...events, ...output.end()], blocks: output.blocks };
}

/** Builds the blocks from the events alone, as a client does. Fails if an event is out of order. */
function rebuilt(events: readonly TypedEvent[]): unknown[] {
  const blocks: Record<string, unknown>[] = [];
  let open = -1;
  let json = '';
  // biome-ignore lint/suspicious/noExplicitAny: events of any type
  for (const { type, index, content_block, delta } of events as readonly any[]) {
    if (type === 'content_block_start') {
      expect([open, index]).toEqual([-1, blocks.length]);
      open = index;
      json = '';
      blocks.push({ ...content_block });
      continue;
    }
    expect(index).toBe(open);
    const block = blocks[open] as Record<string, unknown>;
    if (type === 'content_block_stop') {
      if ('input' in block) block.input = JSON.parse(json || '{}');
      open = -1;
      continue;
    }
    const { text, thinking, signature, partial_json, citation } = delta;
    if (text !== undefined) block.text += text;
    if (thinking !== undefined) block.thinking += thinking;
    if (signature !== undefined) block.signature = signature;
    if (partial_json !== undefined) json += partial_json;
    if (citation !== undefined) block.citations = [...(block.citations as unknown[]), citation]; // as clients do
  }
  expect(open).toBe(-1);
  return blocks;
}

const toCall = (type: 'tool_use' | 'server_tool_use', id: string, name: string, input: object) => ({
  type,
  id,
  name,
  input,
  caller: { type: 'direct' },
});

describe('the content blocks of a completion', () => {
  test.each<[string, ChatDelta[], object[]]>([
    ['nothing for an empty text', [{ content: '' }], []],
    ['a text', [{ content: '' }, { content: 'a' }, { content: 'b' }], [{ type: 'text', text: 'ab' }]],
    [
      'reasoning, a text and a call',
      [{ reasoning: 'Hm' }, { content: 'So' }, call(0, 'f', '{"a"'), call(0, undefined, ':1}')],
      [
        { type: 'thinking', thinking: 'Hm', signature: '' },
        { type: 'text', text: 'So' },
        toCall('tool_use', 'call_0', 'f', { a: 1 }),
      ],
    ],
    ['a call without arguments', [call(0, 'f')], [toCall('tool_use', 'call_0', 'f', {})]],
    ['a call without an id', [call(0, 'f', '{}', '')], [toCall('tool_use', 'toolu_1_0', 'f', {})]],
    ['nothing for a call without a name', [call(0, undefined, '{}')], []],
    [
      'calls whose chunks alternate',
      [call(0, 'f'), call(1, 'g'), call(1, undefined, '{"b"'), call(0, undefined, '{}'), call(1, undefined, ':2}')],
      [toCall('tool_use', 'call_0', 'f', {}), toCall('tool_use', 'call_1', 'g', { b: 2 })],
    ],
    ['a refusal as text', [{ refusal: 'No' }], [{ type: 'text', text: 'No' }]],
    [
      'reasoning only once if the provider repeats it with its signature',
      [
        { reasoning: 'a' },
        { reasoning: 'b' },
        { reasoning_details: [{ type: 'reasoning.text', text: 'ab', signature: 's' }] },
      ],
      [{ type: 'thinking', thinking: 'ab', signature: 's' }],
    ],
    [
      'reasoning only once if it is sent as details and as text',
      [
        { reasoning: 'a', reasoning_details: [{ type: 'reasoning.text', text: 'a' }] },
        { reasoning: 'b', reasoning_details: [{ type: 'reasoning.text', text: 'b' }] },
        { reasoning_details: [{ type: 'reasoning.text', signature: 's' }] },
        { reasoning_details: [{ type: 'reasoning.text', text: 'c', signature: 't' }] },
      ],
      [
        { type: 'thinking', thinking: 'ab', signature: 's' },
        { type: 'thinking', thinking: 'c', signature: 't' },
      ],
    ],
    [
      'encrypted reasoning',
      [{ reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] }, { content: 'a' }],
      [
        { type: 'redacted_thinking', data: 'x' },
        { type: 'text', text: 'a' },
      ],
    ],
    [
      'signatures of calls in the format of Gemini, after the reasoning',
      [{ reasoning: 'Hm', reasoning_details: [GEMINI_SIGNATURE] }],
      [
        { type: 'thinking', thinking: 'Hm', signature: '' },
        { type: 'redacted_thinking', data: encodeReasoning([GEMINI_SIGNATURE]) },
      ],
    ],
    [
      'nothing for encrypted reasoning of another provider',
      [{ reasoning_details: [{ type: 'reasoning.encrypted', data: 'x', format: 'google-gemini-v1' }] }],
      [],
    ],
  ])('contain %s', (_, deltas, expected) => {
    const { events, blocks } = answered(deltas);
    expect(blocks).toEqual(expected);
    expect(rebuilt(events)).toEqual(expected);
  });

  test('contain the sources of a text, including those that arrive before it', () => {
    const source = (url: string) => ({ annotations: [{ type: 'url_citation', url_citation: { url, title: 'T' } }] });
    const { events, blocks } = answered([source('a'), { content: 'x' }, source('b')]);
    const cited = { type: 'web_search_result_location', title: 'T', cited_text: '', encrypted_index: '' };
    expect(blocks).toEqual([{ type: 'text', text: 'x', citations: ['a', 'b'].map((url) => ({ ...cited, url })) }]);
    expect(rebuilt(events)).toEqual(blocks);
  });

  test('contain sources that arrive after a text without any in a block of their own', () => {
    const annotations = [{ type: 'url_citation', url_citation: { url: 'a', title: 'T' } }];
    const { events, blocks } = answered([{ content: 'x' }, { annotations }, { content: 'y' }]);
    const citations = [expect.objectContaining({ url: 'a' })];
    expect(blocks).toEqual([
      { type: 'text', text: 'x' },
      { type: 'text', text: 'y', citations },
    ]);
    expect(rebuilt(events)).toEqual(blocks);
  });

  test('contain each search and its result between the texts', () => {
    const output = new MessageOutput('1', 'visible');
    const events = [
      ...output.accept({ content: 'a' }),
      ...output.recordSearch({ at: 0, query: 'q', state: 'searching' }),
      ...output.recordSearch({ at: 0, query: 'q', state: 'completed', results: [{ url: 'u', title: 'T' }] }),
      ...output.recordSearch({ at: 1, query: 'r', state: 'failed' }),
      ...output.accept({ content: 'b' }),
      ...output.end(),
    ];
    const types = output.blocks.map(({ type }) => type);
    const search = ['server_tool_use', 'web_search_tool_result'];
    expect(types).toEqual(['text', ...search, ...search, 'text']);
    expect(output.blocks[1]).toEqual(toCall('server_tool_use', 'srvtoolu_1_0', 'web_search', { query: 'q' }));
    const page = { type: 'web_search_result', url: 'u', title: 'T', encrypted_content: '', page_age: null };
    expect(output.blocks[2]).toMatchObject({ tool_use_id: 'srvtoolu_1_0', content: [page] });
    expect(rebuilt(events)).toEqual(output.blocks);
    expect(output.searchCount).toBe(1);
  });

  test('have the ids and the encrypted pages of the provider, and the result of a search that started before', () => {
    const output = new MessageOutput('1', 'visible');
    const results = [{ url: 'u', title: 'T', encrypted: 'x' }];
    const events = [
      ...output.recordSearch({ id: 's0', at: 0, query: '', state: 'completed', results, isResumed: true }),
      ...output.recordSearch({ id: 's1', at: 1, query: 'q', state: 'searching' }),
      ...output.end(),
    ];
    expect(output.blocks).toEqual([
      {
        type: 'web_search_tool_result',
        tool_use_id: 's0',
        content: [expect.objectContaining({ encrypted_content: 'x' })],
        caller: { type: 'direct' },
      },
      toCall('server_tool_use', 's1', 'web_search', { query: 'q' }),
    ]);
    expect(rebuilt(events)).toEqual(output.blocks);
  });

  test.each<[ThinkingVisibility, object[]]>([
    ['visible', [{ type: 'thinking', thinking: 'Hm', signature: 's' }]],
    ['signed', [{ type: 'thinking', thinking: '', signature: 's' }]],
    ['hidden', []],
  ])('contain reasoning according to the requested visibility: %s', (thoughts, expected) => {
    const details = [{ type: 'reasoning.text', text: 'Hm', signature: 's' }];
    const { events, blocks } = answered([{ reasoning: 'Hm' }, { reasoning_details: details }], thoughts);
    expect(blocks).toEqual(expected);
    expect(rebuilt(events)).toEqual(expected);
  });

  test('contain an empty input for arguments that are not JSON', () => {
    expect(answered([call(0, 'f', '{"a":')]).blocks).toEqual([toCall('tool_use', 'call_0', 'f', {})]);
  });

  test('produce their events as soon as earlier blocks are complete', () => {
    const output = new MessageOutput('1', 'visible');
    const types = (delta: ChatDelta) => output.accept(delta).map(({ type }) => type);
    expect(types({ content: 'a' })).toEqual(['content_block_start', 'content_block_delta']);
    expect(types(call(0, 'f'))).toEqual(['content_block_stop', 'content_block_start']);
    expect(types(call(0, undefined, '{}'))).toEqual(['content_block_delta']);
    expect(types(call(1, 'g', '{'))).toEqual(['content_block_stop', 'content_block_start', 'content_block_delta']);
  });

  test('are each started and stopped once, in order, and have all text, for random sequences of deltas', () => {
    const piece = fc.oneof<fc.Arbitrary<ChatDelta>[]>(
      fc.constantFrom<ChatDelta>({ content: 'x' }, { reasoning: 'r' }, { refusal: 'n' }),
      fc.constant({ reasoning_details: [{ type: 'reasoning.text', text: 'r', signature: 's' }] }),
      fc
        .tuple(fc.nat(2), fc.constantFrom(undefined, 'f'), fc.constantFrom(undefined, '{', '}', '{}'))
        .map(([index, name, args]) => call(index, name, args)),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (deltas) => {
        const output = new MessageOutput('1', 'visible');
        const events = [...deltas.flatMap((delta) => output.accept(delta)), ...output.end()];
        const started = events.filter(({ type }) => type === 'content_block_start').map(({ index }) => index);
        const stopped = events.filter(({ type }) => type === 'content_block_stop').map(({ index }) => index);
        expect(started).toEqual(output.blocks.map((_, i) => i));
        expect(stopped).toEqual(started);
        const text = deltas.map(({ content, refusal }) => `${content ?? ''}${refusal ?? ''}`).join('');
        expect(output.blocks.map((block) => ('text' in block ? block.text : '')).join('')).toBe(text);
      }),
    );
  });
});
