import { createOpenAI } from '@ai-sdk/openai';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';
import { type TestAccount, TestWorld } from '#testing';

const GPT = 'openai/gpt-4.1-mini';
const CLAUDE = 'anthropic/claude-haiku-4.5';
const TOOLS = [{ type: 'web_search' as const }];
const SEARCHING = 'What is new? [[sandbox tool=web_search tool_times=2]]';
const FAILING = `[[sandbox tool=web_search text=${JSON.stringify(JSON.stringify({ query: '[[sandbox fault=500 at=exa]]' }))}]]`;

let world: TestWorld;
let account: TestAccount;
let client: OpenAI;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(5);
  client = new OpenAI({ apiKey: account.apiKey, baseURL: `${world.api}/v1`, maxRetries: 0 });
});
afterAll(() => world.close());

type Item = { readonly type: string; readonly [field: string]: unknown };
// biome-ignore lint/suspicious/noExplicitAny: events of any shape
type Event = any;

const streamed = async (body: object): Promise<readonly Event[]> =>
  (await world.post('/v1/responses', { stream: true, ...body }, account)).events.filter((event) => event !== '[DONE]');

/** Checks that a client can assemble the items from the events, by their index. */
function assertCoherent(events: readonly Event[]): void {
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, i) => i));
  const open = new Map<number, string>();
  let next = 0;
  for (const { type, output_index, item, item_id } of events) {
    if (type === 'response.output_item.added') {
      expect(output_index).toBe(next++);
      open.set(output_index, item.id);
    } else if (output_index !== undefined) {
      expect(open.get(output_index)).toBe(item_id ?? item.id);
      if (type === 'response.output_item.done') open.delete(output_index);
    }
  }
  expect(open.size).toBe(0);
  const done = events.flatMap(({ type, item }) => (type === 'response.output_item.done' ? [item] : []));
  expect(events.at(-1).response.output).toEqual(done);
}

describe.each([
  ['a model that calls the search tool', { model: GPT, tools: TOOLS, input: SEARCHING }, 2],
  ['a plugin', { model: GPT, plugins: [{ id: 'web' }], input: 'What is new?' }, 1],
  [':online', { model: `${GPT}:online`, input: 'What is new?' }, 1],
  ['a model that searches by itself', { model: CLAUDE, tools: TOOLS, input: SEARCHING }, 2],
])('a response with searches by %s', (_, body, searches) => {
  test('has an item for each search before the message, which has the sources', async () => {
    const { output } = (await world.post('/v1/responses', body, account)).body;
    const items = output as readonly Item[];
    expect(items.map(({ type }) => type)).toEqual([...Array(searches).fill('web_search_call'), 'message']);
    expect(items[0]).toEqual({
      type: 'web_search_call',
      id: expect.stringMatching(/^ws_/),
      status: 'completed',
      action: { type: 'search', query: expect.any(String) },
    });
    expect(items.at(-1)).toMatchObject({ content: [{ annotations: expect.arrayContaining([expect.anything()]) }] });
  });

  test('streams the items of all searches, with the events of the first one in order', async () => {
    const events = await streamed(body);
    assertCoherent(events);
    const items = events.at(-1).response.output as readonly Item[];
    expect(items.map(({ type }) => type)).toEqual([...Array(searches).fill('web_search_call'), 'message']);
    const [{ id }] = items as [Item];
    const ofSearch = events.filter(({ item, item_id }) => (item?.id ?? item_id) === id);
    expect(ofSearch.map(({ type }) => type.replace('response.', ''))).toEqual([
      'output_item.added',
      'web_search_call.in_progress',
      'web_search_call.searching',
      'web_search_call.completed',
      'output_item.done',
    ]);
  });

  test('is read by OpenAI’s client', async () => {
    const stream = client.responses.stream(body as never);
    const response = await stream.finalResponse();
    expect(response.output.filter(({ type }) => type === 'web_search_call')).toHaveLength(searches);
    expect(response.output_text).toMatch(/^every coin/);
  });
});

test('returns a failed search with the status failed', async () => {
  const body = { model: GPT, tools: TOOLS, input: FAILING };
  const { output } = (await world.post('/v1/responses', body, account)).body;
  expect(output[0]).toMatchObject({ type: 'web_search_call', status: 'failed' });
  const events = await streamed(body);
  assertCoherent(events);
  expect(events.some(({ type }) => type === 'response.web_search_call.completed')).toBe(false);
});

test('continues a response with searches', async () => {
  const first = await client.responses.create({ model: GPT, tools: TOOLS, input: SEARCHING });
  const next = await client.responses.create({ model: GPT, input: 'And?', previous_response_id: first.id });
  expect(next.status).toBe('completed');
  const history = [{ role: 'user', content: 'Before' }, ...first.output, { role: 'user', content: 'And?' }];
  expect((await client.responses.create({ model: GPT, input: history as never })).status).toBe('completed');
});

describe('the AI SDK', () => {
  const options = () => {
    const openai = createOpenAI({ apiKey: account.apiKey, baseURL: `${world.api}/v1` });
    const tools = { web_search: openai.tools.webSearch({ searchContextSize: 'low' }) };
    return { model: openai.responses(GPT), prompt: SEARCHING, tools, maxRetries: 0 };
  };

  test('receives the searches and sources of a response', async () => {
    const { text, toolCalls, sources } = await generateText(options());
    expect(text).toMatch(/^every coin/);
    expect(toolCalls.map(({ toolName }) => toolName)).toEqual(['web_search', 'web_search']);
    expect(sources.length).toBeGreaterThan(0);
  });

  test('receives searches from a stream', async () => {
    const result = streamText(options());
    const errors: unknown[] = [];
    for await (const part of result.fullStream) if (part.type === 'error') errors.push(part.error);
    expect(errors).toEqual([]);
    expect(await result.text).toMatch(/^every coin/);
    expect((await result.toolCalls).map(({ toolName }) => toolName)).toEqual(['web_search', 'web_search']);
  });
});
