/** Tests unmodified client libraries against what `npm start` runs, with its default models and its sandbox. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { OpenRouter } from '@openrouter/sdk';
import type { EventStream } from '@openrouter/sdk/lib/event-streams.js';
import type { ChatMessages, ChatResult, ChatStreamChunk } from '@openrouter/sdk/models';
import { APICallError, embed, embedMany, generateText, isStepCount, streamText, tool } from 'ai';
import OpenAI, { APIError } from 'openai';
import pg from 'pg';
import { z } from 'zod';
import { money } from '#kernel';
import {
  createMigratedDatabase,
  openStandalone,
  type RunningStandalone,
  runLedger,
  sampleCases,
  TEST_DAY,
  type TestDatabase,
  waitUntil,
} from '#testing';

const GPT = 'openai/gpt-5-mini';
const CLAUDE = 'anthropic/claude-haiku-4.5';
const OPEN = 'openai/gpt-oss-120b';
const GEMINI = 'google/gemini-3.8-flash';
/** One model of each upstream protocol. */
const MODELS = [GPT, CLAUDE, OPEN, GEMINI];
const EMBEDDER = 'openai/text-embedding-3-small';
const UNKNOWN = 'openai/no-such-model';
const DIMENSIONS = 1_536;
/** The first three words of the sandbox's text. */
const SAID = 'every coin that';
/** The prompt that requests these words. */
const ASKING = '[[sandbox tokens=3]]';
/** A prompt for which the sandbox calls the first tool. */
const CALLING = 'How is the weather? [[sandbox tool=any]]';
/** USD: 5 paid, plus a bonus of 5 %. */
const FUNDED = 5.25;

let dataDir: string;
let database: TestDatabase;
let program: RunningStandalone;
let api: string;
let sandbox: string;
let key: string;
/** Ids of responses that the sandbox sent to clients directly, without the gateway. */
const direct = new Set<string>();

beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-acceptance-'));
  database = await createMigratedDatabase();
  program = await openStandalone({ DATABASE_URL: database.url, DATA_DIR: dataDir, CATALOGUE_DAY: TEST_DAY });
  ({ api, sandbox = '' } = program);
  key = (await post(`${api}/accounts/create`)).api_key;
  const invoice = await post(`${api}/topup/create/btc-lightning`, { amount: 5, currency: 'USD' });
  await post(`${sandbox}/wallet/pay`, { invoice: invoice.lightning_invoice });
  await waitUntil(async () => (await balance()).balance > 0);
});
afterAll(async () => {
  await program.close();
  await database.drop();
  await rm(dataDir, { recursive: true });
});

// biome-ignore lint/suspicious/noExplicitAny: responses of all formats
async function post(url: string, body?: object): Promise<any> {
  const headers = { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) };
  return (await fetch(url, { method: 'POST', headers, body: body ? JSON.stringify(body) : '' })).json();
}

const balance = (): Promise<{ balance: number; held_usd: number }> => post(`${api}/credits/balance`);

async function collected<T>(pieces: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const piece of pieces) all.push(piece);
  return all;
}

const refusalOf = (promise: PromiseLike<unknown>) =>
  Promise.resolve(promise).then(
    () => Promise.reject(new Error('the request was not rejected')),
    (error) => error,
  );

const user = (content: string) => [{ role: 'user' as const, content }];
const CITY = {
  type: 'object',
  properties: { city: { type: 'string', enum: ['Ur'] } },
  required: ['city'],
  additionalProperties: false,
};
const FUNCTION = { name: 'weather', description: 'Returns the weather', parameters: CITY };
const ARGUMENTS = { city: 'Ur' };
const RESULT = 'sunny';

