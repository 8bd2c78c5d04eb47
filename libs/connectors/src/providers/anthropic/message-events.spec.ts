import { describe, expect, test } from '@jest/globals';
import { UpstreamError } from '#application';
import { AnthropicEventTranslator } from './message-events.ts';

const identity = { id: 'gen-1', model: 'anthropic/claude-sonnet-4.6', provider: 'Anthropic', created: 7 };

const start = (usage?: object) => ({ type: 'message_start', message: { id: 'msg_1', content: [], usage } });
const open = (index: number, content_block: object) => ({ type: 'content_block_start', index, content_block });
const delta = (index: number, more: object) => ({ type: 'content_block_delta', index, delta: more });
const text = (words: string, index = 0) => delta(index, { type: 'text_delta', text: words });
const thinking = (words: string) => delta(0, { type: 'thinking_delta', thinking: words });
const json = (partial_json: string, index: number) => delta(index, { type: 'input_json_delta', partial_json });
const close = (index: number) => ({ type: 'content_block_stop', index });
const end = (stop_reason: string, usage: object = { output_tokens: 5 }) => ({
  type: 'message_delta',
  delta: { stop_reason, stop_sequence: null },
  usage,
});
const stop = { type: 'message_stop' };
const ping = { type: 'ping' };
const tool = (id: string, name: string, input: object = {}) => ({ type: 'tool_use', id, name, input });

const printed = (event: { type: string }) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

interface Translated {
  /** Deltas and finish reasons of the chunks. */
  readonly chunks: readonly unknown[];
  readonly events: AnthropicEventTranslator;
  readonly failure: unknown;
}

/** Translates a body in chunks of `size` bytes. */
function translate(body: string, size = Number.POSITIVE_INFINITY): Translated {
  const events = new AnthropicEventTranslator(identity);
  const bytes = Buffer.from(body);
  let out = '';
  let failure: unknown;
  const pass = (piece: Uint8Array) => {
    expect(Buffer.from(piece).toString()).toMatch(/\n\n$/);
    out += Buffer.from(piece).toString();
  };
  try {
    for (let at = 0; at < bytes.length; at += size) events.accept(bytes.subarray(at, at + size), pass);
    events.end(pass);
  } catch (error) {
    failure = error;
  }
  const chunks = out
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => {
      const { choices, ...rest } = JSON.parse(event.replace(/^data: /, ''));
      expect(rest).toEqual({ ...identity, object: 'chat.completion.chunk', created: expect.any(Number) });
      expect(choices).toEqual([expect.objectContaining({ index: 0 })]);
      return choices[0].finish_reason === null ? choices[0].delta : choices[0].finish_reason;
    });
  return { chunks, events, failure };
}

const role = { role: 'assistant', content: '' };
const toolCall = (index: number, id: string, name: string) => ({
  tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }],
});
const args = (index: number, more: string) => ({ tool_calls: [{ index, function: { arguments: more } }] });
const detail = (index: number, words: string, signature: string | null) => ({
  reasoning_details: [{ type: 'reasoning.text', text: words, signature, format: 'anthropic-claude-v1', index }],
});

