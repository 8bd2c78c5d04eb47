import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { extendTimeouts, type TestAccount, type TestResponse, TestWorld } from '#testing';

const GPT = 'openai/gpt-5-mini';
/** No other timeout lasts as long. */
const IDLE_MS = 59_000;
const COST = 0.00001028625;
const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open({ UPSTREAM_IDLE_TIMEOUT_MS: String(IDLE_MS) });
  account = await world.createAccount(1.05);
});
afterAll(() => world.close());

const body = (directive: string, more: object = {}) => ({ model: GPT, input: `[[sandbox ${directive}]]`, ...more });
const ask = (directive = 'tokens=3', more: object = {}, payer = account, route = '/v1/responses') =>
  world.post(route, body(directive, more), payer);
const stream = (directive = 'tokens=3', more: object = {}, payer = account) =>
  ask(directive, { stream: true, ...more }, payer);
const typesOf = ({ events }: TestResponse) => events.map((event) => (event === '[DONE]' ? event : event.type));

async function spentBy(payer: TestAccount): Promise<string> {
  const { balance, held_usd } = (await world.post('/credits/balance', undefined, payer)).body;
  expect(held_usd).toBe(0);
  return (1.05 - balance).toFixed(12);
}

const MESSAGE = {
  type: 'message',
  id: expect.stringMatching(/^msg_[0-9a-z]+$/),
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text: 'every coin that', annotations: [], logprobs: [] }],
};
const USAGE = {
  input_tokens: 15,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 3,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 18,
  cost: COST,
  cost_details: {
    upstream_inference_cost: 0.00000975,
    upstream_inference_input_cost: 0.00000375,
    upstream_inference_output_cost: 0.000006,
    web_search_cost: 0,
    margin: 0.00000053625,
  },
};
/** All fields of the response to a request without options. */
const RESPONSE = {
  id: expect.stringMatching(new RegExp(`^resp_${UUID}$`)),
  object: 'response',
  created_at: expect.any(Number),
  completed_at: expect.any(Number),
  status: 'completed',
  model: GPT,
  output: [MESSAGE],
  output_text: 'every coin that',
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  parallel_tool_calls: true,
  temperature: 1,
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  tool_choice: 'auto',
  tools: [],
  max_output_tokens: null,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  service_tier: 'default',
  store: true,
  text: { format: { type: 'text' } },
  truncation: 'disabled',
  usage: USAGE,
};