describe("OpenAI's client", () => {
  let client: OpenAI;
  beforeAll(() => {
    client = new OpenAI({ apiKey: key, baseURL: `${api}/v1`, maxRetries: 0 });
  });
  const tools = [{ type: 'function' as const, function: FUNCTION }];

  test('lists and retrieves models', async () => {
    const ids = (await client.models.list()).data.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(MODELS));
    for (const id of MODELS) expect(await client.models.retrieve(id)).toMatchObject({ id, object: 'model' });
  });

  test.each(sampleCases(MODELS, 2, 0))('completes a chat: %s', async (model) => {
    const chat = await client.chat.completions.create({ model, messages: user(ASKING) });
    expect(chat.choices).toMatchObject([{ message: { role: 'assistant', content: SAID }, finish_reason: 'stop' }]);
    expect(chat.usage).toMatchObject({ completion_tokens: 3, cost: expect.any(Number) });
    expect(chat.model).toBe(model);
  });

  test.each(sampleCases(MODELS, 2, 1))('streams a chat: %s', async (model) => {
    const stream = client.chat.completions.stream({ model, messages: user(ASKING) });
    const pieces: string[] = [];
    stream.on('content', (piece) => pieces.push(piece));
    const chat = await stream.finalChatCompletion();
    expect([pieces.join(''), chat.choices[0]?.message.content, chat.choices[0]?.finish_reason]).toEqual([
      SAID,
      SAID,
      'stop',
    ]);
    expect((await stream.totalUsage()).completion_tokens).toBe(3);
  });

  test.each(sampleCases(MODELS, 2, 0))('receives the usage of a stream: %s', async (model) => {
    const stream = client.chat.completions.stream({
      model,
      messages: user(ASKING),
      stream_options: { include_usage: true },
    });
    expect((await stream.totalUsage()).completion_tokens).toBe(3);
  });

  test.each(
    MODELS.flatMap((model, i) => sampleCases([false, true], 1, i).map((streamed) => [model, streamed] as const)),
  )('calls a tool and sends its result: %s (stream: %p)', async (model, streamed) => {
    const ask = async (messages: OpenAI.ChatCompletionMessageParam[]) => {
      const asked = { model, messages, tools };
      const chat = streamed
        ? await client.chat.completions.stream(asked).finalChatCompletion()
        : await client.chat.completions.create(asked);
      return chat.choices[0] as OpenAI.ChatCompletion.Choice;
    };
    const { message, finish_reason } = await ask(user(CALLING));
    expect(finish_reason).toBe('tool_calls');
    const [call] = message.tool_calls as OpenAI.ChatCompletionMessageFunctionToolCall[];
    expect([call?.function.name, JSON.parse(call?.function.arguments ?? '')]).toEqual(['weather', ARGUMENTS]);
    const result = { role: 'tool' as const, tool_call_id: call?.id ?? '', content: RESULT };
    const answered = await ask([...user(CALLING), message, result]);
    expect(answered).toMatchObject({ finish_reason: 'stop', message: { content: expect.stringContaining(SAID) } });
  });

  test.each(sampleCases(MODELS, 2, 1))('runs tools automatically: %s', async (model) => {
    const weather = jest.fn((_: object) => RESULT);
    const tools = [{ type: 'function' as const, function: { ...FUNCTION, function: weather, parse: JSON.parse } }];
    const runner = client.chat.completions.runTools({ model, messages: user(CALLING), tools });
    expect(await runner.finalContent()).toContain(SAID);
    expect(weather.mock.calls).toEqual([[ARGUMENTS, expect.anything()]]);
  });

  test.each(sampleCases(MODELS, 2, 0))('creates a response: %s', async (model) => {
    const response = await client.responses.create({ model, input: ASKING });
    expect([response.status, response.output_text, response.usage?.output_tokens]).toEqual(['completed', SAID, 3]);
  });

  test.each(sampleCases(MODELS, 2, 1))('streams a response that continues another: %s', async (model) => {
    const { id } = await client.responses.create({ model, input: ASKING, store: true });
    const stream = client.responses.stream({ model, input: ASKING, previous_response_id: id });
    const pieces: string[] = [];
    stream.on('response.output_text.delta', ({ delta }) => pieces.push(delta));
    const response = await stream.finalResponse();
    expect([pieces.join(''), response.output_text, response.status]).toEqual([SAID, SAID, 'completed']);
  });

  test.each(sampleCases(MODELS, 2, 0))(
    'calls a tool in a response and continues with its result: %s',
    async (model) => {
      const tools = [{ type: 'function' as const, ...FUNCTION, strict: true }];
      const { id, output } = await client.responses.create({ model, input: CALLING, tools, store: true });
      const call = output.find(({ type }) => type === 'function_call') as OpenAI.Responses.ResponseFunctionToolCall;
      expect([call.name, JSON.parse(call.arguments)]).toEqual(['weather', ARGUMENTS]);
      const input = [{ type: 'function_call_output' as const, call_id: call.call_id, output: RESULT }];
      const answered = await client.responses.create({ model, previous_response_id: id, input, tools });
      expect(answered.output_text).toContain(SAID);
    },
  );

  test('receives equal embeddings as floats and in its default format', async () => {
    const input = ['one', 'two'];
    const floats = await client.embeddings.create({ model: EMBEDDER, input, encoding_format: 'float' });
    const decoded = await client.embeddings.create({ model: EMBEDDER, input });
    expect(floats.data.map(({ embedding }) => embedding.length)).toEqual([DIMENSIONS, DIMENSIONS]);
    for (const [i, { embedding }] of decoded.data.entries()) {
      expect([...embedding]).toEqual([...new Float32Array(floats.data[i]?.embedding ?? [])]);
    }
  });

  test.each<[string, number, () => PromiseLike<unknown>]>([
    ['an unknown model', 404, () => client.chat.completions.create({ model: UNKNOWN, messages: user(ASKING) })],
    ['an unknown key', 401, () => client.withOptions({ apiKey: 'sk-x' }).responses.create({ model: GPT, input: 'a' })],
    ['an empty input', 400, () => client.embeddings.create({ model: EMBEDDER, input: '' })],
  ])('parses the error of %s', async (_, status, ask) => {
    const error = await refusalOf(ask());
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status, type: expect.any(String), requestID: expect.any(String) });
  });
});

