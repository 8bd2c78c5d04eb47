/**
 * Rules of models and providers: what is sent instead of a value that they reject, and what is rejected before a call.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  createTestEndpoint,
  createTestModel,
  openTappedWorld,
  type TappedWorld,
  type TestAccount,
  type TestWorld,
  type Wiretap,
} from '#testing';

const claude = (model: string, modelRules: string) =>
  createTestModel(`test/${model}`, [
    createTestEndpoint('Anthropic', 'anthropic', { model, modelRules, parameters: 'anthropic-adaptive' }),
  ]);
const SAMPLING = ['max_tokens', 'temperature', 'top_p', 'logprobs', 'top_logprobs', 'reasoning', 'tools'];
const gpt = (model: string, modelRules: string, more: object = {}) =>
  createTestModel(`test/${model}`, [
    createTestEndpoint('OpenAI', 'openai', { model, modelRules, parameters: SAMPLING, speaks: ['responses'], ...more }),
  ]);
/** Models of generations that differ in their rules. */
const MODELS = [
  claude('claude-opus-5', 'claude-5'),
  claude('claude-sonnet-5-5', 'claude-sonnet-5.5'),
  claude('claude-opus-5-5', 'claude-always-thinking'),
  gpt('gpt-6-sol', 'gpt-6'),
  gpt('gpt-6.1-sol', 'gpt-6-always-reasoning'),
];

let tapped: TappedWorld;
let tap: Wiretap;
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  tapped = await openTappedWorld(MODELS);
  ({ tap, world } = tapped);
  account = await world.createAccount(1_050);
});
afterAll(() => tapped.close());

const user = { role: 'user', content: '[[sandbox tokens=2]]' };
const chat = (body: object) =>
  world.post('/v1/chat/completions', { messages: [user], max_tokens: 2_000, ...body }, account);

/** Sends a chat that succeeds with one call, and returns the body of this call. */
async function sentFor(body: object): Promise<Record<string, unknown>> {
  const { status, text } = await chat(body);
  const received = tap.takeReceived();
  expect([status, received.length, text]).toEqual([200, 1, text]);
  return received[0]?.body;
}

/** Sends a request that is rejected without a call and without a charge, and returns the error. */
async function fetchRejection(path: string, body: object): Promise<Record<string, unknown>> {
  const balance = await world.fetchBalance(account);
  const { status, body: answer } = await world.post(path, body, account);
  expect(tap.takeReceived()).toEqual([]);
  expect(await world.fetchBalance(account)).toEqual(balance);
  return { status, ...answer.error };
}

describe('the reasoning effort', () => {
  test.each([
    ['openai/gpt-5.4-mini', 'minimal', 'low'],
    ['openai/gpt-5.4-mini', 'max', 'xhigh'],
    ['openai/o3', 'none', 'low'],
    ['openai/o3', 'xhigh', 'high'],
    ['openai/gpt-5.1', 'minimal', 'low'],
    ['openai/gpt-oss-20b', 'low', 'low'],
    ['openai/gpt-oss-120b', 'none', 'low'],
  ])('of %s is sent as the nearest one that the model supports: %s', async (model, reasoning_effort, sent) => {
    expect((await sentFor({ model, reasoning_effort })).reasoning_effort).toBe(sent);
  });

  test.each([
    ['openai/gpt-oss-20b', { only: ['groq'] }],
    ['openai/gpt-oss-20b', { only: ['deepinfra'] }],
  ])('and parallel_tool_calls reach %s with the preferences %j', async (model, provider) => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }];
    const sent = await sentFor({ model, provider, tools, parallel_tool_calls: false, reasoning: { effort: 'high' } });
    expect(sent).toMatchObject({ reasoning_effort: 'high', parallel_tool_calls: false });
  });

  test('of a model that always reasons is the lowest one at OpenRouter if reasoning is disabled', async () => {
    const sent = await sentFor({ model: 'google/gemini-2.5-pro', reasoning: { enabled: false } });
    expect(sent.reasoning).toEqual({ effort: 'minimal' });
  });

  test('excludes the endpoint if the request requires its parameters', async () => {
    const body = { model: 'openai/o3', messages: [user], reasoning_effort: 'none' };
    const provider = { require_parameters: true };
    expect(await fetchRejection('/v1/chat/completions', { ...body, provider })).toMatchObject({
      status: 404,
      param: 'provider',
      message: expect.stringContaining('openai does not support the reasoning effort none'),
    });
  });
});