describe('a response', () => {
  test.each(['gpt-5-mini', `${GPT}:nitro`, 'anthropic/claude-haiku-4.5:online'])(
    'has the id of the model, even if the request has an alias or suffix: %s',
    async (model) => {
      const { body } = await ask('tokens=3', { model });
      const { body: chat } = await world.sendChat(account, 'tokens=3', { model });
      expect(body.model).toBe(chat.model);
      expect(body.model).toBe(model.startsWith('anthropic') ? 'anthropic/claude-haiku-4.5' : GPT);
      const { events } = await stream('tokens=3', { model });
      expect(new Set(events.flatMap((event) => event.response?.model ?? []))).toEqual(new Set([chat.model]));
    },
  );

  test('has every field that clients require, and its cost', async () => {
    const { status, headers, body } = await ask();
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(body).toEqual(RESPONSE);
    expect(body.id).toBe(`resp_${headers.get('x-request-id')}`);
  });

  test('has its cost as a decimal number without an exponent', async () => {
    expect((await ask()).text).toContain('"cost":0.00001028625,');
  });

  test.each(['/v1/responses', '/responses'])('is served at %s', async (route) => {
    expect((await ask('tokens=3', {}, account, route)).body).toEqual(RESPONSE);
  });

  test('echoes the parameters of the request, with null for those that were not sent to the model', async () => {
    const asked = {
      instructions: 'Be brief',
      metadata: { a: 'x', b: 2, c: true },
      parallel_tool_calls: false,
      temperature: 0.5,
      top_p: 0.5,
      presence_penalty: 0.5,
      frequency_penalty: 0.5,
      tool_choice: { type: 'function', name: 'f' },
      tools: [{ type: 'function', name: 'f', description: 'F', parameters: { type: 'object' }, strict: false }],
      max_output_tokens: 50,
      reasoning: { effort: 'low', summary: 'auto' },
      store: false,
      text: { format: { type: 'json_schema', name: 's', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
      truncation: 'auto',
      user: 'u',
      include: ['reasoning.encrypted_content'],
    };
    const { status, body } = await ask('text="{}"', asked);
    const { include: _, ...echoed } = asked;
    expect(status).toBe(200);
    const untold = { temperature: null, top_p: null, presence_penalty: null, frequency_penalty: null };
    expect(body).toMatchObject({ ...echoed, ...untold });
  });

  test.each<[string, object, object]>([
    ['openai/gpt-4o-mini', { temperature: 0.5, top_p: 0 }, { temperature: 0.5, top_p: 0 }],
    [
      'openai/gpt-4o-mini',
      { reasoning: { effort: 'low' }, text: { verbosity: 'low' } },
      { temperature: 1, reasoning: { effort: null, summary: null }, text: { format: { type: 'text' } } },
    ],
    ['anthropic/claude-haiku-4.5', { temperature: 2 }, { temperature: 1 }],
    ['anthropic/claude-haiku-4.5', { temperature: 0.5, top_p: 0.5 }, { temperature: 0.5, top_p: null }],
    [
      'anthropic/claude-haiku-4.5',
      { temperature: 0.5, reasoning: { effort: 'low' }, max_output_tokens: 4_000 },
      { temperature: null, reasoning: { effort: 'low', summary: null } },
    ],
    ['anthropic/claude-opus-4.7', { temperature: 0.5 }, { temperature: null }],
  ])('echoes the parameters that were sent to %s: %j as %j', async (model, asked, echoed) => {
    const whole = await ask('tokens=3', { model, ...asked });
    expect([whole.status, whole.body]).toMatchObject([200, echoed]);
    const { events } = await stream('tokens=3', { model, ...asked });
    for (const { response } of [events[0], events.at(-2)]) expect(response).toMatchObject(echoed);
    expect(whole.body.text).toEqual({ format: { type: 'text' } });
  });

  test('is paid from a hold that is settled with its usage, and is recorded in the history as a response', async () => {
    const payer = await world.createAccount(1.05);
    const { body } = await ask('tokens=3', {}, payer);
    const [held, settled] = (await world.listEvents(payer)).slice(-2);
    expect(held).toMatchObject({ type: 'FundsHeld', data: { query: { model: GPT, type: 'response' } } });
    expect(settled).toMatchObject({
      type: 'HoldSettled',
      data: { holdId: body.id.slice('resp_'.length), charged: '10286250' },
    });
    const history = (await world.get('/queries/history?query_type=response', payer)).body.data;
    expect(history).toEqual([expect.objectContaining({ query_type: 'response', price_in_usd: COST, output_count: 3 })]);
    expect(await spentBy(payer)).toBe(COST.toFixed(12));
  });

  test('costs the same as the equivalent chat completion', async () => {
    const input = '[[sandbox tokens=8 reasoning=5 fault=cached]]';
    const chat = await world.post(
      '/v1/chat/completions',
      { model: GPT, messages: [{ role: 'user', content: input }] },
      account,
    );
    const { usage } = (await world.post('/v1/responses', { model: GPT, input }, account)).body;
    expect(usage.cost).toBe(chat.body.usage.cost);
    expect(usage).toMatchObject({
      input_tokens_details: { cached_tokens: 11 },
      output_tokens_details: { reasoning_tokens: 5 },
    });
  });

  test.each([false, true])('is incomplete if it reached its output limit (stream: %p)', async (streamed) => {
    const answer = await ask('tokens=40', { max_output_tokens: 4, stream: streamed });
    const response = answer.body ?? answer.events.at(-2).response;
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      completed_at: null,
      output: [{ status: 'incomplete' }],
      output_text: 'every coin that comes ',
      usage: { output_tokens: 4 },
    });
    if (streamed)
      expect(typesOf(answer).slice(-3)).toEqual(['response.output_item.done', 'response.incomplete', '[DONE]']);
  });

  test.each(['openai/gpt-5.4-mini', 'openai/gpt-4o-mini', 'countinghouse/flat'])(
    'is generated by %s',
    async (model) => {
      const { status, body } = await ask('tokens=3', { model });
      expect([status, body.model, body.output_text]).toEqual([200, model, 'every coin that']);
    },
  );
});

