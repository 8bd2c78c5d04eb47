import { describe, expect, test } from '@jest/globals';
import {
  createInterruptedPrompts,
  type InterruptedStreams,
  isInterrupted,
  listInterruptionFaults,
} from './interrupted-streams.ts';
import type { RecordedExchange } from './recording-wire.ts';

const PROMPTS = createInterruptedPrompts('any');

function createExchange(index: number, more: Partial<RecordedExchange> = {}): RecordedExchange {
  return {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: {},
    sent: { messages: [{ role: 'user', content: PROMPTS[index] }] },
    status: index === 0 ? 502 : 200,
    streamed: index > 0,
    response: 'data: {"name":"forecast"}\n\n',
    ...more,
  };
}

const UNBILLED = [0, 7];
const billed = PROMPTS.flatMap((_, index) => (UNBILLED.includes(index) ? [] : [[`any-${index + 1}`, 1] as const]));
const EXCHANGES = PROMPTS.map((_, index) => createExchange(index));
const well: InterruptedStreams = { clientName: 'any', exchanges: EXCHANGES, billedCalls: new Map(billed), failed: 10 };
const replace = (index: number, more: Partial<RecordedExchange>) => EXCHANGES.with(index, createExchange(index, more));

test('a request is recognised by its prompt', () => {
  expect(EXCHANGES.every(isInterrupted)).toBe(true);
  expect(isInterrupted(createExchange(0, { sent: { messages: [{ role: 'user', content: 'Hello' }] } }))).toBe(false);
  expect(isInterrupted(createExchange(0, { sent: undefined }))).toBe(false);
});

describe('interrupted streams', () => {
  test.each<[string, Partial<InterruptedStreams>]>([
    ['none was sent', { exchanges: [], failed: 0 }],
    ['each was sent and billed once', {}],
    ['the first was sent again', { exchanges: [...EXCHANGES, createExchange(0)], failed: 11 }],
    [
      'one was sent again as browsers do, and rejected',
      { exchanges: [...EXCHANGES, createExchange(2, { status: 400, headers: { 'last-event-id': '' } })] },
    ],
    ['hidden reasoning has an error status', { exchanges: replace(4, { status: 502 }) }],
  ])('pass if %s', (_, more) => {
    expect(listInterruptionFaults({ ...well, ...more })).toEqual([]);
  });

  test.each<[string, Partial<InterruptedStreams>]>([
    [
      'stream 3, interrupted in the text: it was not sent',
      { exchanges: EXCHANGES.toSpliced(2, 1), failed: 9, billedCalls: new Map(billed.toSpliced(1, 1)) },
    ],
    ['/v1/chat/completions was called 2 times', { exchanges: [...EXCHANGES, createExchange(7)], failed: 11 }],
    ['/v1/chat/completions was rejected: 400', { exchanges: [...EXCHANGES, createExchange(1, { status: 400 })] }],
    [
      'stream 1, interrupted before the first byte: /v1/chat/completions did not fail',
      { exchanges: replace(0, { status: 200 }) },
    ],
    ['has no call of the tool forecast', { exchanges: replace(3, { response: '' }) }],
    [
      'stream 6, interrupted between the finish reason and the usage: the provider billed 2 calls for 1',
      { billedCalls: new Map([...billed, ['any-6', 2]]) },
    ],
    ['10 streams broke, the history has 9 errors', { failed: 9 }],
  ])('fail with the fault "%s"', (fault, more) => {
    expect(listInterruptionFaults({ ...well, ...more })).toEqual([expect.stringContaining(fault)]);
  });
});