describe('sampling parameters', () => {
  const sampling = { temperature: 0.5, top_p: 0.9, logprobs: true, top_logprobs: 2 };
  const fieldsOf = ({ temperature, top_p, top_logprobs }: Record<string, unknown>) => [
    temperature,
    top_p,
    top_logprobs,
  ];

  test('are sent to a model that supports them only without reasoning, if the request disables reasoning', async () => {
    const body = { model: 'test/gpt-6-sol', ...sampling };
    expect(fieldsOf(await sentFor({ ...body, reasoning_effort: 'none' }))).toEqual([0.5, 0.9, 2]);
    for (const more of [{}, { reasoning_effort: 'max' }, { model: 'test/gpt-6.1-sol', reasoning_effort: 'none' }])
      expect(fieldsOf(await sentFor({ ...body, ...more }))).toEqual([undefined, undefined, undefined]);
  });

  test('exclude such a model if the request requires its parameters and does not disable reasoning', async () => {
    const body = { model: 'test/gpt-6-sol', temperature: 0.5, provider: { require_parameters: true } };
    const error = await fetchRejection('/v1/chat/completions', { ...body, messages: [user] });
    expect([error.status, error.message]).toEqual([
      404,
      expect.stringContaining('temperature together with reasoning'),
    ]);
    expect((await sentFor({ ...body, reasoning_effort: 'none' })).temperature).toBe(0.5);
  });

  test('are not sent with a response of such a model that reasons', async () => {
    const body = { model: 'test/gpt-6-sol', input: user.content, temperature: 0.5, max_output_tokens: 99 };
    expect((await world.post('/v1/responses', body, account)).status).toBe(200);
    expect((await world.post('/v1/responses', { ...body, reasoning: { effort: 'none' } }, account)).status).toBe(200);
    expect(tap.takeReceived().map((received) => received.body.temperature)).toEqual([undefined, 0.5]);
  });
});

describe('models of Anthropic that think by default', () => {
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }];
  const forced = { tools, tool_choice: { type: 'function', function: { name: 'f' } } };

  test.each([
    ['claude-opus-5', { type: 'disabled' }],
    ['claude-sonnet-5-5', { type: 'between_tools' }],
    [
      'claude-opus-5-5',
      { type: 'adaptive', display: 'omitted', block_binding: { prefix_mismatch_behavior: 'drop_block' } },
    ],
  ])('accept that the request disables reasoning: %s', async (model, thinking) => {
    expect((await sentFor({ model: `test/${model}`, reasoning: { enabled: false } })).thinking).toEqual(thinking);
  });

  test.each(['claude-opus-5', 'claude-sonnet-5-5', 'claude-opus-5-5'])(
    'accept a required tool call: %s',
    async (model) => {
      const sent = await sentFor({ model: `test/${model}`, ...forced, messages: [{ role: 'user', content: 'Hi' }] });
      expect(sent.tools).toHaveLength(1);
    },
  );

  const question = { role: 'user', content: '[[sandbox reasoning=8]]' };
  const followUp = { role: 'user', content: 'Go on' };

  test.each(['claude-opus-5-5', 'claude-sonnet-5-5', 'claude-opus-5'])(
    'continue a changed conversation with the thinking of claude-opus-5-5: %s',
    async (model) => {
      const thinking = { model: 'test/claude-opus-5-5', reasoning: { effort: 'low' }, messages: [question] };
      const { message } = (await chat(thinking)).body.choices[0];
      expect(message.reasoning_details).toHaveLength(1);
      tap.takeReceived();
      const system = { role: 'system', content: 'Be brief' };
      for (const reasoning of [{ effort: 'low' }, { enabled: false }])
        await sentFor({ model: `test/${model}`, reasoning, messages: [system, question, message, followUp] });

      const post = (body: object) => world.post('/v1/messages', { max_tokens: 2_000, ...body }, account);
      const { body } = await post({ model: thinking.model, thinking: { type: 'adaptive' }, messages: [question] });
      expect(body.content[0].type).toBe('thinking');
      const messages = [question, { role: 'assistant', content: body.content }, followUp];
      expect((await post({ model: `test/${model}`, messages, system: 'Be brief' })).status).toBe(200);
      tap.takeReceived();
    },
  );

  test('are excluded by a required tool call if the request requires its parameters', async () => {
    const body = { model: 'test/claude-opus-5-5', ...forced, messages: [user], provider: { require_parameters: true } };
    const { status, message } = await fetchRejection('/v1/chat/completions', body);
    expect([status, message]).toEqual([404, expect.stringContaining('a tool_choice that requires a call')]);
  });
});

