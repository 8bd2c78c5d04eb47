import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Completion, CompletionStream, NativeSearch } from '#application';
import { readProviders } from '#catalogue';
import type { JsonObject } from '#kernel';
import { ProviderHttp } from '../../http/provider-http.ts';
import { createOpenAiProvider } from './index.ts';

const { dialect, bill } = readProviders().find(({ slug }) => slug === 'openrouter') ?? {};

/** What the provider has received: the path and the body. */
let received: { path: string | undefined; body: JsonObject }[] = [];
let answer = (_: ServerResponse): void => {};
let server: Server;
let provider: ReturnType<typeof createOpenAiProvider>;

async function handle(request: IncomingMessage, response: ServerResponse) {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  received.push({ path: request.url, body: JSON.parse(String(Buffer.concat(chunks))) });
  answer(response);
}

beforeAll(async () => {
  server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const http = new ProviderHttp(baseUrl, { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 }, 'any');
  provider = createOpenAiProvider({ http, credential: 'any' }, { dialect, bill });
});
afterAll(async () => {
  await provider.close();
  await new Promise((resolve) => server.close(resolve));
});
beforeEach(() => {
  received = [];
  answer = (response) => void response.end(JSON.stringify(COMPLETION));
});

const identity = { id: 'gen-1', model: 'x-ai/grok-4.3', provider: 'xAI', created: 7 };
const annotations = [
  {
    type: 'url_citation',
    url_citation: { url: 'https://x.example', title: 'An "error": none', start_index: 0, end_index: 3 },
  },
];
const tokens = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const usage = { ...tokens, cost: 0.0151, server_tool_use_details: { web_search_requests: 3 } };
const COMPLETION = {
  id: 'up-1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Yes', annotations }, finish_reason: 'stop' }],
  usage,
};

const SEARCH: NativeSearch = { maxUses: 2, isRequired: false, includeDomains: [], excludeDomains: [] };
const FUNCTION = { type: 'function', function: { name: 'weather' } };
const SETTINGS = { engine: 'native', max_uses: 2 };

const chat = (search: NativeSearch | undefined, fields: JsonObject = {}, stream = false) =>
  provider.chat({
    protocol: 'chat',
    protocols: ['chat'],
    body: { model: 'x-ai/grok-4.3', messages: [{ role: 'user', content: 'Hello' }], stream, ...fields },
    stream,
    withoutReasoning: false,
    identity,
    search,
    signal: new AbortController().signal,
  });

async function send(search: NativeSearch | undefined, fields: JsonObject = {}) {
  await chat(search, fields);
  const [request] = received;
  return { path: request?.path, plugins: request?.body.plugins, tools: request?.body.tools };
}

describe('a search in a chat with a model of a router', () => {
  test('is requested by the plugin if it is required', async () => {
    expect(await send({ ...SEARCH, isRequired: true }, { tools: [FUNCTION] })).toEqual({
      path: '/v1/chat/completions',
      plugins: [{ id: 'web', ...SETTINGS }],
      tools: [FUNCTION],
    });
  });

  test('is requested by the server tool, next to functions, if the model decides', async () => {
    const tool = { type: 'openrouter:web_search', parameters: SETTINGS };
    expect(await send(SEARCH)).toMatchObject({ plugins: undefined, tools: [tool] });
    received = [];
    expect(await send(SEARCH, { tools: [FUNCTION] })).toMatchObject({ tools: [FUNCTION, tool] });
  });

  test.each<[string, Partial<NativeSearch>, object, object]>([
    [
      'included domains',
      { includeDomains: ['a.example'] },
      { include_domains: ['a.example'] },
      { allowed_domains: ['a.example'] },
    ],
    [
      'excluded domains',
      { excludeDomains: ['a.example'] },
      { exclude_domains: ['a.example'] },
      { excluded_domains: ['a.example'] },
    ],
    [
      'a location',
      { location: { country: 'BR' }, isOffline: true },
      { user_location: { type: 'approximate', country: 'BR' } },
      { user_location: { type: 'approximate', country: 'BR' } },
    ],
  ])('has %s', async (_, options, ofPlugin, ofTool) => {
    const { plugins } = await send({ ...SEARCH, ...options, isRequired: true });
    expect(plugins).toEqual([{ id: 'web', ...SETTINGS, ...ofPlugin }]);
    received = [];
    const { tools } = await send({ ...SEARCH, ...options });
    expect(tools).toEqual([{ type: 'openrouter:web_search', parameters: { ...SETTINGS, ...ofTool } }]);
  });

  test.each(['includeDomains', 'excludeDomains'])('is rejected with more %s than xAI accepts', async (list) => {
    const search = { ...SEARCH, [list]: Array.from({ length: 6 }, (_, i) => `${i}.example`) };
    await expect(chat(search)).rejects.toMatchObject({ code: 'invalid_request' });
    expect(received).toEqual([]);
  });
});

