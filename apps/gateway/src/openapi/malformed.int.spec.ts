/**
 * Malformed bodies: one malformed member, at every depth and for each protocol of chat providers, causes no server
 * error and leaves no money held. Also private models, and bodies that are too large or nested too deeply.
 */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type JsonObject } from '#kernel';
import { generateMalformed, type Malformed, sampleCases, type TestAccount, TestWorld } from '#testing';
import type { OpenApiDocument } from './document.ts';

/** Models with OpenAI's protocol, with a translation to Anthropic's, and with a translation to Responses. */
const MODELS = ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5', 'openai/gpt-5-codex'];
const AT_ONCE = 16;
/** Number of malformed bodies for each body, unless all cases are tested. */
const SAMPLED_BODIES = 25;
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const SCHEMA = {
  type: 'object',
  properties: { at: { type: 'array', items: { enum: ['it'] }, minItems: 1 } },
  required: ['at'],
  additionalProperties: false,
};

const CHAT = {
  model: '',
  messages: [
    { role: 'system', content: 'Be brief.', name: 'house' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Hello' },
        { type: 'image_url', image_url: { url: PIXEL } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      reasoning_details: [{ type: 'reasoning.text', text: 'Well', signature: 'x' }],
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":"it"}' } }],
    },
    { role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'It is there.' }] },
    { role: 'assistant', content: 'There.', refusal: null },
    { role: 'user', content: '[[sandbox tokens=1]]' },
  ],
  max_completion_tokens: 64,
  temperature: 1,
  tools: [
    {
      type: 'function',
      function: { name: 'look', description: 'Looks', parameters: SCHEMA },
    },
  ],
  tool_choice: { type: 'function', function: { name: 'look' } },
  parallel_tool_calls: false,
  response_format: { type: 'json_schema', json_schema: { name: 'said', schema: SCHEMA } },
  reasoning: { effort: 'low', exclude: true },
  provider: { order: ['openai'], sort: { by: 'price' }, max_price: { prompt: 100 } },
  plugins: [{ id: 'web', enabled: false, max_results: 1 }],
  stop: ['end'],
  metadata: { tag: 'x' },
  stream_options: { include_usage: true },
  logit_bias: { 50256: -1 },
  user: 'someone',
  seed: 1,
};

const RESPONSE = {
  model: 'openai/gpt-5-mini',
  instructions: 'Be brief.',
  input: [
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'Hello' },
        { type: 'input_image', image_url: PIXEL },
      ],
    },
    { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"at":["it"]}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'It is there.' },
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'There.', annotations: [] }] },
    { role: 'user', content: '[[sandbox tokens=1]]' },
  ],
  max_output_tokens: 64,
  tools: [{ type: 'function', name: 'look', description: 'Looks', parameters: SCHEMA, strict: false }],
  tool_choice: { type: 'function', name: 'look' },
  reasoning: { effort: 'low', summary: 'auto' },
  text: { format: { type: 'json_schema', name: 'said', schema: SCHEMA }, verbosity: 'low' },
  metadata: { tag: 'x' },
  include: ['reasoning.encrypted_content'],
  store: false,
};

const MESSAGE = {
  model: 'anthropic/claude-haiku-4.5',
  max_tokens: 64,
  system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Hello' },
        { type: 'image', source: { type: 'url', url: PIXEL } },
      ],
    },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: ['it'] } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'It is there.' }] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Well', signature: 'x' },
        { type: 'text', text: 'There.' },
      ],
    },
    { role: 'user', content: '[[sandbox tokens=1]]' },
  ],
  tools: [{ name: 'look', description: 'Looks', input_schema: SCHEMA }],
  tool_choice: { type: 'tool', name: 'look' },
  thinking: { type: 'disabled' },
  stop_sequences: ['end'],
  metadata: { user_id: 'someone' },
};

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  world.contracts.allowInvalidValues();
  account = await world.createAccount(105);
});
afterAll(() => world.close());

const money = async () => (await world.post('/credits/balance', undefined, account)).body;

