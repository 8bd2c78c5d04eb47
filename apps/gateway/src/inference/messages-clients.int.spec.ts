/** Anthropic's unmodified client for Node, with only another base URL. */
import Anthropic, { APIError } from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { extendDelay, extendTimeouts, listCharges, sampleCases, type TestAccount, TestWorld } from '#testing';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const GPT = 'openai/gpt-5-mini';
const GEMINI = 'google/gemini-2.5-flash';
const OPEN = 'openai/gpt-oss-120b';
/** Models of Anthropic and OpenAI, of a router, and with open weights. */
const MODELS = [CLAUDE, 'claude-opus-4-7', GPT, GEMINI, OPEN];
/** A model whose provider returns its reasoning without signatures. */
const THINKER = 'qwen/qwen3-235b-a22b-thinking';
/** The types of the SDK no longer have these parameters. */
const SAMPLING = { temperature: 0.5, top_k: 3 };
const SAID = 'every coin that';

const WEATHER: Anthropic.Tool = {
  name: 'weather',
  description: 'Returns the weather',
  input_schema: { type: 'object', properties: { city: { type: 'string', enum: ['Ur'] } }, required: ['city'] },
};

let world: TestWorld;
let account: TestAccount;
let client: Anthropic;
let poor: Anthropic;
beforeAll(async () => {
  world = await TestWorld.open();
  const clientOf = ({ apiKey }: TestAccount) => new Anthropic({ apiKey, baseURL: world.api, maxRetries: 0 });
  account = await world.createAccount(105);
  client = clientOf(account);
  poor = clientOf(await world.createAccount());
});
afterAll(() => world.close());

const asking = (directive: string, model = CLAUDE): Anthropic.MessageCreateParamsNonStreaming => ({
  model,
  max_tokens: 2_000,
  messages: [{ role: 'user', content: directive === '' ? 'Hello' : `[[sandbox ${directive}]]` }],
});

const textOf = ({ content }: Anthropic.Message) =>
  content.map((block) => (block.type === 'text' ? block.text : '')).join('');

const errorOf = (promise: PromiseLike<unknown>): Promise<APIError> =>
  Promise.resolve(promise).then(
    () => Promise.reject(new Error('the request was not rejected')),
    (error) => error,
  );

describe.each(MODELS.map((model, index) => [model, index] as const))("Anthropic's client with %s", (model, index) => {
  test('creates a message whose usage and cost match the ledger', async () => {
    const { total_usd: before } = await world.bill.fetchTotal();
    const { data, request_id } = await client.messages.create(asking('tokens=3', model)).withResponse();
    const { total_usd: after } = await world.bill.fetchTotal();
    expect(data).toMatchObject({ id: `msg_${request_id}`, type: 'message', role: 'assistant' });
    expect([textOf(data), data.content.length]).toEqual([SAID, 1]);
    expect([data.stop_reason, data.stop_sequence]).toEqual(['end_turn', null]);
    const [charge] = listCharges((await world.listEvents(account)).slice(-1));
    const { cost, input_tokens, output_tokens } = data.usage as Anthropic.Usage & { cost: number };
    expect(charge?.price).toBe(String(Math.round(cost * 1e12)));
    expect(charge?.cost).toBe(String(Math.round((Number(after) - Number(before)) * 1e12)));
    expect(charge?.items[0]?.usage).toMatchObject({ input: input_tokens, output: output_tokens });
  });

  test('streams a message with the content and usage of a non-streaming one', async () => {
    const { id, usage, ...whole } = await client.messages.create(asking('tokens=3', model));
    const stream = client.messages.stream(asking('tokens=3', model));
    const events: Anthropic.MessageStreamEvent[] = [];
    stream.on('streamEvent', (event) => events.push(event));
    expect(await stream.finalMessage()).toMatchObject(whole);
    const last = events.find((event) => event.type === 'message_delta');
    expect(last?.usage).toEqual(usage);
  });

  test('starts a stream with its input tokens: as the provider reports them, or else counted', async () => {
    const request = asking('tokens=3', model);
    const events: Anthropic.MessageStreamEvent[] = [];
    for await (const event of await client.messages.create({ ...request, stream: true })) events.push(event);
    const usages = events.flatMap((event) => (event.type === 'message_start' ? [event.message.usage] : []));
    const last = events.find((event) => event.type === 'message_delta')?.usage;
    const { input_tokens } = await client.messages.countTokens({ model, messages: request.messages });
    const expected = /claude/.test(model) ? last?.input_tokens : input_tokens;
    expect(usages).toEqual([expect.objectContaining({ input_tokens: expected, output_tokens: 0 })]);
    expect(expected).toBeGreaterThan(5);
  });

  const streamed = sampleCases([false, true], 1, index);
  test.each(streamed)('calls a tool and continues with its result, streamed: %s', async (stream) => {
    const ask = (more: Pick<Anthropic.MessageCreateParamsNonStreaming, 'messages'>) => {
      const asked = { model, max_tokens: 2_000, tools: [WEATHER], ...more };
      return stream ? client.messages.stream(asked).finalMessage() : client.messages.create(asked);
    };
    const user = { role: 'user' as const, content: 'How is it? [[sandbox tool=weather]]' };
    const first = await ask({ messages: [user] });
    const [call] = first.content;
    expect(first.stop_reason).toBe('tool_use');
    expect(first.content).toHaveLength(1);
    expect(call).toMatchObject({ type: 'tool_use', name: 'weather', input: { city: 'Ur' } });
    const { id } = call as Anthropic.ToolUseBlock;
    const result: Anthropic.ToolResultBlockParam = {
      type: 'tool_result',
      tool_use_id: id,
      content: [{ type: 'text', text: 'fine' }],
    };
    const second = await ask({
      messages: [user, { role: 'assistant', content: first.content }, { role: 'user', content: [result] }],
    });
    expect(second.stop_reason).toBe('end_turn');
    expect(textOf(second)).not.toBe('');
  });
});

