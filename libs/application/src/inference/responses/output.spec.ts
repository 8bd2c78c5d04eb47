import { describe, expect, test } from '@jest/globals';
import { parseResponsesRequest, type TypedEvent } from '#application';
import { type JsonObject } from '#kernel';
import { sampleSize } from '#testing';
import { ChatChunkCollector } from '../chat/chat-chunk-collector.ts';
import type { ChatDelta } from '../chat/translating-writer.ts';
import { ResponseOutput } from './output.ts';
import { ReasoningDecoder } from './reasoning.ts';

/** Converts deltas. A line describes an event: its name without `response.`, the index of its item, and its content. */
function written(deltas: readonly ChatDelta[], status: 'completed' | 'incomplete' = 'completed') {
  const output = new ResponseOutput('1');
  const events = [...deltas.flatMap((delta) => output.accept(delta)), ...output.end(status)];
  const lines = events.map(({ type, output_index, ...more }) => {
    const { delta, text, refusal, arguments: args, annotation, item, part } = more as Record<string, never>;
    const brings = delta ?? text ?? refusal ?? args ?? annotation ?? (part as { type: string } | undefined)?.type;
    const { type: kind, status: how } = (item ?? {}) as { type?: string; status?: string };
    return [type.replace('response.', ''), output_index, brings ?? (kind && `${kind} ${how}`)].join(' ');
  });
  return { output, events, lines };
}

/** Returns the message that these items become in a chat that continues them. */
const saidBy = ({ items }: Pick<ResponseOutput, 'items'>) =>
  parseResponsesRequest({ model: 'm', input: 'Go on' }, items as readonly object[] as readonly JsonObject[]).chat
    .messages[0];

const call = (index: number, more: object) => ({ tool_calls: [{ index, ...more }] });
const opening = (index: number, id: string, name: string) =>
  call(index, { id, type: 'function', function: { name, arguments: '' } });
const args = (index: number, text: string) => call(index, { function: { arguments: text } });

describe('reasoning that its provider requires in later requests', () => {
  const detail = (text: string, more: object = {}) => ({ type: 'reasoning.text', text, index: 0, ...more });

  test('is joined from its chunks and retained, but the client gets no encrypted content', () => {
    const pieces = [
      { reasoning: 'So', reasoning_details: [detail('So', { signature: null })] },
      { reasoning: ' be it', reasoning_details: [detail(' be it')] },
      { reasoning_details: [detail('', { signature: 's' }), { type: 'reasoning.encrypted', data: 'x', index: 1 }] },
      { content: 'Yes' },
    ];
    const { output, events } = written(pieces);
    const [thought] = output.retainedItems as readonly { readonly encrypted_content?: string }[];
    const details = [detail('So be it', { signature: 's' }), { type: 'reasoning.encrypted', data: 'x', index: 1 }];
    expect(new ReasoningDecoder().decode(thought as JsonObject, '')).toEqual(details);
    expect(saidBy({ items: output.retainedItems })).toEqual({
      role: 'assistant',
      content: 'Yes',
      reasoning_details: details,
    });
    expect(JSON.stringify([events, output.items])).not.toContain('encrypted_content');
  });

  test('is an item even if all of it is encrypted', () => {
    const { lines } = written([
      { reasoning_details: [{ type: 'reasoning.encrypted', data: 'x' }] },
      { content: 'Yes' },
    ]);
    expect(lines.slice(0, 2)).toEqual([
      'output_item.added 0 reasoning in_progress',
      'output_item.done 0 reasoning completed',
    ]);
  });
});

describe('searches of a response', () => {
  const note = (at: number, state: 'searching' | 'completed' | 'failed') => ({ at, query: `q${at}`, state });
  const source = { type: 'url_citation', url_citation: { url: 'https://a.example', title: 'A' } };

  function lines(output: ResponseOutput, steps: readonly (() => readonly TypedEvent[])[]) {
    const events = [...steps.flatMap((step) => step()), ...output.end('completed')];
    return events.map(({ type, output_index }) => `${type.replace('response.', '')} ${output_index}`);
  }

  test('are items between the messages before and after them', () => {
    const output = new ResponseOutput('1');
    expect(
      lines(output, [
        () => output.accept({ content: 'Let me see' }),
        () => output.recordSearch(note(0, 'searching')),
        () => output.recordSearch(note(0, 'completed')),
        () => output.accept({ annotations: [source] }),
        () => output.recordSearch(note(1, 'searching')),
        () => output.recordSearch(note(1, 'failed')),
        () => output.accept({ content: 'Yes' }),
      ]),
    ).toEqual([
      'output_item.added 0',
      'content_part.added 0',
      'output_text.delta 0',
      'output_text.done 0',
      'content_part.done 0',
      'output_item.done 0',
      'output_item.added 1',
      'web_search_call.in_progress 1',
      'web_search_call.searching 1',
      'web_search_call.completed 1',
      'output_item.done 1',
      'output_item.added 2',
      'web_search_call.in_progress 2',
      'web_search_call.searching 2',
      'output_item.done 2',
      'output_item.added 3',
      'content_part.added 3',
      'output_text.annotation.added 3',
      'output_text.delta 3',
      'output_text.done 3',
      'content_part.done 3',
      'output_item.done 3',
    ]);
    expect(output.items.map(({ type, status }) => `${type} ${status}`)).toEqual([
      'message completed',
      'web_search_call completed',
      'web_search_call failed',
      'message completed',
    ]);
  });

  test('have all events even if only the end of the search is reported', () => {
    const output = new ResponseOutput('1');
    const types = output.recordSearch(note(0, 'completed')).map(({ type }) => type.replace('response.', ''));
    expect(types).toEqual([
      'output_item.added',
      'web_search_call.in_progress',
      'web_search_call.searching',
      'web_search_call.completed',
      'output_item.done',
    ]);
    expect(output.items).toEqual([
      { type: 'web_search_call', id: 'ws_1_0', status: 'completed', action: { type: 'search', query: 'q0' } },
    ]);
  });

  test('are followed by a message with the sources, even without text', () => {
    const output = new ResponseOutput('1');
    output.recordSearch(note(0, 'completed'));
    output.accept({ annotations: [source] });
    output.end('completed');
    expect(output.items.at(-1)).toMatchObject({
      type: 'message',
      content: [{ text: '', annotations: [{ title: 'A' }] }],
    });
  });
});