/** Returns the responses that are neither a success nor a 4xx. */
async function faults(route: string, bodies: Iterable<Malformed>): Promise<readonly string[]> {
  const found: string[] = [];
  const left = sampleCases([...bodies], SAMPLED_BODIES)[Symbol.iterator]();
  const work = async () => {
    for (let next = left.next(); !next.done; next = left.next()) {
      const { change, body } = next.value;
      const { status, text } = await world.post(route, body, account);
      if (status !== 200 && (status < 400 || status >= 500)) found.push(`${change}: ${status} ${text.slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return found;
}

describe('one malformed member causes no server error', () => {
  test.each(MODELS)('in a chat with %s', async (model) => {
    expect(await faults('/v1/chat/completions', generateMalformed({ ...CHAT, model }))).toEqual([]);
  });

  test('in embeddings', async () => {
    const body = { model: 'openai/text-embedding-3-small', input: ['one', 'two'], dimensions: 8, user: 'someone' };
    const more = { provider: { order: ['openai'] }, encoding_format: 'float' };
    expect(await faults('/v1/embeddings', generateMalformed({ ...body, ...more }))).toEqual([]);
    expect(await faults('/v1/embeddings', generateMalformed({ ...body, input: [[1, 2], [3]] }))).toEqual([]);
  });

  test('in a response', async () => {
    expect(await faults('/v1/responses', generateMalformed(RESPONSE))).toEqual([]);
  });

  test('in a message', async () => {
    expect(await faults('/v1/messages', generateMalformed(MESSAGE))).toEqual([]);
  });

  test('and leaves no money held', async () => {
    expect((await money()).held_usd).toBe(0);
  });
});
const spoken = (message: JsonObject) => ({ messages: [{ role: 'user', content: 'Hello' }, message] });

describe('the error names what is malformed:', () => {
  const CASES: readonly (readonly [path: string, must: string, JsonObject])[] = [
    ['model', 'a non-empty string', { model: '' }],
    ['messages', 'a non-empty array', { messages: [] }],
    ['messages[0]', 'an object', { messages: [null] }],
    ['messages[0].role', 'a string', { messages: [{ content: 'x' }] }],
    ['messages[1].content[0]', 'an object', spoken({ role: 'user', content: [null] })],
    ['messages[1].content[0].type', 'a string', spoken({ role: 'user', content: [{ text: 'x' }] })],
    ['messages[1].content', 'a string or an array or null', spoken({ role: 'user', content: {} })],
    ['messages[1].tool_calls[0]', 'an object', spoken({ role: 'assistant', tool_calls: [null] })],
    ['messages[1].tool_calls[0].function', 'an object', spoken({ role: 'assistant', tool_calls: [{ id: 'x' }] })],
    ['messages[1].reasoning_details[0]', 'an object', spoken({ role: 'assistant', reasoning_details: [null] })],
    ['tools[0]', 'an object', { tools: [null] }],
    ['tools[0].type', 'a string', { tools: [{}] }],
    ['tools[0].function', 'an object', { tools: [{ type: 'function', name: 'look' }] }],
    ['tools[0].function.name', 'a string', { tools: [{ type: 'function', function: {} }] }],
    ['tool_choice.function', 'an object', { tool_choice: { type: 'function' } }],
    ['plugins[0].id', '"web": there is no other plugin', { plugins: [{}] }],
    ['plugins[0].id', '"web": there is no other plugin', { plugins: [{ id: 'moderation' }] }],
    ['metadata', 'an object', { metadata: 'x' }],
    ['logit_bias', 'an object', { logit_bias: [[50_256, -1]] }],
    ...['hello', '-1', '1.5', '1e3', '007', '', '1000000'].map(
      (id) => ['logit_bias', 'token ids from 0 to 999999', { logit_bias: { 50256: -1, [id]: 1 } }] as const,
    ),
  ];
  test.each(CASES)('%s', async (path, must, more) => {
    const { length: before } = await world.listEvents();
    const index = CASES.findIndex(([, , other]) => other === more);
    for (const model of sampleCases(MODELS, 1, index)) {
      const body = { model, messages: [{ role: 'user', content: 'Hello' }], ...more };
      const answer = await world.post('/v1/chat/completions', body, account);
      expect([answer.status, answer.body.error.param]).toEqual([400, path]);
      expect(answer.body.message).toContain(must);
    }
    expect((await world.listEvents()).length).toBe(before);
  });

  test('metadata that is nested 5,000 levels deep', async () => {
    const metadata = `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`;
    for (const model of MODELS) {
      const body = `{"model":"${model}","messages":[{"role":"user","content":"Hello"}],"metadata":${metadata}}`;
      const answer = await world.post('/v1/chat/completions', body, account);
      expect([answer.status, answer.body.message]).toEqual([
        400,
        expect.stringContaining('nested deeper than 64 levels'),
      ]);
    }
  });

  test.each(['/v1/chat/completions', '/v1/responses', '/v1/embeddings'])('an empty model name at %s', async (route) => {
    const answer = await world.post(
      route,
      { model: '', messages: [{ role: 'user', content: 'x' }], input: 'x' },
      account,
    );
    expect([answer.status, answer.body.error.param]).toEqual([400, 'model']);
  });
});

describe('a private model', () => {
  const messages = [{ role: 'user', content: 'x' }];
  const form = (type: string, field: string, model: string) => {
    const fields = new FormData();
    fields.append('model', model);
    fields.append('prompt', 'x');
    fields.append(field, new Blob([Buffer.from(PIXEL.split(',')[1] ?? '', 'base64')], { type }), 'file');
    return fields;
  };
  const asJson = (more: object) => (model: string) => ({ model, ...more });
  const routes: readonly (readonly [route: string, body: (model: string) => unknown])[] = [
    ['/v1/chat/completions', asJson({ messages })],
    ['/v1/completions', asJson({ prompt: 'x' })],
    ['/v1/responses', asJson({ input: 'x', stream: true })],
    ['/v1/responses/input_tokens', asJson({ input: 'x' })],
    ['/v1/responses/compact', asJson({ input: 'x' })],
    ['/v1/messages', asJson({ messages, max_tokens: 5 })],
    ['/v1/messages/count_tokens', asJson({ messages })],
    ['/v1/embeddings', asJson({ input: 'x' })],
    ['/v1/images/generations', asJson({ prompt: 'x' })],
    ['/v1/images/edits', (model) => form('image/png', 'image', model)],
    ['/v1/videos', asJson({ prompt: 'x' })],
    ['/v1/audio/speech', asJson({ input: 'x', voice: 'any' })],
    ['/v1/audio/transcriptions', (model) => form('audio/mpeg', 'file', model)],
  ];
  const refused = [
    400,
    'model',
    'Private models are only reachable through the local encrypting proxy: see "Private models" in the documentation at /docs',
  ];

  test.each(routes)(
    'is rejected at %s with the same message, with or without a suffix, and appends no event',
    async (route, body) => {
      const { length: before } = await world.listEvents();
      for (const model of ['private/gpt-oss-120b', 'private/gpt-oss-120b:nitro', 'private/no-such']) {
        const answer = await world.post(route, body(model), account);
        const { param = 'model', message } = answer.body.error; // Anthropic's format has no param
        expect([answer.status, param, message]).toEqual(refused);
      }
      const stranger = await world.post(route, body('private/gpt-oss-120b'));
      expect([400, 401]).toContain(stranger.status);
      expect((await world.post(route, body('Private/gpt-oss-120b'), account)).status).toBe(404);
      expect((await world.listEvents()).length).toBe(before);
    },
  );
});

describe('every operation with a body', () => {
  /** More bytes than an anonymous caller may send, with or without files. */
  const LARGE = 100 * 1024 * 1024;
  let operations: readonly { method: string; path: string; isPublic: boolean; type: string; asks: boolean }[];
  beforeAll(async () => {
    const { paths }: OpenApiDocument = (await world.get('/openapi.json')).body;
    operations = Object.entries(paths).flatMap(([template, methods]) =>
      Object.entries(methods).flatMap(([method, { requestBody, security, parameters, responses }]) => {
        if (!requestBody) return [];
        const example = (name: string) => String(parameters.find((each) => each.name === name)?.example ?? 'x');
        const path = template.replaceAll(/\{(\w+)\}/g, (_, name) => example(name));
        const isPublic = security.length === 0 || security.some((each) => Object.keys(each).length === 0);
        const [type = ''] = Object.keys(requestBody.content);
        return [{ method: method.toUpperCase(), path, isPublic, type, asks: responses['402'] !== undefined }];
      }),
    );
  });

  /** Returns the status of the response to a request whose body is never sent. */
  async function unsent(method: string, path: string, headers: object): Promise<number | undefined> {
    const sent = request(`${world.api}${path}`, { method, headers: { ...headers }, agent: false });
    sent.on('error', () => {});
    sent.flushHeaders();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    sent.destroy();
    return answer.statusCode;
  }

  test('rejects a large body of an anonymous caller before a byte of it is sent', async () => {
    expect(operations.length).toBeGreaterThan(30);
    const asked = operations.flatMap((each) => [
      { ...each, length: { 'content-length': LARGE } },
      ...(each.isPublic || each.asks ? [] : [{ ...each, length: { 'transfer-encoding': 'chunked' } }]),
    ]);
    const answers = asked.map(async ({ method, path, type, length }) => {
      return [method, path, await unsent(method, path, { 'content-type': `${type}; boundary=x`, ...length })];
    });
    const read = (await Promise.all(answers)).filter(([, , status]) => ![401, 402, 413].includes(status as number));
    expect(read).toEqual([]);
  });

  test('rejects JSON that is nested deeper than 64 levels', async () => {
    const body = `{"a":${'['.repeat(64)}${']'.repeat(64)}}`;
    const credentials = { authorization: `Bearer ${account.apiKey}`, 'x-credit-id': account.creditId };
    const headers = { 'content-type': 'application/json', ...credentials };
    const { length: before } = await world.listEvents();
    const answers = operations
      .filter(({ type }) => type === 'application/json')
      .map(async ({ method, path }) => {
        const answer = await fetch(`${world.api}${path}`, { method, headers, body });
        const text = await answer.text();
        return [method, path, answer.status, text.includes('nested deeper than 64 levels')];
      });
    const taken = (await Promise.all(answers)).filter(([, , status, isNamed]) => status !== 400 || !isNamed);
    expect(taken).toEqual([]);
    expect((await world.listEvents()).length).toBe(before);
  });
});
