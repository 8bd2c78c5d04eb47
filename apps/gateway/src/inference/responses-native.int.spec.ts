import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import type { Charge } from '#domain';
import {
  createTestEndpoint,
  createTestModel,
  isEstimated,
  type TestAccount,
  type TestResponse,
  TestWorld,
  timeOut,
} from '#testing';

/** A model with reasoning that is called through the Responses API. */
const GPT = 'openai/gpt-5-mini';
/** A model without reasoning that is called through the Responses API. */
const PLAIN = 'openai/gpt-4o-mini';
const CLAUDE = 'anthropic/claude-haiku-4.5';
const TRANSLATED = 'test/translated';

/** Nothing listens at Groq's address in this world. */
const MODELS = [
  createTestModel(TRANSLATED, [createTestEndpoint('OpenAI', 'openai')]),
  createTestModel('test/native-first', [
    createTestEndpoint('Gone', 'groq', {
      speaks: ['chat', 'responses'],
      usdPerMillionTokens: { input: '0.01', output: '0.6' },
    }),
    createTestEndpoint('There', 'openai'),
  ]),
  createTestModel('test/chat-first', [
    createTestEndpoint('Gone', 'groq', { usdPerMillionTokens: { input: '0.01', output: '0.6' } }),
    createTestEndpoint('There', 'openai', { speaks: ['chat', 'responses'] }),
  ]),
  createTestModel('test/short', [createTestEndpoint('OpenAI', 'openai')], { context: 4000, maxOutput: 2000 }),
];

let world: TestWorld;
let account: TestAccount;
let client: OpenAI;
beforeAll(async () => {
  world = await TestWorld.open({ GROQ_BASE_URL: 'http://127.0.0.1:9/v1' }, MODELS);
  account = await world.createAccount(5);
  client = new OpenAI({ apiKey: account.apiKey, baseURL: `${world.api}/v1`, maxRetries: 0, logLevel: 'off' });
});
afterAll(() => world.close());

const ask = (input: unknown, more: object = {}, payer = account) =>
  world.post('/v1/responses', { model: GPT, input, ...more }, payer);
const directed = (directive: string) => `[[sandbox ${directive}]]`;
const typesOf = ({ events }: TestResponse) => events.map((event) => (event === '[DONE]' ? event : event.type));
const responseIn = (answer: TestResponse) => answer.body ?? answer.events.at(-2).response;

interface Line {
  readonly id: string;
  readonly usd: string;
  readonly tokens: { readonly input: number; readonly output: number };
}
const bill = async (): Promise<readonly Line[]> => (await fetch(`${world.sandbox}/bill/lines`)).json() as never;
const lastLine = async () => (await bill()).at(-1) as Line;
/** Returns the protocol of the last call that the provider billed. */
const lastLanguage = async () => ((await lastLine()).id.startsWith('resp_') ? 'responses' : 'chat');
const lastFact = async (payer = account) =>
  (await world.listEvents(payer)).at(-1) as unknown as { type: string; data: never };
const lastCharge = async () => ((await lastFact()).data as { charge: Charge }).charge;
const pico = (usd: string) => String(BigInt(Math.round(Number(usd) * 1e12)));

const WEATHER = {
  type: 'function' as const,
  name: 'weather',
  parameters: { type: 'object', properties: { city: { enum: ['Zürich'] } }, required: ['city'] },
  strict: false,
};

