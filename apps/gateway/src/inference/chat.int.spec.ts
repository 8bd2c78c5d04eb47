import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type TestAccount, type TestResponse, TestWorld } from '#testing';

const GPT = 'openai/gpt-5-mini';
const HELLO = { model: GPT, messages: [{ role: 'user', content: '[[sandbox tokens=3]]' }] };
const GEN_ID = /^gen-[0-9a-f-]{36}$/;

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(1.05);
});
afterAll(() => world.close());

const ask = (
  body: unknown,
  headers: Record<string, string> = { authorization: `Bearer ${account.apiKey}` },
  route = '/v1/chat/completions',
) => world.send('POST', route, { body, headers });

describe('a chat completion', () => {
  // In this order: Anthropic's Messages, only Responses, a router, a provider with `reasoning_content`.
  test.each(['anthropic/claude-haiku-4.5', 'openai/gpt-5-codex', 'google/gemini-2.5-pro', 'deepseek/deepseek-r1'])(
    'has its reasoning and the native finish reason, or null for what the provider did not send: %s',
    async (model) => {
      for (const [directive, reasoning] of [
        ['tokens=9 reasoning=0', null],
        ['tokens=9 reasoning=5', model.startsWith('openai/') ? null : expect.any(String)],
      ] as const) {
        const messages = [{ role: 'user', content: `[[sandbox ${directive}]]` }];
        const { body } = await ask({ model, max_tokens: 3_000, reasoning: { max_tokens: 1_100 }, messages });
        const [{ message, native_finish_reason }] = body.choices;
        expect([directive, message.reasoning, native_finish_reason]).toEqual([directive, reasoning, null]);
      }
    },
  );

  test('has the format of OpenAI with the id and model name of the gateway, and the cost of the request', async () => {
    const { status, headers, body } = await ask(HELLO);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(body).toEqual({
      id: expect.stringMatching(GEN_ID),
      object: 'chat.completion',
      created: expect.any(Number),
      model: GPT,
      provider: 'OpenAI',
      system_fingerprint: null,
      service_tier: 'default',
      choices: [
        {
          index: 0,
          finish_reason: 'stop',
          native_finish_reason: null,
          logprobs: null,
          message: { role: 'assistant', content: 'every coin that', refusal: null, reasoning: null, annotations: [] },
        },
      ],
      usage: {
        prompt_tokens: 15,
        completion_tokens: 3,
        total_tokens: 18,
        cost: 0.00001028625,
        prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0 },
        cost_details: {
          upstream_inference_cost: 0.00000975,
          upstream_inference_prompt_cost: 0.00000375,
          upstream_inference_completions_cost: 0.000006,
          web_search_cost: 0,
          margin: 0.00000053625,
        },
      },
    });
  });

  test('has an id that contains its request id; both are in the headers', async () => {
    const { headers, body } = await ask(HELLO);
    expect(headers.get('x-generation-id')).toBe(body.id);
    expect(body.id).toBe(`gen-${headers.get('x-request-id')}`);
  });

  test('has its cost as a decimal number without an exponent', async () => {
    expect((await ask(HELLO)).text).toContain('"cost":0.00001028625,');
  });

  test('counts reasoning, cached input and several choices', async () => {
    const { body } = await world.sendChat(account, 'tokens=8 reasoning=5 fault=cached', { n: 2 });
    expect(body.choices).toHaveLength(2);
    expect(body.usage).toMatchObject({
      prompt_tokens: 22,
      completion_tokens: 16,
      prompt_tokens_details: { cached_tokens: 11 },
      completion_tokens_details: { reasoning_tokens: 10 },
      cost: 0.000036951375,
    });
  });

  test('is paid from a hold that is settled with its usage', async () => {
    const before = (await world.listEvents(account)).length;
    const { body } = await ask(HELLO);
    const [held, settled] = (await world.listEvents(account)).slice(before);
    expect(held).toMatchObject({ type: 'FundsHeld', data: { query: { model: GPT, source: 'api' } } });
    expect(settled).toMatchObject({
      type: 'HoldSettled',
      data: {
        holdId: body.id.slice(4),
        charged: '10286250',
        charge: {
          price: '10286250',
          cost: '9750000',
          items: [
            {
              of: GPT,
              provider: 'openai',
              creditor: 'openai',
              vendorId: expect.stringMatching(/^chatcmpl-/),
              usage: { input: 15, output: 3, request: 1 },
              estimated: false,
              price: '10286250',
              cost: '9750000',
            },
          ],
          attempts: [{ provider: 'openai', creditor: 'openai', model: GPT, outcome: 'ok' }],
        },
      },
    });
  });

  test.each<[string, () => Record<string, string>]>([
    ['a bearer key', () => ({ authorization: `Bearer ${account.apiKey}` })],
    ['x-api-key', () => ({ 'x-api-key': account.apiKey })],
    ['api-key', () => ({ 'api-key': account.apiKey })],
  ])('is paid with %s at both paths', async (_, headers) => {
    const balance = Number(await world.fetchBalance(account));
    const versioned = await ask(HELLO, headers());
    const plain = await ask(HELLO, headers(), '/chat/completions');
    expect([versioned.status, plain.status]).toEqual([200, 200]);
    expect(Number(await world.fetchBalance(account))).toBeCloseTo(balance - 2 * 0.00001028625, 12);
  });

  test('is paid by the account if both its key and its credit id are sent', async () => {
    const other = await world.createAccount(0.105);
    await ask(HELLO, { 'x-api-key': other.apiKey, 'x-credit-id': other.creditId });
    expect(await world.fetchBalance(other)).toBe('0.10498971375');
  });

  test('succeeds with fields of the gateway, odd fields and fields that the model does not support', async () => {
    const ours = {
      query_source: 'x',
      session_id: 1,
      provider: { allow_fallbacks: true },
      plugins: [],
      top_k: 3,
      min_p: 0,
      zdr: true,
    };
    const odd = { constructor: { name: 'x' }, toString: 1, stop: null, temperature: null, max_tokens: null, data: 1 };
    expect((await ask({ ...HELLO, ...ours, ...odd, reasoning: { effort: 'low' } })).status).toBe(200);
    expect((await ask({ ...HELLO, model: 'openai/gpt-4o-mini', reasoning: { effort: 'low' } })).status).toBe(200);
  });

  test('accepts images, files, tools and tool results', async () => {
    const data = `data:image/png;base64,${'A'.repeat(5_000)}`;
    const parts = [
      { type: 'text', text: '[[sandbox tokens=3]]' },
      { type: 'image_url', image_url: { url: data } },
      { type: 'file', file: { file_data: data } },
    ];
    const tool_calls = [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }];
    const messages = [
      { role: 'system', content: 'Be brief' },
      { role: 'assistant', content: null, tool_calls },
      { role: 'tool', tool_call_id: 'call_1', content: '42' },
      { role: 'user', content: parts },
    ];
    const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }];
    const { status, body } = await ask({ ...HELLO, messages, tools, tool_choice: 'auto', parallel_tool_calls: false });
    expect([status, body.usage.completion_tokens]).toEqual([200, 3]);
    expect(body.usage.prompt_tokens).toBeGreaterThan(2 * 85);
  });

  test('delivers a text with special characters unchanged', async () => {
    const text = 'ünï 🎉 "usage": null, "id":"x", \\n data: [DONE] \u2028';
    const content = `[[sandbox text=${JSON.stringify(text)}]]`;
    const messages = [{ role: 'user', content }];
    expect((await ask({ ...HELLO, messages })).body.choices[0].message.content).toBe(text);
    const { events } = await ask({ ...HELLO, messages, stream: true });
    expect(events.map((each) => each.choices?.[0]?.delta.content ?? '').join('')).toBe(text);
  });
});