describe('the chunks of a completion', () => {
  test('add, fill and end an item and a part for text', () => {
    const { lines, output } = written([{ content: '' }, { content: 'Hel' }, { content: 'lo' }, {}]);
    expect(lines).toEqual([
      'output_item.added 0 message in_progress',
      'content_part.added 0 output_text',
      'output_text.delta 0 Hel',
      'output_text.delta 0 lo',
      'output_text.done 0 Hello',
      'content_part.done 0 output_text',
      'output_item.done 0 message completed',
    ]);
    expect(output.items).toEqual([
      {
        type: 'message',
        id: 'msg_1_0',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Hello', annotations: [], logprobs: [] }],
      },
    ]);
    expect(output.outputText).toBe('Hello');
    expect(saidBy(output)).toEqual({ role: 'assistant', content: 'Hello' });
  });

  test('produce events with the state of the item at that time', () => {
    const { events } = written([{ content: 'Hello' }]);
    expect(events[0]).toEqual({
      type: 'response.output_item.added',
      output_index: 0,
      item: { type: 'message', id: 'msg_1_0', status: 'in_progress', role: 'assistant', content: [] },
    });
    expect(events[1]).toEqual({
      type: 'response.content_part.added',
      item_id: 'msg_1_0',
      output_index: 0,
      content_index: 0,
      part: { type: 'output_text', text: '', annotations: [], logprobs: [] },
    });
    expect(events[2]).toEqual({
      type: 'response.output_text.delta',
      item_id: 'msg_1_0',
      output_index: 0,
      content_index: 0,
      delta: 'Hello',
      logprobs: [],
    });
  });

  test.each(['reasoning', 'reasoning_content'])('produce an item for %s before the item of the text', (name) => {
    const { lines, output } = written([{ [name]: 'H' }, { [name]: 'm' }, { content: 'Yes' }]);
    expect(lines).toEqual([
      'output_item.added 0 reasoning in_progress',
      'reasoning_summary_part.added 0 summary_text',
      'reasoning_summary_text.delta 0 H',
      'reasoning_summary_text.delta 0 m',
      'reasoning_summary_text.done 0 Hm',
      'reasoning_summary_part.done 0 summary_text',
      'output_item.done 0 reasoning completed',
      'output_item.added 1 message in_progress',
      'content_part.added 1 output_text',
      'output_text.delta 1 Yes',
      'output_text.done 1 Yes',
      'content_part.done 1 output_text',
      'output_item.done 1 message completed',
    ]);
    expect(output.items[0]).toMatchObject({ id: 'rs_1_0', summary: [{ type: 'summary_text', text: 'Hm' }] });
    expect(saidBy(output)).toEqual({ role: 'assistant', content: 'Yes' });
  });

  test('produce separate calls even if the chunks of their arguments alternate', () => {
    const { lines, output } = written([
      { content: 'Let me see' },
      opening(0, 'call_a', 'f'),
      opening(1, 'call_b', 'g'),
      args(0, '{"a":'),
      args(1, '{}'),
      args(0, '1}'),
    ]);
    expect(lines.slice(3)).toEqual([
      'output_text.done 0 Let me see',
      'content_part.done 0 output_text',
      'output_item.done 0 message completed',
      'output_item.added 1 function_call in_progress',
      'output_item.added 2 function_call in_progress',
      'function_call_arguments.delta 1 {"a":',
      'function_call_arguments.delta 2 {}',
      'function_call_arguments.delta 1 1}',
      'function_call_arguments.done 1 {"a":1}',
      'output_item.done 1 function_call completed',
      'function_call_arguments.done 2 {}',
      'output_item.done 2 function_call completed',
    ]);
    expect(output.items[1]).toEqual({
      type: 'function_call',
      id: 'fc_1_1',
      status: 'completed',
      call_id: 'call_a',
      name: 'f',
      arguments: '{"a":1}',
    });
    expect(saidBy(output)?.tool_calls).toEqual([
      { id: 'call_a', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
      { id: 'call_b', type: 'function', function: { name: 'g', arguments: '{}' } },
    ]);
  });

  test('produce an id for a call without one', () => {
    const { output } = written([call(0, { function: { name: 'f', arguments: '{}' } })]);
    expect(output.items[0]).toMatchObject({ call_id: 'call_fc_1_0', arguments: '{}' });
  });

  test('produce a separate part for a refusal', () => {
    const { lines, output } = written([{ content: 'Well' }, { refusal: 'N' }, { refusal: 'o' }]);
    expect(lines.slice(2)).toEqual([
      'output_text.delta 0 Well',
      'output_text.done 0 Well',
      'content_part.done 0 output_text',
      'content_part.added 0 refusal',
      'refusal.delta 0 N',
      'refusal.delta 0 o',
      'refusal.done 0 No',
      'content_part.done 0 refusal',
      'output_item.done 0 message completed',
    ]);
    expect(saidBy(output)).toEqual({ role: 'assistant', content: 'Well', refusal: 'No' });
  });

  test('produce annotations in the flat format of the Responses API for citations', () => {
    const url_citation = { url: 'https://x.example', title: 'X', content: '…', start_index: 0, end_index: 3 };
    const { events, output } = written([
      { content: 'Yes' },
      { annotations: [{ type: 'url_citation', url_citation }, 7] },
    ]);
    const annotation = { type: 'url_citation', url: 'https://x.example', title: 'X', start_index: 0, end_index: 3 };
    expect(events[3]).toEqual({
      type: 'response.output_text.annotation.added',
      item_id: 'msg_1_0',
      output_index: 0,
      content_index: 0,
      annotation_index: 0,
      annotation,
    });
    expect(output.items[0]).toMatchObject({ content: [{ annotations: [annotation] }] });
  });

  test('produce an empty message if they are empty', () => {
    const { lines, output } = written([{}, { content: null, refusal: null, tool_calls: null, annotations: null }]);
    expect(lines.map((line) => line.split(' ')[0])).toEqual([
      'output_item.added',
      'content_part.added',
      'output_text.done',
      'content_part.done',
      'output_item.done',
    ]);
    expect(saidBy(output)).toEqual({ role: 'assistant', content: '' });
  });

  test('produce no text for fields of an unexpected type', () => {
    const odd = { content: 7, reasoning: {}, refusal: [], tool_calls: [null, 'x'], annotations: {} };
    expect(written([odd, { content: 'Yes' }]).output.outputText).toBe('Yes');
  });
});

test('a non-streaming completion produces the same items as its chunks', () => {
  const pieces = written([{ reasoning: 'Hm' }, { content: 'Yes' }, opening(0, 'call_a', 'f'), args(0, '{}')]).output
    .items;
  const tool_calls = [{ id: 'call_a', type: 'function', function: { name: 'f', arguments: '{}' } }];
  expect(written([{ content: 'Yes', reasoning: 'Hm', refusal: null, tool_calls }]).output.items).toEqual(pieces);
});

test('only the open item is incomplete if the completion reached its output limit', () => {
  const { output } = written([{ reasoning: 'Hm' }, { content: 'Ye' }], 'incomplete');
  expect(output.items.map(({ status }) => status)).toEqual(['completed', 'incomplete']);
});

test('only the open item is incomplete if the completion was interrupted', () => {
  const output = new ResponseOutput('1');
  output.accept({ reasoning: 'Hm' });
  output.accept({ content: 'Ye' });
  output.interrupt();
  expect(output.items.map(({ status }) => status)).toEqual(['completed', 'incomplete']);
});

test('the chunks of many calls and reasoning details are converted in linear time', () => {
  const PLACES = sampleSize(200_000, 20_000); // searching all of them for each chunk would take minutes
  const calls = Array.from({ length: PLACES }, (_, i) => ({
    index: i,
    id: `c${i}`,
    function: { name: 'f', arguments: '' },
  }));
  const thoughts = calls.map(({ index }) => ({ reasoning_details: [{ type: 'reasoning.text', text: 'x', index }] }));
  const chat = new ChatChunkCollector();
  for (const tool_calls of [calls, calls.map(({ index }) => ({ index, function: { arguments: '{}' } }))])
    chat.accept({ choices: [{ index: 0, delta: { tool_calls } }] });
  const [choice] = chat.body.choices as readonly { readonly message: { readonly tool_calls: readonly unknown[] } }[];
  const last = { id: `c${PLACES - 1}`, function: { name: 'f', arguments: '{}' } };
  expect(choice?.message.tool_calls.at(-1)).toEqual(last);
  const output = new ResponseOutput('1');
  output.accept({ tool_calls: calls });
  for (const thought of thoughts) output.accept(thought);
  expect(output.end('completed').at(-1)?.output_index).toBe(PLACES - 1);
  expect(output.retainedItems).toHaveLength(PLACES + 1);
});
