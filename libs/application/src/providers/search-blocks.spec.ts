import { describe, expect, test } from '@jest/globals';
import { parseSearchBlocks } from './search-blocks.ts';

const call = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'Ur' } };
const page = { type: 'web_search_result', url: 'https://a.example', title: 'A', encrypted_content: 'x' };
const result = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [page] };
const thinking = { type: 'thinking', thinking: 'Hm', signature: 'sig' };
const tool = { type: 'tool_use', id: 'toolu_1', name: 'book', input: {} };

describe('a turn with searches of the provider', () => {
  test.each<[string, readonly object[]]>([
    ['a completed search', [thinking, call, result]],
    [
      'a failed search',
      [call, { ...result, content: { type: 'web_search_tool_result_error', error_code: 'unavailable' } }],
    ],
    ['a search that has not ended', [{ type: 'redacted_thinking', data: 'x' }, call]],
    ['a search that has not ended beside a call of a function', [call, tool]],
  ])('is sent back as it was: %s', (_, blocks) => {
    expect(parseSearchBlocks(blocks)).toEqual(blocks);
  });

  test('is sent back without empty texts, citations and other fields', () => {
    const text = { type: 'text', text: 'It is', citations: [{}], cache_control: { type: 'ephemeral' } };
    expect(parseSearchBlocks([{ type: 'text', text: '' }, { ...call, caller: {} }, text])).toEqual([
      call,
      { type: 'text', text: 'It is' },
    ]);
  });

  test.each<[string, unknown]>([
    ['no search', [thinking, { type: 'text', text: 'Hello' }]],
    ['a text', 'Hello'],
    [
      'a result of the gateway, which is not encrypted',
      [call, { ...result, content: [{ ...page, encrypted_content: '' }] }],
    ],
    ['a result of an unknown search', [call, { ...result, tool_use_id: 'srvtoolu_2' }]],
    ['a result before its search', [result, call]],
    ['a result without content', [call, { ...result, content: undefined }]],
    ['another tool of the provider', [{ ...call, name: 'code_execution' }]],
    ['a search with an id that cannot be one', [{ ...call, id: 'a b' }]],
    ['a search without arguments', [{ ...call, input: 'Ur' }]],
    ['thinking without a signature', [{ ...thinking, signature: '' }, call]],
    ['a block of another type', [call, { type: 'image', source: {} }]],
    ['a block that is no object', [call, 'Hello']],
    ['an empty block', [call, null]],
  ])('is not: %s', (_, blocks) => {
    expect(parseSearchBlocks(blocks)).toBeUndefined();
  });
});