describe('a streamed chat completion', () => {
  const stream = (more: object = {}) => ask({ ...HELLO, stream: true, ...more });

  test('consists of a role, the text, a finish reason, the usage with its cost, and an end marker', async () => {
    const { status, headers, events } = await stream();
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(headers.get('x-generation-id')).toBe(`gen-${headers.get('x-request-id')}`);
    expect(events.at(-1)).toBe('[DONE]');
    const deltas = events.slice(0, -2).map(({ choices: [choice] }) => [choice.delta, choice.finish_reason]);
    expect(deltas).toEqual([
      [{ role: 'assistant', content: '', refusal: null }, null],
      [{ content: 'every ' }, null],
      [{ content: 'coin ' }, null],
      [{ content: 'that' }, null],
      [{}, 'stop'],
    ]);
    expect(events.at(-2)).toMatchObject({
      choices: [],
      usage: { total_tokens: 18, cost: 0.00001028625 },
    });
  });

  test.each([GPT, 'openai/gpt-4o-mini'])(
    'has one id, the model name of the gateway, and usage only in its last chunk: %s',
    async (model) => {
      const { headers, events } = await stream({ model });
      for (const [i, event] of events.slice(0, -1).entries()) {
        expect(event).toMatchObject({ id: headers.get('x-generation-id'), object: 'chat.completion.chunk', model });
        expect(Number.isInteger(event.created)).toBe(true);
        expect('usage' in event).toBe(i === events.length - 2);
        if ('system_fingerprint' in event) expect(event.system_fingerprint).toEqual(expect.any(String));
        expect(event.error).toBeUndefined();
      }
    },
  );

  test.each([GPT, 'anthropic/claude-haiku-4.5', 'openai/gpt-5-codex', 'deepseek/deepseek-r1'])(
    'has one creation time, and every chunk but the last one has a choice: %s',
    async (model) => {
      const chunks = (await stream({ model, plugins: [{ id: 'web', engine: 'exa' }] })).events.slice(0, -2);
      expect(new Set(chunks.map(({ created }) => created)).size).toBe(1);
      for (const { choices } of chunks) expect(choices[0].delta).toBeDefined();
    },
  );

  test.each([{ include_usage: false }, { include_usage: true }, null])(
    'reports its usage in a chunk without choices: %j',
    async (stream_options) => {
      const last = { choices: [], usage: { cost: 0.00001028625 } };
      expect((await stream({ stream_options })).events.at(-2)).toMatchObject(last);
    },
  );

  test('costs the same as a non-streaming completion, and has been charged when it ends', async () => {
    const other = await world.createAccount(0.105);
    const { events } = await ask({ ...HELLO, stream: true }, { 'x-api-key': other.apiKey });
    expect(events.at(-2).usage).toEqual((await ask(HELLO)).body.usage);
    expect(await world.fetchBalance(other)).toBe('0.10498971375');
  });

  test('streams every choice if several are requested', async () => {
    const { events } = await stream({ n: 2 });
    const texts = ['', ''];
    for (const { choices = [] } of events) for (const { index, delta } of choices) texts[index] += delta.content ?? '';
    expect(texts).toEqual(['every coin that', 'every coin that']);
  });
});

