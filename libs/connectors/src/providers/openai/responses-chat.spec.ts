import { describe, expect, test } from '@jest/globals';
import type { Completion } from '#application';
import { parseResponsesCompletion } from './responses.ts';
import { ResponsesToChatTranslator, toChatCompletion } from './responses-chat.ts';
import { toResponsesRequest, withSearch } from './responses-request.ts';

const identity = { id: 'gen-1', model: 'openai/m', provider: 'OpenAI', created: 7 };
const ANNOTATION = { type: 'url_citation', url: 'https://x.example', title: 'X', start_index: 0, end_index: 2 };
const LOGPROB = { token: 'Hi', logprob: -1, bytes: [72, 105], top_logprobs: [] };

const whole = (response: object): Completion =>
  toChatCompletion(
    parseResponsesCompletion(JSON.stringify({ status: 'completed', output: [], ...response })),
    identity,
  );
const choiceOf = ({ body }: Completion) => (body.choices as readonly { message: object; finish_reason: string }[])[0];

function deltas(events: readonly object[]) {
  const chunks = new ResponsesToChatTranslator(identity);
  let text = '';
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  chunks.accept(Buffer.from(body), (piece) => {
    text += Buffer.from(piece).toString('utf8');
  });
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.replace('data: ', '')).choices[0]);
}

describe('a response that is translated to a chat completion', () => {
  test('has its text, reasoning, sources and tool calls', () => {
    const said = (text: string) => ({ type: 'output_text', text, annotations: [ANNOTATION], logprobs: [LOGPROB] });
    const answer = whole({
      output: [
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm' }] },
        { type: 'message', content: [said('Hi'), said('ho'), { type: 'refusal', refusal: 'No' }] },
        { type: 'web_search_call', id: 'ws_1' },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      ],
    });
    const cited = (start_index: number) => ({
      type: 'url_citation',
      url_citation: { url: 'https://x.example', title: 'X', start_index, end_index: start_index + 2 },
    });
    expect(choiceOf(answer)).toEqual({
      index: 0,
      message: {
        role: 'assistant',
        content: 'Hiho',
        refusal: 'No',
        annotations: [cited(0), cited(2)],
        reasoning: 'Hm',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      logprobs: { content: [LOGPROB, LOGPROB], refusal: null },
      finish_reason: 'tool_calls',
    });
    expect(answer.body).toMatchObject({ ...identity, object: 'chat.completion' });
  });

  test.each([
    [null, 'stop'],
    [{ reason: 'max_output_tokens' }, 'length'],
    [{ reason: 'content_filter' }, 'content_filter'],
  ])('has, with the incomplete_details %j, the finish reason %s', (incomplete_details, reason) => {
    expect(choiceOf(whole({ incomplete_details }))?.finish_reason).toBe(reason);
    const [end] = deltas([{ type: 'response.completed', response: { incomplete_details } }]);
    expect(end).toMatchObject({ delta: { role: 'assistant', content: '' }, finish_reason: reason });
  });

  test('is streamed in chunks with its reasoning, text, logprobs, sources, refusal and tool calls', () => {
    const at = { output_index: 0 };
    const call = (output_index: number) => ({
      type: 'response.output_item.added',
      output_index,
      item: { type: 'function_call', call_id: `c${output_index}`, name: 'f', arguments: '' },
    });
    const args = (output_index: number) => ({
      type: 'response.function_call_arguments.delta',
      output_index,
      delta: `{"a":${output_index}}`,
    });
    const translated = deltas([
      { type: 'response.output_item.added', ...at, item: { type: 'reasoning' } },
      { type: 'response.reasoning_summary_text.delta', ...at, delta: 'Hm' },
      { type: 'response.output_text.delta', ...at, delta: 'Hi', logprobs: [LOGPROB] },
      { type: 'response.output_text.annotation.added', ...at, annotation: ANNOTATION },
      { type: 'response.refusal.delta', ...at, delta: 'No' },
      call(3),
      call(5),
      args(5),
      args(3),
      { type: 'response.output_text.done', ...at, text: 'Hi' },
      { type: 'response.completed', response: { output: [] } },
    ]);
    const opened = (index: number, id: string) => ({
      index,
      id,
      type: 'function',
      function: { name: 'f', arguments: '' },
    });
    expect(translated.map(({ delta }) => delta)).toEqual([
      { role: 'assistant', content: '' },
      { reasoning: 'Hm' },
      { content: 'Hi' },
      {
        annotations: [
          {
            type: 'url_citation',
            url_citation: { url: 'https://x.example', title: 'X', start_index: 0, end_index: 2 },
          },
        ],
      },
      { refusal: 'No' },
      { tool_calls: [opened(0, 'c3')] },
      { tool_calls: [opened(1, 'c5')] },
      { tool_calls: [{ index: 1, function: { arguments: '{"a":5}' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"a":3}' } }] },
      {},
    ]);
    expect(translated[2].logprobs).toEqual({ content: [LOGPROB] });
    expect(translated.at(-1).finish_reason).toBe('tool_calls');
  });
});

describe('a chat request that is translated to the Responses API', () => {
  test('has its messages as items', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
    const { input } = toResponsesRequest({
      messages: [
        { role: 'system', content: 'Be brief' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'image_url', image_url: { url: 'u', detail: 'low' } },
            { type: 'file', file: { file_data: 'd', filename: 'n' } },
          ],
        },
        { role: 'assistant', content: 'Yes', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: '4' }] },
        { role: 'assistant', content: null, refusal: 'No' },
        { role: 'assistant', content: '', tool_calls: [{ ...call, id: 'd' }] },
      ],
    });
    const called = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
    expect(input).toEqual([
      { type: 'message', role: 'system', content: 'Be brief' },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'Hi' },
          { type: 'input_image', image_url: 'u', detail: 'low' },
          { type: 'input_file', file_data: 'd', filename: 'n' },
        ],
      },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Yes' }] },
      called,
      { type: 'function_call_output', call_id: 'c', output: '4' },
      { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No' }] },
      { ...called, call_id: 'd' },
    ]);
  });

  test('has its parameters under the names of the Responses API, and none that this API does not support', () => {
    const parameters = { type: 'object' };
    const json_schema = { name: 's', schema: {}, strict: true };
    const asked = {
      model: 'm',
      messages: [],
      max_completion_tokens: 50,
      reasoning_effort: 'low',
      verbosity: 'low',
      response_format: { type: 'json_schema', json_schema },
      tools: [{ type: 'function', function: { name: 'f', parameters } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
      logprobs: true,
      top_logprobs: 2,
      seed: 1,
      stop: ['x'],
      temperature: null,
      stream: true,
      stream_options: { include_usage: true },
    };
    expect(toResponsesRequest(asked)).toEqual({
      model: 'm',
      input: [],
      max_output_tokens: 50,
      reasoning: { effort: 'low' },
      text: { format: { type: 'json_schema', ...json_schema }, verbosity: 'low' },
      tools: [{ type: 'function', name: 'f', parameters, strict: false }],
      tool_choice: { type: 'function', name: 'f' },
      include: ['message.output_text.logprobs'],
      top_logprobs: 2,
      store: false,
      stream: true,
      stream_options: { include_obfuscation: false },
    });
  });
});

