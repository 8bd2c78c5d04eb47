import { describe, expect, test } from '@jest/globals';
import { UpstreamError } from '#application';
import { ChatChunkTranslator } from './chat-chunks.ts';

const identity = { id: 'gen-1', model: 'deepseek/deepseek-r1', provider: 'DeepInfra', created: 7 };

/** Returns the forwarded deltas, and the text that counts as delivered. */
function translated(deltas: readonly object[], hidesReasoning: boolean) {
  const chunks = new ChatChunkTranslator(identity, hidesReasoning);
  let out = '';
  const pass = (events: Uint8Array) => {
    out += Buffer.from(events).toString();
  };
  for (const delta of deltas) {
    // Python's JSON format with spaces, which many OpenAI-compatible providers use.
    const json = `{"id": "up-1", "created": 1, "model": "theirs", "choices": [{"index": 0, "delta": ${JSON.stringify(delta)}}]}`;
    chunks.accept(Buffer.from(`data: ${json}\n\n`), pass);
  }
  chunks.accept(Buffer.from('data: [DONE]\n\n'), pass);
  const passed = out.split('\n\n').flatMap((event) => (event === '' ? [] : [JSON.parse(event.slice(6))]));
  for (const chunk of passed) expect(chunk).toMatchObject(identity);
  return { deltas: passed.map(({ choices }) => choices[0].delta), delivered: chunks.getDeliveredText() };
}

describe('the reasoning of a model', () => {
  const spoken = [{ role: 'assistant', content: '' }, { content: 'Yes – "no"' }];

  test.each<[string, object, object?]>([
    ['OpenRouter', { reasoning: 'Hm – "', reasoning_details: [{ type: 'reasoning.text', text: 'Hm' }] }],
    ['DeepInfra', { reasoning_content: 'Hm – "' }, { reasoning: 'Hm – "' }],
    ['Groq', { reasoning: 'Hm – "', channel: 'analysis' }],
  ])(
    'is forwarded under a single name when %s reports it, or left out if it is excluded',
    (_, thought, named = thought) => {
      const shown = translated([...spoken, thought], false);
      expect(shown.deltas).toEqual([...spoken, named]);
      const hidden = translated([...spoken, thought], true);
      expect(JSON.stringify(hidden.deltas)).not.toMatch(/reasoning|Hm/);
      expect(hidden.deltas.slice(0, 2)).toEqual(spoken);
      expect(hidden.delivered).toBe('Yes – "no"Hm – "');
      expect(shown.delivered).toBe(hidden.delivered);
    },
  );

  test('is not confused with text that mentions its field names', () => {
    const words = [{ content: '"reasoning": is a word' }];
    expect(translated(words, true).deltas).toEqual(words);
    const others = [{ content: '{"reasoning_content": 1} is a field' }];
    expect(translated(others, false).deltas).toEqual(others);
  });
});

test.each([
  ['before its choices', '"id":"up-1","model":"theirs","created":NOW,', ',"usage":null'],
  ['with a null among them', '"usage":null,"created":NOW,"model":"theirs","id":"up-1",', ''],
  ['after its choices', '', ',"created": NOW,"id":"up-1","model":"theirs","usage":null'],
])(
  'a chunk with its id, model and time %s gets the identity of the call and no nulls, however it starts',
  (_, before, behind) => {
    const chunks = new ChatChunkTranslator(identity);
    let out = '';
    for (const [i, first] of ['', '', '"tier":1,'].entries()) {
      const json = `{${first}${before}"choices":[{"index":0,"delta":{"content":"a \\"usage\\":null, $&"}}]${behind}}`;
      // Some providers update the time in each chunk.
      const now = json.replace('NOW', String(1_790_000_000 + Math.max(0, i - 1)));
      chunks.accept(Buffer.from(`data: ${now}\n\n`), (events) => {
        out += Buffer.from(events);
      });
    }
    const passed = out.split('\n\n').flatMap((event) => (event === '' ? [] : [JSON.parse(event.slice(6))]));
    const choices = [{ index: 0, delta: { content: 'a "usage":null, $&' } }];
    const chunk = { ...identity, choices };
    expect(passed).toEqual([chunk, chunk, { ...chunk, tier: 1 }]);
    expect(chunks.getDeliveredText()).toBe('a "usage":null, $&'.repeat(3));
  },
);