describe('a streamed response', () => {
  const ORDER = [
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.delta',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ];

  test('has named and numbered events in the order of the protocol, and an end marker', async () => {
    const answer = await stream();
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(typesOf(answer)).toEqual([...ORDER, '[DONE]']);
    expect(answer.events.slice(0, -1).map(({ sequence_number }) => sequence_number)).toEqual([...ORDER.keys()]);
    const names = answer.text.split('\n').filter((line) => line.startsWith('event: '));
    expect(names).toEqual(ORDER.map((type) => `event: ${type}`));
  });

  test('begins with an empty response, and ends with the complete response including usage and cost', async () => {
    const { events, headers } = await stream();
    const started = {
      ...RESPONSE,
      status: 'in_progress',
      completed_at: null,
      output: [],
      output_text: '',
      usage: null,
    };
    expect(events[0].response).toEqual(started);
    expect(events[1].response).toEqual(started);
    expect(events.at(-2).response).toEqual(RESPONSE);
    expect(events.at(-2).response.id).toBe(`resp_${headers.get('x-request-id')}`);
    expect(events.at(-3).item).toEqual(MESSAGE);
  });

  test('is sent while it is generated', async () => {
    const more = { stream: true, input: '[[sandbox tokens=2 chunk_delay=20000]]', model: GPT };
    const headers = { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' };
    const { body } = await fetch(`${world.api}/v1/responses`, { method: 'POST', headers, body: JSON.stringify(more) });
    const text = body?.pipeThrough(new TextDecoderStream()) as AsyncIterable<string>;
    let read = '';
    for await (const piece of text) {
      read += piece;
      if (read.includes('"delta":"every "')) break;
    }
    expect(read).not.toContain('"delta":"coin"');
  });

  test('costs the same as a non-streaming response, and has been charged when it ends', async () => {
    const payer = await world.createAccount(1.05);
    await stream('tokens=3', {}, payer);
    expect(await spentBy(payer)).toBe(COST.toFixed(12));
  });
});

describe('a failed response', () => {
  test.each(['400', '429', '500', 'refuse'])(
    'is an error without a charge if it fails before the first byte (%s)',
    async (fault) => {
      for (const streamed of [false, true]) {
        const payer = await world.createAccount(1.05);
        const { status, body } = await ask(`fault=${fault}`, { stream: streamed }, payer);
        const expected = { 400: 400, 429: 429, 500: 502, refuse: 503 }[fault];
        expect([status, body.status, body.statusCode]).toEqual([expected, 'error', expected]);
        expect(await spentBy(payer)).toBe('0.000000000000');
      }
    },
  );

  test.each(['cut', 'malformed'])('is an error without a charge if it is non-streaming (%s)', async (fault) => {
    const payer = await world.createAccount(1.05);
    const { status, body } = await ask(`fault=${fault} tokens=40`, {}, payer);
    expect([status, body.error.type]).toEqual([502, 'upstream_error']);
    expect(await spentBy(payer)).toBe('0.000000000000');
  });

  test('ends a started stream with a failure event, and is charged for what was delivered', async () => {
    const payer = await world.createAccount(1.05);
    const answer = await stream('fault=cut tokens=8', {}, payer);
    expect(typesOf(answer).slice(-3)).toEqual(['response.output_text.delta', 'response.failed', '[DONE]']);
    const { response } = answer.events.at(-2);
    expect(response).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'The provider ended the response early' },
      output: [{ status: 'incomplete' }],
      output_text: 'every coin that comes ',
      completed_at: null,
      store: false,
    });
    const [record] = (await world.get('/queries/history', payer)).body.data;
    expect(record).toMatchObject({ query_type: 'response', error_code: 'upstream_error', isEstimated: true });
    expect(response.usage.cost).toBe(record.price_in_usd);
    expect(record.price_in_usd).toBeGreaterThan(0);
    expect(await spentBy(payer)).toBe(record.price_in_usd.toFixed(12));
    expect((await world.get(`/v1/responses/${response.id}`, payer)).status).toBe(404);
  });

  test('is an error without a charge if a stream fails before its first item', async () => {
    const payer = await world.createAccount(1.05);
    const { status, body } = await stream('fault=malformed', {}, payer);
    expect([status, body.error.type]).toEqual([502, 'upstream_error']);
    expect(await spentBy(payer)).toBe('0.000000000000');
  });

  test('ends with a failure event if the provider becomes idle', async () => {
    const idle = extendTimeouts(IDLE_MS);
    const streamed = stream('tokens=2 chunk_delay=60000');
    await idle.started;
    idle.end();
    const { response } = (await streamed).events.at(-2);
    expect(response).toMatchObject({ status: 'failed', error: { message: 'The provider took too long to respond' } });
  });
});

