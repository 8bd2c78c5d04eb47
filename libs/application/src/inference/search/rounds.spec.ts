import { describe, expect, test } from '@jest/globals';
import { UpstreamError } from '#application';
import { BufferedRounds } from './buffered-rounds.ts';
import { RoundEvents } from './round-events.ts';
import { toAssistantMessage } from './search-tool.ts';

const identity = { id: 'gen-1', model: 'v/m', provider: 'V', created: 7 };
const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ ...identity, choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const call = (index: number, name: string, args: string, id = `call_${name}`) => ({
  index,
  id,
  type: 'function',
  function: { name, arguments: args },
});
const more = (index: number, args: string) => ({ index, function: { arguments: args } });
const role = { role: 'assistant', content: '' };

/** Combines rounds, each a list of chunks. The client gets the `deltas`; `said` has the output of each round. */
function streamed(...rounds: readonly (readonly string[])[]) {
  const events = new RoundEvents(identity, 'web_search');
  const passed: Uint8Array[] = [];
  const said = rounds.map((chunks) => {
    for (const each of chunks) {
      const out = events.filterEvents(Buffer.from(each));
      if (out) passed.push(out);
    }
    return events.endRound();
  });
  passed.push(events.createEndEvent('stop'));
  const text = Buffer.concat(passed).toString();
  const choices = text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.slice(6)).choices[0]);
  const deltas = choices.map(({ delta, finish_reason }) => (finish_reason === null ? delta : finish_reason));
  return { events, said, deltas };
}

describe('the combined stream of several rounds', () => {
  test('has one role, the output of all rounds and one end', () => {
    const { deltas, said } = streamed(
      [
        chunk({ ...role, content: null, tool_calls: [call(0, 'web_search', '')] }),
        chunk({ tool_calls: [more(0, '{"query":')] }),
        chunk({ tool_calls: [more(0, '"x"}')] }),
        chunk({}, 'tool_calls'),
      ],
      [chunk(role), chunk({ content: 'Yes' }), chunk({ content: '!' }), chunk({}, 'stop')],
    );
    expect(deltas).toEqual([role, { content: 'Yes' }, { content: '!' }, 'stop']);
    expect(said[0]).toMatchObject({
      calls: [{ id: 'call_web_search', arguments: '{"query":"x"}' }],
      finishReason: 'tool_calls',
    });
    expect(said[1]).toMatchObject({ calls: [], content: 'Yes!', finishReason: 'stop' });
  });

  test('separates the text before a search from the text after it', () => {
    const first = [chunk({ ...role, content: 'Let me see' }), chunk({ tool_calls: [call(0, 'web_search', '{}')] })];
    const { deltas, said } = streamed(first, [chunk({ ...role, content: 'Yes' })]);
    expect(deltas).toEqual([{ ...role, content: 'Let me see' }, { content: '\n\nYes' }, 'stop']);
    expect(said[0]?.content).toBe('Let me see');
  });

  test('forwards the client’s tool calls with consecutive indexes, as if there were no search calls', () => {
    const { deltas, said } = streamed([
      chunk({ ...role, tool_calls: [call(0, 'web_search', '{}'), call(1, 'book', '')] }),
      chunk({ tool_calls: [more(1, '{"a":')] }),
      chunk({ tool_calls: [more(0, ' '), more(1, '1}')] }),
      chunk({ tool_calls: [call(2, 'other', '{}')] }),
      chunk({}, 'tool_calls'),
    ]);
    expect(deltas).toEqual([
      { ...role, tool_calls: [call(0, 'book', '')] },
      { tool_calls: [more(0, '{"a":')] },
      { tool_calls: [more(0, '1}')] },
      { tool_calls: [call(1, 'other', '{}')] },
      'stop',
    ]);
    expect(said[0]).toMatchObject({ hasClientCalls: true, calls: [{ arguments: '{} ' }] });
  });

  test('forwards signed reasoning and includes it in the next round', () => {
    const details = [{ type: 'reasoning.text', text: 'Hm', signature: 's' }];
    const { said, deltas } = streamed([
      chunk({ reasoning: 'Hm' }),
      chunk({ reasoning_details: details }),
      chunk({ tool_calls: [call(0, 'web_search', '{"query":"x"}')] }),
    ]);
    expect(deltas).toEqual([{ reasoning: 'Hm' }, { reasoning_details: details }, 'stop']);
    expect(toAssistantMessage('web_search', said[0] as never)).toMatchObject({
      reasoning_details: details,
      content: null,
    });
  });

  test('reports output once it has forwarded text, reasoning or calls of the client’s tools', () => {
    const delivered = (...chunks: readonly string[]) => streamed(chunks).events.hasDelivered;
    expect(delivered(chunk(role), chunk({ content: '' }), chunk({ tool_calls: [call(0, 'web_search', '')] }))).toBe(
      false,
    );
    expect(delivered(chunk({ content: 'H' }))).toBe(true);
    expect(delivered(chunk({ reasoning: 'H' }))).toBe(true);
    expect(delivered(chunk({ tool_calls: [call(0, 'book', '')] }))).toBe(true);
  });

  test('forwards the output of the last chunk, and then ends with its other fields', () => {
    const last = `data: ${JSON.stringify({ ...identity, system_fingerprint: 'fp', choices: [{ index: 0, delta: { content: '!' }, logprobs: null, finish_reason: 'stop' }] })}\n\n`;
    const { deltas, events } = streamed([chunk({ content: 'Yes' }), last]);
    expect(deltas).toEqual([{ content: 'Yes' }, { content: '!' }, 'stop']);
    const end = JSON.parse(Buffer.from(events.createEndEvent('length')).toString().slice(6));
    expect(end).toMatchObject({
      system_fingerprint: 'fp',
      choices: [{ delta: {}, logprobs: null, finish_reason: 'length' }],
    });
  });

  test('fails with UpstreamError if an event is not JSON', () => {
    const events = new RoundEvents(identity, 'web_search');
    expect(() => events.filterEvents(Buffer.from('data: {"role"\n\n'))).toThrow(UpstreamError);
  });
});