describe("OpenRouter's client, which validates every response", () => {
  let client: OpenRouter;
  beforeAll(() => {
    client = new OpenRouter({ apiKey: key, serverURL: `${api}/v1`, retryConfig: { strategy: 'none' } });
  });
  const tools = [{ type: 'function' as const, function: FUNCTION }];

  test('lists the models', async () => {
    const pages = await collected(await client.models.list());
    const ids = pages.flatMap(({ result }) => result.data.map(({ id }) => id));
    expect(ids).toEqual(expect.arrayContaining(MODELS));
    expect(new Set(ids).size).toBe(ids.length);
  });

  test.each(sampleCases(MODELS, 2, 1))('completes a chat: %s', async (model) => {
    const chat = await client.chat.send({ chatRequest: { model, messages: user(ASKING) } });
    expect(chat).toMatchObject({
      choices: [{ message: { content: SAID }, finishReason: 'stop' }],
      usage: { completionTokens: 3, cost: expect.any(Number) },
    });
  });

  test.each(sampleCases(MODELS, 2, 0))('streams a chat: %s', async (model) => {
    const stream = await client.chat.send({ chatRequest: { model, messages: user(ASKING), stream: true } });
    const chunks = await collected(stream as EventStream<ChatStreamChunk>);
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(SAID);
    expect(chunks.at(-1)?.usage).toMatchObject({ completionTokens: 3, cost: expect.any(Number) });
  });

  test.each(sampleCases(MODELS, 2, 1))('calls a tool and sends its result: %s', async (model) => {
    const ask = async (messages: ChatMessages[]) =>
      (await client.chat.send({ chatRequest: { model, messages, tools, stream: false } })) as ChatResult;
    const message = (await ask(user(CALLING))).choices[0]?.message;
    const [call] = message?.toolCalls ?? [];
    expect([call?.function.name, JSON.parse(call?.function.arguments ?? '')]).toEqual(['weather', ARGUMENTS]);
    const result = { role: 'tool' as const, toolCallId: call?.id ?? '', content: RESULT };
    const answered = await ask([...user(CALLING), message as ChatMessages, result]);
    expect(answered.choices[0]?.message.content).toContain(SAID);
  });

  test.each(sampleCases(MODELS, 2, 0))('creates and streams a response: %s', async (model) => {
    const asked = { model, input: ASKING };
    const response = await client.beta.responses.send({ responsesRequest: asked });
    expect(response).toMatchObject({ status: 'completed', outputText: SAID });
    const stream = await client.beta.responses.send({ responsesRequest: { ...asked, stream: true } });
    const types = (await collected(stream as unknown as AsyncIterable<{ type: string }>)).map(({ type }) => type);
    expect(types).not.toContain('UNKNOWN');
    expect([types[0], types.at(-1)]).toEqual(['response.created', 'response.completed']);
  });

  test.each(['float', 'base64'] as const)('creates embeddings as %s', async (encodingFormat) => {
    const list = await client.embeddings.generate({ requestBody: { model: EMBEDDER, input: 'one', encodingFormat } });
    const [first] = typeof list === 'string' ? [] : list.data;
    const bytes = typeof first?.embedding === 'string' ? Buffer.from(first.embedding, 'base64').length : undefined;
    expect(bytes === undefined ? first?.embedding.length : bytes / 4).toBe(DIMENSIONS);
  });

  test.each<[string, string, number, () => Promise<unknown>]>([
    [
      'an unknown model',
      'NotFoundResponseError',
      404,
      () => client.chat.send({ chatRequest: { model: UNKNOWN, messages: user(ASKING) } }),
    ],
    [
      'an unknown key',
      'UnauthorizedResponseError',
      401,
      () =>
        new OpenRouter({ apiKey: 'sk-x', serverURL: `${api}/v1` }).chat.send({
          chatRequest: { model: GPT, messages: user(ASKING) },
        }),
    ],
    [
      'a failing provider',
      'BadGatewayResponseError',
      502,
      () => client.chat.send({ chatRequest: { model: GPT, messages: user('[[sandbox fault=500]]') } }),
    ],
  ])('parses the error of %s', async (_, name, statusCode, ask) => {
    expect(await refusalOf(ask())).toMatchObject({ name, statusCode, error: { code: statusCode } });
  });
});

