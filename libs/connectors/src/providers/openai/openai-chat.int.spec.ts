import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { UpstreamError } from '#application';
import { ProviderHttp } from '../../http/provider-http.ts';
import { createOpenAiProvider } from './index.ts';

/** The response of the provider to any request. */
let said: object = {};
let answering = (response: ServerResponse): void => void response.end(JSON.stringify(said));
let server: Server;
let chat: ReturnType<typeof createOpenAiProvider>;
beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume().on('end', () => answering(response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const timeouts = { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
  chat = createOpenAiProvider({ http: new ProviderHttp(baseUrl, timeouts, 'any'), credential: 'any' }, {});
});
afterAll(async () => {
  await chat.close();
  await new Promise((resolve) => server.close(resolve));
});

const asked = {
  protocol: 'chat' as const,
  protocols: ['chat' as const],
  body: { model: 'm', messages: [{ role: 'user', content: 'Hello' }] },
  stream: false,
  withoutReasoning: false,
  identity: { id: 'gen-1', model: 'v/m', provider: 'V', created: 7 },
};
const usage = { prompt_tokens: 3, completion_tokens: 2 };
const error = { code: 502, message: 'Provider down' };
const choice = (message: object, more: object = {}) => ({ index: 0, message, finish_reason: 'stop', ...more });

test.each<[string, object, string | undefined]>([
  ['an error next to the choices', { error, usage }, undefined],
  ['an error in a choice', { choices: [choice({ content: '' }, { error })], usage }, undefined],
  ['an error in a choice without a message', { choices: [{ index: 0, finish_reason: 'error', error }] }, undefined],
  ['an error in a choice that has started', { choices: [choice({ content: 'Yes, ' }, { error })], usage }, 'Yes, '],
])('%s fails the call with the text that was generated before', async (_, answer, delivered) => {
  said = answer;
  const failure = await chat.chat({ ...asked, signal: new AbortController().signal }).catch((thrown) => thrown);
  expect(failure).toBeInstanceOf(UpstreamError);
  expect(failure).toMatchObject({
    code: 'upstream_error',
    publicMessage: 'The provider ended the response early',
    deliveredText: delivered,
  });
});

test.each([
  ['no choices', { choices: [], usage }],
  ['a choice that is null', { choices: [null] }],
  ['a choice without a message', { choices: [{ index: 0 }], usage }],
])('a response with %s is rejected', async (_, answer) => {
  said = answer;
  const call = chat.chat({ ...asked, signal: new AbortController().signal });
  await expect(call).rejects.toMatchObject({ code: 'upstream_error', deliveredText: '' });
});

test('the reasoning_content of a provider is called reasoning in the completion', async () => {
  said = { choices: [choice({ content: 'Yes', reasoning_content: 'Hm' })], usage };
  const answer = await chat.chat({ ...asked, signal: new AbortController().signal });
  expect(answer).toMatchObject({ body: { choices: [{ message: { content: 'Yes', reasoning: 'Hm' } }] } });
  expect(JSON.stringify(answer)).not.toContain('reasoning_content');
});

test('a choice without text is valid', async () => {
  said = { choices: [choice({ role: 'assistant', content: null })], usage };
  const answer = await chat.chat({ ...asked, signal: new AbortController().signal });
  expect(answer.kind).toBe('complete');
});

test('a stream is aborted if its receiver fails at the start', async () => {
  const left = Promise.withResolvers<void>();
  const chunk = { id: 'up-1', model: 'theirs', choices: [{ index: 0, delta: { content: 'Yes' } }] };
  answering = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`data: ${JSON.stringify(chunk)}\n\n`); // and stays open
    response.on('close', left.resolve);
  };
  const answer = await chat.chat({ ...asked, stream: true, signal: new AbortController().signal });
  if (answer.kind !== 'stream') throw new Error('not a stream');
  const broken = async () =>
    answer.pipeTo(() => {
      throw new UpstreamError('upstream_error', 'It cannot be read');
    });
  await expect(broken()).rejects.toThrow('It cannot be read');
  await left.promise;
});