describe('a schema with limits', () => {
  const schema = {
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 2 },
      ages: { type: 'array', items: { type: 'integer' }, maxItems: 3 },
    },
    required: ['name', 'ages'],
  };
  const model = 'anthropic/claude-haiku-4.5';

  test('is accepted by Anthropic, for a response and for a strict tool', async () => {
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema } };
    const { output_config } = await sentFor({ model, response_format });
    expect(JSON.stringify(output_config)).toContain('minLength');
    const tools = [{ type: 'function', function: { name: 'f', strict: true, parameters: schema } }];
    expect((await sentFor({ model, tools })).tools).toMatchObject([{ name: 'f', strict: true }]);
  });

  test('is an instruction if it is recursive', async () => {
    const recursive = { ...schema, properties: { child: { $ref: '#' } }, required: [] };
    const response_format = { type: 'json_schema', json_schema: { name: 'x', schema: recursive } };
    const { output_config, system } = await sentFor({ model, response_format });
    expect([output_config, JSON.stringify(system)]).toEqual([undefined, expect.stringContaining('child')]);
  });
});

test.each([false, true])('a JSON object from Claude has no code fence: stream %s', async (stream) => {
  const text = JSON.stringify('```json\n{"city":"Łódź"}\n```');
  const messages = [{ role: 'user', content: `[[sandbox text=${text}]]` }];
  const response_format = { type: 'json_object' };
  const { body, events } = await chat({ model: 'anthropic/claude-haiku-4.5', messages, response_format, stream });
  tap.takeReceived();
  const parts = stream
    ? events.map((event) => event.choices?.[0]?.delta.content ?? '')
    : [body.choices[0].message.content];
  expect(JSON.parse(parts.join(''))).toEqual({ city: 'Łódź' });
});

describe('an output limit', () => {
  const model = 'anthropic/claude-haiku-4.5'; // at most 64,000 tokens of output, in a context of 200,000
  const message = 'The output limit is above the context of anthropic/claude-haiku-4.5, which has 200000 tokens';

  test('above the maximum output is reduced to it', async () => {
    expect(await sentFor({ model, max_tokens: 200_000 })).toMatchObject({ max_tokens: 64_000 });
  });

  test.each([
    ['/v1/chat/completions', { messages: [user], max_tokens: 200_001 }, 'max_tokens'],
    ['/v1/chat/completions', { messages: [user], max_completion_tokens: 200_001 }, 'max_completion_tokens'],
    ['/v1/responses', { input: 'Hello', max_output_tokens: 200_001 }, 'max_output_tokens'],
    ['/v1/messages', { messages: [user], max_tokens: 200_001 }, undefined],
  ])('above the context is rejected: %s', async (path, body, param) => {
    expect(await fetchRejection(path, { model, ...body })).toMatchObject({
      status: 400,
      message,
      ...(param && { param }),
    });
  });
});

