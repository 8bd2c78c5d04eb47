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
