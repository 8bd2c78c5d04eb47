/** Responses that end because their money is used up, while their provider continues to generate and to bill. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Streams } from '#application';
import { verify } from '#audit';
import { createTestEndpoint, createTestModel, slowTime, sumUsage, type TestAccount, TestWorld } from '#testing';
import { printAccruals } from '../../../ledger/src/accruals.ts';

const MODEL = 'test/talks';
/** An expensive model that reasons. */
const SILENT = 'test/silent';
const PER_TOKEN = 6e-6 * 1.055;
const BALANCE_USD = 0.105;
/** What is held at first for a response without an output limit of a model that is not measured. */
const FIRST_TOKENS = 1_500;
/** What must be left for the response to become long. */
const RESERVED_TOKENS = 500;
/** More than the balance pays for. */
const AT_ONCE = 20_000;

const STEP_MS = 25;

let open: ServerResponse[] = [];
/** Words that the provider has sent, and will bill. */
let generated = 0;

/** A provider that sends words until it is disconnected, or for a second, or whose response never starts. */
const upstream = createServer(async (request, response) => {
  let body = '';
  for await (const piece of request) body += piece;
  if (body.includes('wait')) return void open.push(response);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (body.includes('measure')) {
    for (let i = 0; i < 10; i++) {
      send(response, 20);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return end(response, 200);
  }
  send(response, body.includes('at once') ? AT_ONCE : FIRST_TOKENS + RESERVED_TOKENS + 200);
  if (body.includes('at once')) return end(response, AT_ONCE);
  const timer = setInterval(() => send(response, 1), 10);
  response.on('close', () => clearInterval(timer));
});

const HEAD = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o-mini' };

function send(response: ServerResponse, words: number): void {
  generated += words;
  const delta = { content: 'coin '.repeat(words) };
  response.write(`data: ${JSON.stringify({ ...HEAD, choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`);
}

function end(response: ServerResponse, words: number): void {
  const usage = { prompt_tokens: 9, completion_tokens: words, total_tokens: 9 + words };
  response.end(`data: ${JSON.stringify({ ...HEAD, choices: [], usage })}\n\ndata: [DONE]\n\n`);
}

let world: TestWorld;
beforeAll(async () => {
  await new Promise<void>((listening) => upstream.listen(0, '127.0.0.1', listening));
  const address = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  const talker = createTestEndpoint('Talker', 'openai', {
    tokensPerSecond: 100,
    usdPerMillionTokens: { input: '1.5', cacheRead: '0.75', output: '6' },
  });
  const thinker = createTestEndpoint('Thinker', 'openai', {
    parameters: 'openai-reasoning',
    tokensPerSecond: 200,
    latencyMs: 100,
    usdPerMillionTokens: { input: '1', cacheRead: '1', output: '60' },
  });
  world = await TestWorld.open({ OPENAI_BASE_URL: address, STREAM_FIRST_COMMENT_MS: '3600000' }, [
    createTestModel(MODEL, [talker], { maxOutput: 64_000 }),
    createTestModel(SILENT, [thinker], { longOutput: 512 }),
  ]);
  const rich = await world.createAccount(50);
  const messages = [{ role: 'user', content: 'measure' }];
  const measure = (model: string) => world.post('/v1/chat/completions', { model, messages, stream: true }, rich);
  await Promise.all([MODEL, SILENT].map(measure));
});
afterAll(async () => {
  await world.close();
  upstream.closeAllConnections();
  await new Promise((closed) => upstream.close(closed));
});

/**
 * Lets time pass in steps, but not while a hold is being extended. So each extension is rejected for want of money, and
 * none because it takes too long.
 * @param speed by how much faster than usual the time passes
 */
function stepTime<T>(work: () => Promise<T>, speed = 1): Promise<T> {
  const { accounts } = world.getService(Streams);
  const { run } = accounts;
  let extensions = 0;
  const spy = jest.spyOn(accounts, 'run').mockImplementation(async (...args) => {
    const isExtension = args[1].type === 'ExtendHold';
    if (isExtension) extensions++;
    try {
      return await run.apply(accounts, args);
    } finally {
      if (isExtension) extensions--;
    }
  });
  return slowTime(async (advance) => {
    const timer = setInterval(() => {
      if (extensions === 0) advance(STEP_MS * speed);
    }, STEP_MS);
    try {
      return await work();
    } finally {
      clearInterval(timer);
      spy.mockRestore();
    }
  });
}

const chat = (account: TestAccount, content: string, more: object) =>
  world.post('/v1/chat/completions', { model: MODEL, messages: [{ role: 'user', content }], ...more }, account);

/** Sends a chat while other requests hold the other money of its account, until the chat has ended. */
async function askBesideOthers(account: TestAccount, more: object, content = 'Talk', speed = 1) {
  open = [];
  generated = 0;
  const rest = Math.floor(BALANCE_USD / PER_TOKEN) - 12_000 - FIRST_TOKENS - RESERVED_TOKENS - 250;
  const others = [4_000, 4_000, 4_000, rest].map((max_tokens) => chat(account, 'wait', { max_tokens }));
  await world.waitUntil(async () => open.length === others.length);
  const response = await stepTime(() => chat(account, content, more), speed);
  for (const each of open) each.writeHead(400).end('{}');
  await Promise.all(others);
  return response;
}

async function readSettled(account: TestAccount) {
  const settled = (await world.listEvents(account)).find(({ type }) => type === 'HoldSettled');
  if (settled?.type !== 'HoldSettled') throw new Error('the chat was not settled');
  return settled.data;
}

test('reasoning before a response starts is charged up to the hold, and ends the response when that is used up', async () => {
  const account = await world.createAccount(BALANCE_USD);
  open = [];
  const request = { model: SILENT, messages: [{ role: 'user', content: 'wait' }] };
  const reasoning = world.post('/v1/chat/completions', { ...request, stream: true }, account);
  await world.waitUntil(async () => open.length === 1);
  const other = world.post('/v1/chat/completions', { ...request, max_tokens: 900 }, account);
  await world.waitUntil(async () => open.length === 2);
  const { status, body } = await stepTime(() => reasoning);
  expect([status, body.error.code]).toEqual([402, 'insufficient_balance']);
  await world.waitUntil(async () => open[0]?.destroyed === true);
  open[1]?.writeHead(400).end('{}');
  await other;
  const { charge, charged, held } = await readSettled(account);
  expect(charge).toMatchObject({ items: [{ estimated: true }], errorCode: 'hold_used_up' });
  expect(sumUsage(charge).reasoning).toBeGreaterThan(0);
  expect([BigInt(charged) > 0n, BigInt(charged) <= BigInt(held)]).toEqual([true, true]);
});

describe('what a provider generates beyond the hold until it is disconnected', () => {
  test.each([{ stream: true }, { stream: false }])('is absorbed by the operator, as an estimate: %j', async (more) => {
    const account = await world.createAccount(BALANCE_USD);
    const response = await askBesideOthers(account, more);
    const { charge, charged, held } = await readSettled(account);
    const [paid, cut] = charge.items;
    expect(charge.items).toHaveLength(2);
    expect([paid?.absorbed, cut?.absorbed, cut?.estimated, cut?.price]).toEqual([undefined, 'hold_used_up', true, '0']);
    expect([charged, BigInt(charged) <= BigInt(held)]).toEqual([charge.price, true]);
    const { output = 0 } = sumUsage(charge);
    expect(output).toBeGreaterThan(paid?.usage.output ?? 0);
    expect(Math.abs(output - generated)).toBeLessThan(200);
    const { usage } = response.body ?? response.events.at(-2);
    expect(usage.completion_tokens).toBe(paid?.usage.output);
    expect(usage.cost).toBe(Number(charged) / 1e12);
    let record: { readonly price_in_usd: number } | undefined;
    await world.waitUntil(async () => {
      const { data } = (await world.get('/queries/history', account)).body;
      record = data.find((each: typeof record) => each !== undefined && each.price_in_usd > 0);
      return record !== undefined;
    });
    expect(record).toMatchObject({ output_count: paid?.usage.output, price_in_usd: usage.cost });
  });

  test('is absorbed by the count of the provider if it has reported one', async () => {
    const account = await world.createAccount(BALANCE_USD);
    const response = await askBesideOthers(account, { stream: true }, 'Talk at once', 3); // waits for five seconds
    const { charge } = await readSettled(account);
    const [paid, cut] = charge.items;
    expect(charge.items.map(({ estimated, absorbed }) => [estimated, absorbed])).toEqual([
      [false, undefined],
      [false, 'hold_used_up'],
    ]);
    expect([paid?.usage.input, sumUsage(charge).output]).toEqual([9, AT_ONCE]);
    expect(response.events.at(-2).usage.completion_tokens).toBe(paid?.usage.output);
    expect(cut?.usage.request).toBeUndefined();
  });

  test('is listed as an accrual, and leaves the ledger at drift 0', async () => {
    const lines: string[] = [];
    await printAccruals(world.foundation.store, { since: undefined, until: undefined }, (line) => lines.push(line));
    expect(lines.filter((line) => line.includes('not_delivered (hold_used_up), test/talks'))).toHaveLength(3);
    await verify(world.foundation, (line) => lines.push(line));
    expect(lines.at(-1)).toBe('drift 0');
  });
});