describe('a message of the assistant at the end', () => {
  const messages = [user, { role: 'assistant', content: 'The answer is' }];
  const input = messages.map((message) => ({ type: 'message', ...message }));

  test.each([
    ['/v1/chat/completions', { messages }],
    ['/v1/messages', { messages, max_tokens: 9 }],
    ['/v1/responses', { input }],
    ['/v1/chat/completions', { messages: [...messages, { role: 'system', content: 'Be brief' }] }],
  ])('is rejected for a model that does not continue it: %s', async (path, body) => {
    const { status, message } = await fetchRejection(path, { model: 'anthropic/claude-opus-4.7', ...body });
    expect([status, message]).toEqual([400, expect.stringContaining('messages must not end with')]);
  });

  test('is sent to a model that continues it', async () => {
    const sent = await sentFor({ model: 'anthropic/claude-haiku-4.5', messages });
    expect(sent.messages).toHaveLength(2);
  });
});

describe('a request for DeepInfra', () => {
  const model = 'qwen/qwen3-32b';

  test('has messages of the developer as messages of the system', async () => {
    const messages = [{ role: 'developer', content: 'Be brief' }, user];
    expect((await sentFor({ model, messages })).messages).toEqual([{ role: 'system', content: 'Be brief' }, user]);
  });

  test('has up to four choices', async () => {
    expect((await sentFor({ model, n: 4 })).n).toBe(4);
    expect(await fetchRejection('/v1/chat/completions', { model, messages: [user], n: 5 })).toMatchObject({
      status: 400,
      param: 'n',
      message: expect.stringContaining('n must be at most 4'),
    });
  });

  test('has no token ids to embed: these go to another provider, or are rejected', async () => {
    const body = { model: 'qwen/qwen3-embedding-8b', input: [[1, 2]], user: 'u' };
    expect((await world.post('/v1/embeddings', body, account)).status).toBe(200);
    expect(tap.takeReceived()).toMatchObject([{ body: { model: 'qwen/qwen3-embedding-8b', user: 'u' } }]);
    const only = { ...body, provider: { only: ['deepinfra'] } };
    expect(await fetchRejection('/v1/embeddings', only)).toMatchObject({ status: 400, param: 'input' });
    expect((await world.post('/v1/embeddings', { ...only, input: 'Hi' }, account)).status).toBe(200);
    expect(tap.takeReceived()[0]?.body).not.toHaveProperty('user');
  });
});

test('several choices of a model at Groq and DeepInfra are those of DeepInfra', async () => {
  expect(await sentFor({ model: 'openai/gpt-oss-20b', n: 2 })).toMatchObject({ model: 'openai/gpt-oss-20b', n: 2 });
  expect(
    await fetchRejection('/v1/chat/completions', { model: 'openai/gpt-oss-20b', messages: [user], n: 5 }),
  ).toMatchObject({ status: 400, param: 'n', message: expect.stringContaining('at most 4') });
});

describe('a web search that excludes domains', () => {
  const plugin = { id: 'web', exclude_domains: ['a.example'] };
  const body = { model: 'openai/gpt-5.4-mini', messages: [user], max_tokens: 99 };

  test('is made by the gateway for a model of OpenAI, whose search cannot exclude domains', async () => {
    expect((await chat({ ...body, plugins: [plugin] })).status).toBe(200);
    const received = JSON.stringify(tap.takeReceived().map((call) => call.body));
    expect(received).not.toContain('web_search');
  });

  test('is rejected if the request requires the search of OpenAI', async () => {
    const plugins = [{ ...plugin, engine: 'native' }];
    expect(await fetchRejection('/v1/chat/completions', { ...body, plugins })).toMatchObject({
      status: 400,
      param: 'plugins.engine',
      message: expect.stringContaining('cannot exclude domains'),
    });
  });
});