describe('thinking', () => {
  const asked = (stream: boolean, more: Partial<Anthropic.MessageCreateParamsNonStreaming>) => {
    const body = { ...asking('text=Yes reasoning=4'), ...more };
    return stream ? client.messages.stream(body).finalMessage() : client.messages.create(body);
  };
  const enabled = { type: 'enabled', budget_tokens: 1_024 } as const;

  test.each([false, true])('has a signature, and continues after a tool result, streamed: %s', async (stream) => {
    const user = { role: 'user' as const, content: '[[sandbox tool=weather reasoning=4]]' };
    const about = { thinking: enabled, tools: [WEATHER] };
    const first = await asked(stream, { ...about, messages: [user] });
    const [thought, call] = first.content;
    expect(thought).toEqual({
      type: 'thinking',
      thinking: 'every coin that comes',
      signature: expect.stringMatching(/.+/),
    });
    expect(first.usage.output_tokens_details?.thinking_tokens).toBe(4);
    const { id } = call as Anthropic.ToolUseBlock;
    const second = await asked(stream, {
      ...about,
      messages: [
        user,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'fine' }] },
      ],
    });
    // Anthropic rejects further thinking if the earlier thinking is missing; the gateway would then request none.
    expect(second.content.map(({ type }) => type)).toEqual(['thinking', 'text']);
  });

  test.each([false, true])('has only a signature if its text is omitted, streamed: %s', async (stream) => {
    const { content } = await asked(stream, { thinking: { ...enabled, display: 'omitted' } });
    expect(content[0]).toEqual({ type: 'thinking', thinking: '', signature: expect.stringMatching(/.+/) });
    expect(content[1]).toMatchObject({ type: 'text', text: 'Yes' });
  });

  test.each([false, true])(
    'is returned only on request by a model that always thinks, streamed: %s',
    async (stream) => {
      const { content } = await asked(stream, { model: THINKER });
      expect(content).toMatchObject([{ type: 'text', text: 'Yes' }]);
      const shown = await asked(stream, { model: THINKER, thinking: enabled });
      expect(shown.content).toMatchObject([{ type: 'thinking', thinking: 'every coin that comes' }, { type: 'text' }]);
    },
  );

  test('supports the adaptive mode, with or without an effort', async () => {
    const model = 'claude-opus-4-7';
    for (const more of [{}, { output_config: { effort: 'low' as const } }]) {
      const { content } = await asked(true, { model, thinking: { type: 'adaptive' }, ...more });
      expect(content.map(({ type }) => type)).toEqual(['thinking', 'text']);
    }
  });
});

