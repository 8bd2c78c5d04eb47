/** The web search of xAI's models at the simulated OpenRouter. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const GROK = 'x-ai/grok-4.3';
const plugin = { id: 'web', engine: 'native' };
const tool = { type: 'openrouter:web_search', parameters: { engine: 'native' } };

async function ask(directive: string, fields: object): Promise<Response> {
  const messages = [{ role: 'user', content: `[[sandbox ${directive}]]` }];
  const body = JSON.stringify({ model: GROK, messages, ...fields });
  return fetch(`${sandbox.url}/openrouter/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer any' },
    body,
  });
}

async function complete(directive: string, fields: object) {
  const response = await ask(directive, fields);
  expect(response.status).toBe(200);
  const { choices, usage } = (await response.json()) as {
    choices: { message: { content: string; annotations: object[] } }[];
    usage: Record<string, unknown>;
  };
  return { message: choices[0]?.message, usage };
}

async function stream(directive: string, fields: object) {
  const more = { stream: true, stream_options: { include_usage: true } };
  const text = await (await ask(directive, { ...fields, ...more })).text();
  const events = text.split('\n\n').filter((event) => event.startsWith('data: {'));
  const chunks = events.map((event) => JSON.parse(event.slice(6)));
  return {
    annotations: chunks.flatMap(({ choices }) => choices[0]?.delta.annotations ?? []),
    usage: chunks.at(-1)?.usage,
  };
}

/** Returns the models and the USD of the bill, and its total. */
async function readBill() {
  const lines = (await (await fetch(`${sandbox.url}/bill/lines`)).json()) as { model: string; usd: string }[];
  const { total_usd } = (await (await fetch(`${sandbox.url}/bill`)).json()) as { total_usd: string };
  return { models: lines.map(({ model }) => model), usds: lines.map(({ usd }) => usd), total: Number(total_usd) };
}

const cite = (at: number) => ({
  type: 'url_citation',
  url_citation: { url: `https://site1.example/${at}`, title: 'Page 1', start_index: 0, end_index: 3 },
});

describe.each([
  ['the plugin', { plugins: [plugin] }],
  ['the server tool', { tools: [tool] }],
])('a search by %s', (_, fields) => {
  const directive = 'text=Yes tool=web_search tool_times=2';

  test('has sources and is counted in the usage, and its cost is part of the reported one', async () => {
    const { message, usage } = await complete(directive, fields);
    expect(message).toMatchObject({ content: 'Yes', annotations: [cite(1), cite(2)] });
    expect(usage).toMatchObject({ server_tool_use_details: { web_search_requests: 2 } });

    const { models, usds, total } = await readBill();
    expect(models).toEqual([GROK, 'openrouter/web_search', 'openrouter/web_search']);
    expect(usds.slice(1)).toEqual(['0.005', '0.005']);
    expect(usage.cost).toBe(total);
  });

  test('is streamed in the same way', async () => {
    const { annotations, usage } = await stream(directive, fields);
    expect(annotations).toEqual([cite(1), cite(2)]);
    expect(usage).toMatchObject({ server_tool_use_details: { web_search_requests: 2 } });
    expect(usage.cost).toBe((await readBill()).total);
  });

  test('that fails is not billed', async () => {
    const { message, usage } = await complete(`${directive} fault=500 at=web_search`, fields);
    expect(message?.annotations).toEqual([]);
    expect(usage).toMatchObject({ server_tool_use_details: { web_search_requests: 0 } });
    expect((await readBill()).models).toEqual([GROK]);
  });

  test('is not billed with a usage of zero', async () => {
    const { usage } = await complete(`${directive} fault=zero`, fields);
    expect(usage).toMatchObject({ cost: 0, server_tool_use_details: { web_search_requests: 0 } });
    expect(await readBill()).toEqual({ models: [GROK], usds: ['0'], total: 0 });
  });
});

test('the plugin always searches, and the server tool only if the model decides so', async () => {
  expect((await complete('tokens=2', { plugins: [plugin] })).message?.annotations).toHaveLength(1);
  const { message, usage } = await complete('tokens=2', { tools: [tool] });
  expect(message?.annotations).toEqual([]);
  expect(usage).not.toHaveProperty('server_tool_use_details');
});

test('max_uses does not limit the searches of xAI', async () => {
  const limited = { tools: [{ ...tool, parameters: { engine: 'native', max_uses: 1 } }] };
  const { usage } = await complete('text=Yes tool=web_search tool_times=40', limited);
  expect(usage).toMatchObject({ server_tool_use_details: { web_search_requests: 40 } });
});

test('a function is called in addition to the server tool', async () => {
  const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };
  const { message, usage } = await complete('tool=weather', { tools: [weather, tool] });
  expect(message).toMatchObject({ tool_calls: [{ function: { name: 'weather' } }] });
  expect(usage).not.toHaveProperty('server_tool_use_details');
});

const six = Array.from({ length: 6 }, (_, i) => `${i}.example`);
test.each<[string, object]>([
  ['another engine', { plugins: [{ id: 'web', engine: 'exa' }] }],
  ['no engine', { tools: [{ type: 'openrouter:web_search' }] }],
  ['a search of X', { plugins: [{ ...plugin, x_search: {} }] }],
  ['too many domains', { plugins: [{ ...plugin, exclude_domains: six }] }],
  ['both lists of domains', { plugins: [{ ...plugin, include_domains: ['a'], exclude_domains: ['b'] }] }],
  ['a model without a search', { model: 'mistralai/mistral-large-2512', plugins: [plugin] }],
])('a search with %s is rejected', async (_, fields) => {
  const response = await ask('tokens=2', fields);
  expect([response.status, await response.json()]).toEqual([
    400,
    { error: { code: 400, message: expect.stringContaining('Invalid web search in') } },
  ]);
});

test.each([{ id: 'web', enabled: false }, { id: 'response-healing' }])(
  'the plugin %j does not search',
  async (other) => {
    expect((await complete('tokens=2', { plugins: [other] })).message?.annotations).toEqual([]);
  },
);
