import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { replaceDelays } from '#testing';
import { countTokens } from '../provider/tokens.ts';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());

function post(
  body: unknown,
  headers: Record<string, string> = { authorization: 'Bearer any' },
  path = '/openai/v1/chat/completions',
): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(`${sandbox.url}${path}`, { method: 'POST', headers, body: text });
}

function ask(content: unknown, more: Record<string, unknown> = {}): Promise<Response> {
  return post({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }], ...more });
}

interface Answer {
  choices: { index: number; message: { content: string }; finish_reason: string }[];
  usage: Record<string, unknown>;
}

async function answerTo(content: unknown, more?: Record<string, unknown>): Promise<Answer> {
  const response = await ask(content, more);
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

async function dataOf(response: Response): Promise<string[]> {
  const events = (await response.text()).split('\n\n').filter((event) => event !== '');
  expect(events.every((event) => event.startsWith('data: '))).toBe(true);
  return events.map((event) => event.slice('data: '.length));
}

async function errorOf(response: Response) {
  const { error } = (await response.json()) as { error: Record<string, unknown> };
  return { status: response.status, ...error } as Record<string, unknown>;
}

/** Returns the durations of the delays during the exchange. The delays themselves are skipped. */
async function listDelays(exchange: () => Promise<unknown>): Promise<readonly number[]> {
  const delays: number[] = [];
  const restore = replaceDelays(async (milliseconds) => void delays.push(milliseconds));
  await exchange().finally(restore);
  return delays;
}

describe('a chat completion', () => {
  test("has OpenAI's format and names the dated snapshot", async () => {
    const response = await ask('Hello, world!');
    expect(response.headers.get('x-request-id')).toMatch(/^req_\w+$/);
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^chatcmpl-\w+$/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'gpt-4o-mini-2024-07-18',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: expect.any(String), refusal: null, annotations: [] },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: {
        prompt_tokens: 11, // 3 for the request, 4 for the message, 4 of text
        completion_tokens: 16,
        total_tokens: 27,
        prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
        completion_tokens_details: {
          reasoning_tokens: 0,
          audio_tokens: 0,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
        },
      },
      service_tier: 'default',
      system_fingerprint: expect.any(String),
    });
  });

  test('has exactly the requested number of tokens, reasoning included', async () => {
    const { choices, usage } = await answerTo('[[sandbox tokens=64 reasoning=10]]', { model: 'gpt-5-mini' });
    expect(countTokens(choices[0]?.message.content ?? '')).toBe(54);
    expect(usage).toMatchObject({ completion_tokens: 64, completion_tokens_details: { reasoning_tokens: 10 } });
  });

  test('has the exact text of the directive', async () => {
    const { choices, usage } = await answerTo('[[sandbox text="Yes: 2 \\"coins\\"."]]');
    expect(choices[0]?.message.content).toBe('Yes: 2 "coins".');
    expect(usage.completion_tokens).toBe(7);
  });

  test.each(['max_tokens', 'max_completion_tokens'])('is truncated at %s, with reason "length"', async (limit) => {
    const { choices, usage } = await answerTo('[[sandbox tokens=64]]', { [limit]: 5 });
    expect(choices[0]?.finish_reason).toBe('length');
    expect(countTokens(choices[0]?.message.content ?? '')).toBe(5);
    expect(usage.completion_tokens).toBe(5);
  });

  test('that reaches the limit exactly is not truncated', async () => {
    expect((await answerTo('[[sandbox tokens=5]]', { max_tokens: 5 })).choices[0]?.finish_reason).toBe('stop');
  });

  test('has no text if its reasoning exhausts the limit', async () => {
    const { choices, usage } = await answerTo('[[sandbox tokens=20 reasoning=10]]', { max_tokens: 8 });
    expect(choices[0]).toMatchObject({ message: { content: '' }, finish_reason: 'length' });
    expect(usage).toMatchObject({ completion_tokens: 8, completion_tokens_details: { reasoning_tokens: 8 } });
  });

  test('has n choices, all of which are counted', async () => {
    const { choices, usage } = await answerTo('[[sandbox tokens=6 reasoning=2]]', { n: 3 });
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(usage).toMatchObject({ completion_tokens: 18, completion_tokens_details: { reasoning_tokens: 6 } });
  });

  test('waits for the latency of the directive', async () => {
    expect(await listDelays(() => answerTo('[[sandbox latency=20]]'))).toEqual([20]);
  });

  test('counts messages, parts, names and tools as input', async () => {
    const promptOf = async (body: Record<string, unknown>) =>
      ((await (await post({ model: 'gpt-4o-mini', ...body })).json()) as Answer).usage.prompt_tokens;
    const user = { role: 'user', content: 'one two' };
    expect(await promptOf({ messages: [user] })).toBe(9);
    expect(await promptOf({ messages: [{ role: 'system', content: 'three' }, user] })).toBe(14);
    expect(await promptOf({ messages: [{ ...user, name: 'ada' }] })).toBe(10);
    const parts = [
      { type: 'text', text: 'one two' },
      { type: 'image_url', image_url: { url: 'data:' } },
    ];
    expect(await promptOf({ messages: [{ role: 'user', content: parts }] })).toBe(94);
    const tools = [{ type: 'function', function: { name: 'f' } }];
    expect(await promptOf({ messages: [user], tools })).toBe(9 + countTokens(JSON.stringify(tools)));
  });

  test('follows the directive of the last user message only', async () => {
    const messages = [
      { role: 'user', content: '[[sandbox tokens=1]]' },
      { role: 'assistant', content: '[[sandbox tokens=2]]' },
      { role: 'user', content: [{ type: 'text', text: '[[sandbox tokens=3]]' }] },
      { role: 'assistant', content: null, tool_calls: [] },
      { role: 'tool', content: '[[sandbox tokens=4]]', tool_call_id: 'call_1' },
    ];
    const { usage } = (await (await post({ model: 'flat', messages })).json()) as Answer;
    expect(usage.completion_tokens).toBe(3);
  });
});

