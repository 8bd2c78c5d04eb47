import { describe, expect, test } from '@jest/globals';
import type { SearchStatus } from '#application';
import { parseAnthropicCompletion } from './response.ts';
import { AnthropicSearchTranslator } from './search-events.ts';

const identity = { id: 'gen-1', model: 'anthropic/claude-sonnet-4.6', provider: 'Anthropic', created: 7 };
const page = {
  type: 'web_search_result',
  url: 'https://a.example',
  title: 'A',
  encrypted_content: 'x',
  page_age: null,
};
const failed = { type: 'web_search_tool_result_error', error_code: 'unavailable' };
const cited = {
  type: 'web_search_result_location',
  url: 'https://a.example',
  title: 'A',
  cited_text: 'a',
  encrypted_index: 'x',
};
const source = (start_index: number, end_index: number) => ({
  type: 'url_citation',
  url_citation: { url: 'https://a.example', title: 'A', content: 'a', start_index, end_index },
});

/** A completion with text before and after two searches, one of which fails. */
const content = [
  { type: 'text', text: 'Señor, ' },
  { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: '"Ur"' } },
  { type: 'web_search_tool_result', tool_use_id: 's1', content: [page] },
  { type: 'server_tool_use', id: 's2', name: 'web_search', input: { query: 'more' } },
  { type: 'web_search_tool_result', tool_use_id: 's2', content: failed },
  { type: 'text', text: 'it is ' },
  { type: 'text', text: 'sunny', citations: [cited, { type: 'char_location' }] },
  { type: 'tool_use', id: 't1', name: 'book', input: { a: 1 } },
] as const;
const usage = { input_tokens: 9, output_tokens: 5, server_tool_use: { web_search_requests: 1 } };
const notes: readonly SearchStatus[] = [
  {
    id: 's1',
    at: 0,
    query: '"Ur"',
    state: 'completed',
    results: [{ url: 'https://a.example', title: 'A', encrypted: 'x' }],
  },
  { id: 's2', at: 1, query: 'more', state: 'failed' },
];

function streamed(reported: object | undefined): string {
  const event = (data: { readonly type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  const delta = (index: number, more: object) => event({ type: 'content_block_delta', index, delta: more } as never);
  const blocks = content.map((block, index) => {
    const isCall = block.type === 'server_tool_use' || block.type === 'tool_use';
    const started = block.type === 'text' ? { type: 'text', text: '' } : isCall ? { ...block, input: {} } : block;
    const pieces =
      block.type === 'text'
        ? delta(index, { type: 'text_delta', text: block.text }) +
          ('citations' in block
            ? block.citations.map((citation) => delta(index, { type: 'citations_delta', citation })).join('')
            : '')
        : isCall
          ? delta(index, { type: 'input_json_delta', partial_json: JSON.stringify(block.input).slice(0, 5) }) +
            delta(index, { type: 'input_json_delta', partial_json: JSON.stringify(block.input).slice(5) })
          : '';
    const start = event({ type: 'content_block_start', index, content_block: started } as never);
    return start + pieces + event({ type: 'content_block_stop', index } as never);
  });
  return (
    event({ type: 'message_start', message: { usage: { input_tokens: 9, output_tokens: 1 } } } as never) +
    blocks.join('') +
    event({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: reported } as never) +
    event({ type: 'message_stop' })
  );
}

/** `translated` has the deltas, finish reasons and searches in the order in which they are forwarded. */
function translate(body: string, size: number) {
  const events = new AnthropicSearchTranslator(identity);
  const translated: unknown[] = [];
  const pass = (piece: Uint8Array, search?: SearchStatus) => {
    const all = Buffer.from(piece)
      .toString()
      .split('\n\n')
      .filter((event) => event !== '');
    for (const each of all) {
      const [{ delta, finish_reason }] = JSON.parse(each.slice(6)).choices;
      translated.push(finish_reason ?? delta);
    }
    if (search) translated.push(`${search.at} ${search.state}`);
  };
  const bytes = Buffer.from(body);
  for (let at = 0; at < bytes.length; at += size) events.accept(bytes.subarray(at, at + size), pass);
  events.end(pass);
  return { translated, events };
}

describe('a completion with Anthropic’s web search', () => {
  test.each([1, 7, 100_000])('has its searches in their positions, in chunks of %d bytes', (size) => {
    const { translated, events } = translate(streamed(usage), size);
    expect(translated).toEqual([
      { role: 'assistant', content: '' },
      { content: 'Señor, ' },
      '0 searching',
      '0 completed',
      '1 searching',
      '1 failed',
      { content: 'it is ' },
      { content: 'sunny' },
      { annotations: [source(13, 18)] },
      { tool_calls: [{ index: 0, id: 't1', type: 'function', function: { name: 'book', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"a":' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '1}' } }] },
      'tool_calls',
    ]);
    expect(events.invoiced).toBe(1);
    expect(events.usage()).toMatchObject({ input: 9, output: 5 });
  });

  test('has the same content if it is not streamed', () => {
    const message = JSON.stringify({ content, stop_reason: 'tool_use', usage });
    const { body, searches } = parseAnthropicCompletion(message, identity, { hasSearched: true });
    expect(searches).toEqual({ statuses: notes, invoiced: 1 });
    const [{ message: said }] = body.choices as readonly [{ message: object }];
    expect(said).toMatchObject({ content: 'Señor, it is sunny', annotations: [source(13, 18)] });
    expect(said).toMatchObject({ tool_calls: [{ function: { name: 'book' } }] });
  });

  test('counts the successful searches if it reports no number', () => {
    expect(translate(streamed({ output_tokens: 5 }), 100).events.invoiced).toBe(1);
    const message = JSON.stringify({ content, stop_reason: 'end_turn' });
    expect(parseAnthropicCompletion(message, identity, { hasSearched: true }).searches?.invoiced).toBe(1);
  });

  test('counts no search if it reports zero', () => {
    const none = { ...usage, server_tool_use: { web_search_requests: 0 } };
    expect(translate(streamed(none), 100).events.invoiced).toBe(0);
  });
});

describe('a response that continues a turn which the client has sent back', () => {
  const result = { type: 'web_search_tool_result', tool_use_id: 's0', content: [page] };
  const open = { type: 'server_tool_use', id: 's9', name: 'web_search', input: { query: 'more' } };
  const resumed = { id: 's0', at: 0, query: '', state: 'completed', isResumed: true };

  test('has the result of a search of the earlier response, and a search that has not ended', () => {
    const message = JSON.stringify({ content: [result, open], stop_reason: 'pause_turn', usage });
    const { searches } = parseAnthropicCompletion(message, identity, { hasSearched: true });
    expect(searches).toMatchObject({
      statuses: [resumed, { id: 's9', at: 1, query: 'more', state: 'searching' }],
      invoiced: 1,
    });
  });

  test('has it in a stream', () => {
    const found: SearchStatus[] = [];
    const events = new AnthropicSearchTranslator(identity);
    const start = { type: 'content_block_start', index: 0, content_block: result };
    events.accept(
      Buffer.from(`data: ${JSON.stringify(start)}\n\n`),
      (_, search) => void (search && found.push(search)),
    );
    expect(found).toMatchObject([resumed]);
  });
});
