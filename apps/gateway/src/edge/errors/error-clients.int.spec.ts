/** Errors as clients read them: OpenAI's client checks the code; OpenRouter's needs an integer code and no null. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OpenRouter } from '@openrouter/sdk';
import type { EventStream } from '@openrouter/sdk/lib/event-streams.js';
import type { ChatStreamChunk } from '@openrouter/sdk/models';
import OpenAI from 'openai';
import { sampleCases, type TestAccount, TestWorld } from '#testing';

const GPT = 'openai/gpt-5-mini';

let world: TestWorld;
let rich: TestAccount;
let poor: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  rich = await world.createAccount(1.05);
  poor = await world.createAccount();
});
afterAll(() => world.close());

const user = (content: string) => [{ role: 'user' as const, content }];
const told = (directive: string) => ({ model: GPT, messages: user(`[[sandbox ${directive}]]`) });

async function refusalOf(promise: PromiseLike<unknown>) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('the request was not rejected');
}

type Case = readonly [what: string, status: number, apiKey: () => string, body: ReturnType<typeof told>];
const CASES = {
  400: ['an invalid request', 400, () => rich.apiKey, { ...told(''), messages: [] }],
  401: ['an unknown key', 401, () => 'sk-unknown', told('')],
  402: ['an empty account', 402, () => poor.apiKey, told('tokens=2')],
  404: ['an unknown model', 404, () => rich.apiKey, { ...told(''), model: 'nope' }],
  429: ['a provider with too many requests', 429, () => rich.apiKey, told('fault=429')],
  502: ['a provider that fails', 502, () => rich.apiKey, told('fault=500')],
} satisfies Record<number, Case>;

describe("an error in OpenAI's format", () => {
  const client = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${world.api}/v1`, maxRetries: 0 });

  test.each<readonly [...Case, name: string, type: string, code: string]>([
    [...CASES[400], 'BadRequestError', 'invalid_request_error', 'invalid_request'],
    [...CASES[401], 'AuthenticationError', 'authentication_error', 'invalid_api_key'],
    [...CASES[402], 'APIError', 'insufficient_balance', 'insufficient_quota'],
    [...CASES[404], 'NotFoundError', 'invalid_request_error', 'model_not_found'],
    [...CASES[429], 'RateLimitError', 'rate_limit_error', 'rate_limit_exceeded'],
    [...CASES[502], 'InternalServerError', 'upstream_error', 'upstream_error'],
  ])("has its class and code in OpenAI's client: %s (%i)", async (_, status, apiKey, body, name, type, code) => {
    const ask = (stream: boolean) => refusalOf(client(apiKey()).chat.completions.create({ ...body, stream }));
    for (const error of await Promise.all(sampleCases([false, true], 1, status).map(ask))) {
      expect([error?.constructor.name, error]).toEqual([name, expect.objectContaining({ status, type, code })]);
    }
  });

  test('has the error code and the field that a provider reports', async () => {
    const { error } = (await world.sendChat(rich, 'fault=400')).body;
    expect(error).toMatchObject({ code: 'invalid_value', param: 'messages', type: 'invalid_request_error' });
  });

  test.each([
    ['openai/gpt-4o-mini', 130_000],
    ['anthropic/claude-haiku-4.5', 210_000],
  ])('has the code context_length_exceeded for a conversation that is too long for %s', async (model, tokens) => {
    const account = await world.createAccount(105);
    const messages = user('word '.repeat(tokens));
    const { status, body } = await world.post('/v1/chat/completions', { model, messages }, account);
    expect([status, body.error.code]).toEqual([400, 'context_length_exceeded']);
  });

  test('has the code context_length_exceeded for an input that is too long to embed', async () => {
    const input = Array(9_000).fill(1);
    const { status, body } = await world.post(
      '/v1/embeddings',
      { model: 'openai/text-embedding-3-small', input },
      rich,
    );
    expect([status, body.error.code, body.error.param]).toEqual([400, 'context_length_exceeded', 'input']);
  });

  test('has its error code within a stream too', async () => {
    const { events } = await world.sendChat(rich, 'tokens=8 fault=cut', { stream: true });
    expect(events.at(-1).error).toMatchObject({ code: 'upstream_error', type: 'upstream_error', param: null });
  });
});

describe("OpenRouter's client", () => {
  const client = (apiKey: string) =>
    new OpenRouter({ apiKey, serverURL: `${world.api}/v1`, retryConfig: { strategy: 'none' } });

  test.each<readonly [...Case, name: string]>([
    [...CASES[400], 'BadRequestResponseError'],
    [...CASES[401], 'UnauthorizedResponseError'],
    [...CASES[402], 'PaymentRequiredResponseError'],
    [...CASES[404], 'NotFoundResponseError'],
    [...CASES[429], 'TooManyRequestsResponseError'],
    [...CASES[502], 'BadGatewayResponseError'],
  ])('throws its own error for %s (%i), with the status', async (_, statusCode, apiKey, body, name) => {
    const ask = (stream: boolean) => refusalOf(client(apiKey()).chat.send({ chatRequest: { ...body, stream } }));
    for (const error of await Promise.all(sampleCases([true, false], 1, statusCode).map(ask))) {
      expect(error).toMatchObject({ name, statusCode, error: { code: statusCode, message: expect.any(String) } });
    }
  });

  test.each([
    'speakeasy-sdk/typescript 1.3.19 2.914.0 1.0.0 @openrouter/sdk',
    'speakeasy-sdk/python 1.3.84 2.914.0 1.0.0 openrouter',
  ])('receives a 401 without a field that is null: %s', async (userAgent) => {
    const headers = { 'user-agent': userAgent };
    const { body, text } = await world.send('POST', '/v1/chat/completions', { headers, body: {} });
    expect(body).toMatchObject({ status: 'error', statusCode: 401, error: { code: 401 } });
    expect(text).not.toContain('null');
  });

  test('reads the status of an error within a stream', async () => {
    const chatRequest = { ...told('tokens=8 fault=cut'), stream: true as const };
    const chunks: ChatStreamChunk[] = [];
    const stream = (await client(rich.apiKey).chat.send({ chatRequest })) as unknown as EventStream<ChatStreamChunk>;
    const read = async () => {
      for await (const chunk of stream) chunks.push(chunk);
    };
    await expect(read()).rejects.toThrow('terminated');
    expect(chunks.find(({ error }) => error)?.error).toMatchObject({ code: 502, message: expect.any(String) });
  });
});

describe('the list of models', () => {
  test.each<readonly [string, () => Readonly<Record<string, string>>, number]>([
    ['no key', () => ({}), 200],
    ['an empty header', () => ({ authorization: 'Bearer ' }), 200],
    ['a key', () => ({ authorization: `Bearer ${poor.apiKey}` }), 200],
    ['a key in another header', () => ({ 'x-api-key': poor.apiKey }), 200],
    ['a credit id', () => ({ 'x-credit-id': poor.creditId }), 200],
    ['an unknown key', () => ({ authorization: 'Bearer sk-unknown' }), 401],
    ['an unknown key in another header', () => ({ 'api-key': 'sk-unknown' }), 401],
    ['an unknown credit id', () => ({ 'x-credit-id': crypto.randomUUID() }), 401],
  ])('requires no credential, but rejects an invalid one with 401: %s', async (_, headers, status) => {
    for (const route of ['/v1/models', '/models', `/v1/models/${GPT}`]) {
      const answer = await world.send('GET', route, { headers: headers() });
      expect(answer.status).toBe(status);
      if (status === 401) expect(answer.body.error.code).toBe('invalid_api_key');
    }
  });
});
