import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const HEADERS = { 'x-api-key': 'any', 'anthropic-version': '2023-06-01' };
const hello = [{ role: 'user', content: 'Hello' }];
const tool = { name: 'f', input_schema: { type: 'object' } };
const search = { type: 'web_search_20250305', name: 'web_search' };
const thinking = { type: 'enabled', budget_tokens: 1_024 };

function post(body: unknown, headers: Record<string, string> = HEADERS): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(`${sandbox.url}/anthropic/v1/messages`, { method: 'POST', headers, body: text });
}

function ask(content: unknown, more: object = {}): Promise<Response> {
  return post({ model: 'claude-sonnet-4-6', max_tokens: 100, messages: [{ role: 'user', content }], ...more });
}

interface Line {
  id: string;
  model: string;
  tokens: unknown;
  usd: string;
}

async function bill(): Promise<Line[]> {
  return (await (await fetch(`${sandbox.url}/bill/lines`)).json()) as Line[];
}

async function eventsOf(response: Response) {
  const events = (await response.text()).split('\n\n').filter((event) => event !== '');
  return events.map((event) => {
    const [, name, json = ''] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
    const data = JSON.parse(json);
    expect(data.type).toBe(name);
    return data;
  });
}

describe('a message', () => {
  test("has Anthropic's format and is billed under its id", async () => {
    const response = await ask('[[sandbox tokens=4]]');
    expect(response.headers.get('request-id')).toMatch(/^req_\w+$/);
    const message = (await response.json()) as { id: string };
    expect(message).toEqual({
      id: expect.stringMatching(/^msg_\w+$/),
      type: 'message',
      role: 'assistant',
      model: 'claude-sonnet-4-6',
      content: [{ type: 'text', text: 'every coin that comes', citations: null }],
      container: null,
      diagnostics: null,
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      usage: {
        input_tokens: 15, // 3 for the request, 4 for the turn, 8 of text
        cache_creation_input_tokens: 0,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        cache_read_input_tokens: 0,
        output_tokens: 4,
        output_tokens_details: { thinking_tokens: 0 },
        server_tool_use: null,
        service_tier: 'standard',
        inference_geo: 'global',
        speed: null,
      },
    });
    // 15 × 3 USD and 4 × 15 USD per million tokens
    const tokens = { input: 15, cached_input: 0, output: 4 };
    expect(await bill()).toMatchObject([{ id: message.id, model: 'claude-sonnet-4-6', tokens, usd: '0.000105' }]);
  });

  test('with half of its input cached reports both halves', async () => {
    const { usage } = (await (await ask('[[sandbox fault=cached]]')).json()) as { usage: object };
    expect(usage).toMatchObject({ input_tokens: 8, cache_read_input_tokens: 7, output_tokens: 16 });
    expect(await bill()).toMatchObject([{ tokens: { input: 8, cached_input: 7, output: 16 } }]);
  });

  test('reports a bill as the directive says, and cache writes for an hour cost twice the input', async () => {
    const directive = '[[sandbox hour_cache_writes=100000 tokens=4 service_tier=priority inference_geo=us speed=fast]]';
    const { usage } = (await (await ask(directive)).json()) as { usage: object };
    expect(usage).toMatchObject({
      cache_creation_input_tokens: 100_000,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 100_000 },
      service_tier: 'priority',
      inference_geo: 'us',
      speed: 'fast',
    });
    const [line] = (await bill()) as readonly { tokens: { input: number }; usd: string }[];
    // 100,000 × 6 USD, 4 × 15 USD and the rest × 3 USD per million tokens
    expect(line?.usd).toBe(String((600_000 + 60 + 3 * (line?.tokens.input ?? 0)) / 1e6));
  });

  test('is truncated at max_tokens with that stop reason', async () => {
    const answer = await (await ask('[[sandbox tokens=9]]', { max_tokens: 2 })).json();
    expect(answer).toMatchObject({ content: [{ text: 'every coin ' }], stop_reason: 'max_tokens' });
  });
});

describe('a stream', () => {
  test('reports the input at its start and the output at its end', async () => {
    const events = await eventsOf(await ask('[[sandbox tokens=4 chunks=2]]', { stream: true }));
    expect(events).toEqual([
      {
        type: 'message_start',
        message: expect.objectContaining({
          content: [],
          stop_reason: null,
          usage: expect.objectContaining({ input_tokens: 18, output_tokens: 1 }),
        }),
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: null } },
      { type: 'ping' },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'every coin ' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'that comes' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null, stop_details: null, container: null },
        usage: expect.objectContaining({ input_tokens: 18, output_tokens: 4 }),
      },
      { type: 'message_stop' },
    ]);
  });

  test('with an error in the middle is billed for what was delivered', async () => {
    const events = await eventsOf(await ask('[[sandbox tokens=8 chunks=8 fault=error]]', { stream: true }));
    expect(events.at(-1)).toEqual({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } });
    expect(await bill()).toMatchObject([{ tokens: { output: 4 } }]);
  });
});