describe('a chat that cannot be served', () => {
  const refused = async (answer: Promise<TestResponse>, status: number, error: object) => {
    const { status: got, body } = await answer;
    expect(got).toBe(status);
    expect(body).toMatchObject({ status: 'error', statusCode: status, error });
  };

  test('is rejected before money is held, without an event other than RequestRefused', async () => {
    const facts = async () => (await world.listEvents()).filter(({ type }) => type !== 'RequestRefused');
    const before = await facts();
    await refused(ask({ ...HELLO, model: 'nope' }), 404, { type: 'invalid_request_error', param: 'model' });
    await refused(ask({ ...HELLO, model: 'private/gpt-oss-120b' }), 400, { param: 'model' });
    await refused(ask('{"model":'), 400, { type: 'invalid_request_error' });
    await refused(ask({ ...HELLO, messages: [] }), 400, { param: 'messages' });
    await refused(ask({ ...HELLO, max_tokens: 4_096, n: 128 }), 402, { type: 'insufficient_balance' });
    await refused(ask(HELLO, {}), 401, { type: 'authentication_error' });
    await refused(ask(HELLO, { 'x-credit-id': crypto.randomUUID() }), 401, { type: 'authentication_error' });
    await refused(ask(HELLO, { 'x-api-key': 'sk-unknown' }), 401, { type: 'authentication_error' });
    expect(await facts()).toEqual(before);
  });

  test.each([
    ['model', [undefined, null, 7, {}, ['a']]],
    ['messages', [undefined, null, 'Hi', {}, [], ['Hi'], [null], [{}], [{ role: 1 }], [{ role: 'user' }, 'x']]],
    ['stream', ['true', 1, {}]],
    ['max_tokens', ['5', 0, -1, 1.5, [], true]],
    ['max_completion_tokens', ['5', 0, -1, 1.5]],
    ['n', ['2', 0, -1, 1.5, 129]],
    ['temperature', ['1', -0.1, 2.1]],
    ['top_p', ['1', -0.1, 1.1]],
    ['tools', ['x', {}, 1]],
  ])('is rejected for an invalid %s, which the error names', async (param, values) => {
    for (const value of values) {
      const { status, body } = await ask({ ...HELLO, [param]: value });
      expect([status, body.error.param]).toEqual([400, expect.stringMatching(new RegExp(`^${param}`))]);
      expect(body.message).toContain(body.error.param);
    }
  });

  test.each([
    ['a list', []],
    ['text', '"x"'],
    ['a number', 7],
    ['null', 'null'],
    ['missing', undefined],
    ['an object with __proto__', '{"__proto__":{"model":"x"}}'],
    [
      'nested too deeply',
      `{"model":"${GPT}","messages":[{"role":"user","content":${'['.repeat(9_999)}${']'.repeat(9_999)}}]}`,
    ],
  ])('is rejected for a body that is %s', async (_, body) => {
    await refused(ask(body), 400, { type: 'invalid_request_error' });
  });

  test('is rejected with the message of the provider if the provider rejects it', async () => {
    await refused(ask({ ...HELLO, tool_choice: 'sometimes' }), 400, {
      message: expect.stringContaining('tool_choice'),
    });
  });
});