describe('errors', () => {
  test.each<[string, number, string, string, () => PromiseLike<unknown>]>([
    [
      'an invalid request',
      400,
      'BadRequestError',
      'invalid_request_error',
      () => client.messages.create({ ...asking(''), messages: [] }),
    ],
    [
      'an unknown key',
      401,
      'AuthenticationError',
      'authentication_error',
      () => client.withOptions({ apiKey: 'sk-x' }).messages.create(asking('')),
    ],
    ['too little money', 402, 'PaymentRequiredError', 'billing_error', () => poor.messages.create(asking(''))],
    ['an unknown model', 404, 'NotFoundError', 'not_found_error', () => client.messages.create(asking('', 'nope'))],
    ['too many requests', 429, 'RateLimitError', 'rate_limit_error', () => client.messages.create(asking('fault=429'))],
    [
      'a provider that fails',
      502,
      'InternalServerError',
      'api_error',
      () => client.messages.create(asking('fault=malformed')),
    ],
    [
      'a provider that is overloaded',
      503,
      'ServiceUnavailableError',
      'overloaded_error',
      () => client.messages.create(asking('fault=overloaded')),
    ],
    [
      'a count of tokens for an unknown model',
      404,
      'NotFoundError',
      'not_found_error',
      () => client.messages.countTokens({ model: 'nope', messages: asking('').messages }),
    ],
    [
      'a count of tokens with an unknown key',
      401,
      'AuthenticationError',
      'authentication_error',
      () =>
        client.withOptions({ apiKey: 'sk-x' }).messages.countTokens({ model: CLAUDE, messages: asking('').messages }),
    ],
  ])('are thrown with their class and type: %s', async (_, status, name, type, ask) => {
    const error = await errorOf(ask());
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status, name, type, requestID: expect.stringMatching(/^[0-9a-f-]{36}$/) });
    expect(error.error).toEqual({
      type: 'error',
      error: { type, message: error.apiMessage, details: { error_code: error.errorCode, ...error.details } },
      request_id: error.requestID,
    });
  });

  test('have the type request_too_large if the body is too large', async () => {
    const body = JSON.stringify({ ...asking(''), system: 'x'.repeat(26 * 1024 * 1024) });
    const { status, body: answer } = await world.send('POST', '/v1/messages', {
      body,
      headers: { 'x-api-key': account.apiKey },
    });
    expect([status, answer.type, answer.error.type]).toEqual([413, 'error', 'request_too_large']);
  });

  test.each(['cut', 'error'])('are thrown at the end of an interrupted stream: %s', async (fault) => {
    const stream = client.messages.stream(asking(`tokens=8 fault=${fault}`));
    let text = '';
    stream.on('text', (piece) => {
      text += piece;
    });
    const error = await errorOf(stream.finalMessage());
    expect(text).toBe('every coin that comes ');
    expect(error).toMatchObject({
      status: undefined,
      type: 'api_error',
      error: { usage: { cost: expect.any(Number) } },
    });
  });
});

describe('a message', () => {
  const ask = (more: Partial<Anthropic.MessageCreateParamsNonStreaming>, model = CLAUDE) =>
    client.messages.create({ ...asking('tokens=3', model), ...more });
  const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
  const image: Anthropic.ImageBlockParam = {
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: PIXEL },
  };
  const words: Anthropic.TextBlockParam = { type: 'text', text: '[[sandbox tokens=3]]' };
  const marked = { ...words, text: 'Be brief', cache_control: { type: 'ephemeral' } } as const;
  const called: Anthropic.ToolUseBlockParam = { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} };

  const PARAMETERS: readonly (readonly [string, Partial<Anthropic.MessageCreateParamsNonStreaming>])[] = [
    ['a system prompt', { system: 'Be brief' }],
    ['a system prompt in blocks with cache_control', { system: [marked, { ...words, text: 'Be kind' }] }],
    ['cache_control at the top level', { cache_control: { type: 'ephemeral' } }],
    ['an image', { messages: [{ role: 'user', content: [image, words] }] }],
    [
      'a result with an image',
      {
        tools: [{ ...WEATHER, cache_control: { type: 'ephemeral' } }],
        messages: [
          { role: 'user', content: [words] },
          { role: 'assistant', content: [{ type: 'text', text: 'I look' }, called] },
          {
            role: 'user',
            content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [image], is_error: true }],
          },
        ],
      },
    ],
    ['sampling parameters', { ...SAMPLING, stop_sequences: ['END'] }],
    ['a user id', { metadata: { user_id: 'x'.repeat(200) } }],
    ['a tool that must not be called', { tools: [WEATHER], tool_choice: { type: 'none' } }],
    ['no parallel tool calls', { tools: [WEATHER], tool_choice: { type: 'auto', disable_parallel_tool_use: true } }],
  ];
  const CREATED = PARAMETERS.flatMap(([name, more], index) =>
    sampleCases([CLAUDE, GPT, GEMINI], 1, index).map((model) => [name, model, more] as const),
  );

  test.each(CREATED)('is created for a request with %s by %s', async (_, model, more) => {
    const { stop_reason, content } = await ask(more, model);
    expect([stop_reason, content.length]).toEqual(['end_turn', 1]);
  });

  test.each<[string, Anthropic.ToolChoice]>([
    ['any tool', { type: 'any' }],
    ['a tool of a certain name', { type: 'tool', name: 'weather' }],
  ])('may be required to call %s', async (_, tool_choice) => {
    for (const model of [CLAUDE, GPT]) {
      const { content } = await ask({ tools: [WEATHER], tool_choice }, model);
      expect(content[0]).toMatchObject({ type: 'tool_use', name: 'weather' });
    }
  });

  test('is limited by max_tokens', async () => {
    const { stop_reason, usage } = await ask({ ...asking('tokens=90'), max_tokens: 20 });
    expect([stop_reason, usage.output_tokens]).toEqual(['max_tokens', 20]);
  });

  test('may be required to match a schema', async () => {
    const schema = { type: 'object', properties: { n: { const: 1 } }, required: ['n'], additionalProperties: false };
    const output_config = { format: { type: 'json_schema' as const, schema } };
    for (const model of [CLAUDE, GPT]) {
      const { content } = await ask({ messages: [{ role: 'user', content: 'How many?' }], output_config }, model);
      expect(JSON.parse((content[0] as Anthropic.TextBlock).text)).toEqual({ n: 1 });
    }
  });

  const ALL_SEARCHES = [
    [CLAUDE, false],
    [CLAUDE, true],
    [GEMINI, true],
    [GEMINI, false],
  ] as const;
  const searches = sampleCases(ALL_SEARCHES, 2);

  test.each(searches)(
    'may be based on a web search, which its usage counts: %s, streamed: %s',
    async (model, stream) => {
      const tools = [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 } as const];
      const asked = { ...asking('tool=any', model), tools };
      const { content, usage } = await (stream
        ? client.messages.stream(asked).finalMessage()
        : client.messages.create(asked));
      const types = content.map(({ type }) => type);
      expect(types.slice(0, 2)).toEqual(['server_tool_use', 'web_search_tool_result']);
      expect((content[1] as Anthropic.WebSearchToolResultBlock).content).toContainEqual(
        expect.objectContaining({ type: 'web_search_result', url: expect.any(String), title: expect.any(String) }),
      );
      expect(usage.server_tool_use?.web_search_requests).toBe(1);
      expect(content.at(-1)).toMatchObject({ type: 'text', citations: expect.arrayContaining([expect.anything()]) });
      const again = [
        ...asked.messages,
        { role: 'assistant' as const, content },
        { role: 'user' as const, content: 'Why?' },
      ];
      expect((await client.messages.create({ ...asked, messages: again })).stop_reason).toBe('end_turn');
    },
  );
});

