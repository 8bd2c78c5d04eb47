import { describe, expect, test } from '@jest/globals';
import { UpstreamError } from '#application';
import { parseResponsesCompletion, ResponsesEventTranslator } from './responses.ts';

const sse = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const DELTA = sse('response.output_text.delta', { output_index: 0, content_index: 0, delta: 'Zürich 🏔' });
const USAGE = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 12, cache_write_tokens: 3 },
  output_tokens: 9,
  output_tokens_details: { reasoning_tokens: 4 },
  total_tokens: 29,
};
const CLASSES = { input: 5, cacheRead: 12, cacheWrite: 3, output: 5, reasoning: 4 };
const ended = (type: string, more: object = {}) => sse(`response.${type}`, { response: { usage: USAGE, ...more } });
const BEGUN = sse('response.created', { response: { id: 'resp_theirs' } });

/** Translates a body in chunks of `size` bytes. */
function read(body: string, size = 7) {
  const events = new ResponsesEventTranslator();
  const bytes = Buffer.from(body);
  let text = '';
  const pass = (piece: Uint8Array) => {
    text += Buffer.from(piece).toString('utf8');
  };
  let failure: unknown;
  try {
    for (let at = 0; at < bytes.length; at += size) events.accept(bytes.subarray(at, at + size), pass);
    events.end(pass);
  } catch (error) {
    failure = error;
  }
  const data = text.split('\n\n').filter((event) => event !== '');
  return { events, failure, passed: data.map((event) => JSON.parse(event.replace('data: ', ''))) };
}

describe('events of a response', () => {
  test.each([1, 3, 1_000])('are forwarded if they have output or are the last one, in chunks of %p bytes', (size) => {
    const { events, passed, failure } = read(BEGUN + DELTA + ended('completed', { output: [] }), size);
    expect(failure).toBeUndefined();
    expect(passed).toEqual([
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Zürich 🏔' },
      { type: 'response.completed', response: { object: 'response', output: [] } },
    ]);
    expect([events.usage(), events.getDeliveredText(), events.isEnded]).toEqual([CLASSES, 'Zürich 🏔', true]);
  });

  test('are forwarded even with an unknown type if they belong to an output item', () => {
    const known = sse('response.web_search_call.searching', { output_index: 0, item_id: 'ws_1' });
    const body = `: comment\n\n${known}${sse('response.queued', {})}${sse('keepalive', {})}${ended('completed')}`;
    expect(read(body).passed.map(({ type }) => type)).toEqual([
      'response.web_search_call.searching',
      'response.completed',
    ]);
  });

  test('include the reason why the response is incomplete', () => {
    const incomplete_details = { reason: 'content_filter' };
    const { passed } = read(ended('incomplete', { incomplete_details }));
    expect(passed).toMatchObject([{ type: 'response.incomplete', response: { incomplete_details } }]);
  });

  test.each([
    [
      ended('failed', { error: { code: 'server_error', message: 'Oh' } }),
      'upstream_error',
      'The provider ended the response early',
    ],
    [
      ended('failed', { error: { code: 'rate_limit_exceeded', message: 'Slow' } }),
      'rate_limited',
      'The provider is limiting requests; retry later',
    ],
    [ended('failed', { error: null }), 'upstream_error', 'The provider ended the response early'],
    [
      sse('error', { code: 'server_error', message: 'Ah', param: null }),
      'upstream_error',
      'The provider ended the response early',
    ],
    ['data: {"type":\n\n', 'upstream_error', 'The provider sent an event that is not JSON'],
    ['', 'upstream_error', 'The provider ended the stream before the response was complete'],
  ])('end the stream with an error if they continue with %j', (last, code, message) => {
    const { events, failure, passed } = read(DELTA + last);
    expect(failure).toBeInstanceOf(UpstreamError);
    expect(failure).toMatchObject({ code, message, publicMessage: message });
    expect([passed.length, events.getDeliveredText()]).toEqual([1, 'Zürich 🏔']);
    expect(events.usage()).toEqual(last.includes('response.failed') ? CLASSES : undefined);
  });

  test.each([
    [null, undefined],
    [
      { input_tokens: 0, output_tokens: 0 },
      { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 },
    ],
    [{ input_tokens: '3', output_tokens: 1 }, undefined],
  ])('with the usage %j have the converted usage %j', (usage, classes) => {
    expect(read(ended('completed', { usage })).events.usage()).toEqual(classes);
  });
});

describe('a non-streaming response', () => {
  const OUTPUT = [
    { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm' }] },
    {
      type: 'message',
      content: [
        { type: 'output_text', text: 'No' },
        { type: 'refusal', refusal: '!' },
      ],
    },
    { type: 'function_call', name: 'f', arguments: '{}' },
  ];

  test('has its usage and all generated text', () => {
    const answer = parseResponsesCompletion(JSON.stringify({ status: 'completed', output: OUTPUT, usage: USAGE }));
    expect([answer.usage, answer.getDeliveredText(), answer.protocol]).toEqual([CLASSES, 'HmNo!f{}', 'responses']);
  });

  test.each(['', 'null', '{"output":', '{}', '[]'])('is rejected if it is invalid: %j', (text) => {
    expect(() => parseResponsesCompletion(text)).toThrow(UpstreamError);
  });

  test('is an error with the generated text if it failed, since the text may be invoiced', () => {
    const failed = (output: unknown) => JSON.stringify({ status: 'failed', error: { message: 'Oh' }, output });
    const failureOf = (text: string) => {
      try {
        return parseResponsesCompletion(text);
      } catch (error) {
        return error;
      }
    };
    expect(failureOf(failed([]))).toMatchObject({
      publicMessage: 'The provider ended the response early',
      deliveredText: undefined,
    });
    expect(failureOf(failed(OUTPUT))).toMatchObject({
      publicMessage: 'The provider ended the response early',
      deliveredText: 'HmNo!f{}',
    });
  });
});
