import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let client: Anthropic;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  client = new Anthropic({ apiKey: 'any', baseURL: `${sandbox.url}/anthropic`, maxRetries: 0 });
});
afterAll(() => sandbox.close());

const prompt = (content: string) => ({
  model: 'claude-haiku-4-5',
  max_tokens: 2_000,
  messages: [{ role: 'user' as const, content }],
});

const weather: Anthropic.Tool = {
  name: 'weather',
  description: 'The weather somewhere',
  input_schema: {
    type: 'object',
    properties: { city: { type: 'string', enum: ['Zürich', 'Ur'] }, days: { type: 'integer', minimum: 2 } },
    required: ['city', 'days'],
  },
};
const called = { type: 'tool_use', name: 'weather', input: { city: 'Zürich', days: 2 } };

describe("Anthropic's own client", () => {
  test('reads a message', async () => {
    const { content, stop_reason, usage, model } = await client.messages.create(prompt('[[sandbox text=Yes]]'));
    expect(content).toEqual([{ type: 'text', text: 'Yes', citations: null }]);
    expect([stop_reason, model]).toEqual(['end_turn', 'claude-haiku-4-5-20251001']);
    expect(usage).toMatchObject({ input_tokens: 15, output_tokens: 1, cache_read_input_tokens: 0 });
  });

  test('reads a stream', async () => {
    const texts: string[] = [];
    const stream = client.messages
      .stream(prompt('[[sandbox tokens=8 chunks=3]]'))
      .on('text', (text) => texts.push(text));
    const { content, stop_reason, usage } = await stream.finalMessage();
    expect(content).toMatchObject([{ type: 'text', text: 'every coin that comes in is counted twice' }]);
    expect([texts.length, stop_reason, usage.output_tokens]).toEqual([3, 'end_turn', 8]);
  });

  test('reads thinking, non-streaming or streamed, if the request enables it', async () => {
    const asked = {
      ...prompt('[[sandbox text=Yes reasoning=3]]'),
      thinking: { type: 'enabled' as const, budget_tokens: 1_024 },
    };
    for (const message of [await client.messages.create(asked), await client.messages.stream(asked).finalMessage()]) {
      expect(message.content).toEqual([
        { type: 'thinking', thinking: 'every coin that', signature: expect.any(String) },
        { type: 'text', text: 'Yes', citations: null },
      ]);
      expect(message.usage).toMatchObject({ output_tokens: 4, output_tokens_details: { thinking_tokens: 3 } });
    }
    const { content } = await client.messages.create(prompt('[[sandbox text=Yes reasoning=3]]'));
    expect(content).toEqual([{ type: 'text', text: 'Yes', citations: null }]);
  });

  test('receives a tool call, non-streaming or streamed, and then text', async () => {
    const asked = { ...prompt('[[sandbox tool=weather]]'), tools: [weather] };
    for (const message of [await client.messages.create(asked), await client.messages.stream(asked).finalMessage()]) {
      expect(message.content).toEqual([expect.objectContaining(called)]);
      expect(message.stop_reason).toBe('tool_use');
      const [{ id } = { id: '' }] = message.content as Anthropic.ToolUseBlock[];
      const result = { type: 'tool_result' as const, tool_use_id: id, content: 'sunny' };
      const { content } = await client.messages.create({
        ...asked,
        messages: [
          ...asked.messages,
          { role: 'assistant', content: message.content },
          { role: 'user', content: [result] },
        ],
      });
      expect(content).toEqual([{ type: 'text', text: expect.any(String), citations: null }]);
    }
  });

  test.each<[Anthropic.ToolChoice, string]>([
    [{ type: 'any' }, 'tool_use'],
    [{ type: 'tool', name: 'weather' }, 'tool_use'],
    [{ type: 'auto' }, 'end_turn'],
    [{ type: 'none' }, 'end_turn'],
  ])('without a directive, gets a tool call only if one is required: %j', async (tool_choice, reason) => {
    const { stop_reason } = await client.messages.create({ ...prompt('Hello'), tools: [weather], tool_choice });
    expect(stop_reason).toBe(reason);
  });

  test('lists the models and retrieves one', async () => {
    const ids = (await client.models.list()).data.map(({ id }) => id);
    expect(ids.slice(0, 3)).toEqual(['claude-sonnet-4-6', 'claude-haiku-4-5-20251001', 'claude-opus-4-6']);
    expect(await client.models.retrieve('claude-opus-4-6')).toMatchObject({ display_name: 'Claude Opus 4.6' });
    await expect(client.models.retrieve('claude-2')).rejects.toBeInstanceOf(Anthropic.NotFoundError);
  });

  test.each([
    ['400', Anthropic.BadRequestError],
    ['429', Anthropic.RateLimitError],
    ['500', Anthropic.InternalServerError],
    ['overloaded', Anthropic.InternalServerError],
    ['error', Anthropic.InternalServerError],
    ['refuse', Anthropic.APIConnectionError],
  ])('throws the matching error class for the fault %s', async (fault, error) => {
    await expect(client.messages.create(prompt(`[[sandbox fault=${fault}]]`))).rejects.toBeInstanceOf(error);
  });

  test('receives an error in the middle of a stream', async () => {
    const stream = client.messages.stream(prompt('[[sandbox fault=error]]'));
    await expect(stream.finalMessage()).rejects.toBeInstanceOf(Anthropic.APIError);
  });

  test('reads web searches, non-streaming or streamed; each search is billed', async () => {
    const tools: Anthropic.WebSearchTool20250305[] = [{ type: 'web_search_20250305', name: 'web_search', max_uses: 2 }];
    const asked = { ...prompt('[[sandbox text=Yes tool=web_search tool_times=5]]'), tools };
    await fetch(`${sandbox.url}/bill`, { method: 'DELETE' });
    for (const message of [await client.messages.create(asked), await client.messages.stream(asked).finalMessage()]) {
      const kinds = message.content.map(({ type }) => type);
      const search = ['server_tool_use', 'web_search_tool_result'];
      expect(kinds).toEqual([...search, ...search, 'text']);
      expect(message.content[0]).toMatchObject({ name: 'web_search', input: { query: expect.any(String) } });
      expect(message.content[1]).toMatchObject({ content: [{ type: 'web_search_result' }, {}, {}] });
      expect(message.content.at(-1)).toMatchObject({
        text: 'Yes',
        citations: [{ type: 'web_search_result_location' }, {}],
      });
      expect(message.usage.server_tool_use?.web_search_requests).toBe(2);
      expect(message.stop_reason).toBe('end_turn');
      const history = [...asked.messages, { role: 'assistant' as const, content: message.content }];
      const next = { ...asked, messages: [...history, { role: 'user' as const, content: 'And?' }] };
      expect((await client.messages.create(next)).stop_reason).toBe('end_turn');
    }
    const lines = (await (await fetch(`${sandbox.url}/bill/lines`)).json()) as readonly {
      model: string;
      usd: string;
    }[];
    const searches = lines.filter(({ model }) => model === 'anthropic/web_search');
    expect(searches.map(({ usd }) => usd)).toEqual(['0.01', '0.01', '0.01', '0.01']);
  });
});
