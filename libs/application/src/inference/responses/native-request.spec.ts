import { describe, expect, test } from '@jest/globals';
import { parseResponsesRequest, type ResponsesBody } from '#application';
import { type JsonObject } from '#kernel';
import { parseReasoning } from '../chat/chat-body.ts';
import { countMaxCarriedTokens, toUpstreamResponsesBody, usesNativeResponses } from './native-request.ts';

const ALL = ['temperature', 'top_p', 'user', 'tools', 'tool_choice', 'parallel_tool_calls', 'response_format'];
const endpoint = (more: readonly string[] = []) => ({
  model: 'm',
  slug: 'openai',
  parameters: [...ALL, ...more],
  modelRules: {},
});
const native = (more: object = {}, earlier: readonly JsonObject[] = []) =>
  parseResponsesRequest({ model: 'm', input: 'Hi', ...more } as ResponsesBody, earlier).native;
const sent = (more: object = {}, parameters: readonly string[] = [], limit?: number) =>
  toUpstreamResponsesBody(
    native({ store: false, ...more }),
    endpoint(parameters),
    limit,
    parseReasoning(more as JsonObject),
  );
const inputOf = (input: unknown, earlier: readonly JsonObject[] = []) =>
  toUpstreamResponsesBody(native({ input }, earlier), endpoint(), undefined).input;

const HI = { type: 'message', role: 'user', content: 'Hi' };
const SAID = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Yes' }] };
const REASONING = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'abcdefgh' };

describe('a request for the Responses API', () => {
  test('contains no more than the caller’s request and disables storage at the provider', () => {
    expect(sent()).toEqual({ model: 'm', input: [HI], store: false });
    expect(sent({ store: true })).toEqual({ model: 'm', input: [HI], store: false });
  });

  test('contains only the fields that the endpoint supports', () => {
    const asked = {
      instructions: 'Be brief',
      temperature: 0.5,
      top_p: 0,
      user: 'u',
      metadata: { a: 'b' },
      seed: 3,
      reasoning: { effort: 'low', summary: 'auto' },
      text: { verbosity: 'low', format: { type: 'json_object' } },
      truncation: 'auto',
      include: ['reasoning.encrypted_content', 'message.output_text.logprobs', 'file_search_call.results'],
      top_logprobs: 2,
      stream: true,
    };
    const always = {
      model: 'm',
      input: [HI],
      store: false,
      instructions: 'Be brief',
      max_output_tokens: 50,
      temperature: 0.5,
      top_p: 0,
      user: 'u',
      truncation: 'auto',
      stream: true,
      stream_options: { include_obfuscation: false },
    };
    expect(sent(asked, [], 50)).toEqual({ ...always, text: { format: { type: 'json_object' } } });
    expect(sent(asked, ['reasoning', 'logprobs', 'top_logprobs', 'verbosity'], 50)).toEqual({
      ...always,
      text: { format: { type: 'json_object' }, verbosity: 'low' },
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['message.output_text.logprobs', 'reasoning.encrypted_content'],
      top_logprobs: 2,
    });
  });

  test('requests no summary of reasoning that is excluded from the response', () => {
    const reasoning = { max_tokens: 500, summary: 'auto', exclude: true };
    expect(sent({ reasoning }, ['reasoning']).reasoning).toEqual({ max_tokens: 500, exclude: true });
  });

  test('requests encrypted reasoning if the response is stored', () => {
    expect(sent({ store: true }, ['reasoning']).include).toEqual(['reasoning.encrypted_content']);
    expect(sent({ store: false }, ['reasoning']).include).toBeUndefined();
  });

  test('contains functions in the flat format, but no web search tool', () => {
    const parameters = { type: 'object' };
    const tools = [
      { type: 'function', function: { name: 'f', parameters } },
      { type: 'function', name: 'g' },
      { type: 'web_search' },
    ];
    const asked = { tools, parallel_tool_calls: false };
    expect(sent({ ...asked, tool_choice: { type: 'function', function: { name: 'f' } } })).toMatchObject({
      tools: [
        { type: 'function', name: 'f', parameters },
        { type: 'function', name: 'g', parameters: null },
      ],
      tool_choice: { type: 'function', name: 'f' },
      parallel_tool_calls: false,
    });
    expect(sent({ ...asked, tool_choice: { type: 'web_search' } }).tool_choice).toBeUndefined();
    expect(sent({ tools: [{ type: 'web_search' }], tool_choice: 'required' })).toEqual({
      model: 'm',
      input: [HI],
      store: false,
    });
  });
});

