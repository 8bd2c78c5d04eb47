import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Agent } from 'undici';
import { type FailureCode, MAX_EVENT_CHARACTERS, UpstreamError } from '#application';
import { extendTimeouts } from '#testing';
import { ChatChunkTranslator } from '../providers/openai/chat-chunks.ts';
import { allowAny } from './field-filter.ts';
import { JsonHttpClient } from './json-http-client.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function endpointTo(answer: RequestListener, idleTimeoutMs = 60_000): Promise<JsonHttpClient> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const agent = new Agent();
  closing.push(async () => {
    await agent.destroy();
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return new JsonHttpClient(url, agent, { headers: {}, fieldFilter: allowAny, idleTimeoutMs });
}

const never = new AbortController().signal;

test('a non-streaming response is read completely, even if it is sent byte by byte', async () => {
  const endpoint = await endpointTo(async (_, response) => {
    const bytes = Buffer.from('{"text":"Grüße"}');
    for (const byte of bytes) {
      response.write(Uint8Array.of(byte));
      await new Promise(setImmediate);
    }
    response.end();
  });
  await expect(endpoint.post({}, never)).resolves.toBe('{"text":"Grüße"}');
});

const stream = (endpoint: JsonHttpClient, signal = never, body: unknown = {}) =>
  endpoint.stream(body, signal, {
    translator: new ChatChunkTranslator({ id: 'gen-1', model: 'm', provider: 'p', created: 7 }),
    parseCompletion: () => {
      throw new Error('the response is not JSON');
    },
  });
const whole = (endpoint: JsonHttpClient, signal = never, body: unknown = {}) => endpoint.post(body, signal);

test.each([
  ['non-streaming', whole],
  ['streamed', stream],
])('an endless error response fails with the error of its status (%s)', async (_, ask) => {
  const endpoint = await endpointTo((_, response) => {
    response.writeHead(429, { 'retry-after': '7' });
    const write = () => {
      while (!response.destroyed && response.write('x'.repeat(16_384)));
    };
    response.on('drain', write);
    write();
  });
  await expect(ask(endpoint)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 7 });
});

test.each([
  ['non-streaming', whole, '{}'],
  ['streamed', stream, 'data: {"choices":[]}\n\ndata: [DONE]\n\n'],
])('an informational response is not taken for the final response (%s)', async (_, ask, answer) => {
  const endpoint = await endpointTo((_, response) => {
    response.writeEarlyHints({ link: '</x>; rel=preload' });
    response.end(answer);
  });
  await expect(ask(endpoint)).resolves.toBeDefined();
});

test('a call without a response may be invoiced, unless it was certainly not sent or was rejected', async () => {
  const reason = new UpstreamError('client_disconnected', 'The client has left');
  const abort = new AbortController();
  const aborting = await endpointTo(() => abort.abort(reason));
  const broken = await endpointTo((request) => request.socket.destroy());
  const failing = await endpointTo((_, response) => response.writeHead(500).end());
  const unreachable = new JsonHttpClient('http://127.0.0.1:1/', new Agent(), { headers: {}, fieldFilter: allowAny });

  await expect(aborting.post({}, abort.signal)).rejects.toMatchObject({ code: reason.code, deliveredText: '' });
  await expect(broken.post({}, never)).rejects.toMatchObject({ code: 'upstream_unavailable', hasOpenCost: true });
  await expect(failing.post({}, never)).rejects.toMatchObject({ status: 500, hasOpenCost: false });
  await expect(unreachable.post({}, never)).rejects.toMatchObject({ hasOpenCost: false });
  await expect(broken.post({}, abort.signal)).rejects.toMatchObject({ code: reason.code, hasOpenCost: false });
});

test.each([
  ['before it starts', false],
  ['after it has started', true],
])('a response that is aborted %s fails with the reason of the abort', async (_, begun) => {
  const abort = new AbortController();
  const cut = new UpstreamError('timeout', 'The answer took too long');
  const endpoint = await endpointTo((_, response) => {
    if (begun) response.write('{"text":"');
    setTimeout(() => abort.abort(cut), begun ? 50 : 0);
  });
  await expect(endpoint.post({}, abort.signal)).rejects.toMatchObject({ code: 'timeout', message: cut.message });
});

test.each([
  ['non-streaming', (endpoint: JsonHttpClient, signal: AbortSignal) => endpoint.post({}, signal)],
  ['streamed', (endpoint: JsonHttpClient, signal: AbortSignal) => stream(endpoint, signal)],
])('only a request that was sent before it was aborted may be invoiced (%s)', async (_, ask) => {
  const abort = new AbortController();
  const left = new UpstreamError('client_disconnected', 'The client disconnected');
  const endpoint = await endpointTo(() => abort.abort(left));
  await expect(ask(endpoint, abort.signal)).rejects.toMatchObject({ code: left.code, deliveredText: '' });
  await expect(ask(endpoint, abort.signal)).rejects.toMatchObject({ code: left.code, deliveredText: undefined });
});

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;

test.each<[string, hasOpenCost: boolean, RequestListener]>([
  ['its connection is lost', true, ({ socket }, response) => response.write(': wait\n\n', () => socket.destroy())],
  ['it ends before its end marker', true, (_, response) => response.end(': wait\n\n')],
  ['it ends with its headers', true, (_, response) => response.writeHead(200).end()],
  ['its event is endless', true, (_, response) => response.end(`data: ${'x'.repeat(MAX_EVENT_CHARACTERS + 1)}`)],
  ['its event is not JSON', true, (_, response) => response.end('data: {]\n\n')],
  ['it reports an error', false, (_, response) => response.end('data: {"error":{"message":"No"}}\n\n')],
])('if %s, a stream without output may be invoiced: %s', async (_, hasOpenCost, answer) => {
  const endpoint = await endpointTo(answer);
  await expect(stream(endpoint)).rejects.toMatchObject({ hasOpenCost, deliveredText: undefined });
});