test('sends a ping while a stream waits for its first byte', async () => {
  const [COMMENT_MS, LATENCY_MS] = [9_000, 1_200];
  const patient = await TestWorld.open({ STREAM_FIRST_COMMENT_MS: String(COMMENT_MS) });
  try {
    const payer = await patient.createAccount(1.05);
    const comment = extendTimeouts(COMMENT_MS);
    const generation = extendDelay(LATENCY_MS);
    const body = { ...asking(`tokens=3 latency=${LATENCY_MS}`), stream: true };
    const answered = patient.post('/v1/messages', body, payer);
    await generation.started;
    comment.end();
    generation.end();
    const { text } = await answered;
    expect(text).toMatch(/^event: ping\ndata: \{"type":"ping"\}\n\nevent: message_start\n/);
    expect(text).toMatch(/event: message_stop\ndata: \{"type":"message_stop"\}\n\n$/);
  } finally {
    await patient.close();
  }
});

describe('a count of tokens', () => {
  test('is close to the number of tokens of the input, and costs nothing', async () => {
    const before = (await world.listEvents(account)).length;
    const { input_tokens } = await client.messages.countTokens({
      model: CLAUDE,
      system: 'word '.repeat(500),
      messages: [{ role: 'user', content: 'word '.repeat(500) }],
    });
    expect(input_tokens).toBeGreaterThan(990);
    expect(input_tokens).toBeLessThan(1_030);
    expect(await world.listEvents(account)).toHaveLength(before);
  });

  test('differs from the actual number by less than 1% for a long text', async () => {
    const content = 'word '.repeat(100_000);
    const { input_tokens } = await client.messages.countTokens({
      model: CLAUDE,
      messages: [{ role: 'user', content }],
    });
    expect(Math.abs(input_tokens - 100_000)).toBeLessThan(1_000);
  });
});

test('accepts the key as a bearer token', async () => {
  const bearer = new Anthropic({ apiKey: null, authToken: account.apiKey, baseURL: world.api, maxRetries: 0 });
  expect(textOf(await bearer.messages.create(asking('tokens=3')))).toBe(SAID);
});

test('records the query type of messages in the history', async () => {
  await client.messages.create(asking('tokens=3'));
  await world.waitUntil(async () => {
    const { body } = await world.get('/queries/history?query_type=message', account);
    return body.data.length > 0 && body.data.every((each: { query_type: string }) => each.query_type === 'message');
  });
});