/** Returns the chunks that a client gets, and the translator after them. */
function translateChunks(chunks: readonly object[]) {
  const translator = new ChatChunkTranslator(identity);
  let out = '';
  for (const chunk of chunks)
    translator.accept(Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`), (events) => {
      out += Buffer.from(events);
    });
  return { translator, lines: out.split('\n\n').filter((event) => event !== '') };
}

describe('the field x_groq', () => {
  const toChunk = (delta: object, more: object) => ({
    id: 'up-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'theirs',
    system_fingerprint: null,
    choices: [{ index: 0, delta, finish_reason: null }],
    ...more,
  });
  const usage = { prompt_tokens: 7, completion_tokens: 3 };
  const first = toChunk({ role: 'assistant', content: 'Yes' }, { x_groq: { id: 'req_1' } });

  test('is not forwarded, wherever it is', () => {
    const { lines } = translateChunks([
      first,
      toChunk({ content: 'a "x_groq": b' }, {}),
      toChunk({}, { x_groq: { debug: { input_token_ids: [1] } } }),
      { x_groq: { id: 'req_1' }, ...toChunk({}, {}) },
    ]);
    const chunks = lines.map((line) => JSON.parse(line.slice(6)));
    expect(chunks).toHaveLength(4);
    for (const chunk of chunks) {
      expect(chunk).toMatchObject({ ...identity, object: 'chat.completion.chunk' });
      expect(Object.keys(chunk)).not.toContain('x_groq');
      expect(Object.keys(chunk)).not.toContain('system_fingerprint');
    }
    expect(chunks[1].choices[0].delta).toEqual({ content: 'a "x_groq": b' });
  });

  test.each([
    ['counts if no other usage is reported', [], { input: 7, output: 3 }],
    [
      'does not replace a later usage',
      [{ choices: [], usage: { ...usage, prompt_tokens: 9 } }],
      { input: 9, output: 3 },
    ],
  ])('has a usage that %s', (_, later, expected) => {
    const { translator } = translateChunks([first, toChunk({}, { x_groq: { id: 'req_1', usage } }), ...later]);
    expect(translator.usage()).toMatchObject(expected);
  });

  test('has an error that fails the stream', () => {
    const last = toChunk({}, { x_groq: { id: 'req_1', error: 'over_capacity' } });
    expect(() => translateChunks([first, last])).toThrow(
      new UpstreamError('upstream_error', 'The provider ended the response early'),
    );
    expect(() => translateChunks([last])).toThrow('The provider ended the response early');
  });
});

test.each([
  ['first', (rest: object) => ({ provider: 'Theirs', id: 'up-1', model: 'theirs', created: 1, ...rest })],
  ['last', (rest: object) => ({ id: 'up-1', model: 'theirs', created: 1, ...rest, provider: 'Their "own"' })],
])('the provider that a router names %s in a chunk is replaced by the provider of the call', (_, addHead) => {
  const toChoices = (content: string) => ({ choices: [{ index: 0, delta: { content } }] });
  const { lines } = translateChunks(['a', '"provider":"x"', 'b'].map((content) => addHead(toChoices(content))));
  expect(lines).toHaveLength(3);
  for (const line of lines) {
    expect(line.match(/[^\\]"provider":/g)).toHaveLength(1);
    expect(JSON.parse(line.slice(6))).toMatchObject(identity);
  }
  expect(JSON.parse(lines[1]?.slice(6) as string)).toMatchObject(toChoices('"provider":"x"'));
});

test.each([
  ['next to the choices', { error: { code: 502, message: 'Provider down' }, choices: [] }],
  ['in a choice', { choices: [{ index: 0, delta: {}, finish_reason: 'error', error: { message: 'Provider down' } }] }],
])('an error %s fails the stream', (_, failing) => {
  const chunks = new ChatChunkTranslator(identity);
  const first = { id: 'up-1', model: 'theirs', choices: [{ index: 0, delta: { content: 'Yes' } }] };
  chunks.accept(Buffer.from(`data: ${JSON.stringify(first)}\n\n`), () => {});
  const error = Buffer.from(`data: ${JSON.stringify({ id: 'up-1', model: 'theirs', ...failing })}\n\n`);
  expect(() => chunks.accept(error, () => {})).toThrow(
    new UpstreamError('upstream_error', 'The provider ended the response early'),
  );
});

test('a chunk without a choice, which some providers send first, is not forwarded', () => {
  const chunks = new ChatChunkTranslator(identity);
  let out = '';
  const choice = { index: 0, delta: { content: 'Yes' } };
  for (const choices of [[], [choice]]) {
    const json = JSON.stringify({ id: 'up-1', created: 1, model: 'theirs', choices });
    chunks.accept(Buffer.from(`data: ${json}\n\n`), (events) => {
      out += Buffer.from(events);
    });
  }
  expect(JSON.parse(out.slice(6))).toEqual({ ...identity, choices: [choice] });
});