const VECTORS: [string, { type: string }[], unknown[], string][] = [
  [
    'text, with pings and unknown events',
    [
      start(),
      open(0, { type: 'text', text: '' }),
      ping,
      text('Hé'),
      { type: 'news' },
      text('llo "😀"\n'),
      close(0),
      end('end_turn'),
      stop,
    ],
    [role, { content: 'Hé' }, { content: 'llo "😀"\n' }, 'stop'],
    'Héllo "😀"\n',
  ],
  [
    'text in the start of its block',
    [start(), open(0, { type: 'text', text: 'A' }), text('B'), close(0), end('max_tokens'), stop],
    [role, { content: 'A' }, { content: 'B' }, 'length'],
    'AB',
  ],
  [
    'text and two tool calls',
    [
      start(),
      open(0, { type: 'text', text: '' }),
      text('Wait'),
      close(0),
      open(1, tool('toolu_1', 'weather')),
      json('', 1),
      json('{"city":', 1),
      json(' "Zürich"}', 1),
      close(1),
      open(2, tool('toolu_2', 'time')),
      json('{"zone":"CET"}', 2),
      close(2),
      end('tool_use'),
      stop,
    ],
    [
      role,
      { content: 'Wait' },
      toolCall(0, 'toolu_1', 'weather'),
      args(0, '{"city":'),
      args(0, ' "Zürich"}'),
      toolCall(1, 'toolu_2', 'time'),
      args(1, '{"zone":"CET"}'),
      'tool_calls',
    ],
    'Waitweather{"city": "Zürich"}time{"zone":"CET"}',
  ],
  [
    'a call without arguments, with an empty object',
    [start(), open(0, tool('toolu_1', 'now')), json('', 0), close(0), end('tool_use'), stop],
    [role, toolCall(0, 'toolu_1', 'now'), args(0, '{}'), 'tool_calls'],
    'now',
  ],
  [
    'thinking with its signature, redacted thinking and text',
    [
      start(),
      open(0, { type: 'thinking', thinking: '', signature: '' }),
      thinking('Hm, "'),
      thinking('ü"'),
      delta(0, { type: 'signature_delta', signature: 'c2ln' }),
      close(0),
      open(1, { type: 'redacted_thinking', data: 'ZGF0YQ==' }),
      close(1),
      open(2, { type: 'text', text: '' }),
      text('Yes', 2),
      close(2),
      end('stop_sequence'),
      stop,
    ],
    [
      role,
      { reasoning: 'Hm, "' },
      { reasoning: 'ü"' },
      detail(0, 'Hm, "ü"', 'c2ln'),
      {
        reasoning_details: [{ type: 'reasoning.encrypted', data: 'ZGF0YQ==', format: 'anthropic-claude-v1', index: 1 }],
      },
      { content: 'Yes' },
      'stop',
    ],
    'Hm, "ü"Yes',
  ],
  ['a refusal without text', [start(), end('refusal'), stop], [role, 'content_filter'], ''],
  [
    'citations, which are left out',
    [
      start(),
      open(0, { type: 'text', text: '' }),
      delta(0, { type: 'citations_delta', citation: {} }),
      text('A'),
      close(0),
      end('pause_turn'),
      stop,
    ],
    [role, { content: 'A' }, 'length'],
    'A',
  ],
];

test('the stop sequence that ended a completion is reported with its finish reason', () => {
  const ended = { type: 'message_delta', delta: { stop_reason: 'stop_sequence', stop_sequence: 'Ü"' }, usage: {} };
  const out: string[] = [];
  new AnthropicEventTranslator(identity).accept(Buffer.from([start(), ended, stop].map(printed).join('')), (piece) => {
    out.push(Buffer.from(piece).toString());
  });
  const last = JSON.parse(out.join('').trim().split('data: ').at(-1) ?? '');
  expect(last.choices).toEqual([{ index: 0, delta: {}, finish_reason: 'stop', stop_sequence: 'Ü"' }]);
});

test('the explanation of a refusal arrives with its finish reason and its category', () => {
  const details = { type: 'refusal', category: 'cyber', explanation: 'Not\nü this' };
  const ended = { type: 'message_delta', delta: { stop_reason: 'refusal', stop_details: details }, usage: {} };
  const out: string[] = [];
  const events = new AnthropicEventTranslator(identity);
  events.accept(Buffer.from([start(), ended, stop].map(printed).join('')), (piece) => {
    out.push(Buffer.from(piece).toString());
  });
  const last = JSON.parse(out.join('').trim().split('data: ').at(-1) ?? '');
  expect(last.choices).toEqual([
    {
      index: 0,
      delta: { refusal: 'Not ü this' },
      finish_reason: 'content_filter',
      stop_details: { ...details, explanation: 'Not ü this' },
    },
  ]);
  expect(events.getDeliveredText()).toBe('');
});

