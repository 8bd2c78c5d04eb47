/** Lists of models: the first one that can serves the request, and is charged. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { verify } from '#audit';
import type { DomainEvent } from '#domain';
import { createTestEndpoint, createTestModel, type TestAccount, type TestResponse, TestWorld } from '#testing';

const DEAR = { input: '9', output: '60' };
const MODELS = [
  createTestModel('test/good', [createTestEndpoint('OpenAI', 'openai')]),
  createTestModel('test/dear', [createTestEndpoint('OpenAI', 'openai', { usdPerMillionTokens: DEAR })]),
  // Nothing listens at Groq's address in this world.
  createTestModel('test/down', [createTestEndpoint('Groq', 'groq', { usdPerMillionTokens: DEAR })]),
  createTestModel('test/scripted', [createTestEndpoint('OpenRouter', 'openrouter')]),
  createTestModel('test/ended', [createTestEndpoint('OpenAI', 'openai')], { retires: '2026-01-02' }),
];

/** What the provider of `test/scripted` does, and how often it was called. */
let respond: (response: ServerResponse) => void;
let calls = 0;
const scripted = createServer((request, response) => {
  if (request.method === 'GET') return void response.end('{}'); // a check of the key
  calls++;
  request.resume().on('end', () => respond(response));
});

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  await new Promise<void>((listening) => scripted.listen(0, '127.0.0.1', listening));
  const address = `http://127.0.0.1:${(scripted.address() as AddressInfo).port}/v1`;
  world = await TestWorld.open({ GROQ_BASE_URL: 'http://127.0.0.1:9/v1', OPENROUTER_BASE_URL: address }, MODELS);
  account = await world.createAccount(50);
});
afterAll(async () => {
  await world.close();
  await new Promise((closed) => scripted.close(closed));
});
beforeEach(() => {
  calls = 0;
  respond = (response) => void response.writeHead(400).end('{"error":{"message":"I do not like that"}}');
});

async function lastEvent<Type extends 'FundsHeld' | 'HoldSettled'>(type: Type) {
  type Searched = Extract<DomainEvent, { type: Type }>;
  const events: readonly DomainEvent[] = await world.listEvents(account);
  const last: DomainEvent | undefined = events.findLast((event) => event.type === type);
  return last?.data as Searched extends { readonly data: infer Data } ? Data : never;
}

const messages = [{ role: 'user', content: 'Hello' }];
const ask = (models: readonly string[], more: object = {}, as: TestAccount = account) =>
  world.post('/v1/chat/completions', { models, messages, max_tokens: 20, ...more }, as);

/** The model that a response names, in any of the formats. */
function getModel({ body, events }: TestResponse): string | undefined {
  if (body) return body.model;
  const named = events.findLast((event) => event.model ?? event.message?.model ?? event.response?.model);
  return named?.model ?? named?.message?.model ?? named?.response?.model;
}

const FORMATS: readonly (readonly [name: string, route: string, fields: object])[] = [
  ['chats', '/v1/chat/completions', { messages }],
  ['completions', '/v1/completions', { prompt: 'Hello' }],
  ['responses', '/v1/responses', { input: 'Hello' }],
  ['messages', '/v1/messages', { messages, max_tokens: 20 }],
];

describe.each(FORMATS)('a list of models in %s', (_, route, fields) => {
  test.each([
    ['does not exist', 'test/missing', 'test/good'],
    ['has retired', 'test/ended', 'test/good'],
    ['has another type', 'openai/gpt-image-1.5', 'test/good'],
    ['is unavailable', 'test/down', 'test/down'],
    ['rejects the request', 'test/scripted', 'test/scripted'],
  ])('is served by the next model if the first one %s', async (_reason, first, held) => {
    for (const stream of [false, true]) {
      const response = await world.post(route, { ...fields, stream, models: [first, 'test/good'] }, account);
      expect([response.status, getModel(response)]).toEqual([200, 'test/good']);
      const settled = await lastEvent('HoldSettled');
      expect([(await lastEvent('FundsHeld')).query.model, settled.query.model]).toEqual([held, 'test/good']);
      expect(settled.charge.items).toMatchObject([{ of: 'test/good' }]);
      expect(settled.charge.attempts.at(-1)).toMatchObject({ model: 'test/good', outcome: 'ok' });
    }
    expect(calls).toBe(first === 'test/scripted' ? 2 : 0);
  });

  test('is rejected if it is too long, or not a list of ids', async () => {
    const events = (await world.listEvents()).length;
    const send = (models: unknown) => world.post(route, { ...fields, model: 'test/good', models }, account);
    for (const models of [Array(11).fill('test/good'), ['test/good', 5], ['test/good', null], 'test/good', [''], {}]) {
      const { status, body } = await send(models);
      expect([status, body.error.type]).toEqual([400, 'invalid_request_error']);
      expect(body.error.message).toContain('models must be an array of at most 10');
    }
    expect((await world.listEvents()).length).toBe(events);
    for (const models of [Array(10).fill('test/good'), [], null]) expect((await send(models)).status).toBe(200);
  });
});