describe('a model that supports Responses', () => {
  test.each([false, true])(
    'is called through the Responses API, and billed like a chat (stream: %p)',
    async (stream) => {
      await ask(directed('tokens=9 reasoning=4 fault=cached'), { stream });
      const native = await lastLine();
      expect(await lastLanguage()).toBe('responses');
      expect((await lastCharge()).cost).toBe(pico(native.usd));
      await world.sendChat(account, 'tokens=9 reasoning=4 fault=cached');
      const chat = await lastLine();
      expect([native.tokens, native.usd]).toEqual([chat.tokens, chat.usd]);
    },
  );

  test("returns the requested reasoning to OpenAI's client", async () => {
    const asked = {
      model: GPT,
      input: directed('tokens=9 reasoning=4'),
      reasoning: { effort: 'low' as const, summary: 'auto' as const },
      include: ['reasoning.encrypted_content' as const],
      store: false,
    };
    for (const response of [
      await client.responses.create(asked),
      await client.responses.stream(asked).finalResponse(),
    ]) {
      expect(response.output).toMatchObject([
        { type: 'reasoning', id: expect.stringMatching(/^rs_/), summary: [{ type: 'summary_text' }] },
        { type: 'message', content: [{ type: 'output_text' }] },
      ]);
      expect(response.output[0]).toHaveProperty('encrypted_content');
      expect(response.usage?.output_tokens_details.reasoning_tokens).toBe(4);
      const input = [
        { role: 'user' as const, content: 'Hi' },
        ...response.output,
        { role: 'user' as const, content: 'Go' },
      ];
      const next = await client.responses.create({ ...asked, input: input as never });
      expect(next.status).toBe('completed');
    }
  });

  test('returns encrypted reasoning only on request, and uses it in a continued response', async () => {
    const first = await ask(directed('reasoning=40'), { stream: true });
    expect(first.text).not.toContain('encrypted_content');
    const { id, output } = responseIn(first);
    expect(output[0]).toEqual({ id: expect.stringMatching(/^rs_/), type: 'reasoning', summary: [] });
    expect((await world.get(`/v1/responses/${id}`, account)).text).not.toContain('encrypted_content');
    const second = (await ask('Go on', { previous_response_id: id })).body;
    const without = (
      await ask([{ role: 'user', content: directed('reasoning=40') }, output[1], { role: 'user', content: 'Go on' }])
    ).body;
    expect(second.usage.input_tokens - without.usage.input_tokens).toBe(40);
  });

  test('accepts returned reasoning without encrypted content', async () => {
    const { output } = (await ask(directed('tokens=9 reasoning=4'), { store: false })).body;
    const { status } = await ask([{ role: 'user', content: 'Hi' }, ...output, { role: 'user', content: 'Go' }]);
    expect(status).toBe(200);
  });

  test.each([false, true])('calls tools and receives their results (stream: %p)', async (stream) => {
    const create = (asked: object) =>
      stream
        ? client.responses.stream({ model: GPT, ...asked } as never).finalResponse()
        : client.responses.create({ model: GPT, ...asked } as never);
    const input = directed('tool=weather');
    const first = (await create({ input, tools: [WEATHER] })) as OpenAI.Responses.Response;
    expect(first.output).toMatchObject([{ type: 'function_call', name: 'weather', arguments: '{"city":"Zürich"}' }]);
    const { call_id } = first.output[0] as OpenAI.Responses.ResponseFunctionToolCall;
    const output = { type: 'function_call_output' as const, call_id, output: 'sunny' };
    const sent = [{ role: 'user', content: input }, ...first.output, output];
    const second = (await create({ input: sent, tools: [WEATHER] })) as OpenAI.Responses.Response;
    const third = (await create({
      input: [output],
      previous_response_id: first.id,
      tools: [WEATHER],
    })) as typeof second;
    expect([second.output[0]?.type, third.output[0]?.type]).toEqual(['message', 'message']);
    expect(third.usage?.input_tokens).toBe(second.usage?.input_tokens);
    expect(await lastLanguage()).toBe('responses');
  });

  test.each(['required', { type: 'function', name: 'weather' }])('respects a tool choice: %j', async (tool_choice) => {
    const { body } = await ask('Hello', { tools: [WEATHER], tool_choice });
    expect(body.output).toMatchObject([{ type: 'function_call', name: 'weather' }]);
    expect(body.tool_choice).toEqual(tool_choice);
  });

  test.each([
    { text: { format: { type: 'json_schema', name: 's', schema: { type: 'object' }, strict: true } } },
    { response_format: { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' }, strict: true } } },
  ])('returns structured output: %j', async (more) => {
    const { body } = await ask(directed('text={}'), more);
    expect(body.output_text).toBe('{}');
    expect(body.text.format).toEqual({ type: 'json_schema', name: 's', schema: { type: 'object' }, strict: true });
    expect(await lastLanguage()).toBe('responses');
  });

  test('accepts images and files in the formats of Responses and chats', async () => {
    const image = 'data:image/png;base64,AA==';
    const file_data = 'data:application/pdf;base64,AA==';
    const tokens = async (content: readonly object[]) =>
      (await ask([{ role: 'user', content }])).body.usage.input_tokens;
    const flat = await tokens([
      { type: 'input_text', text: 'Hi' },
      { type: 'input_image', image_url: image },
      { type: 'input_file', file_data, filename: 'a.pdf' },
    ]);
    const nested = await tokens([
      { type: 'text', text: 'Hi' },
      { type: 'image_url', image_url: { url: image, detail: 'low' } },
      { type: 'file', file: { file_data, filename: 'a.pdf' } },
    ]);
    expect([flat, nested]).toEqual([3 + 4 + 1 + 85 + 85, flat]);
    expect(await lastLanguage()).toBe('responses');
  });

  test.each([false, true])('returns an incomplete response at the output limit (stream: %p)', async (stream) => {
    const answer = await ask(directed('tokens=40'), { max_output_tokens: 20, stream });
    expect(responseIn(answer)).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ status: 'incomplete' }],
      usage: { output_tokens: 20 },
      max_output_tokens: 20,
    });
    expect(await lastLanguage()).toBe('responses');
  });

  test('may reach its output limit while it reasons', async () => {
    const { body } = await ask(directed('tokens=40 reasoning=30'), { max_output_tokens: 20 });
    expect(body).toMatchObject({ status: 'incomplete', output: [{ type: 'reasoning' }], output_text: '' });
    const next = await ask('Go on', { previous_response_id: body.id });
    expect(next.status).toBe(200);
  });

  test('truncates input that is too long if truncation is auto, and rejects it otherwise', async () => {
    const input = [
      { role: 'user', content: 'word '.repeat(130_000) },
      { role: 'user', content: directed('tokens=3') },
    ];
    const refused = await ask(input, { model: PLAIN });
    expect([refused.status, refused.body.message]).toEqual([400, expect.stringContaining('context window')]);
    expect((await lastFact()).type).toBe('HoldReleased');
    const { body } = await ask(input, { model: PLAIN, truncation: 'auto', max_output_tokens: 100 });
    expect(body).toMatchObject({ status: 'completed', truncation: 'auto', usage: { input_tokens: 15 } });
  });

  test.each([
    ['presence_penalty', { presence_penalty: 0.5 }],
    ['a limit below the minimum of Responses', { max_output_tokens: 4 }],
  ])('is called through chat completions for a request that only chats support: %s', async (_, more) => {
    expect((await ask(directed('tokens=3'), { model: PLAIN, ...more })).status).toBe(200);
    expect(await lastLanguage()).toBe('chat');
  });

  test('accepts values of include that are unknown or that the model does not support', async () => {
    for (const include of [['message.output_text.logprobs'], ['file_search_call.results'], ['anything']])
      expect((await ask('Hello', { include })).status).toBe(200);
    expect((await ask('Hello', { model: PLAIN, include: ['reasoning.encrypted_content'] })).status).toBe(200);
  });
});