describe('a stream of Anthropic is translated to OpenAI’s chunks', () => {
  test.each(VECTORS)('%s', (_, events, chunks, delivered) => {
    const translated = translate(events.map(printed).join(''));
    expect(translated.failure).toBeUndefined();
    expect(translated.chunks).toEqual(chunks);
    expect(translated.events.getDeliveredText()).toBe(delivered);
    expect(translated.events.isEnded).toBe(true);
  });

  test.each([1, 7, 64])('in chunks of %p bytes', (size) => {
    for (const [, events, chunks, delivered] of VECTORS) {
      const translated = translate(events.map(printed).join(''), size);
      expect(translated.chunks).toEqual(chunks);
      expect(translated.events.getDeliveredText()).toBe(delivered);
    }
  });

  test('in other JSON formats: with spaces and other line ends, in another order, padded, escaped', () => {
    const [, events, chunks] = VECTORS[0] as (typeof VECTORS)[number];
    const spaced = events.map((event) => `data: ${JSON.stringify(event, null, 1).replaceAll('\n', '')}\r\n\r\n`);
    const turned = events.map((event) =>
      printed(Object.fromEntries(Object.entries(event).reverse()) as { type: string }),
    );
    const padded = events.map((event) => printed(event).replace(/\}\}\n/, '}      }   \n'));
    const escaped = events.map((event) => printed(event).replace('é', '\\u00e9'));
    for (const body of [spaced, turned, padded, escaped]) expect(translate(body.join('')).chunks).toEqual(chunks);
  });

  test('with the complete delivered text if a delta is longer than a megabyte', () => {
    const long = 'a"\n'.repeat(500_000);
    const body = [start(), open(0, { type: 'text', text: '' }), text(long), end('end_turn'), stop];
    expect(translate(body.map(printed).join('')).events.getDeliveredText()).toBe(long);
  });

  test('without anything that follows its end', () => {
    const [, events, chunks] = VECTORS[0] as (typeof VECTORS)[number];
    expect(translate(`${events.map(printed).join('')}data: nonsense\n\n`)).toMatchObject({
      chunks,
      failure: undefined,
    });
  });
});

describe('the usage', () => {
  const usage = { input_tokens: 12, cache_read_input_tokens: 100, output_tokens: 1 };
  const known = { input: 12, cacheRead: 100, cacheWrite: 0, output: 5, reasoning: 0 };

  test('is merged from the reports at the start and at the end', () => {
    const { events } = translate([start(usage), end('end_turn'), stop].map(printed).join(''));
    expect(events.usage()).toEqual(known);
  });

  test('is undefined before the end, because the earlier output tokens are preliminary', () => {
    const { events } = translate([start(usage), open(0, { type: 'text', text: '' }), text('A')].map(printed).join(''));
    expect(events.usage()).toBeUndefined();
    expect(events.getDeliveredText()).toBe('A');
  });

  test('is undefined if it is not reported', () => {
    const silent = { type: 'message_delta', delta: { stop_reason: 'end_turn' } };
    expect(translate([start(), silent, stop].map(printed).join('')).events.usage()).toBeUndefined();
  });
});

describe('a stream that fails or ends early', () => {
  const opening = [start(), open(0, { type: 'text', text: '' })].map(printed).join('');
  const error = (type: string) => printed({ type: 'error', error: { type, message: 'So it is' } } as { type: string });

  test.each([
    ['overloaded_error', 'upstream_error', 'The provider ended the response early'],
    ['api_error', 'upstream_error', 'The provider ended the response early'],
    ['constructor', 'upstream_error', 'The provider ended the response early'],
    ['rate_limit_error', 'rate_limited', 'The provider is limiting requests; retry later'],
    ['timeout_error', 'timeout', 'The provider took too long to respond'],
  ])('reports %s with the code %s and a fixed message, after the earlier text', (type, code, message) => {
    const { chunks, failure } = translate(opening + printed(text('A')) + error(type));
    expect(chunks).toEqual([role, { content: 'A' }]);
    expect(failure).toBeInstanceOf(UpstreamError);
    expect(failure).toMatchObject({ code, message, publicMessage: message });
  });

  test('has forwarded nothing if it fails before its first output, so that it can be retried', () => {
    expect(translate(opening + printed(ping) + error('overloaded_error')).chunks).toEqual([]);
  });

  test.each([
    ['is not JSON', 'data: {"type":"content_block_de\n\n', 'not JSON'],
    ['is missing', '', 'before the response was complete'],
  ])('has the code upstream_error if its next event %s', (_, more, words) => {
    const { failure } = translate(opening + printed(text('A')) + more);
    expect(failure).toMatchObject({ code: 'upstream_error', message: expect.stringContaining(words) });
  });

  test('has no failure if only its stop event is missing', () => {
    expect(translate(opening + printed(end('end_turn'))).failure).toBeUndefined();
  });
});