describe('a stream', () => {
  const chunk = (choices: unknown[], more: Record<string, unknown> = {}) => ({
    id: expect.stringMatching(/^chatcmpl-/),
    object: 'chat.completion.chunk',
    created: expect.any(Number),
    model: 'gpt-4o-mini-2024-07-18',
    service_tier: 'default',
    system_fingerprint: expect.any(String),
    choices,
    obfuscation: expect.any(String),
    ...more,
  });
  const choice = (delta: unknown, finish_reason: string | null = null, index = 0) => {
    return { index, delta, logprobs: null, finish_reason };
  };
  const role = { role: 'assistant', content: '', refusal: null };

  test('begins with the role, ends with the reason and [DONE], and has no usage unless requested', async () => {
    const response = await ask('[[sandbox tokens=4 chunks=2]]', { stream: true });
    expect(response.headers.get('content-type')).toMatch('text/event-stream');
    const data = await dataOf(response);
    expect(data.pop()).toBe('[DONE]');
    expect(data.map((json) => JSON.parse(json))).toEqual([
      chunk([choice(role)]),
      chunk([choice({ content: 'every coin ' })]),
      chunk([choice({ content: 'that comes' })]),
      chunk([choice({}, 'stop')]),
    ]);
  });

  test('with usage has null as usage in every chunk except the last one, which has no choices', async () => {
    const more = { stream: true, stream_options: { include_usage: true, include_obfuscation: false } };
    const data = await dataOf(await ask('[[sandbox tokens=1]]', more));
    const chunks = data.slice(0, -1).map((json) => JSON.parse(json));
    expect(chunks.map(({ usage }) => usage)).toEqual([
      null,
      null,
      null,
      expect.objectContaining({ completion_tokens: 1 }),
    ]);
    expect(chunks.at(-1).choices).toEqual([]);
    expect(chunks.some((each) => 'obfuscation' in each)).toBe(false);
  });

  test('has the text of a non-streaming completion, in one chunk per token, but in at most 64', async () => {
    for (const tokens of [3, 200]) {
      const content = `[[sandbox tokens=${tokens}]]`;
      const { choices } = await answerTo(content);
      const data = await dataOf(await ask(content, { stream: true }));
      const texts = data.slice(1, -2).map((json) => JSON.parse(json).choices[0].delta.content);
      expect(texts).toHaveLength(Math.min(tokens, 64));
      expect(texts.join('')).toBe(choices[0]?.message.content);
    }
  });

  test('with several choices has a role, the text and a reason for each', async () => {
    const data = await dataOf(await ask('[[sandbox tokens=2 chunks=1]]', { stream: true, n: 2, max_tokens: 1 }));
    expect(data.slice(0, -1).map((json) => JSON.parse(json).choices[0])).toEqual([
      choice(role, null, 0),
      choice(role, null, 1),
      choice({ content: 'every ' }, null, 0),
      choice({ content: 'every ' }, null, 1),
      choice({}, 'length', 0),
      choice({}, 'length', 1),
    ]);
  });

  test('does not split characters of more than one byte', async () => {
    const data = await dataOf(await ask('[[sandbox text="日本 😀!" chunks=4]]', { stream: true }));
    expect(data.slice(1, -2).map((json) => JSON.parse(json).choices[0].delta.content)).toEqual([
      '日',
      '本 ',
      '😀',
      '!',
    ]);
  });

  test('pauses between chunks as the directive specifies', async () => {
    const directive = '[[sandbox tokens=5 chunks=5 chunk_delay=5]]';
    expect(await listDelays(async () => dataOf(await ask(directive, { stream: true })))).toEqual([5, 5, 5, 5]);
  });
});

