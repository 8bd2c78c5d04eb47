import { request as httpRequest, type ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { generateKeys } from '#ehbp';
import {
  createChatEvents,
  createEncryptedReply,
  createPlaintextReply,
  FakeGateway,
  readResponse,
  sendKeyProblem,
} from '#testing';
import { createEnclaveVerifier } from './attestation/verify-enclaves.ts';
import { getCallerRejection } from './caller-rejection.ts';
import { type RunningProxy, startProxy } from './proxy.ts';
import { readProxySettings } from './settings.ts';

const PLANTED = 'porcupine';
const KEY = 'sk-ofTheProxy';
const CHAT = { model: 'private/one', messages: [{ role: 'user', content: PLANTED }] };
const MESSAGE = { ...CHAT, max_tokens: 100 };

let gateway: FakeGateway;
let proxy: RunningProxy;
let logged = '';

beforeAll(async () => {
  gateway = await FakeGateway.listen();
  proxy = await start({ DEBUG: '1' });
  await fetch(proxy.url); // waits until the enclaves are attested
});
afterAll(async () => {
  await proxy.close();
  await gateway.close();
});
beforeEach(() => {
  gateway.reply = createEncryptedReply(createChatEvents('Hello'));
  gateway.reject = undefined;
  gateway.models = ['private/one'];
});

/** Starts a proxy for the fake gateway. */
function start(environment: Record<string, string> = {}): Promise<RunningProxy> {
  const settings = readProxySettings({
    PPQ_API_KEY: KEY,
    PPQ_API_BASE: gateway.url,
    PORT: '0',
    ALLOW_UNATTESTED: '1',
    ...environment,
  });
  const sink = new Writable({
    write(line, _encoding, done) {
      logged += line;
      done();
    },
  });
  return startProxy(settings, createEnclaveVerifier(settings), pino({ level: settings.logLevel }, sink));
}

/** The non-streaming completion of `createChatEvents`. */
const whole = (content: string) => ({
  id: 'chat-1',
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
});
const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const DONE = 'data: [DONE]\n\n';

async function post(path: string, body: unknown, base = proxy.url) {
  const response = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer none' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return readResponse(response);
}

/** Sends a request with these headers. Without `body`, sends only the head of the request. */
function raw(method: string, path: string, headers: Record<string, string | string[]>, body?: string) {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; headers: object; text: string }>();
  const { hostname, port } = new URL(proxy.url);
  const lines = Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((each) => [name, each]));
  const sent = httpRequest({ hostname, port, method, path, headers: lines }, async (response) => {
    let text = '';
    for await (const piece of response) text += piece;
    resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
  });
  sent.on('error', reject);
  if (body === undefined) sent.flushHeaders();
  else sent.end(body);
  return promise;
}

describe('a chat that leaves the proxy', () => {
  test('is encrypted, has the proxy’s API key, and reveals only the model of the caller’s request', async () => {
    const { status, body } = await post('/v1/chat/completions', { ...CHAT, seed: 3 });
    expect({ status, body }).toEqual({ status: 200, body: whole('Hello') });
    const { headers, ciphertext: wire, chat } = gateway.calls.at(-1) as (typeof gateway.calls)[number];
    // Every chat requests a stream: the gateway extends the hold of a stream as it grows, but for any other response
    // holds the price of the longest one at once.
    expect(chat).toEqual({ ...CHAT, model: 'one', seed: 3, stream: true, stream_options: { include_usage: true } });
    expect(String(wire)).not.toContain(PLANTED);
    expect(headers.accept).toBe('text/event-stream');
    expect(Object.keys(headers).sort()).toEqual([
      'accept',
      'authorization',
      'connection',
      'content-type',
      'ehbp-encapsulated-key',
      'host',
      'transfer-encoding',
      'x-private-model',
      'x-query-source',
    ]);
    expect(headers).toMatchObject({ authorization: `Bearer ${KEY}`, 'x-private-model': 'private/one' });
  });

  test('is not sent to a simulated enclave unless that is allowed', async () => {
    const strict = await start({ ALLOW_UNATTESTED: '0' });
    const before = gateway.calls.length;
    for (const [path, asked] of [
      ['/v1/chat/completions', CHAT],
      ['/v1/messages', MESSAGE],
    ] as const) {
      const { status, body } = await post(path, asked, strict.url);
      expect(status).toBe(502);
      expect(body.error.message).toMatch(/^Nothing was sent: The enclave is not attested/);
    }
    expect(gateway.calls).toHaveLength(before);
    expect(await (await fetch(`${strict.url}/`)).text()).toContain('not attested: it is simulated');
    expect(await (await fetch(`${strict.url}/health`)).json()).toEqual({
      status: 'ok',
      attestation: false,
      apiKeyConfigured: true,
    });
    await strict.close();
  });
});