describe('a response that cannot be created', () => {
  const refusedWith = async (answer: Promise<TestResponse>, status: number, param: string | null) => {
    const { status: got, body } = await answer;
    expect([got, body.status, body.statusCode, body.error.param]).toEqual([status, 'error', status, param]);
  };

  test('is rejected before money is held, and only a lack of money appends an event', async () => {
    const before = await world.listEvents();
    const poor = await world.createAccount(0);
    const opened = (await world.listEvents()).length - before.length;
    await refusedWith(ask('', { model: 'nope' }), 404, 'model');
    await refusedWith(ask('', { model: 'private/gpt-oss-120b' }), 400, 'model');
    await refusedWith(ask('', { tools: [{ type: 'file_search' }] }), 400, 'tools[0].type');
    await refusedWith(ask('', { previous_response_id: 'resp_nope' }), 404, 'previous_response_id');
    await refusedWith(ask('', {}, poor), 402, null);
    await refusedWith(world.post('/v1/responses', body('')), 401, null);
    await refusedWith(world.post('/v1/responses', '{"model":', account), 400, null);
    await refusedWith(world.post('/v1/responses', [], account), 400, null);
    expect((await world.listEvents()).at(-1)?.type).toBe('RequestRefused');
    expect((await world.listEvents()).length).toBe(before.length + opened + 1);
  });

  test.each([
    ['model', [undefined, null, 7, {}]],
    ['input', [undefined, null, 7, {}, '', []]],
    ['instructions', [7, {}, []]],
    ['max_output_tokens', ['5', 0, -1, 1.5]],
    ['temperature', ['1', -0.1, 2.1]],
    ['top_p', ['1', -0.1, 1.1]],
    ['presence_penalty', ['1']],
    ['tools', ['x', {}, 1]],
    ['parallel_tool_calls', ['true', 1]],
    ['reasoning', ['low', [], { effort: 7 }, { summary: {} }]],
    ['text', ['x', [], { verbosity: {} }]],
    ['response_format', ['json', 7]],
    ['previous_response_id', [7, {}]],
    ['store', ['true', 1]],
    ['metadata', ['x', 7]],
    ['stream', ['true', 1]],
    ['include', ['x', [7]]],
    ['truncation', ['some', 7]],
    ['user', [7]],
    ['background', [true]],
    ['tool_choice', [7, 'any']],
  ])('is rejected for an invalid %s, which the error names', async (param, values) => {
    for (const value of values) await refusedWith(ask('', { [param]: value }), 400, param);
  });

  test('is rejected for deep nesting in a field of Responses; in other fields it causes no server error', async () => {
    const deep = `${'['.repeat(9_999)}${']'.repeat(9_999)}`;
    const sent = (field: string) => `{"model":"${GPT}","input":"Hi","${field}":${deep}}`;
    for (const field of ['input', 'tools', 'tool_choice', 'include']) {
      expect((await world.post('/v1/responses', sent(field), account)).status).toBe(400);
    }
    for (const field of ['provider', 'plugins', 'anything']) {
      expect((await world.post('/v1/responses', sent(field), account)).status).toBeLessThan(500);
    }
    const schema = `{"model":"${GPT}","input":"Hi","text":{"format":{"type":"json_schema","name":"s","schema":{"a":${deep}}}}}`;
    expect((await world.post('/v1/responses', schema, account)).status).toBe(400);
  });
});
