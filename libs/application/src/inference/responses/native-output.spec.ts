import { describe, expect, test } from '@jest/globals';
import { type JsonObject } from '#kernel';
import { NativeOutput } from './native-output.ts';

const event = (type: string, more: object) => ({
  type: `response.${type}`,
  sequence_number: 9,
  output_index: 0,
  ...more,
});
const PART = { type: 'output_text', text: '', annotations: [], logprobs: [] };
const added = (item: object, output_index = 0) => event('output_item.added', { output_index, item });
const MESSAGE = { type: 'message', id: 'msg_1', status: 'in_progress', role: 'assistant', content: [] };
const REASONING = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'secret' };

function folded(events: readonly JsonObject[], showsEncrypted = false) {
  const output = new NativeOutput(showsEncrypted);
  return { output, passed: events.flatMap((each) => output.accept(each)) };
}

describe('events of the Responses API', () => {
  const TEXT = [
    added(MESSAGE),
    event('content_part.added', { content_index: 0, part: PART }),
    event('output_text.delta', { content_index: 0, delta: 'Hel', logprobs: [] }),
    event('output_text.delta', { content_index: 0, delta: 'lo', logprobs: [] }),
    event('output_text.annotation.added', { content_index: 0, annotation_index: 0, annotation: { url: 'u' } }),
  ];

  test('are forwarded without their sequence numbers, and for a text message otherwise unchanged', () => {
    const { passed } = folded(TEXT);
    expect(passed).toEqual(TEXT.map(({ sequence_number: _, ...each }) => each));
  });

  test.each<[string, JsonObject]>([
    ['too high for an item', added(MESSAGE, 4_294_967_294)],
    ['too high for a part', event('content_part.added', { content_index: 1e9, part: PART })],
    ['a string', event('content_part.added', { content_index: 'length', part: PART })],
    ['a property of all objects', { ...added(MESSAGE), output_index: 'constructor' }],
  ])('are rejected if an index is invalid: %s', (_, odd) => {
    expect(() => folded([added(MESSAGE), odd])).toThrow('an item or part with an invalid index');
  });

  test('are folded, so that an interrupted response contains its text', () => {
    const { output } = folded(TEXT);
    expect(output.outputText).toBe('Hello');
    output.interrupt();
    const content = [{ ...PART, text: 'Hello', annotations: [{ url: 'u' }] }];
    expect(output.items).toEqual([{ ...MESSAGE, status: 'incomplete', content }]);
  });

  test('are folded for calls, refusals and summaries', () => {
    const { output } = folded([
      added({ type: 'reasoning', id: 'rs_1', summary: [] }),
      event('reasoning_summary_part.added', { summary_index: 0, part: { type: 'summary_text', text: '' } }),
      event('reasoning_summary_text.delta', { summary_index: 0, delta: 'Hm' }),
      added({ ...MESSAGE }, 1),
      event('content_part.added', { output_index: 1, content_index: 0, part: { type: 'refusal', refusal: '' } }),
      event('refusal.delta', { output_index: 1, content_index: 0, delta: 'No' }),
      added({ type: 'function_call', call_id: 'c', name: 'f', arguments: '' }, 2),
      event('function_call_arguments.delta', { output_index: 2, delta: '{}' }),
    ]);
    expect(output.items).toMatchObject([
      { summary: [{ text: 'Hm' }] },
      { content: [{ refusal: 'No' }] },
      { arguments: '{}' },
    ]);
  });

  test('are folded into items, which the output of the final response replaces', () => {
    const { output, passed } = folded([
      ...TEXT,
      {
        type: 'response.incomplete',
        response: {
          object: 'response',
          output: [{ ...MESSAGE, id: 'x' }],
          incomplete_details: { reason: 'content_filter' },
        },
      },
    ]);
    expect(passed).toHaveLength(TEXT.length);
    expect([output.items, output.incompleteReason]).toEqual([[{ ...MESSAGE, id: 'x' }], 'content_filter']);
  });

  test.each([false, true])('show encrypted reasoning only if requested (%p); it is retained in both cases', (shows) => {
    const { output, passed } = folded([added(REASONING), event('output_item.done', { item: REASONING })], shows);
    const { encrypted_content: _, ...hidden } = REASONING;
    const shown = shows ? REASONING : hidden;
    expect(passed.map(({ item }) => item)).toEqual([shown, shown]);
    expect(output.items).toEqual([shown]);
    expect(output.getRetainedItems('openai')).toEqual([{ ...REASONING, made_by: 'openai' }]);
  });

  test('are forwarded, but change no item, if their item never arrived', () => {
    const { output, passed } = folded([event('output_text.delta', { output_index: 3, content_index: 1, delta: 'x' })]);
    expect([output.items, output.outputText, passed.length]).toEqual([[], '', 1]);
  });
});

test('a non-streaming response adds all its items and produces no events', () => {
  const { output, passed } = folded([{ object: 'response', status: 'completed', output: [REASONING, MESSAGE] }]);
  expect([passed, output.items.length, output.incompleteReason]).toEqual([[], 2, undefined]);
});