describe('a new key of the enclave', () => {
  test('is attested, and the request is encrypted with it and sent again', async () => {
    await post('/v1/chat/completions', CHAT);
    gateway.keys = await generateKeys();
    gateway.presentedKeys = gateway.keys;
    const before = gateway.requestLines.length;
    expect((await post('/v1/chat/completions', CHAT)).status).toBe(200);
    expect(gateway.requestLines.slice(before)).toEqual([
      'POST /private/v1/chat/completions',
      'GET /private/attestation?model=private%2Fone',
      'POST /private/v1/chat/completions',
    ]);
  });

  test('is tried once per request; if it does not work either, the request fails', async () => {
    gateway.reject = sendKeyProblem;
    const before = gateway.requestLines.length;
    const { status, body } = await post('/v1/chat/completions', CHAT);
    expect({ status, code: body.error.code }).toEqual({ status: 502, code: 'key_changed' });
    expect(gateway.requestLines.slice(before).filter((line) => line.startsWith('POST'))).toHaveLength(2);
  });
});

describe('a streamed completion', () => {
  test('is forwarded unchanged, except that the usage chunk is removed unless usage was requested', async () => {
    const events = createChatEvents('Hello');
    const streamed = async (more: object) =>
      (await post('/v1/chat/completions', { ...CHAT, stream: true, ...more })).text;
    expect(await streamed({})).toBe(events.toSpliced(2, 1).join(''));
    expect(await streamed({ stream_options: { include_usage: true, extra: 1 } })).toBe(events.join(''));
    expect(gateway.calls.at(-1)?.chat.stream_options).toEqual({ include_usage: true, extra: 1 });
  });

  test('is collected for a non-streaming request: text, reasoning, tool calls and other fields', async () => {
    const call = (index: number, more: object) => chunk({ tool_calls: [{ index, ...more }] });
    const choice = (more: object) => `data: ${JSON.stringify({ choices: [{ delta: {}, ...more }] })}\n\n`;
    gateway.reply = createEncryptedReply([
      'data: {"id":"chat-2","created":7,"system_fingerprint":"f","choices":[]}\n\n: a comment\n\n',
      chunk({ role: 'assistant', reasoning_content: 'a' }) + chunk({ reasoning_content: 'b', content: null }),
      ...['x', 'y'].map((content) => chunk({ content })),
      call(0, { id: 'c0', type: 'function', function: { name: 'f', arguments: '' } }),
      call(1, { id: 'c1', type: 'function', function: { name: 'g', arguments: '{}' } }),
      call(0, { function: { arguments: '{"a' } }) + call(0, { function: { name: null, arguments: '":1}' } }),
      ...['x', 'y'].map((token) => choice({ logprobs: { content: [{ token }] } })),
      'data: {"choices":[{"delta":{"__proto__":{"polluted":1}}}]}\n\n',
      choice({ finish_reason: 'tool_calls' }),
      'data: {"choices":[],"usage":{"total_tokens":7}}\n\n',
      DONE,
    ]);
    const { body } = await post('/v1/chat/completions', CHAT);
    const functions = [
      { name: 'f', arguments: '{"a":1}' },
      { name: 'g', arguments: '{}' },
    ];
    const message = {
      role: 'assistant',
      content: 'xy',
      refusal: null,
      annotations: [],
      reasoning_content: 'ab',
      tool_calls: functions.map((called, at) => ({ id: `c${at}`, type: 'function', function: called })),
    };
    const logprobs = { content: [{ token: 'x' }, { token: 'y' }] };
    expect(body).toEqual({
      id: 'chat-2',
      object: 'chat.completion',
      created: 7,
      system_fingerprint: 'f',
      usage: { total_tokens: 7 },
      choices: [{ index: 0, message, logprobs, finish_reason: 'tool_calls' }],
    });
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe('an incomplete or invalid response is an error', () => {
  const events = [chunk({ content: PLANTED }), chunk({}, 'stop'), DONE];
  const broken = (response: ServerResponse) => response.socket?.end();

  test.each([
    ['it ends before the finish reason', events.slice(0, 1), undefined],
    ['it ends before [DONE]', events.slice(0, 2), undefined],
    ['the connection is interrupted', events.slice(0, 2), broken],
    ['an event is truncated', [events[0] as string, 'data: {"cho'], undefined],
  ])('for a streaming request: %s', async (_, frames, end) => {
    gateway.reply = createEncryptedReply(frames, 200, end);
    const chat = await post('/v1/chat/completions', { ...CHAT, stream: true });
    expect(chat.text).not.toContain('[DONE]');
    expect(chat.isComplete).toBe(false);
    expect(chat.events.at(-1).error.code).toBe('answer_broken');
    const message = await post('/v1/messages', { ...MESSAGE, stream: true });
    expect(message.text).not.toContain('message_stop');
    expect(message.isComplete).toBe(true);
    expect(message.text.trim().split('\n\n').at(-1)).toMatch(/^event: error\ndata: \{"type":"error"/);
  });

  test.each<readonly [string, readonly string[]]>([
    ['it ends before the finish reason', events.slice(0, 1)],
    ['it ends before [DONE]', events.slice(0, 2)],
    ['it is empty', []],
    ['it has only [DONE]', [DONE]],
    ['it is not JSON', ['data: Hello\n\n', DONE]],
    ['it is not a chat completion', ['data: {"choices":{"length":1}}\n\n', DONE]],
    ['it is not a stream', [JSON.stringify(whole(PLANTED))]],
  ])('for a non-streaming request: %s', async (_, frames) => {
    gateway.reply = createEncryptedReply(frames);
    for (const [path, asked] of [
      ['/v1/chat/completions', CHAT],
      ['/v1/messages', MESSAGE],
    ] as const) {
      const { status, headers, text } = await post(path, asked);
      expect(status).toBe(502);
      expect(headers.get('x-should-retry')).toBe('false');
      expect(text).not.toContain('por');
    }
  });

  test('if a frame was modified; earlier frames are forwarded, later ones are not', async () => {
    gateway.reply = async ({ response, request: opened }) => {
      const sealer = await opened.sealResponse();
      response.writeHead(200, { 'ehbp-response-nonce': sealer.nonce });
      const [first, second] = events.map((event) => Buffer.from(sealer.seal(Buffer.from(event)))) as [Buffer, Buffer];
      second[10] = (second[10] as number) ^ 1;
      response.end(Buffer.concat([first, second, sealer.seal(Buffer.from(DONE))]));
    };
    const { text } = await post('/v1/chat/completions', { ...CHAT, stream: true });
    expect(text).toContain(PLANTED);
    expect(text).toContain('cannot be decrypted');
    expect(text).not.toContain('[DONE]');
    expect((await post('/v1/chat/completions', CHAT)).status).toBe(502);
  });

  test('with status 502 instead of an error event if a stream fails before its first event', async () => {
    gateway.reply = createEncryptedReply([]);
    expect((await post('/v1/messages', { ...MESSAGE, stream: true })).status).toBe(502);
  });
});

describe('a response of the gateway', () => {
  test.each([400, 401, 402, 404, 409, 413, 429, 500, 502, 503])(
    'reaches the caller with its error status: %d',
    async (status) => {
      const said = {
        status: 'error',
        statusCode: status,
        message: 'Insufficient balance',
        error: { message: 'Insufficient balance', type: 'a_type', code: 'a_word' },
      };
      gateway.reject = createPlaintextReply(status, said, { 'retry-after': '7' });
      const chat = await post('/v1/chat/completions', { ...CHAT, stream: true });
      expect(chat.status).toBe(status);
      expect(chat.headers.get('retry-after')).toBe('7');
      expect(chat.body.error).toMatchObject({
        message: 'The gateway says: Insufficient balance',
        type: 'a_type',
        code: 'a_word',
      });
      const message = await post('/v1/messages', MESSAGE);
      expect(message.status).toBe(status);
      expect(message.body).toMatchObject({
        type: 'error',
        error: { message: 'The gateway says: Insufficient balance' },
      });
    },
  );

  test('has its error message truncated, and characters that control a terminal replaced with spaces', async () => {
    gateway.reject = createPlaintextReply(500, { message: `\u001b[31m\u202e${'x'.repeat(10_000)}` });
    const { body } = await post('/v1/chat/completions', CHAT);
    expect(body.error.message).toMatch(/ says: {1,2}\[31m x+$/);
    expect(body.error.message.length).toBeLessThan(550);
  });

  test.each([
    [
      'a response of a load balancer',
      createPlaintextReply(504, '<html>Gateway Time-out</html>'),
      /^The gateway, or a proxy in front of it, says: status 504$/,
    ],
    [
      'JSON of another server',
      createPlaintextReply(503, { message: 'no upstream' }),
      /^The gateway, or a proxy in front of it, says: no upstream$/,
    ],
    [
      'a connection that the gateway closes',
      (response: ServerResponse) => response.socket?.destroy(),
      /closed the connection; the request may have been served/,
    ],
  ])('with status 503 allows a retry; %s does not: the request may have been served', async (_, refuse, message) => {
    gateway.reject = refuse;
    const { headers, body } = await post('/v1/chat/completions', CHAT);
    expect(headers.get('x-should-retry')).toBe('false');
    expect(body.error.message).toMatch(message);
    gateway.reject = createPlaintextReply(503, { statusCode: 503, error: { message: 'busy' } });
    const own = await post('/v1/chat/completions', CHAT);
    expect([own.body.error.message, own.headers.get('x-should-retry')]).toEqual(['The gateway says: busy', null]);
  });

  test('reaches the caller with the required and the available amount, and with the request id', async () => {
    const message = 'Insufficient balance';
    const metadata = { required: '0.02', affordable: '0.001', other: 'x' };
    const said = { statusCode: 402, error: { message, metadata } };
    gateway.reject = createPlaintextReply(402, said, { 'x-request-id': 'req-1' });
    const told = `The gateway says: ${message}: 0.02 USD is required and 0.001 USD is available`;
    const money = { required: '0.02', affordable: '0.001' };
    const chat = await post('/v1/chat/completions', CHAT);
    expect(chat.body.error).toMatchObject({ message: told, metadata: money });
    expect(chat.headers.get('x-request-id')).toBe('req-1');
    const { headers, body } = await post('/v1/messages', { ...MESSAGE, stream: true });
    expect(body).toMatchObject({ request_id: 'req-1', error: { message: told, details: money } });
    expect([headers.get('request-id'), headers.get('x-request-id')]).toEqual(['req-1', 'req-1']);
  });

  test.each([
    ['a completion', createPlaintextReply(200, whole('I am the gateway'))],
    ['a redirect', createPlaintextReply(307, '', { location: 'http://127.0.0.1:1/' })],
    ['a protocol switch', createPlaintextReply(101, '')],
    ['an invalid status', createPlaintextReply(999, { message: 'I am the gateway' })],
  ])('is not forwarded as a completion if it is not encrypted: %s', async (_, refuse) => {
    gateway.reject = refuse;
    const { status, text } = await post('/v1/chat/completions', CHAT);
    expect(status).toBe(502);
    expect(text).not.toContain('I am');
  });

  test('reaches the caller with the status, message and code of the enclave if it is an encrypted error', async () => {
    gateway.reply = createEncryptedReply(
      [JSON.stringify({ error: { message: 'too long', code: 'context_length_exceeded' } })],
      400,
    );
    const { status, body } = await post('/v1/chat/completions', CHAT);
    expect({ status, error: body.error }).toMatchObject({
      status: 400,
      error: { message: 'too long', code: 'context_length_exceeded' },
    });
  });

  test('that never arrives, because the gateway cannot be reached, leads to a 502', async () => {
    const alone = await start({ PPQ_API_BASE: 'http://127.0.0.1:1' });
    const { status, body } = await post('/v1/chat/completions', CHAT, alone.url);
    expect({ status, code: body.error.code }).toEqual({ status: 502, code: 'gateway_unreachable' });
    await alone.close();
  });
});

test('sends nothing to an enclave with an unusable key', async () => {
  const { keys, calls } = gateway;
  const before = calls.length;
  gateway.presentedKeys = { ...keys, publicKey: new Uint8Array(32) };
  const other = await start();
  expect(await post('/v1/chat/completions', CHAT, other.url)).toMatchObject({
    status: 502,
    body: { error: { code: 'not_attested' } },
  });
  expect(calls).toHaveLength(before);
  gateway.presentedKeys = keys;
  await other.close();
});

test('rejects malformed Messages requests', async () => {
  const nested = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
  const bodies = [
    '',
    '[]',
    '{"messages":',
    `{"messages":${nested}}`,
    '{"messages":[],"max_tokens":0}',
    '{"messages":"Hi"}',
  ];
  for (const path of ['/v1/messages', '/v1/messages/count_tokens'])
    for (const body of bodies) expect(await post(path, body)).toMatchObject({ status: 400, body: { type: 'error' } });
  const deep = `{"messages":[{"role":"user","content":"Hi"}],"tools":[{"name":"t","input_schema":{"a":${nested}}}]}`;
  expect((await post('/v1/messages/count_tokens', deep)).status).toBe(400);
});

test('finishes a running stream and accepts no other request when the proxy stops', async () => {
  const stopping = await start();
  const { promise: goesOn, resolve: goOn } = Promise.withResolvers<void>();
  gateway.reply = async ({ response, request: opened }) => {
    const sealer = await opened.sealResponse();
    response.writeHead(200, { 'ehbp-response-nonce': sealer.nonce });
    response.write(sealer.seal(Buffer.from(chunk({ content: 'one' }))));
    await goesOn;
    response.end(sealer.seal(Buffer.from(`${chunk({}, 'stop')}${DONE}`)));
  };
  const response = await fetch(`${stopping.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...CHAT, stream: true }),
  });
  const closed = stopping.close();
  await expect(fetch(`${stopping.url}/health`)).rejects.toThrow('fetch failed');
  goOn();
  expect((await response.text()).endsWith(DONE)).toBe(true);
  await closed;
});

describe('a caller', () => {
  const own = () => new URL(proxy.url).host;
  const json = { 'content-type': 'application/json' };
  const refused: readonly (readonly [string, number, string, string, () => Record<string, string | string[]>])[] = [
    ['a name that is not this host’s', 403, 'POST', '/v1/messages', () => ({ ...json, host: 'evil.test:8787' })],
    ['a second name', 400, 'GET', '/v1/models', () => ({ host: [own(), 'evil.test:8787'] })],
    ['the same name twice', 400, 'POST', '/v1/messages', () => ({ ...json, host: [own(), own()] })],
    ['another port', 403, 'GET', '/v1/models', () => ({ host: '127.0.0.1:1' })],
    ['the URL of another host', 403, 'POST', 'http://evil.test/v1/messages', () => ({ ...json, host: own() })],
    ['an origin', 403, 'POST', '/v1/chat/completions', () => ({ ...json, host: own(), origin: 'http://evil.test' })],
    ['an opaque origin', 403, 'POST', '/v1/messages', () => ({ ...json, host: own(), origin: 'null' })],
    ['the origin of the proxy', 403, 'POST', '/v1/messages', () => ({ ...json, host: own(), origin: proxy.url })],
    ['a preflight', 403, 'OPTIONS', '/v1/messages', () => ({ host: own(), origin: 'http://evil.test' })],
    ['an image on another site', 403, 'GET', '/v1/models', () => ({ host: own(), 'sec-fetch-site': 'cross-site' })],
    ['a frame on the same site', 403, 'GET', '/', () => ({ host: own(), 'sec-fetch-site': 'same-site' })],
    ['a form', 415, 'POST', '/v1/messages', () => ({ host: own(), 'content-type': 'text/plain' })],
    ['no content type', 415, 'POST', '/v1/messages', () => ({ host: own() })],
    [
      'a content type that begins with application/json',
      415,
      'POST',
      '/v1/messages',
      () => ({ host: own(), 'content-type': 'application/jsonp' }),
    ],
    ['a compressed body', 415, 'POST', '/v1/messages', () => ({ ...json, host: own(), 'content-encoding': 'gzip' })],
    ['a stream to resume', 400, 'POST', '/v1/messages', () => ({ ...json, host: own(), 'last-event-id': '7' })],
    ['an unknown route', 404, 'POST', '/v1/responses', () => ({ ...json, host: own() })],
    ['an unknown page', 404, 'GET', '/favicon.ico', () => ({ host: own() })],
    ['another method', 404, 'PUT', '/v1/messages', () => ({ ...json, host: own() })],
    [
      'a body that is too long',
      413,
      'POST',
      '/v1/messages',
      () => ({ ...json, host: own(), 'content-length': String(24 * 1024 * 1024 + 1) }),
    ],
  ];

  // No body is sent, so a check that waits for the body would never respond.
  test.each(refused)('is rejected before the body is read: %s', async (_, status, method, path, headers) => {
    const before = gateway.requestLines.length;
    const answer = await raw(method, path, headers());
    expect(answer.status).toBe(status);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect(JSON.parse(answer.text)).toMatchObject(
      path === '/v1/messages' ? { type: 'error' } : { error: { code: expect.any(String) } },
    );
    expect(gateway.requestLines).toHaveLength(before);
  });

  test.each(['127.0.0.1', 'localhost', '[::1]'])('may be a local program that uses the name %s', async (name) => {
    const host = `${name}:${new URL(proxy.url).port}`;
    expect((await raw('POST', '/v1/chat/completions', { ...json, host }, JSON.stringify(CHAT))).status).toBe(200);
  });
});

test('accepts a Host without the default port, and rejects a gateway URL that ends in /v1', () => {
  const caller = (host: string) => ({
    method: 'GET',
    url: '/',
    headers: { host },
    raw: { headersDistinct: { host: [host] } },
  });
  expect(getCallerRejection(caller('localhost'), 80)).toBeUndefined();
  expect(getCallerRejection(caller('localhost'), 8787)?.status).toBe(403);
  expect(getCallerRejection(caller('evil.test'), 80)?.status).toBe(403);
  const settings = { PPQ_API_KEY: KEY, PPQ_API_BASE: 'https://gateway.test/v1/' };
  expect(() => readProxySettings(settings)).toThrow('PPQ_API_BASE must be the URL of the gateway without /v1');
});

test('logs served requests and error codes, but no content', async () => {
  for (const path of ['/v1/chat/completions', '/v1/messages']) {
    for (const content of [PLANTED, { [PLANTED]: PLANTED }]) {
      gateway.reply = createEncryptedReply(createChatEvents(PLANTED));
      await post(path, { ...MESSAGE, messages: [{ role: 'user', content }] });
      gateway.reply = createEncryptedReply([PLANTED]);
      await post(path, { ...MESSAGE, stream: true });
      gateway.reply = createEncryptedReply(
        [JSON.stringify({ error: { message: PLANTED, code: PLANTED, type: PLANTED } })],
        400,
      );
      await post(path, MESSAGE);
    }
    await post(path, `{"messages": "${PLANTED}`);
    await post(path, { ...MESSAGE, model: PLANTED });
  }
  const lines = logged.trim().split('\n');
  expect(lines.some((line) => line.includes('"msg":"request served"'))).toBe(true);
  expect(lines.some((line) => line.includes('"failed":"answer_broken"'))).toBe(true);
  expect(lines.filter((line) => line.includes(PLANTED))).toEqual([]);
});

describe('the model of a request', () => {
  const modelOf = async (model: unknown, base = proxy.url) => {
    const { status } = await post('/v1/chat/completions', { ...CHAT, model }, base);
    return status === 200 ? gateway.calls.at(-1)?.headers['x-private-model'] : status;
  };

  test('is named with or without the prefix, or is the only one if none is named', async () => {
    expect(await modelOf('private/one')).toBe('private/one');
    expect(await modelOf('one')).toBe('private/one');
    expect(await modelOf(undefined)).toBe('private/one');
    expect(await modelOf('claude-sonnet-5')).toBe(404);
    expect(await modelOf(7)).toBe(400);
    expect(await modelOf('private/two words')).toBe(404);
  });

  test('is the default model unless the request names a private model', async () => {
    gateway.models = ['private/one', 'private/two'];
    const withDefault = await start({ PRIVATE_MODEL: 'two' });
    expect(await modelOf('claude-sonnet-5', withDefault.url)).toBe('private/two');
    expect(await modelOf(undefined, withDefault.url)).toBe('private/two');
    expect(await modelOf('one', withDefault.url)).toBe('private/one');
    gateway.models = ['private/one'];
    const wrong = await start({ PRIVATE_MODEL: 'private/two' });
    const { status, body } = await post('/v1/messages', { ...MESSAGE, model: 'claude-sonnet-5' }, wrong.url);
    expect({ status, message: body.error.message }).toEqual({
      status: 404,
      message: 'PRIVATE_MODEL is private/two, which is not a private model of the gateway; available: private/one',
    });
    expect(await (await fetch(wrong.url)).text()).toContain('PRIVATE_MODEL is private/two, which is not');
    await wrong.close();
    gateway.models = ['private/one', 'private/two'];
    const without = await start();
    expect(await modelOf(undefined, without.url)).toBe(400);
    await without.close();
    await withDefault.close();
  });

  test('is listed with its prefix, and can be retrieved with or without it', async () => {
    const list = await (await fetch(`${proxy.url}/v1/models`)).json();
    expect(list).toEqual({
      object: 'list',
      data: [
        {
          id: 'private/one',
          object: 'model',
          created: 7,
          owned_by: 'ppq-private',
          name: 'private/one',
          privacyLevel: 'e2e',
        },
      ],
    });
    expect((await fetch(`${proxy.url}/v1/models/private/one`)).status).toBe(200);
    expect((await fetch(`${proxy.url}/v1/models/one`)).status).toBe(200);
    expect((await fetch(`${proxy.url}/v1/models/openai/gpt-5-mini`)).status).toBe(404);
  });
});