describe('the combined non-streaming completion of several rounds', () => {
  const answer = (message: object, finish_reason = 'stop') => ({
    kind: 'complete' as const,
    protocol: 'chat' as const,
    body: { ...identity, choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }] },
    usage: undefined,
    vendorId: () => undefined,
    getDeliveredText: () => '',
  });
  const source = { url: 'https://a.example', title: 'A', text: 'a' };

  test('has the text, reasoning and sources of all rounds', async () => {
    const rounds = new BufferedRounds('web_search');
    const calling = { content: 'Let me see', reasoning: 'Hm', tool_calls: [call(0, 'web_search', '{"query":"x"}')] };
    const said = await rounds.collectRound(answer(calling, 'tool_calls'));
    expect(said).toMatchObject({ calls: [{ arguments: '{"query":"x"}' }], hasClientCalls: false });
    rounds.cite([source]);
    await rounds.collectRound(answer({ content: 'Yes', refusal: null }));
    rounds.end('stop');
    expect(rounds.body).toEqual({
      ...identity,
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Let me see\n\nYes',
            refusal: null,
            reasoning: 'Hm',
            annotations: [expect.objectContaining({ type: 'url_citation' })],
          },
          finish_reason: 'stop',
        },
      ],
    });
  });

  test('has the client’s tool calls but no search calls', async () => {
    const rounds = new BufferedRounds('web_search');
    const tool_calls = [call(0, 'web_search', '{}'), call(1, 'book', '{}')];
    expect(await rounds.collectRound(answer({ content: null, tool_calls }, 'tool_calls'))).toMatchObject({
      hasClientCalls: true,
    });
    rounds.end('tool_calls');
    const [choice] = rounds.body.choices as readonly { message: object }[];
    expect(choice?.message).toMatchObject({ content: null, tool_calls: [call(1, 'book', '{}')] });
  });
});
