import { describe, expect, test } from '@jest/globals';
import { parseUsd, ZERO_USD } from '#kernel';
import { createInterruptedPrompts } from './interrupted-streams.ts';
import type { RecordedExchange } from './recording-wire.ts';
import { type ClientRun, formatSummary, listFaults } from './verdict.ts';

const exchange = (more: Partial<RecordedExchange>): RecordedExchange => ({
  method: 'POST',
  path: '/v1/chat/completions',
  headers: {},
  sent: {},
  status: 200,
  streamed: false,
  response: '{}',
  ...more,
});
const streamed = exchange({ streamed: true, response: 'data: {}\n\ndata: [DONE]\n\n' });
/** Tool results in every format: one per protocol, and that of a custom tool in Responses. */
const RESULTS = {
  chat: { messages: [{ role: 'tool', tool_call_id: 'c', content: 'proof-42' }] },
  responses: { input: [{ type: 'function_call_output', call_id: 'c', output: 'proof-42' }] },
  custom: { input: [{ type: 'custom_tool_call_output', call_id: 'c', output: [{ text: 'proof-42' }] }] },
  messages: { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'proof-42' }] }] },
};
const tooled = exchange({ sent: RESULTS.chat });
const charged = { balanceUsd: parseUsd('0.01'), historyUsd: parseUsd('0.01'), heldUsd: 0, served: 2, failed: 0 };
const interruptedStreams = { clientName: 'any', exchanges: [], billedCalls: new Map(), failed: 0 };
const well: ClientRun = {
  outcome: { code: 0, output: '' },
  exchanges: [streamed, tooled],
  charged,
  interruptedStreams,
};

describe('a run of a client', () => {
  test.each(Object.entries(RESULTS))('passes with a stream, a tool result and consistent charges: %s', (_, sent) => {
    expect(listFaults({ ...well, exchanges: [streamed, exchange({ sent })] })).toEqual([]);
  });

  test('passes if a WebSocket was requested and rejected', () => {
    const asked = exchange({ method: 'GET', path: '/v1/responses', status: 426 });
    expect(listFaults({ ...well, exchanges: [asked, ...well.exchanges] })).toEqual([]);
  });

  test.each<[string, Partial<ClientRun>]>([
    ['exit code 1', { outcome: { code: 1, output: 'why' } }],
    ['timed out', { outcome: { code: null, output: '' } }],
    ['no stream', { exchanges: [tooled, tooled] }],
    ['no stream', { exchanges: [exchange({ streamed: true, response: 'data: {}\n\n' }), tooled] }],
    ['no tool', { exchanges: [streamed, streamed] }],
    ['no tool', { exchanges: [streamed, exchange({ sent: { messages: [{ role: 'tool', content: 'else' }] } })] }],
    ['was rejected: 400', { exchanges: [streamed, tooled, exchange({ status: 400 })] }],
    ['the balance', { charged: { ...charged, historyUsd: parseUsd('0.010000000001') } }],
    ['the balance', { charged: { ...charged, balanceUsd: ZERO_USD, historyUsd: ZERO_USD } }],
    ['still held', { charged: { ...charged, heldUsd: 0.1 } }],
    ['the history has 3', { charged: { ...charged, served: 3 } }],
  ])('fails with the fault "%s"', (why, more) => {
    expect(listFaults({ ...well, ...more })).toEqual([expect.stringContaining(why)]);
  });

  test('passes if streams broke that should break', () => {
    const [prompt] = createInterruptedPrompts('any');
    const interrupted = exchange({ status: 502, sent: { messages: [{ role: 'user', content: prompt }] } });
    expect(listFaults({ ...well, exchanges: [...well.exchanges, interrupted] })).toEqual([]);
  });

  test('is summarised by its requests and charges', () => {
    expect(formatSummary(well)).toBe('2 × chat/completions (1 streamed, 1 after a tool); charged 0.01 USD');
  });
});