describe("a caller's own search at a router", () => {
  const plugin = { id: 'web', engine: 'native', x_search: {}, max_uses: 9 };

  test.each<[string, NativeSearch | undefined, unknown]>([
    ['without a search of the gateway', undefined, undefined],
    ['with an optional search', SEARCH, undefined],
    ['with a required search', { ...SEARCH, isRequired: true }, [{ id: 'web', ...SETTINGS }]],
  ])('is not sent as a plugin, %s', async (_, search, plugins) => {
    const sent = await send(search, { plugins: [plugin], x_search_filter: {}, search });
    expect(sent.plugins).toEqual(plugins);
    expect(JSON.stringify(received)).not.toMatch(/x_search|"search"/);
  });

  test.each([undefined, SEARCH, { ...SEARCH, isRequired: true }])('is rejected as a tool (%j)', async (search) => {
    for (const type of ['openrouter:web_search', 'web_search'])
      await expect(chat(search, { tools: [{ type, parameters: plugin }] })).rejects.toMatchObject({
        code: 'invalid_request',
        param: 'tools[0].type',
      });
    expect(received).toEqual([]);
  });
});

/** Sends the completion as a stream, with its sources in a delta and the usage in the last chunk. */
function answerInChunks(lastUsage: object) {
  const head = { id: 'up-1', object: 'chat.completion.chunk', created: 1, model: 'theirs' };
  const chunk = (choices: readonly object[], more: object = {}) =>
    `data: ${JSON.stringify({ ...head, choices, ...more })}\n\n`;
  answer = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(
      chunk([{ index: 0, delta: { role: 'assistant', content: 'Yes' } }]) +
        chunk([{ index: 0, delta: { annotations } }]) +
        chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]) +
        chunk([], { usage: lastUsage }) +
        'data: [DONE]\n\n',
    );
  };
}

async function readStream(search: NativeSearch | undefined) {
  const response = (await chat(search, {}, true)) as CompletionStream;
  let text = '';
  await response.pipeTo((events) => {
    text += Buffer.from(events).toString();
    return undefined;
  });
  return { response, text };
}

describe('a response of a router with searches', () => {
  test('has the number of invoiced searches, and its sources', async () => {
    const { searches, body, reportedBill } = (await chat(SEARCH)) as Completion;
    expect(searches).toEqual({ statuses: [], invoiced: 3 });
    expect(body).toMatchObject({ ...identity, choices: [{ message: { content: 'Yes', annotations } }] });
    expect(reportedBill).toMatchObject({ cost: 15_100_000_000n });
  });

  test('has both in a stream', async () => {
    answerInChunks(usage);
    const { response, text } = await readStream(SEARCH);
    expect(response.countInvoicedSearches?.()).toBe(3);
    expect(text).toContain(JSON.stringify({ annotations }));
    expect(response.reportedBill?.()).toMatchObject({ cost: 15_100_000_000n });
  });

  test('has both if a stream was requested and a complete response arrives', async () => {
    const { response, text } = await readStream(SEARCH);
    expect(response.countInvoicedSearches?.()).toBe(3);
    expect(text).toContain(JSON.stringify(annotations));
  });

  test.each<[object, number]>([
    [{ server_tool_use: { web_search_requests: 2 } }, 2],
    [{ server_tool_use_details: { web_search_requests: 1 }, server_tool_use: { web_search_requests: 1 } }, 1],
    [{ server_tool_use_details: { web_search_requests: 0 } }, 0],
    [{ server_tool_use_details: { web_search_requests: 1_000 } }, 1_000],
    [{ server_tool_use_details: null }, 0],
    [{ server_tool_use_details: { tool_calls_requested: 4, web_search_requests: null } }, 0],
    ...[1_001, -1, 1.5, '2', 1e300, true].map((count): [object, number] => [
      { server_tool_use_details: { web_search_requests: count } },
      0,
    ]),
    [{}, 0],
  ])('with the usage %j has %i searches', async (reported, invoiced) => {
    const counted = { ...tokens, ...reported };
    answer = (response) => void response.end(JSON.stringify({ ...COMPLETION, usage: counted }));
    expect(((await chat(SEARCH)) as Completion).searches?.invoiced).toBe(invoiced);
    answerInChunks(counted);
    expect((await readStream(SEARCH)).response.countInvoicedSearches?.()).toBe(invoiced);
  });

  test('that no search was requested for is not charged for any', async () => {
    expect(await chat(undefined)).not.toHaveProperty('searches');
    answerInChunks(usage);
    expect((await readStream(undefined)).response).not.toHaveProperty('countInvoicedSearches');
  });

  test('has none without a usage', async () => {
    answer = (response) => void response.end(JSON.stringify({ ...COMPLETION, usage: undefined }));
    expect(await chat(SEARCH)).toMatchObject({ usage: undefined, searches: { invoiced: 0 } });
  });
});