test('the idle timeout does not apply before the first output, even after an empty first chunk', async () => {
  const IDLE_MS = 59_000; // no other timeout lasts as long
  const idle = extendTimeouts(IDLE_MS);
  const endpoint = await endpointTo((_, response) => {
    response.write(chunk({ role: 'assistant', content: '' }));
    setTimeout(() => {
      idle.end(); // would end the stream if the timeout had started
      response.end(`${chunk({ content: 'thought' }, 'stop')}data: [DONE]\n\n`);
    }, 200);
  }, IDLE_MS);
  const answer = await stream(endpoint);
  await answer.pipeTo(() => undefined);
  expect(answer.getDeliveredText()).toBe('thought');
});

test('the idle timeout aborts a stream that stops after its first output', async () => {
  const endpoint = await endpointTo((_, response) => {
    response.write(chunk({ role: 'assistant', content: 'Well' }));
  }, 20);
  const answer = await stream(endpoint);
  await expect(answer.pipeTo(() => undefined)).rejects.toMatchObject({ code: 'timeout' });
});

test('a stream states how long nothing was read because its receiver was full', async () => {
  const endpoint = await endpointTo((_, response) => response.end(`${chunk({ content: 'Well' })}data: [DONE]\n\n`));
  const answer = await stream(endpoint);
  const realNow = performance.now;
  let shiftMs = 0;
  performance.now = () => realNow.call(performance) + shiftMs;
  try {
    expect(answer.getPausedMs()).toBe(0);
    const drained = Promise.withResolvers<void>();
    const piped = answer.pipeTo(() => drained.promise);
    shiftMs = 60_000;
    expect(answer.getPausedMs()).toBeGreaterThanOrEqual(60_000);
    drained.resolve();
    await piped;
    await new Promise(setImmediate);
    shiftMs = 600_000;
    expect(answer.getPausedMs()).toBeLessThan(120_000);
  } finally {
    performance.now = realNow;
  }
});

test('an endless SSE event is aborted, and the text before it counts as delivered', async () => {
  const endpoint = await endpointTo((_, response) => {
    response.write(`${chunk({ content: 'Well' })}data: `);
    const write = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    };
    response.on('drain', write);
    write();
  });
  const answer = await stream(endpoint);
  await expect(answer.pipeTo(() => undefined)).rejects.toMatchObject({
    code: 'answer_too_long',
    deliveredText: 'Well',
  });
});

test.each([
  ['non-streaming', whole],
  ['streamed', stream],
])('a large body arrives unchanged and with its length (%s)', async (_, ask) => {
  const requests: { readonly hasLength: boolean; readonly body: unknown }[] = [];
  const endpoint = await endpointTo(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const hasLength = request.headers['content-length'] === `${bytes.length}`;
    requests.push({ hasLength, body: JSON.parse(bytes.toString()) });
    response.writeHead(400).end('{}');
  });
  const body = { text: 'ä€ '.repeat(100_000), list: Array.from({ length: 9_000 }, (_, i) => i) };
  await expect(ask(endpoint, never, body)).rejects.toMatchObject({ status: 400 });
  expect(requests).toEqual([{ hasLength: true, body }]);
});

test('a provider that rejects a large body before it has read it fails the request with its status', async () => {
  const endpoint = await endpointTo((_, response) => response.writeHead(413).end('{}'));
  await expect(whole(endpoint, never, { text: 'x'.repeat(8 * 1024 * 1024) })).rejects.toMatchObject({ status: 413 });
});

describe('a stream whose receiver is full, and whose provider continues', () => {
  const { setTimeout: realSetTimeout } = globalThis;
  /** Timeouts of up to a second, which the test ends itself. */
  let timeouts: { readonly end: () => void; readonly milliseconds: number }[];
  beforeEach(() => {
    timeouts = [];
    const start = (end: () => void, milliseconds: number) => {
      if (milliseconds > 1_000) return realSetTimeout(end, milliseconds);
      timeouts.push({ end, milliseconds });
      return realSetTimeout(() => {}, 0);
    };
    Object.assign(globalThis, { setTimeout: start });
  });
  afterEach(() => void Object.assign(globalThis, { setTimeout: realSetTimeout }));

  /** Aborts such a stream, and returns its end and the disconnect of its provider. */
  async function abortFull(code: FailureCode) {
    const disconnect = Promise.withResolvers<void>();
    const endpoint = await endpointTo((_, response) => {
      response.on('close', disconnect.resolve);
      response.write(chunk({ content: 'Well' }));
    });
    const abort = new AbortController();
    const answer = await stream(endpoint, abort.signal);
    timeouts = [];
    const end = answer.pipeTo(() => new Promise(() => {}));
    end.catch(() => {});
    abort.abort(new UpstreamError(code, 'It ends'));
    return { end, disconnected: disconnect.promise };
  }

  test.each<FailureCode>(['hold_used_up', 'hold_ended'])(
    'is disconnected at once if nothing pays for more: %s',
    async (code) => {
      const { end, disconnected } = await abortFull(code);
      expect(timeouts).toEqual([]);
      await expect(end).rejects.toMatchObject({ code });
      await disconnected;
    },
  );

  test('is read on for less than half a second after its client has disconnected', async () => {
    const { end, disconnected } = await abortFull('client_disconnected');
    expect(timeouts).toEqual([expect.objectContaining({ milliseconds: 200 })]);
    timeouts[0]?.end();
    await expect(end).rejects.toMatchObject({ code: 'client_disconnected' });
    await disconnected;
  });
});
