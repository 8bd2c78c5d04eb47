/** Which fields of a request are forwarded to a provider, and which are not. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { isPrivate, readCatalogue, type TokenPricedModel } from '#catalogue';
import {
  openTappedWorld,
  type TappedWorld,
  type TestAccount,
  type TestResponse,
  type TestWorld,
  type Wiretap,
} from '#testing';

let tapped: TappedWorld;
let tap: Wiretap;
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  tapped = await openTappedWorld();
  ({ tap, world } = tapped);
  account = await world.createAccount(1_050);
});
afterAll(() => tapped.close());

const messages = [{ role: 'user', content: '[[sandbox tokens=2]]' }];
const chat = (body: object) => world.post('/v1/chat/completions', { messages, max_tokens: 9, ...body }, account);

/** Checks that the request succeeded with exactly one call to a provider, and returns the body of this call. */
async function heardOf(answer: Promise<TestResponse>): Promise<Record<string, unknown>> {
  const { status, text } = await answer;
  const received = tap.takeReceived();
  expect([status, received.length, text]).toEqual([200, 1, text]);
  return received[0]?.body;
}

const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }];
const response_format = { type: 'json_object' };

/** Fields that clients send, with values that providers accept. */
const FIELDS: Readonly<Record<string, unknown>> = {
  temperature: 0.5,
  top_p: 0.5,
  top_k: 5,
  min_p: 0.1,
  stop: ['END'],
  n: 1,
  seed: 7,
  frequency_penalty: 0.5,
  presence_penalty: -0.5,
  repetition_penalty: 1.1,
  logprobs: true,
  top_logprobs: 2,
  logit_bias: { 50256: -100 },
  response_format,
  tools,
  tool_choice: 'none',
  parallel_tool_calls: false,
  reasoning_effort: 'low',
  verbosity: 'low',
  user: 'u-1',
  safety_identifier: 's-1',
  prompt_cache_key: 'k-1',
  modalities: ['text'],
  metadata: { tag: 'x' },
};

const everything = (upstream: Record<string, unknown>) => Object.keys(upstream).sort();
/** The fields of every chat that a provider receives. */
const HEAD = ['messages', 'model'];

describe('fields that an endpoint supports', () => {
  const sampling = ['temperature', 'top_p', 'stop', 'seed', 'frequency_penalty', 'presence_penalty'];
  const structure = ['response_format', 'tools', 'tool_choice'];
  const odds = ['logprobs', 'top_logprobs'];
  const ids = ['safety_identifier', 'prompt_cache_key'];
  const open = ['top_k', 'min_p', 'repetition_penalty'];

  test.each<[string, string, readonly string[]]>([
    [
      'a model of OpenAI without reasoning',
      'openai/gpt-4o-mini',
      [
        ...sampling,
        ...structure,
        ...odds,
        ...ids,
        'n',
        'logit_bias',
        'parallel_tool_calls',
        'user',
        'metadata',
        'modalities',
      ],
    ],
    [
      'a model of OpenAI with reasoning',
      'openai/gpt-5-mini',
      [
        'n',
        'seed',
        ...structure,
        ...ids,
        'parallel_tool_calls',
        'reasoning_effort',
        'verbosity',
        'user',
        'metadata',
        'modalities',
      ],
    ],
    [
      'Groq',
      'openai/gpt-oss-20b:nitro',
      [...sampling, ...structure, 'parallel_tool_calls', 'reasoning_effort', 'user'],
    ],
    [
      'DeepInfra',
      'qwen/qwen3-coder',
      [...sampling, ...structure, 'logprobs', ...open, 'n', 'user', 'prompt_cache_key'],
    ],
    [
      'OpenRouter',
      'google/gemini-2.5-pro',
      [...sampling, ...structure, ...odds, ...open, 'logit_bias', 'parallel_tool_calls', 'user', 'prompt_cache_key'],
    ],
  ])('are forwarded unchanged to %s', async (_, model, known) => {
    const sent = await heardOf(chat({ model, ...FIELDS }));
    const limit = 'max_tokens' in sent ? 'max_tokens' : 'max_completion_tokens';
    const ours = ['reasoning', 'provider', 'service_tier'].filter((field) => field in sent);
    expect(everything(sent)).toEqual([...HEAD, limit, ...known, ...ours].sort());
    for (const field of known) expect([field, sent[field]]).toEqual([field, FIELDS[field]]);
    expect(sent.reasoning ?? { effort: 'low' }).toEqual({ effort: 'low' });
  });

  test("are translated to Anthropic's parameters", async () => {
    const sent = await heardOf(chat({ model: 'anthropic/claude-haiku-4.5', ...FIELDS, reasoning_effort: null }));
    expect(sent).toMatchObject({
      max_tokens: 9,
      temperature: 0.5,
      top_k: 5,
      stop_sequences: ['END'],
      tools: [{ name: 'f' }],
      tool_choice: { type: 'none' },
      metadata: { user_id: 'u-1' },
    });
  });

  test('identify the user and the cached prompt in Responses', async () => {
    const ids = { user: 'u-1', safety_identifier: 's-1', prompt_cache_key: 'k-1' };
    for (const model of ['openai/gpt-5-mini', 'openai/gpt-5-codex']) {
      const body = { model, input: '[[sandbox tokens=2]]', ...ids };
      const response = await world.post('/v1/responses', body, account);
      expect(response.body).toMatchObject(ids);
      expect(tap.takeReceived().map((received) => received.body)).toMatchObject([ids]);
    }
  });

  test('do not select another tier: it is requested as the standard one, and reported as that', async () => {
    const groq = { model: 'openai/gpt-oss-20b:nitro', service_tier: 'flex', provider: { require_parameters: true } };
    const whole = await chat(groq);
    expect([whole.status, whole.body.service_tier]).toEqual([200, 'default']);
    const streamed = await chat({ ...groq, stream: true });
    expect(streamed.events.at(-2)).toMatchObject({ choices: [], service_tier: 'default' });
    expect(tap.takeReceived().map(({ body }) => body.service_tier)).toEqual(['on_demand', 'on_demand']);
    const input = { model: 'openai/gpt-5-mini', input: '[[sandbox tokens=2]]', service_tier: 'priority' };
    expect((await world.post('/v1/responses', input, account)).body.service_tier).toBe('default');
    const message = { model: 'anthropic/claude-haiku-4.5', messages, max_tokens: 9, service_tier: 'auto' };
    expect((await world.post('/v1/messages', message, account)).body.usage.service_tier).toBe('standard');
    tap.takeReceived();
  });

  test('are all forwarded for embeddings, with the model name of the provider', async () => {
    const body = {
      model: 'openai/text-embedding-3-small',
      input: 'Hi',
      dimensions: 8,
      user: 'u',
      encoding_format: 'float',
    };
    expect(await heardOf(world.post('/v1/embeddings', body, account))).toEqual({
      ...body,
      model: 'text-embedding-3-small',
    });
  });
});