describe('log probabilities of tokens', () => {
  const asked = { include: ['message.output_text.logprobs'], top_logprobs: 2 };

  test.each([
    [PLAIN, false],
    [PLAIN, true],
    [TRANSLATED, false],
    [TRANSLATED, true],
  ])('are returned with the text (%s, stream: %p)', async (name, stream) => {
    const answer = await ask(directed('tokens=3'), { model: name, stream, ...asked });
    const [{ logprobs }] = responseIn(answer).output[0].content;
    expect(logprobs.map(({ token }: { token: string }) => token)).toEqual(['every ', 'coin ', 'that']);
    expect(logprobs[0].top_logprobs).toHaveLength(2);
    expect(responseIn(answer).top_logprobs).toBe(2);
    if (!stream) return;
    const deltas = answer.events.filter(({ type }) => type === 'response.output_text.delta');
    expect(deltas.map((delta) => delta.logprobs[0].token)).toEqual(['every ', 'coin ', 'that']);
    expect(answer.events.find(({ type }) => type === 'response.output_text.done').logprobs).toHaveLength(3);
  });
});

describe('a stream of a native response', () => {
  test('has the events of the reasoning before those of the text, numbered from 0', async () => {
    const answer = await ask(directed('tokens=5 reasoning=3'), { stream: true, reasoning: { summary: 'auto' } });
    const order = [
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ].map((type) => `response.${type}`);
    expect(typesOf(answer)).toEqual([...order, '[DONE]']);
    expect(answer.events.slice(0, -1).map(({ sequence_number }) => sequence_number)).toEqual([...order.keys()]);
    const { response } = answer.events.at(-2);
    expect(response).toMatchObject({
      id: answer.events[0].response.id,
      model: GPT,
      usage: { cost: expect.any(Number) },
    });
    expect(response.id).toBe(`resp_${answer.headers.get('x-request-id')}`);
    expect(answer.text).not.toContain('gpt-5-mini-2025');
    expect(answer.text).not.toContain('obfuscation');
  });

  test.each(['cut', 'error'])(
    'ends with a failure if it is interrupted (%s), and what was delivered is charged',
    async (fault) => {
      const answer = await ask(directed(`fault=${fault} tokens=8 reasoning=2`), { stream: true });
      expect(typesOf(answer).slice(-3)).toEqual(['response.output_text.delta', 'response.failed', '[DONE]']);
      const { response } = answer.events.at(-2);
      expect(response).toMatchObject({
        status: 'failed',
        error: { code: 'server_error' },
        output: [{ type: 'reasoning' }, { type: 'message', status: 'incomplete' }],
        output_text: 'every coin that ',
        store: false,
      });
      expect(response.usage.cost).toBeGreaterThan(0);
      expect(await lastCharge()).toMatchObject({ items: [{ estimated: true }], errorCode: 'upstream_error' });
    },
  );

  test('is replayed unchanged under its Idempotency-Key', async () => {
    const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': 'native-1' };
    const body = { model: GPT, input: directed('tokens=3 reasoning=2'), stream: true };
    const first = await world.send('POST', '/v1/responses', { body, headers });
    const lines = (await bill()).length;
    const again = await world.send('POST', '/v1/responses', { body, headers });
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.text).toBe(first.text);
    expect((await bill()).length).toBe(lines);
  });
});

