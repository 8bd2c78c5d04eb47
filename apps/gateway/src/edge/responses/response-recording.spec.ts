import { setImmediate as turn } from 'node:timers/promises';
import { expect, jest, test } from '@jest/globals';
import type { FastifyReply } from 'fastify';
import type { SavedHttpResponse } from '#application';
import { attachRecording, handleOnSend, ResponseRecording } from './response-recording.ts';
import { SseWriter } from './sse-writer.ts';

const createReply = (fake: object) =>
  ({
    statusCode: 200,
    header: () => {},
    hasHeader: () => false,
    request: { headers: {} },
    ...fake,
  }) as unknown as FastifyReply;

/** A reply whose recording is saved when the test resolves `kept`. */
function recorded() {
  const raw = { on: () => {}, writeHead: () => {}, write: () => true, end: jest.fn(), destroyed: false };
  const headers = { 'content-type': 'text/plain' };
  const reply = createReply({ raw, hijack: () => {}, headers: () => {}, getHeaders: () => headers });
  const kept = Promise.withResolvers<void>();
  const answers: (SavedHttpResponse | undefined)[] = [];
  const recording = new ResponseRecording(reply, (answer) => {
    answers.push(answer);
    return kept.promise;
  });
  attachRecording(reply, recording);
  return { reply, raw, headers, kept, answers };
}

test('ends a stream only after it is saved, so that a repeated request after the end gets no 409', async () => {
  const { reply, raw, headers, kept, answers } = recorded();
  const client = new SseWriter(reply);
  client.begin();
  void client.write(Buffer.from('data: 1\n\n'));
  client.finish('data: [DONE]\n\n');
  await turn();
  expect(answers).toEqual([{ status: 200, headers, body: Buffer.from('data: 1\n\ndata: [DONE]\n\n') }]);
  expect(raw.end).not.toHaveBeenCalled();
  kept.resolve();
  await turn();
  expect(raw.end).toHaveBeenCalledWith('data: [DONE]\n\n');
});

test('sends a non-streaming response only after it is saved', async () => {
  const { reply, headers, kept, answers } = recorded();
  const sent = jest.fn();
  handleOnSend(undefined, reply, '{}', sent);
  await turn();
  expect(answers).toEqual([{ status: 200, headers, body: Buffer.from('{}') }]);
  expect(sent).not.toHaveBeenCalled();
  kept.resolve();
  await turn();
  expect(sent).toHaveBeenCalledWith(null, '{}');
});

test('sends an unrecorded response at once', () => {
  const sent = jest.fn();
  handleOnSend(undefined, createReply({}), '{}', sent);
  expect(sent).toHaveBeenCalledWith(null, '{}');
});

test('saves nothing for a response that is neither text nor bytes', async () => {
  const { reply, answers } = recorded();
  handleOnSend(undefined, reply, { pipe: () => {} }, () => {});
  await turn();
  expect(answers).toEqual([undefined]);
});