/** Fields of the web application and fields that only the gateway uses. */
const OURS = {
  query_source: 'ui',
  session_id: 's',
  chat_id: 'c',
  tool_id: 't',
  zdr: true,
  search_mode: 'deep',
  credit_id: 'x',
  api_key: 'sk-secret',
  data_source: 'web',
};

describe('fields of the gateway', () => {
  const models = readCatalogue().models.filter((model) => !('simulated' in model));
  const endpoints = (type: TokenPricedModel['type']) =>
    models
      .filter((model) => model.type === type && !isPrivate(model))
      .flatMap((model) => model.endpoints.map(({ slug }) => [model.id, slug]));

  test.each(endpoints('chat'))('are not forwarded with a chat of %s at %s', async (model, slug) => {
    const sent = await heardOf(chat({ model, provider: { only: [slug] }, max_tokens: 16, ...OURS }));
    for (const field of Object.keys(OURS)) expect(sent).not.toHaveProperty(field);
    expect(JSON.stringify(sent)).not.toContain('sk-secret');
  });

  test.each(endpoints('embedding'))('are not forwarded with embeddings of %s at %s', async (model, slug) => {
    const body = { model, provider: { only: [slug] }, input: 'Hi', ...OURS };
    expect(everything(await heardOf(world.post('/v1/embeddings', body, account)))).toEqual([
      'encoding_format',
      'input',
      'model',
    ]);
  });

  test.each([9, 16])(
    'are not forwarded with a response, translated to a chat or native (max_output_tokens: %p)',
    async (max_output_tokens) => {
      const body = { model: 'openai/gpt-5-mini', input: 'Hi', max_output_tokens, ...OURS };
      const sent = await heardOf(world.post('/v1/responses', body, account));
      expect(sent).toHaveProperty(max_output_tokens < 16 ? 'messages' : 'input');
      for (const field of Object.keys(OURS)) expect(sent).not.toHaveProperty(field);
    },
  );

  test.each(
    models.flatMap(({ id, endpoints }) => endpoints.map(({ slug, parameters }) => [id, slug, parameters] as const)),
  )('are not among the supported parameters of %s at %s', (_, __, parameters) => {
    expect(parameters.filter((field) => field in OURS)).toEqual([]);
  });
});

describe('a model that is sent as an object', () => {
  test.each<[string, string, object, string]>([
    ['a chat', '/v1/chat/completions', { messages, max_tokens: 9 }, 'openai/gpt-5-mini'],
    ['a chat with an alias', '/chat/completions', { messages, max_tokens: 9 }, 'gpt-5-mini'],
    ['a response', '/v1/responses', { input: 'Hi', max_output_tokens: 9 }, 'openai/gpt-5-mini'],
    ['embeddings', '/v1/embeddings', { input: 'Hi' }, 'openai/text-embedding-3-small'],
  ])('is resolved by the id in the object, for %s at %s', async (_, route, body, id) => {
    const model = { id, name: 'Anything', pricing: {} };
    const sent = await heardOf(world.post(route, { ...body, model }, account));
    expect(sent.model).toBe(id.replace('openai/', ''));
  });

  test.each(['/v1/chat/completions', '/v1/responses', '/v1/embeddings'])(
    'is rejected if the object has no text as its id: %s',
    async (route) => {
      for (const model of [{}, { id: 7 }, { id: null }, [], { name: 'openai/gpt-5-mini' }]) {
        const { status, body } = await world.post(route, { model, messages, input: 'Hi' }, account);
        expect([status, body.error.param]).toEqual([400, 'model']);
      }
      expect(tap.takeReceived()).toEqual([]);
    },
  );
});
