/** A model with hidden reasoning. The cost of the reasoning is known only at the end of a response. */
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as thinking } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { listCharges, sumUsage, type TestAccount, TestWorld } from '#testing';

const MODEL = 'openai/gpt-5-mini';
const THINKS_MS = 300;
/** The maximum of reasoning tokens per second in an estimate. */
const FASTEST = 300;

/** More text than fits into the buffers between the provider and a client that does not read. */
const FILLING = Array.from({ length: 110 }, () => 'much to say '.repeat(8_000));

/**
 * Simulates a provider whose model reasons before or after its first chunks. Then the provider sends the rest of the
 * response, or one more chunk and no end.
 */
const upstream = createServer(async (request, response) => {
  let asked = '';
  for await (const piece of request) asked += piece;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (asked.includes('much'))
    for (const content of FILLING) chunk(response, { choices: [{ index: 0, delta: { content } }] });
  if (asked.includes('think at first')) await thinking(THINKS_MS);
  chunk(response, { choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] });
  if (!asked.includes('think at first')) await thinking(THINKS_MS);
  chunk(response, { choices: [{ index: 0, delta: { content: 'Yes' }, finish_reason: null }] });
  if (!/think at first|much/.test(asked)) return;
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
  world = await TestWorld.open({ OPENAI_BASE_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1` });
});
afterAll(async () => {
  await world.close();
  upstream.closeAllConnections();
  await new Promise((closed) => upstream.close(closed));
});

/** Disconnects at the first word. Returns the charged reasoning tokens and the seconds until the disconnect. */
async function leaveAtFirstWord(account: TestAccount): Promise<{ thoughts: number; seconds: number }> {
  const hangUp = new AbortController();
  const began = performance.now();
  const { body } = await fetch(`${world.api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content: 'Well?' }] }),
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

test('estimates at most 300 reasoning tokens/s after responses that reasoned before their first chunk', async () => {
  const other = await world.createAccount(5.25);
  const messages = [{ role: 'user', content: 'think at first' }];
  for (let times = 0; times < 3; times++)
    await world.post('/v1/chat/completions', { model: MODEL, stream: true, messages }, other);
  const { thoughts, seconds } = await leaveAtFirstWord(await world.createAccount(1.05));
  expect(thoughts).toBeLessThanOrEqual(seconds * FASTEST);
});

test('charges a client that reads nothing before the timeout for the reasoning that the provider reports', async () => {
  const { api, close } = await world.startGateway({ totalTimeoutMs: 900 });
  const account = await world.createAccount(5.25);
  const { hostname, port } = new URL(api);
  const body = JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content: 'much' }] });
  const reader = connect(Number(port), hostname).pause();
  const head = ['POST /v1/chat/completions HTTP/1.1', `host: ${hostname}`, `authorization: Bearer ${account.apiKey}`];
  reader.write(
    `${[...head, 'content-type: application/json', `content-length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`,
  );
  await world.waitUntil(async () => (await world.listEvents(account)).at(-1)?.type === 'HoldSettled');
  const [charge] = listCharges(await world.listEvents(account));
  expect(charge).toMatchObject({
    items: [{ estimated: false, usage: { reasoning: 20_000, output: 1 } }],
    errorCode: 'timeout',
  });
  reader.destroy();
  await close();
});

test('charges for the reasoning of a response that times out, estimated by its duration', async () => {
  const { api, close } = await world.startGateway({ totalTimeoutMs: 600 });
  const account = await world.createAccount(1.05);
  const body = { model: MODEL, stream: true, messages: [{ role: 'user', content: 'Well?' }] };
  expect((await world.post('/v1/chat/completions', body, account, api)).text).toContain('Yes');
  const [charge] = listCharges(await world.listEvents(account));
  expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'timeout' });
  expect(charge && sumUsage(charge).reasoning).toBeGreaterThan(9);
  await close();
});
