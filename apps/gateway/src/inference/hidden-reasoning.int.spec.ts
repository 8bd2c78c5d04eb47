/** A model with hidden reasoning. The cost of the reasoning is known only at the end of a response. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as thinking } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  createTestEndpoint,
  createTestModel,
  extendTimeouts,
  listCharges,
  readResponse,
  sampleCases,
  sumUsage,
  type TestAccount,
  TestWorld,
  timeOut,
} from '#testing';

const MODEL = 'openai/gpt-5-mini';
/** The time to the first byte without reasoning, and the tokens per second, of the model `test/thinks`. */
const [LATENCY_MS, SPEED] = [100, 200];
const speed = { latencyMs: LATENCY_MS, tokensPerSecond: SPEED };
const thinker = createTestEndpoint('Thinker', 'openai', { parameters: 'openai-reasoning', ...speed });
const claude = { model: 'claude-haiku-4-5', parameters: 'anthropic', ...speed };
const MODELS = [
  createTestModel('test/thinks', [thinker]),
  createTestModel('test/thinks-on', [{ ...thinker, onDisconnect: 'bills on' }]),
  createTestModel('test/native', [{ ...thinker, speaks: ['responses'] }]),
  createTestModel('test/routed', [createTestEndpoint('Router', 'openrouter', { parameters: 'openrouter', ...speed })]),
  createTestModel('test/claude', [createTestEndpoint('Claude', 'anthropic', claude)]),
  createTestModel('test/adaptive', [
    createTestEndpoint('Claude', 'anthropic', { ...claude, model: 'claude-opus-4-7' }),
  ]),
  createTestModel('test/talks', [createTestEndpoint('Talker', 'openai')]),
  createTestModel('test/twice', [thinker, { ...thinker, provider: 'Other' }]),
];
/** No other timeouts last as long. */
const [TOTAL_MS, IDLE_MS] = [599_000, 59_000];
/** How long a response is still read after its client has disconnected, at the gateway of these tests. */
const DRAIN_MS = 300;
const THINKS_MS = 300;
/** The maximum of reasoning tokens per second in an estimate. */
const FASTEST = 300;

const FILLING = 'much to say '.repeat(8_000);

/** The responses of which the provider has sent nothing yet, and those that it has sent except for their end. */
let silent: ServerResponse[] = [];
let open: ServerResponse[] = [];
/** Whether the buffers between the provider and a client that does not read are full. */
let isFull = false;

/**
 * Simulates a provider whose model reasons before or after its first chunks. Then the provider sends the rest of the
 * response, or one more chunk and no end.
 */
const upstream = createServer(async (request, response) => {
  let asked = '';
  for await (const piece of request) asked += piece;
  if (asked.includes('think in silence')) return void silent.push(response);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  while (asked.includes('much') && !isFull) {
    if (!response.writableNeedDrain) chunk(response, { choices: [{ index: 0, delta: { content: FILLING } }] });
    await thinking(1);
  }
  if (asked.includes('think at first')) await thinking(THINKS_MS);
  chunk(response, { choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] });
  if (!asked.includes('think at first')) await thinking(THINKS_MS);
  chunk(response, { choices: [{ index: 0, delta: { content: 'Yes' }, finish_reason: null }] });
  if (!/think at first|much/.test(asked)) return void open.push(response);
  chunk(response, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  const details = { completion_tokens_details: { reasoning_tokens: 20_000 } };
  chunk(response, {
    choices: [],
    usage: { prompt_tokens: 9, completion_tokens: 20_001, total_tokens: 20_010, ...details },
  });
  response.end('data: [DONE]\n\n');
});

function chunk(response: ServerResponse, more: object): void {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-5-mini' };
  response.write(`data: ${JSON.stringify({ ...head, ...more })}\n\n`);
}

let world: TestWorld;
beforeAll(async () => {
  await new Promise<void>((listening) => upstream.listen(0, '127.0.0.1', listening));
  const address = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  const addresses = { OPENAI_BASE_URL: address, OPENROUTER_BASE_URL: address, ANTHROPIC_BASE_URL: address };
  const limits = { UPSTREAM_TOTAL_TIMEOUT_MS: String(TOTAL_MS), UPSTREAM_IDLE_TIMEOUT_MS: String(IDLE_MS) };
  world = await TestWorld.open({ ...addresses, ...limits }, MODELS);
});
afterAll(async () => {
  await world.close();
  upstream.closeAllConnections();
  await new Promise((closed) => upstream.close(closed));
});