describe('a list of models', () => {
  test('comes after the model', async () => {
    expect((await ask(['test/dear'], { model: 'test/good' })).body.model).toBe('test/good');
    expect((await ask(['test/good', 'test/dear'], { model: 'test/down' })).body.model).toBe('test/good');
    expect((await ask([], { model: null })).status).toBe(400);
  });

  test('is held for the most expensive model, and recorded for the one that responded', async () => {
    await ask(['test/dear']);
    const { amount } = await lastEvent('FundsHeld');
    for (const models of [
      ['test/good', 'test/dear'],
      ['test/down', 'test/good'],
    ]) {
      await ask(models);
      expect(await lastEvent('FundsHeld')).toMatchObject({ amount, query: { model: models[0] } });
      await world.waitUntil(async () => {
        const { data } = (await world.get('/queries/history', account)).body;
        return data?.[0]?.model === 'test/good';
      });
    }
  });

  test('is rejected if the balance does not pay for the most expensive model', async () => {
    const poor = await world.createAccount(1);
    const more = { max_tokens: 500, n: 100 };
    expect((await ask(['test/good'], more, poor)).status).toBe(200);
    expect((await ask(['test/good', 'test/dear'], more, poor)).status).toBe(402);
  });

  test('is rejected if the key does not permit one of its models, and none is called', async () => {
    const body = { name: 'limited', models: ['test/good'] };
    const created = await world.send('POST', '/keys', { headers: { 'x-credit-id': account.creditId }, body });
    const limited = { ...account, apiKey: created.body.data.api_key };
    for (const models of [
      ['test/scripted', 'test/good'],
      ['test/good', 'test/scripted'],
    ]) {
      const { status, body: error } = await ask(models, {}, limited);
      expect([status, error.message]).toEqual([403, expect.stringContaining('"test/scripted"')]);
    }
    expect((await ask(['test/missing', 'test/good'], {}, limited)).status).toBe(200);
    expect(calls).toBe(0);
  });

  test('is rejected with the reason of the first model if none can serve the request', async () => {
    const { status, body } = await ask(['test/missing', 'test/ended']);
    expect([status, body.message]).toEqual([404, expect.stringContaining('test/missing')]);
    const down = await ask(['test/scripted', 'test/down']);
    expect([down.status, (await world.listEvents(account)).at(-1)?.type]).toEqual([503, 'HoldReleased']);
  });

  test('is rejected if it has a private model', async () => {
    const { status, body } = await ask(['test/good', 'private/gpt-oss-120b']);
    expect([status, body.message]).toEqual([400, expect.stringContaining('Private models')]);
  });

  test('is not continued by another model once a response has started', async () => {
    respond = (response) => {
      const chunk = { id: 'x', choices: [{ index: 0, delta: { role: 'assistant', content: 'Half' } }] };
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify(chunk)}\n\n`, () => response.destroy());
    };
    const streamed = await ask(['test/scripted', 'test/good'], { stream: true });
    expect([streamed.isComplete, streamed.text]).toEqual([false, expect.stringContaining('Half')]);
    expect(await lastEvent('HoldSettled')).toMatchObject({
      query: { model: 'test/scripted' },
      charge: { items: [{ of: 'test/scripted' }] },
    });
    expect(calls).toBe(1);
  });

  test('searches the web once for all its models', async () => {
    for (const models of [
      ['test/down', 'test/good'],
      ['test/down', 'anthropic/claude-haiku-4.5'],
    ]) {
      expect((await ask(models, { plugins: [{ id: 'web' }] })).body.model).toBe(models[1]);
      const { charge, query } = await lastEvent('HoldSettled');
      expect(charge.items.map((item) => item.of)).toEqual(['web_search', models[1]]);
      expect(query).toMatchObject({ model: models[1], online: true });
    }
  });

  test('is charged once if it is repeated with an Idempotency-Key', async () => {
    const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': 'list-of-models' };
    const body = { models: ['test/down', 'test/good'], messages };
    const send = () => world.send('POST', '/v1/chat/completions', { headers, body });
    const [first, events] = [await send(), (await world.listEvents(account)).length];
    const repeated = await send();
    expect([repeated.text, repeated.headers.get('idempotent-replayed')]).toEqual([first.text, 'true']);
    expect((await world.listEvents(account)).length).toBe(events);
  });

  test('leads to no drift', async () => {
    const lines: string[] = [];
    await verify(world.foundation, (line) => lines.push(line));
    expect(lines.at(-1)).toBe('drift 0');
  });
});
