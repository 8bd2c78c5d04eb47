import { EventEmitter } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Exchanges, parseJsonBody } from './exchanges.ts';
import type { EnclaveResponse, PrivateChats } from './private-chats.ts';
import type { PrivateModelResolver } from './private-model-resolver.ts';
import { OPENAI_PROTOCOL } from './protocols/openai.ts';

const whole = async () => 'an answer';
const events = async function* () {};

function asked(body: string): FastifyRequest {
  return { body: Buffer.from(body), logFields: {} } as FastifyRequest;
}

function exchangesWith(chats: Partial<PrivateChats>): Exchanges {
  const names = { resolve: async () => ({ id: 'one' }) } as unknown as PrivateModelResolver;
  const explained = async (error: unknown) => error;
  return new Exchanges(names, { explainError: explained, ...chats } as PrivateChats);
}

test('drain aborts a running request, and does not wait for a caller that does not read its response', async () => {
  const heard = Promise.withResolvers<unknown>();
  const exchanges = exchangesWith({
    send: (_model, _request, signal) => {
      signal.addEventListener('abort', () => heard.resolve(signal.reason.code));
      return new Promise<EnclaveResponse>(() => {});
    },
  });
  const reply = { raw: new EventEmitter() } as FastifyReply;
  void exchanges.serve(asked('{}'), reply, OPENAI_PROTOCOL, (chat) => ({
    isStreaming: false,
    chat,
    collect: whole,
    streamEvents: events,
  }));
  await new Promise(setImmediate);
  await exchanges.drain(10);
  expect(await heard.promise).toBe('stopped');
});

describe('a request body', () => {
  test.each([
    ['with too many arrays', `{"messages":[${'[],'.repeat(600_000)}[]]}`],
    ['that is nested too deeply', '['.repeat(24_000_000)],
  ])('%s is rejected before it is parsed', (_, body) => {
    expect(() => parseJsonBody(asked(body))).toThrow('The body has too many of the characters {, [ and :');
  });

  test('is rejected if its serialised numbers exceed the size limit', async () => {
    const served = exchangesWith({}).serve(
      asked(`{"x":[${'1e20,'.repeat(1_500_000)}1]}`),
      {} as FastifyReply,
      OPENAI_PROTOCOL,
      (chat) => ({
        isStreaming: false,
        chat,
        collect: whole,
        streamEvents: events,
      }),
    );
    await expect(served).rejects.toMatchObject({ status: 413 });
  });
});