describe('OpenAI’s web search', () => {
  const search = { maxUses: 2, isRequired: false, includeDomains: [], excludeDomains: [] };

  test('is an additional tool with a maximum number of calls, and may be required or limited to domains', () => {
    const tools = [{ type: 'function', name: 'f' }];
    expect(withSearch({ tools, tool_choice: 'auto' }, search)).toEqual({
      tools: [...tools, { type: 'web_search' }],
      tool_choice: 'auto',
      max_tool_calls: 2,
    });
    expect(withSearch({}, { ...search, isRequired: true, includeDomains: ['a.example'] })).toEqual({
      tools: [{ type: 'web_search', filters: { allowed_domains: ['a.example'] } }],
      tool_choice: 'required',
      max_tool_calls: 2,
    });
    expect(withSearch({ tools }, { ...search, isRequired: true }).tool_choice).toEqual({
      type: 'allowed_tools',
      mode: 'required',
      tools: [{ type: 'web_search' }],
    });
    expect(() => withSearch({}, { ...search, excludeDomains: ['a.example'] })).toThrow('cannot exclude domains');
    expect(withSearch({ reasoning: { effort: 'minimal' } }, search).reasoning).toEqual({ effort: 'low' });
    expect(withSearch({}, undefined)).toEqual({});
  });

  test('is invoiced if it succeeds; opening a page is not invoiced', () => {
    const call = (status: string, action: object) => ({ type: 'web_search_call', id: 'ws_1', status, action });
    const output = [
      call('completed', { type: 'search', query: 'a' }),
      call('failed', { type: 'search', query: 'b' }),
      call('completed', { type: 'open_page', url: 'https://x.example' }),
      call('completed', { type: 'search', queries: ['c', 'd'] }),
    ];
    const { searches } = whole({ output });
    expect(searches?.invoiced).toBe(2);
    expect(searches?.statuses.map(({ query, state }) => `${query} ${state}`)).toEqual([
      'a completed',
      'b failed',
      ' completed',
      'c completed',
    ]);
  });
});