describe("Vercel's AI SDK", () => {
  const ways = {
    'openai-compatible': (model: string) =>
      createOpenAICompatible({ name: 'countinghouse', apiKey: key, baseURL: `${api}/v1`, includeUsage: true })(model),
    'openai, chat': (model: string) => createOpenAI({ apiKey: key, baseURL: `${api}/v1` }).chat(model),
    'openai, responses': (model: string) => createOpenAI({ apiKey: key, baseURL: `${api}/v1` }).responses(model),
  };
  type Way = keyof typeof ways;
  const all = (Object.keys(ways) as Way[]).flatMap((way) => MODELS.map((model) => [way, model] as const));
  const each = sampleCases(all, 5); // each way and each model
  const weather = tool({
    description: FUNCTION.description,
    inputSchema: z.object({ city: z.enum(['Ur']) }),
    execute: async () => RESULT,
  });
  const acting = { prompt: CALLING, tools: { weather }, stopWhen: isStepCount(3), maxRetries: 0 };

  test.each(each)('generates text (%s): %s', async (way, model) => {
    const { text, usage, finishReason } = await generateText({ model: ways[way](model), prompt: ASKING });
    expect([text, usage.outputTokens, finishReason]).toEqual([SAID, 3, 'stop']);
  });

  test.each(each)('streams text (%s): %s', async (way, model) => {
    const result = streamText({ model: ways[way](model), prompt: ASKING });
    expect((await collected(result.textStream)).join('')).toBe(SAID);
    expect([(await result.usage).outputTokens, await result.finishReason]).toEqual([3, 'stop']);
  });

  test.each(each)('runs a tool call and continues with its result (%s): %s', async (way, model) => {
    const { steps, text } = await generateText({ model: ways[way](model), ...acting });
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
    expect(steps[0]?.toolResults).toMatchObject([{ toolName: 'weather', input: ARGUMENTS, output: RESULT }]);
    expect(text).toContain(SAID);
  });

  test.each(each)('runs a tool call in a stream and continues with its result (%s): %s', async (way, model) => {
    const result = streamText({ model: ways[way](model), ...acting });
    expect((await collected(result.textStream)).join('')).toContain(SAID);
    expect((await result.steps).map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
  });

  test('creates one embedding and several', async () => {
    const compatible = createOpenAICompatible({ name: 'countinghouse', apiKey: key, baseURL: `${api}/v1` });
    for (const model of [
      compatible.embeddingModel(EMBEDDER),
      createOpenAI({ apiKey: key, baseURL: `${api}/v1` }).embedding(EMBEDDER),
    ]) {
      const { embedding, usage } = await embed({ model, value: 'one' });
      expect([embedding.length, usage.tokens]).toEqual([DIMENSIONS, 1]);
      const { embeddings } = await embedMany({ model, values: ['one', 'two'] });
      expect(embeddings).toEqual([embedding, expect.any(Array)]);
    }
  });

  test.each(Object.keys(ways) as Way[])('parses an error (%s)', async (way) => {
    const error = await refusalOf(generateText({ model: ways[way](UNKNOWN), prompt: ASKING, maxRetries: 0 }));
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({ statusCode: 404, isRetryable: false });
    expect(error.message).toContain(UNKNOWN);
  });
});

describe("Anthropic's client against the sandbox", () => {
  let client: Anthropic;
  beforeAll(() => {
    client = new Anthropic({ apiKey: 'any', baseURL: `${sandbox}/anthropic`, maxRetries: 0 });
  });
  const asked = { model: 'claude-haiku-4-5', max_tokens: 64 };
  const had = (message: Anthropic.Message) => {
    direct.add(message.id);
    return message;
  };

  test('creates and streams a message', async () => {
    const hello = { ...asked, messages: user(ASKING) };
    for (const message of [await client.messages.create(hello), await client.messages.stream(hello).finalMessage()]) {
      expect(had(message)).toMatchObject({ content: [{ type: 'text', text: SAID }], usage: { output_tokens: 3 } });
    }
  });

  test('calls a tool and sends its result', async () => {
    const { name, description, parameters } = FUNCTION;
    const tools = [{ name, description, input_schema: parameters as Anthropic.Tool.InputSchema }];
    const { content } = had(await client.messages.create({ ...asked, tools, messages: user(CALLING) }));
    const [call] = content as Anthropic.ToolUseBlock[];
    expect(call).toMatchObject({ type: 'tool_use', name, input: ARGUMENTS });
    const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: RESULT };
    const messages = [
      ...user(CALLING),
      { role: 'assistant' as const, content },
      { role: 'user' as const, content: [result] },
    ];
    const answered = had(await client.messages.create({ ...asked, tools, messages }));
    expect(answered.content).toMatchObject([{ type: 'text', text: expect.stringContaining(SAID) }]);
  });

  test('parses an error', async () => {
    const error = await refusalOf(client.messages.create({ ...asked, messages: user('[[sandbox fault=429]]') }));
    expect(error).toBeInstanceOf(Anthropic.RateLimitError);
  });
});