test.each([false, true])('a refusal has its category and explanation (stream: %p)', async (stream) => {
  const response = await ask('[[sandbox tokens=2 fault=refusal]]', { stream });
  const details = { type: 'refusal', category: 'cyber', explanation: expect.any(String) };
  const stop = stream
    ? (await eventsOf(response)).find(({ type }) => type === 'message_delta')?.delta
    : await response.json();
  expect(stop).toMatchObject({ stop_reason: 'refusal', stop_details: details });
});

test('a paused turn continues with a request that ends with its content', async () => {
  const content = '[[sandbox tool=web_search fault=pause_turn fault_times=1 id=paused]]';
  const first = (await (await ask(content, { tools: [search] })).json()) as { stop_reason: string; content: object[] };
  expect(first.stop_reason).toBe('pause_turn');
  const messages = [
    { role: 'user', content },
    { role: 'assistant', content: first.content },
  ];
  const second = await (await ask(content, { tools: [search], messages })).json();
  expect(second).toMatchObject({
    stop_reason: 'end_turn',
    content: [{ type: 'server_tool_use' }, {}, { type: 'text' }],
  });
});

const opus = { model: 'claude-opus-4-7', max_tokens: 2_000 };
const haiku = { model: 'claude-haiku-4-5' };

describe("Anthropic's request validation", () => {
  const asked = { model: 'claude-sonnet-4-6', max_tokens: 100, messages: hello };
  const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} };
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' };
  const format = (schema: object) => ({ output_config: { format: { type: 'json_schema', schema } } });

  test.each<[string, number, string, Record<string, string>]>([
    ['requires a key', 401, 'authentication_error', { 'anthropic-version': '2023-06-01' }],
    ['requires a version', 400, 'invalid_request_error', { 'x-api-key': 'any' }],
    ['rejects an unknown version', 400, 'invalid_request_error', { ...HEADERS, 'anthropic-version': '1' }],
  ])('%s: %p', async (_, status, type, headers) => {
    const response = await post(asked, headers);
    expect(response.status).toBe(status);
    const error = { type, message: expect.any(String) };
    expect(await response.json()).toEqual({ type: 'error', error, request_id: expect.any(String) });
  });

  test.each(['temperature', 'top_p', 'top_k'])(
    'rejects %s with 400 in the protocol version without sampling parameters',
    async (name) => {
      const statusOf = async (version: string) =>
        (await post({ ...asked, [name]: 1 }, { ...HEADERS, 'anthropic-version': version })).status;
      expect([await statusOf('2023-06-01'), await statusOf('2026-10-21')]).toEqual([200, 400]);
    },
  );

  test('rejects an unknown model, or one that has retired: 404', async () => {
    const messages = [{ role: 'user', content: '[[sandbox fault=404]]' }];
    for (const fields of [{ model: 'claude-3-opus-20240229' }, { messages }]) {
      const response = await post({ ...asked, ...fields });
      const error = { type: 'not_found_error', message: expect.stringMatching(/^model: claude-/) };
      expect([response.status, await response.json()]).toEqual([
        404,
        expect.objectContaining({ type: 'error', error }),
      ]);
    }
  });

  test.each<[string, unknown, RegExp]>([
    ['a body that is not JSON', '{', /not valid JSON/],
    ['no model', { max_tokens: 1, messages: hello }, /^model: Field required/],
    ['a tool that is null', { ...asked, tools: [null] }, /^tools\.0: Input should be an object/],
    [
      'a block that is null',
      { ...asked, messages: [{ role: 'user', content: [null] }] },
      /^messages\.0\.content\.0: Input should be an object/,
    ],
    ['no max_tokens', { model: 'claude-opus-4-6', messages: hello }, /^max_tokens: Field required/],
    ['no messages', { model: 'claude-opus-4-6', max_tokens: 1 }, /^messages: Field required/],
    ['an empty list of messages', { ...asked, messages: [] }, /at least one message/],
    ['max_tokens above the maximum', { ...asked, max_tokens: 128_001 }, /maximum allowed number of output tokens/],
    ['a parameter of OpenAI', { ...asked, n: 1 }, /^n: Extra inputs are not permitted/],
    ['a system message', { ...asked, messages: [{ role: 'system', content: 'x' }] }, /top-level `system`/],
    ['a tool message', { ...asked, messages: [{ role: 'tool', content: 'x' }] }, /Unexpected role "tool"/],
    ['an empty message', { ...asked, messages: [{ role: 'user', content: [] }] }, /non-empty content/],
    ['an empty text', { ...asked, messages: [{ role: 'user', content: [{ type: 'text', text: '' }] }] }, /non-empty/],
    ['an OpenAI part', { ...asked, messages: [{ role: 'user', content: [{ type: 'image_url' }] }] }, /expected tags/],
    ['an image without a source', { ...asked, messages: [{ role: 'user', content: [{ type: 'image' }] }] }, /source/],
    [
      'a call without a result',
      { ...asked, messages: [...hello, { role: 'assistant', content: [call] }, ...hello] },
      /toolu_1/,
    ],
    [
      'a result without a call',
      { ...asked, messages: [{ role: 'user', content: [result] }] },
      /unexpected `tool_use_id`/,
    ],
    ['a temperature above 1', { ...asked, temperature: 1.1 }, /range: 0\.\.1/],
    ['temperature and top_p', { ...asked, temperature: 1, top_p: 1 }, /cannot both be specified/],
    ['a blank stop sequence', { ...asked, stop_sequences: ['\n'] }, /non-whitespace/],
    ['a tool choice without tools', { ...asked, tool_choice: { type: 'any' } }, /while providing tools/],
    [
      'a tool choice that names no tool of the request',
      { ...asked, tools: [tool], tool_choice: { type: 'tool', name: 'g' } },
      /'g' not found/,
    ],
    ['duplicate tool names', { ...asked, tools: [tool, tool] }, /unique/],
    ['a web search with another name', { ...asked, tools: [{ ...search, name: 'search' }] }, /web_search/],
    ['a web search with max_uses 0', { ...asked, tools: [{ ...search, max_uses: 0 }] }, /max_uses/],
    ['a web search with an unknown field', { ...asked, tools: [{ ...search, engine: 'x' }] }, /engine: Extra inputs/],
    [
      'allowed and blocked domains together',
      { ...asked, tools: [{ ...search, allowed_domains: ['a.b'], blocked_domains: ['c.d'] }] },
      /only one/,
    ],
    ["a tool in OpenAI's format", { ...asked, tools: [{ type: 'function', function: tool }] }, /^tools\.0/],
    [
      'a budget below 1,024',
      { ...asked, max_tokens: 9_000, thinking: { ...thinking, budget_tokens: 9 } },
      /budget_tokens/,
    ],
    ['a budget above max_tokens', { ...asked, max_tokens: 1_024, thinking }, /must be greater than/],
    ['an unknown type of thinking', { ...asked, thinking: { type: 'deep' } }, /expected tags/],
    ['an unknown display', { ...asked, max_tokens: 2_000, thinking: { ...thinking, display: 'loud' } }, /display/],
    [
      'a budget for adaptive thinking',
      { ...asked, ...opus, thinking: { ...thinking, type: 'adaptive' } },
      /Extra inputs/,
    ],
    ['a budget for a model with adaptive thinking only', { ...asked, ...opus, thinking }, /type\.adaptive/],
    ['a temperature for a model with adaptive thinking only', { ...asked, ...opus, temperature: 1 }, /deprecated/],
    ['adaptive thinking for an older model', { ...asked, ...haiku, thinking: { type: 'adaptive' } }, /not supported/],
    ['an effort for an older model', { ...asked, ...haiku, output_config: { effort: 'low' } }, /effort parameter/],
    ['an unknown effort', { ...asked, ...opus, output_config: { effort: 'minimal' } }, /output_config\.effort/],
    [
      'thinking with a temperature other than 1',
      { ...asked, max_tokens: 2_000, thinking, temperature: 0 },
      /only be set to 1/,
    ],
    [
      'thinking with a forced call',
      { ...asked, max_tokens: 2_000, thinking, tools: [tool], tool_choice: { type: 'any' } },
      /forces tool use/,
    ],
    [
      'prefill',
      { ...asked, messages: [...hello, { role: 'assistant', content: 'The answer is' }] },
      /^This model does not support assistant message prefill\. /,
    ],
    [
      'a forced call by a model that rejects it',
      { ...asked, model: 'claude-opus-5-5', tools: [tool], tool_choice: { type: 'any' } },
      /^tool_choice\.type: "any" is not supported/,
    ],
    ['a schema that allows other properties', { ...asked, ...format({ type: 'object' }) }, /additionalProperties/],
    ['an invalid directive', { ...asked, messages: [{ role: 'user', content: '[[sandbox x]]' }] }, /directive/],
    [
      'a directive for a tool that is not offered',
      {
        ...asked,
        tools: [{ name: 'g', input_schema: { type: 'object' } }],
        messages: [{ role: 'user', content: '[[sandbox tool=f]]' }],
      },
      /no tool "f"/,
    ],
  ])('rejects %s: 400', async (_, body, words) => {
    const response = await post(body);
    const { error } = (await response.json()) as { error: object };
    expect({ status: response.status, ...error }).toEqual({
      status: 400,
      type: 'invalid_request_error',
      message: expect.stringMatching(words),
    });
  });

  test('accepts consecutive turns of one role, and text after tool results', async () => {
    const messages = [
      ...hello,
      ...hello,
      { role: 'assistant', content: [call] },
      { role: 'user', content: [result] },
      ...hello,
    ];
    expect((await post({ ...asked, tools: [tool], messages })).status).toBe(200);
  });
});