describe('request validation', () => {
  const hello = [{ role: 'user', content: 'Hello' }];
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } };

  test('requires a key: 401', async () => {
    expect(await errorOf(await post({ model: 'flat', messages: hello }, {}))).toMatchObject({
      status: 401,
      message: expect.stringContaining("You didn't provide an API key"),
      type: 'invalid_request_error',
      param: null,
    });
  });

  test('rejects an unknown model: 404', async () => {
    expect(await errorOf(await ask('Hello', { model: 'gpt-6' }))).toEqual({
      status: 404,
      message: 'The model `gpt-6` does not exist or you do not have access to it.',
      type: 'invalid_request_error',
      param: null,
      code: 'model_not_found',
    });
  });

  test.each([
    ['a body that is not JSON', '{', null],
    ['a body that is not an object', '[]', null],
    ['no model', { messages: hello }, null],
    ['a model that is not a string', { model: 1, messages: hello }, 'model'],
    ['no messages', { model: 'flat' }, 'messages'],
    ['an empty list of messages', { model: 'flat', messages: [] }, 'messages'],
    ['messages that are not a list', { model: 'flat', messages: 'Hello' }, 'messages'],
    ['a message that is not an object', { model: 'flat', messages: ['Hello'] }, 'messages[0]'],
    ['a message without a role', { model: 'flat', messages: [{ content: '' }] }, 'messages[0].role'],
    ['an unknown role', { model: 'flat', messages: [{ role: 'me', content: '' }] }, 'messages[0].role'],
    ['a message without content', { model: 'flat', messages: [{ role: 'user' }] }, 'messages[0].content'],
    [
      'a tool message without an id',
      { model: 'flat', messages: [{ role: 'tool', content: '' }] },
      'messages[0].tool_call_id',
    ],
    [
      'an unknown part',
      { model: 'flat', messages: [{ role: 'user', content: [{ type: 'smell' }] }] },
      'messages[0].content[0].type',
    ],
    [
      'an image in a tool result',
      { model: 'gpt-5-mini', messages: [{ role: 'tool', tool_call_id: 'a', content: [image] }] },
      'messages[0].content[0].type',
    ],
    ['a tool that is null', { model: 'flat', messages: hello, tools: [null] }, 'tools[0]'],
    [
      'an image for a model that reads only text',
      { model: 'flat', messages: [...hello, { role: 'user', content: [image] }] },
      'messages.[1].content.[0].type',
    ],
    ['a temperature above 2', { model: 'flat', messages: hello, temperature: 3 }, 'temperature'],
    ['a temperature that is not a number', { model: 'flat', messages: hello, temperature: 'hot' }, 'temperature'],
    ['n = 0', { model: 'flat', messages: hello, n: 0 }, 'n'],
    ['max_tokens = 0', { model: 'flat', messages: hello, max_tokens: 0 }, 'max_tokens'],
    ['max_tokens above the maximum', { model: 'flat', messages: hello, max_tokens: 4_097 }, 'max_tokens'],
    ['both limits', { model: 'flat', messages: hello, max_tokens: 1, max_completion_tokens: 1 }, 'max_tokens'],
    ['max_tokens for a model that reasons', { model: 'gpt-5-mini', messages: hello, max_tokens: 5 }, 'max_tokens'],
    ['reasoning_effort for a non-reasoning model', { model: 'flat', messages: hello, reasoning_effort: 'low' }, null],
    [
      'an effort that the model does not support',
      { model: 'gpt-5-mini', messages: hello, reasoning_effort: 'none' },
      'reasoning_effort',
    ],
    ['a temperature for a model that reasons', { model: 'o3', messages: hello, temperature: 0.5 }, 'temperature'],
    ['stop for a model that reasons', { model: 'gpt-5', messages: hello, stop: 'x' }, 'stop'],
    ['stream_options without stream', { model: 'flat', messages: hello, stream_options: {} }, 'stream_options'],
    ['an unknown argument', { model: 'flat', messages: hello, top_k: 5 }, null],
    ['too much input', { model: 'flat', messages: [{ role: 'user', content: 'a '.repeat(32_000) }] }, 'messages'],
    ['an invalid directive', { model: 'flat', messages: [{ role: 'user', content: '[[sandbox x]]' }] }, 'messages'],
  ])('rejects %s: 400', async (_, body, param) => {
    const error = await errorOf(await post(body));
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', param });
    expect(error.message).toEqual(expect.any(String));
  });

  test.each([
    ['openrouter', 'google/gemini-2.5-flash'],
    ['deepinfra', 'Qwen/Qwen3-32B'],
  ])('supports only max_tokens as the output limit at %s', async (provider, model) => {
    const ask = (limit: object) =>
      post({ model, messages: hello, ...limit }, undefined, `/${provider}/v1/chat/completions`);
    expect((await errorOf(await ask({ max_completion_tokens: 5 }))).message).toContain('max_completion_tokens');
    expect((await ask({ max_tokens: 5 })).status).toBe(200);
  });

  test.each([
    ["'reasoning'", 'low'],
    ["'extreme'", { effort: 'extreme' }],
    ["'reasoning.max_tokens'", { max_tokens: 1.5 }],
    ['Only one of "reasoning.effort" and "reasoning.max_tokens"', { effort: 'low', max_tokens: 1 }],
    ["'reasoning.exclude'", { exclude: 1 }],
  ])('says %s in the 400 for the reasoning %j at OpenRouter', async (words, reasoning) => {
    const body = { model: 'google/gemini-2.5-pro', messages: hello, reasoning };
    expect(await errorOf(await post(body, undefined, '/openrouter/v1/chat/completions'))).toEqual({
      status: 400,
      code: 400,
      message: expect.stringContaining(words),
    });
  });

  test('treats null as a missing argument', async () => {
    expect((await ask('Hello', { temperature: null, max_tokens: null, stream: null, tools: null })).status).toBe(200);
  });
});