describe('after all requests', () => {
  interface Line {
    readonly id: string;
    readonly usd: string;
  }

  /** Returns the sum that the providers invoice for requests of the gateway. */
  async function invoiced(): Promise<bigint> {
    const lines = (await (await fetch(`${sandbox}/bill/lines`)).json()) as Line[];
    const total = (some: readonly Line[]) => some.reduce((sum, { usd }) => sum + money.parseUsd(usd), 0n);
    const bill = (await (await fetch(`${sandbox}/bill`)).json()) as { total_usd: string; lines: number };
    expect([lines.length, total(lines)]).toEqual([bill.lines, money.parseUsd(bill.total_usd)]);
    const others = lines.filter(({ id }) => direct.has(id));
    expect(others).toHaveLength(direct.size);
    return total(lines) - total(others);
  }

  test("the costs of all charges equal the providers' bill, and the prices equal the money spent", async () => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const charged = async (what: string) => {
      const sql = `select count(*)::int as charges, coalesce(sum((data->'charge'->>$1)::numeric), 0)::text as sum
                     from es.events where type in ('HoldSettled', 'ChargeAbsorbed')`;
      const { charges, sum } = (await client.query(sql, [what])).rows[0];
      return { charges: charges as number, sum: BigInt(sum) };
    };
    try {
      const { charges, sum } = await charged('cost');
      expect(charges).toBeGreaterThan(60);
      expect(sum).toBe(await invoiced());
      const { balance: left, held_usd } = await balance();
      expect(held_usd).toBe(0);
      expect(money.parseUsd(FUNDED) - money.parseUsd(left)).toBe((await charged('price')).sum);
    } finally {
      await client.end();
    }
  });

  const ledger = (command: string) => runLedger({ DATABASE_URL: database.url, DATA_DIR: dataDir }, command);

  test('the costs that providers report agree with those in the ledger', async () => {
    const [summary] = await ledger('costs');
    expect(summary).toMatch(/^[1-9]\d* calls with a reported cost, 0 of them differ by more than 1 %: 0 USD/);
  });

  test('the ledger verifies with drift 0', async () => {
    expect(await ledger('verify')).toEqual(
      expect.arrayContaining(['drift 0', expect.stringMatching(/charges audited, 0 of them estimates$/)]),
    );
  });
});