describe('a fault of the provider', () => {
  test.each([
    ['400', 400],
    ['429', 429],
    ['500', 502],
    ['overloaded', 503],
    ['refuse', 503],
    ['timeout', 504],
  ])('leads to an error without a charge if it occurs before the response (%s)', async (fault, expected) => {
    for (const stream of fault === 'timeout' ? [true] : [false, true]) {
      const lines = (await bill()).length;
      const send = () => ask(directed(`fault=${fault}`), { stream });
      const { status } = await (fault === 'timeout' ? timeOut(world, send) : send());
      expect([status, (await lastFact()).type]).toEqual([expected, 'HoldReleased']);
      expect((await bill()).length).toBe(lines);
    }
  });

  test.each(['zero tokens=0', 'cached tokens=8'])(
    'leads to a record of the billed cost if it affects the usage (%s)',
    async (fault) => {
      for (const stream of [false, true]) {
        await ask(directed(`fault=${fault}`), { stream });
        expect(await lastCharge()).toMatchObject({ cost: pico((await lastLine()).usd), items: [{ estimated: false }] });
      }
    },
  );

  test('leads to an estimate if the usage is missing', async () => {
    for (const stream of [false, true]) {
      const { usage } = responseIn(await ask(directed('fault=no_usage tokens=8'), { stream }));
      expect(usage.output_tokens).toBeGreaterThan(0);
      expect(isEstimated(await lastCharge())).toBe(true);
    }
  });

  test('leads to retries if it is temporary', async () => {
    const { status } = await ask(directed('fault=500 fault_times=2 id=native-again tokens=3'), { stream: true });
    expect([status, (await lastCharge()).attempts.length]).toEqual([200, 3]);
  });
});

describe('an endpoint that is unreachable', () => {
  test.each([
    ['test/native-first', 'chat'],
    ['test/chat-first', 'responses'],
  ])('is replaced by the next endpoint, which may support another protocol (%s)', async (name, language) => {
    for (const stream of [false, true]) {
      const answer = await ask(directed('tokens=3'), { model: name, stream, provider: { allow_fallbacks: true } });
      expect(responseIn(answer)).toMatchObject({ status: 'completed', model: name, output_text: 'every coin that' });
      expect(await lastLanguage()).toBe(language);
    }
  });
});

describe('a conversation of several models', () => {
  test.each([
    [GPT, CLAUDE],
    [CLAUDE, GPT],
    [GPT, TRANSLATED],
    [TRANSLATED, PLAIN],
  ])('continues from %s to %s with a tool call', async (one, other) => {
    const first = (await ask(directed('tool=weather'), { model: one, tools: [WEATHER] })).body;
    const [call] = first.output.filter(({ type }: { type: string }) => type === 'function_call');
    const output = { type: 'function_call_output', call_id: call.call_id, output: 'sunny' };
    const second = (await ask([output], { model: other, tools: [WEATHER], previous_response_id: first.id })).body;
    expect(second).toMatchObject({ status: 'completed', output: [{ type: 'message' }] });
    const third = (await ask(directed('tokens=3'), { model: one, previous_response_id: second.id })).body;
    expect(third).toMatchObject({ status: 'completed', output_text: 'every coin that' });
    expect(third.usage.input_tokens).toBeGreaterThan(second.usage.input_tokens - 100);
  });
});

describe('a translated response', () => {
  test('is created without the oldest turns if the input is too long and truncation is auto', async () => {
    const input = [
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: 'word '.repeat(3_000) },
      { role: 'assistant', content: 'Well' },
      { role: 'user', content: directed('tokens=3') },
    ];
    const { body } = await ask(input, { model: 'test/short', truncation: 'auto' });
    expect(body).toMatchObject({ status: 'completed', usage: { input_tokens: 3 + 4 + 2 + 4 + 8 } });
    const whole = (await ask(input, { model: 'test/short' })).body;
    expect(whole.usage.input_tokens).toBeGreaterThan(3_000);
  });

  test('ends with response.failed and costs nothing if the provider fails before the first token', async () => {
    const answer = await ask(directed('fault=malformed'), { model: TRANSLATED, stream: true });
    expect(typesOf(answer)).toEqual(['response.created', 'response.in_progress', 'response.failed', '[DONE]']);
    expect(answer.events.at(-2).response).toMatchObject({ output: [], usage: { total_tokens: 0, cost: 0 } });
  });
});