describe('the input of a request for the Responses API', () => {
  test.each<[string, unknown, unknown]>([
    [
      'contains developer messages as text',
      [{ role: 'developer', content: [{ type: 'text', text: 'Be brief' }] }, HI],
      [{ type: 'message', role: 'developer', content: 'Be brief' }, HI],
    ],
    [
      'contains calls and their outputs without ids',
      [
        HI,
        { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '{}', status: 'completed' },
        { type: 'function_call_output', id: 'x', call_id: 'c', output: [{ type: 'input_text', text: '4' }] },
      ],
      [
        HI,
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: '4' },
      ],
    ],
    [
      'contains assistant messages without ids, annotations and log probabilities',
      [
        {
          ...SAID,
          id: 'msg_1',
          status: 'completed',
          content: [
            { type: 'output_text', text: 'Yes', annotations: [1], logprobs: [1] },
            { type: 'refusal', refusal: 'No' },
          ],
        },
        HI,
      ],
      [
        {
          ...SAID,
          content: [
            { type: 'output_text', text: 'Yes' },
            { type: 'refusal', refusal: 'No' },
          ],
        },
        HI,
      ],
    ],
    ['contains reasoning before its message', [HI, REASONING, SAID, HI], [HI, REASONING, SAID, HI]],
    ['omits reasoning without a message', [HI, REASONING, HI, REASONING], [HI, HI]],
    ['omits reasoning that is not encrypted', [HI, { ...REASONING, encrypted_content: undefined }, SAID], [HI, SAID]],
  ])('%s', (_, input, expected) => {
    expect(inputOf(input)).toEqual(expected);
  });

  test('contains earlier items without the reasoning of other providers', () => {
    const earlier = [HI, { ...REASONING, made_by: 'openai' }, SAID, HI, { ...REASONING, made_by: 'azure' }, SAID];
    expect(inputOf('Hi', earlier)).toEqual([HI, REASONING, SAID, HI, SAID, HI]);
  });

  test('contains searches only if its provider made them, after the reasoning that led to them', () => {
    const search = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } };
    const own = { made_by: 'openai' };
    expect(inputOf('Hi', [HI, { ...REASONING, ...own }, { ...search, ...own }, SAID])).toEqual([
      HI,
      REASONING,
      search,
      SAID,
      HI,
    ]);
    expect(inputOf('Hi', [HI, REASONING, search, SAID])).toEqual([HI, SAID, HI]);
  });

  test('may have more tokens than that of a chat: reasoning, summaries and searches', () => {
    expect(countMaxCarriedTokens(native({ input: [HI, SAID] }))).toBe(0);
    const bound = (item: object) => countMaxCarriedTokens(native({ input: [HI, item, SAID] }));
    const long = 'x'.repeat(4_000);
    expect(bound({ ...REASONING, encrypted_content: long }) - bound({ ...REASONING, encrypted_content: '' })).toBe(
      1_000,
    );
    expect(bound({ ...REASONING, summary: [{ type: 'summary_text', text: long }] })).toBeGreaterThan(3_000);
    const search = { type: 'web_search_call', id: 'ws_1', status: 'completed', made_by: 'openai' };
    expect(bound({ ...search, action: { type: 'search', query: long } })).toBeGreaterThan(3_000);
  });
});

test.each<[object, number | undefined, boolean]>([
  [{}, undefined, true],
  [{}, 16, true],
  [{}, 15, false],
  [{ presence_penalty: 0 }, undefined, true],
  [{ presence_penalty: 1 }, undefined, false],
  [{ frequency_penalty: -1 }, undefined, false],
  [{ input: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] }, undefined, false],
])(
  'an endpoint with both APIs is called through Responses unless the request requires the chat API: %j, limit %p',
  (more, limit, natively) => {
    expect(usesNativeResponses({ speaks: ['chat', 'responses'] } as never, native(more), limit)).toBe(natively);
    expect(usesNativeResponses({ speaks: ['responses'] } as never, native(more), limit)).toBe(true);
    expect(usesNativeResponses({ speaks: ['chat'] } as never, native(more), limit)).toBe(false);
  },
);