/** Disconnects at the first word. Returns the charged reasoning tokens and the seconds until the disconnect. */
async function leaveAtFirstWord(
  account: TestAccount,
  more: object = {},
): Promise<{ thoughts: number; seconds: number }> {
  const hangUp = new AbortController();
  const began = performance.now();
  const { body } = await fetch(`${world.api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content: 'Well?' }], ...more }),
    signal: hangUp.signal,
  });
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of body ?? []) {
    text += decoder.decode(piece);
    if (text.includes('Yes')) break;
  }
  hangUp.abort();
  const seconds = (performance.now() - began) / 1_000;
  await world.waitUntil(async () => (await world.listEvents(account)).at(-1)?.type === 'HoldSettled');
  const settled = (await world.listEvents(account)).at(-1);
  if (settled?.type !== 'HoldSettled') throw new Error('the last event is not HoldSettled');
  expect(settled.data.charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'client_disconnected' });
  return { thoughts: sumUsage(settled.data.charge).reasoning ?? 0, seconds };
}

test('charges a client that disconnects at the first word for the reasoning until then, estimated by its duration', async () => {
  const { thoughts, seconds } = await leaveAtFirstWord(await world.createAccount(1.05));
  expect(thoughts).toBeGreaterThan((THINKS_MS / 1_000) * 30);
  expect(thoughts).toBeLessThanOrEqual(seconds * FASTEST);
});

test('charges a client that disconnects at the first word for no reasoning if its request turned reasoning off', async () => {
  const without = { model: 'openai/gpt-5.4-mini', reasoning: { effort: 'none' } };
  const { thoughts } = await leaveAtFirstWord(await world.createAccount(1.05), without);
  expect(thoughts).toBe(0);
});

test('estimates at most 300 reasoning tokens/s after responses that reasoned before their first chunk', async () => {
  const other = await world.createAccount(5.25);
  const messages = [{ role: 'user', content: 'think at first' }];
  for (let times = 0; times < 3; times++)
    await world.post('/v1/chat/completions', { model: MODEL, stream: true, messages }, other);
  const { thoughts, seconds } = await leaveAtFirstWord(await world.createAccount(1.05));
  expect(thoughts).toBeLessThanOrEqual(seconds * FASTEST);
});

/** Returns the next response that the server on this port begins. */
function catchResponse(port: number): Promise<ServerResponse> {
  return new Promise((resolve) => {
    const onRequest = (message: unknown) => {
      const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
      if (request.socket.localPort !== port) return;
      unsubscribe('http.server.request.start', onRequest);
      resolve(response);
    };
    subscribe('http.server.request.start', onRequest);
  });
}

test('charges a client that reads nothing before the timeout for the reasoning that the provider reports', async () => {
  const account = await world.createAccount(500); // the buffers have room for millions of tokens
  const { hostname, port } = new URL(world.api);
  const limit = extendTimeouts(TOTAL_MS);
  const body = JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content: 'much' }] });
  const begun = catchResponse(Number(port));
  const reader = connect(Number(port), hostname).pause();
  const head = ['POST /v1/chat/completions HTTP/1.1', `host: ${hostname}`, `authorization: Bearer ${account.apiKey}`];
  reader.write(
    `${[...head, 'content-type: application/json', `content-length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`,
  );
  const gateway = await begun;
  let full = 0;
  await world.waitUntil(() => {
    full = gateway.writableNeedDrain ? full + 1 : 0;
    return full === 10; // the buffers of the client are full, so the gateway reads no more
  });
  isFull = true;
  limit.end();
  await world.waitUntil(async () => (await world.listEvents(account)).at(-1)?.type === 'HoldSettled');
  const [charge] = listCharges(await world.listEvents(account));
  expect(charge).toMatchObject({
    items: [{ estimated: false, usage: { reasoning: 20_000, output: 1 } }],
    errorCode: 'timeout',
  });
  reader.destroy();
});

test('charges for the reasoning of a response that times out, estimated by its duration', async () => {
  const account = await world.createAccount(1.05);
  const limit = extendTimeouts(TOTAL_MS);
  const response = await fetch(`${world.api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content: 'Well?' }] }),
  });
  await readResponse(response, (text) => {
    if (text.includes('Yes')) limit.end();
  });
  const [charge] = listCharges(await world.listEvents(account));
  expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'timeout' });
  expect(charge && sumUsage(charge).reasoning).toBeGreaterThan(9);
});

const lastEvent = async (account: TestAccount) => (await world.listEvents(account)).at(-1);
const isOver = async (account: TestAccount) => (await lastEvent(account))?.type !== 'FundsHeld';

/** Returns the only charge of the account, with the usage and the seconds of its last attempt. */
async function readCharge(account: TestAccount) {
  await world.waitUntil(() => isOver(account));
  const events = await world.listEvents(account);
  const [charge] = listCharges(events);
  if (!charge) throw new Error('nothing was charged or absorbed');
  const seconds = (charge.attempts.at(-1)?.milliseconds ?? 0) / 1_000;
  return { charge, usage: sumUsage(charge), seconds };
}

interface Leaving {
  readonly path?: string;
  readonly at?: string;
  readonly headers?: object;
  /** What the client waits for once the provider has received the request. */
  readonly until?: () => Promise<unknown>;
  /** The responses of which the client waits for one. */
  readonly list?: () => readonly ServerResponse[];
}

/** Disconnects once the provider has received the request. */
async function leave(
  account: TestAccount,
  body: object,
  { path = '/v1/chat/completions', at = world.api, headers = {}, until, list = () => silent }: Leaving = {},
): Promise<void> {
  const hangUp = new AbortController();
  const response = fetch(`${at}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}`, ...headers },
    body: JSON.stringify(body),
    signal: hangUp.signal,
  });
  await world.waitUntil(async () => list().length > 0);
  await until?.();
  hangUp.abort();
  await response.catch(() => {});
}

test('costs the output so far if a complete response was requested and its provider streams', async () => {
  open = [];
  const account = await world.createAccount(1.05);
  const idle = extendTimeouts(IDLE_MS); // starts with the first output
  await leave(
    account,
    { model: MODEL, messages: [{ role: 'user', content: 'Well?' }] },
    { until: () => idle.started, list: () => open },
  );
  const { charge, usage } = await readCharge(account);
  idle.end();
  expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'client_disconnected' });
  expect(usage.output).toBeGreaterThan(0);
});

describe('a response of which nothing has arrived', () => {
  const MESSAGES = [{ role: 'user', content: 'think in silence' }];
  const silently = (model: string, more: object = {}) => ({ model, messages: MESSAGES, ...more });
  /** A gateway that reads a response for `DRAIN_MS` after a disconnect. The other gateway reads it for minutes. */
  let draining: string;
  beforeAll(async () => {
    draining = await world.addGateway({ drainTimeoutMs: DRAIN_MS });
  });
  beforeEach(() => {
    silent = [];
  });

  /** The estimate for a number of milliseconds, or for the time from the disconnect alone. */
  const estimate = (milliseconds: number) => Math.floor(((milliseconds - LATENCY_MS) / 1_000) * SPEED);
  const LEAST_THOUGHTS = estimate(DRAIN_MS);

  test.each([
    ['a stream', 'test/thinks', true],
    ['a complete response that its provider streams', MODEL, false],
  ])(
    'is aborted at once if its provider then stops billing, and costs the input and the reasoning until then: %s',
    async (_, model, stream) => {
      const account = await world.createAccount(1.05);
      await leave(account, silently(model, { stream }), { until: () => thinking(THINKS_MS) });
      const { charge, usage, seconds } = await readCharge(account);
      expect(await lastEvent(account)).toMatchObject({ type: 'HoldSettled', data: { charged: charge.price } });
      expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'client_disconnected' });
      expect(usage.input).toBeGreaterThan(0);
      if (model === MODEL) return; // its usual time to the first byte is longer than this test
      expect(usage.reasoning).toBeGreaterThanOrEqual(estimate(THINKS_MS));
      expect(usage.reasoning).toBeLessThanOrEqual(estimate(seconds * 1_000 + 1));
    },
  );

  test.each([
    ['a complete response', 'test/thinks', { stream: false }, {}],
    ['a stream whose provider continues to bill', 'test/thinks-on', { stream: true }, {}],
    ['a stream that is stored', 'test/thinks', { stream: true }, { 'idempotency-key': 'drained' }],
  ])('is still read after a disconnect, and costs the reasoning until the end of the reading: %s', async (...row) => {
    const [, model, more, headers] = row;
    const account = await world.createAccount(1.05);
    await leave(account, silently(model, more), { at: draining, headers });
    const { charge, usage, seconds } = await readCharge(account);
    expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'client_disconnected' });
    expect(usage.input).toBeGreaterThan(0);
    expect(usage.reasoning).toBeGreaterThanOrEqual(LEAST_THOUGHTS);
    expect(usage.reasoning).toBeLessThanOrEqual(estimate(seconds * 1_000 + 1));
  });

  test('costs a client that disconnects at most the output limit of its request', async () => {
    const account = await world.createAccount(1.05);
    await leave(account, silently('test/thinks', { max_tokens: 20 }), { at: draining });
    const { usage } = await readCharge(account);
    expect(usage.reasoning).toBeGreaterThanOrEqual(20);
    expect(usage.reasoning).toBeLessThan(LEAST_THOUGHTS);
  });

  test('costs a client that disconnects only the input if the model does not reason', async () => {
    const account = await world.createAccount(1.05);
    await leave(account, silently('test/talks', { stream: true }), { at: draining });
    const { charge, usage } = await readCharge(account);
    expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'client_disconnected' });
    expect(usage).toMatchObject({ input: expect.any(Number) });
    expect([usage.output ?? 0, usage.reasoning ?? 0]).toEqual([0, 0]);
  });

  const CHATS = '/v1/chat/completions';
  const ANTHROPIC = { path: '/v1/messages', model: 'test/claude', max_tokens: 4_000 };
  const REASONING_OFF = [
    { reasoning: { enabled: false } },
    { reasoning: { effort: 'none' } },
    { reasoning: { max_tokens: 0 } },
    { reasoning_effort: 'none' },
  ];
  /** By what the sent request permits: no reasoning, a number of tokens, or as many as the output limit. */
  describe.each<[number, readonly object[]]>([
    [
      0,
      [
        ...['test/thinks', 'test/routed', 'test/claude', 'test/adaptive'].flatMap((model, i) =>
          sampleCases(REASONING_OFF, 1, i).map((off) => ({ path: CHATS, model, ...off })),
        ),
        { path: CHATS, model: 'test/claude' },
        { path: CHATS, model: 'test/claude', reasoning: { exclude: true } },
        { path: CHATS, model: 'test/adaptive' },
        { path: '/v1/completions', model: 'test/thinks', reasoning_effort: 'none' },
        { path: '/v1/completions', model: 'test/claude' },
        { path: '/v1/responses', model: 'test/thinks', reasoning: { effort: 'none' }, store: false },
        { path: '/v1/responses', model: 'test/native', reasoning: { effort: 'none' }, store: false },
        { path: '/v1/responses', model: 'test/claude' },
        ANTHROPIC,
        { ...ANTHROPIC, thinking: { type: 'disabled' } },
      ],
    ],
    [
      20,
      [
        { path: CHATS, model: 'test/routed', reasoning: { max_tokens: 20 } },
        { path: '/v1/completions', model: 'test/routed', reasoning: { max_tokens: 20 } },
        { ...ANTHROPIC, model: 'test/routed', thinking: { type: 'enabled', budget_tokens: 20 } },
      ],
    ],
    [
      Number.POSITIVE_INFINITY,
      [
        { path: CHATS, model: 'test/routed' },
        { path: CHATS, model: 'test/routed', reasoning: { effort: 'low' } },
        // The provider gets an effort instead of the number, so it may reason for longer.
        { path: CHATS, model: 'test/thinks', reasoning: { max_tokens: 20 } },
        { path: CHATS, model: 'test/claude', reasoning: { effort: 'low' } },
        { path: CHATS, model: 'test/adaptive', reasoning: { max_tokens: 20 } },
        { path: '/v1/completions', model: 'test/thinks' },
        { path: '/v1/responses', model: 'test/thinks', reasoning: { effort: 'low' } },
        { path: '/v1/responses', model: 'test/native' },
        { ...ANTHROPIC, thinking: { type: 'enabled', budget_tokens: 2_000 } },
      ],
    ],
  ])('costs at most the reasoning that its request permits: %d tokens', (permitted, bodies) => {
    const costs = new Map<object, Awaited<ReturnType<typeof readCharge>>>();

    /** All requests wait for their responses at the same time. */
    beforeAll(async () => {
      silent = [];
      const haveArrived = () => world.waitUntil(() => silent.length === bodies.length);
      const leaving = bodies.map(async (body) => {
        const { path, ...settings } = body as { readonly path: string };
        const input = path === '/v1/completions' ? { prompt: 'think in silence' } : { messages: MESSAGES };
        const account = await world.createAccount(1.05);
        const request = { ...(path === '/v1/responses' ? { input: 'think in silence' } : input), ...settings };
        await leave(account, request, { path, at: draining, until: haveArrived });
        costs.set(body, await readCharge(account));
      });
      await Promise.all(leaving);
    });

    test.each(bodies.map((body) => [JSON.stringify(body), body] as const))('%s', (_, body) => {
      const { input, reasoning = 0 } = costs.get(body)?.usage ?? {};
      expect(input).toBeGreaterThan(0);
      expect(reasoning).toBeLessThanOrEqual(permitted);
      expect(reasoning).toBeGreaterThanOrEqual(Math.min(permitted, LEAST_THOUGHTS));
    });
  });

  test('is neither served nor charged again if the request is repeated with its Idempotency-Key', async () => {
    const account = await world.createAccount(1.05);
    const body = silently('test/thinks', { stream: true });
    const headers = { 'idempotency-key': 'thoughts' };
    await leave(account, body, { at: draining, headers });
    await readCharge(account);
    const events = await world.listEvents(account);
    const authorization = `Bearer ${account.apiKey}`;
    const repeated = await world.send('POST', '/v1/chat/completions', { body, headers: { ...headers, authorization } });
    expect(repeated.status).toBe(499);
    expect(await world.listEvents(account)).toEqual(events);
  });

  test('costs nothing if it times out; what the provider may invoice at most is recorded', async () => {
    const account = await world.createAccount(1.05);
    const { status } = await timeOut(
      world,
      () => world.post('/v1/chat/completions', silently('test/thinks', { stream: true }), account),
      () => silent.length > 0,
    );
    expect(status).toBe(504);
    await world.waitUntil(() => isOver(account));
    expect(await lastEvent(account)).toMatchObject({
      type: 'HoldReleased',
      data: { attempts: [{ outcome: 'timeout', openCost: expect.stringMatching(/^[1-9]\d*$/) }] },
    });
    expect(await world.fetchBalance(account)).toBe('1.05');
  });

  test.each([
    ['is not requested again', {}, 1],
    ['is requested again if it is stored for a retry', { 'idempotency-key': 'again' }, 2],
  ])('%s after its client has disconnected and its provider has failed', async (_, headers, attempts) => {
    const account = await world.createAccount(1.05);
    const body = silently('test/twice', { provider: { allow_fallbacks: true } });
    await leave(account, body, { headers });
    await world.get('/v1/models', account); // the gateway has noticed the disconnect before it serves this
    silent.shift()?.writeHead(503).end('{}');
    await world.waitUntil(async () => silent.length > 0 || (await isOver(account)));
    for (const response of silent) response.writeHead(400).end('{}');
    await world.waitUntil(() => isOver(account));
    const released = await lastEvent(account);
    if (released?.type !== 'HoldReleased') throw new Error('the last event is not HoldReleased');
    expect(released.data.attempts).toHaveLength(attempts);
  });
});
