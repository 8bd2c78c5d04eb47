import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createOpenAI } from '@ai-sdk/openai';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OpenRouter } from '@openrouter/sdk';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import OpenAI, { APIError } from 'openai';
import { TestWorld } from '#testing';

const MODEL = 'openai/gpt-5-mini';
/** A model whose endpoint supports only chat completions. */
const TRANSLATED = 'google/gemini-2.5-flash';
const COST = 0.00001028625;
const WEATHER = {
  type: 'function' as const,
  name: 'weather',
  description: 'Returns the weather',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
  strict: true,
};

/**
 * Starts a provider whose model reasons, sends text and calls the weather tool. Once the model has the result of the
 * tool, it returns that result with a source.
 */
function startUpstream(): Promise<Server> {
  const citation = { url: 'https://x.example', title: 'X', start_index: 0, end_index: 5 };
  const deltas = (weather: string | undefined) =>
    weather === undefined
      ? [
          { role: 'assistant', content: '' },
          { reasoning: 'Weather' },
          { reasoning: '?' },
          { content: 'Let me see' },
          { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }] },
          { tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] },
          { tool_calls: [{ index: 0, function: { arguments: '"Zürich"}' } }] },
        ]
      : [
          { role: 'assistant', content: '' },
          { content: 'It is ' },
          { content: weather },
          { annotations: [{ type: 'url_citation', url_citation: citation }] },
        ];
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') return response.end('{}'); // a check of the key
    let text = '';
    for await (const piece of request) text += piece;
    const asked = JSON.parse(text);
    const weather = asked.messages.findLast(({ role }: { role: string }) => role === 'tool')?.content;
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const head = { id: 'x', created: 1, model: asked.model };
    const finish_reason = weather === undefined ? 'tool_calls' : 'stop';
    if (asked.stream) {
      const chunk = (more: object) =>
        `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...more })}\n\n`;
      const said = deltas(weather).map((delta) => chunk({ choices: [{ index: 0, delta, finish_reason: null }] }));
      const end = [chunk({ choices: [{ index: 0, delta: {}, finish_reason }] }), chunk({ choices: [], usage })];
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return response.end(`${[...said, ...end].join('')}data: [DONE]\n\n`);
    }
    const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Zürich"}' } };
    const message =
      weather === undefined
        ? { role: 'assistant', content: 'Let me see', reasoning: 'Weather?', tool_calls: [call] }
        : {
            role: 'assistant',
            content: `It is ${weather}`,
            annotations: [{ type: 'url_citation', url_citation: citation }],
          };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }], usage }),
    );
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

let upstream: Server;
/** Its provider is the sandbox. */
let world: TestWorld;
/** Address of a gateway whose provider is that of `startUpstream`. */
let toolApi: string;
let client: OpenAI;
let toolClient: OpenAI;
let key: string;
beforeAll(async () => {
  world = await TestWorld.open();
  key = (await world.createAccount(1.05)).apiKey;
  client = new OpenAI({ apiKey: key, baseURL: `${world.api}/v1`, maxRetries: 0 });
});
beforeAll(async () => {
  upstream = await startUpstream();
  const { port } = upstream.address() as AddressInfo;
  const connection = { baseUrl: `http://127.0.0.1:${port}/v1`, credential: undefined };
  toolApi = await world.addGateway({ providers: new Map([['openrouter', connection]]) });
  toolClient = new OpenAI({ apiKey: key, baseURL: `${toolApi}/v1`, maxRetries: 0 });
});
afterAll(async () => {
  await world.close();
  upstream.close();
});

const input = '[[sandbox tokens=3]]';
type Asked = Pick<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'model' | 'input' | 'tools'>;
const asking = { model: TRANSLATED, input: 'How is the weather?', tools: [WEATHER] };
const TOLD = { type: 'function_call_output' as const, call_id: 'call_1', output: 'fine' };

describe("OpenAI's client", () => {
  test('creates a response', async () => {
    const response = await client.responses.create({ model: MODEL, input });
    expect([response.status, response.output_text]).toEqual(['completed', 'every coin that']);
    expect(response.usage).toMatchObject({ input_tokens: 15, output_tokens: 3, cost: COST });
  });

  test('streams a response to its end', async () => {
    const stream = client.responses.stream({ model: MODEL, input });
    let text = '';
    stream.on('response.output_text.delta', ({ delta }) => {
      text += delta;
    });
    const response = await stream.finalResponse();
    expect([text, response.status, response.output_text]).toEqual(['every coin that', 'completed', 'every coin that']);
    expect(response.usage).toMatchObject({ total_tokens: 18, cost: COST });
  });

  test('reads a response that ended early', async () => {
    const stream = client.responses.stream({ model: MODEL, input: '[[sandbox fault=cut tokens=8]]' });
    const response = await stream.finalResponse();
    expect(response).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
  });

  test('reads a response that reached its limit', async () => {
    const stream = client.responses.stream({ model: MODEL, input: '[[sandbox tokens=9]]', max_output_tokens: 2 });
    const response = await stream.finalResponse();
    expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
  });

  test.each([false, true])('parses structured output (stream: %p)', async (streamed) => {
    const format = { type: 'json_schema' as const, name: 's', schema: { type: 'object' }, strict: false };
    const asked = { model: MODEL, input: `[[sandbox text=${JSON.stringify('{"a":1}')}]]`, text: { format } };
    const parsed = streamed ? client.responses.stream(asked).finalResponse() : client.responses.parse(asked);
    const response = await parsed;
    expect(response.output_text).toBe('{"a":1}');
    expect(response.output_parsed).toEqual({ a: 1 });
    expect(response.text?.format).toMatchObject(format);
  });

  test('continues, retrieves and deletes a response', async () => {
    const first = await client.responses.create({ model: MODEL, input: 'Hello' });
    const second = await client.responses.create({ model: MODEL, input, previous_response_id: first.id });
    expect(second.usage?.input_tokens).toBeGreaterThan(15);
    expect(await client.responses.retrieve(first.id)).toEqual(first);
    await client.responses.delete(first.id);
    await expect(client.responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 });
  });

  test('throws an APIError with the status, the field and the type', async () => {
    const refused = client.responses.create({
      model: MODEL,
      input,
      tools: [{ type: 'code_interpreter', container: 'x' }],
    });
    const error = await refused.catch((error) => error);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status: 400, param: 'tools[0].type', type: 'invalid_request_error' });
  });

  test.each([false, true])(
    'sends the result of a tool call with the complete conversation (stream: %p)',
    async (streamed) => {
      const create = (asked: Asked) =>
        streamed ? toolClient.responses.stream(asked).finalResponse() : toolClient.responses.create(asked);
      const first = await create(asking);
      expect(first.output).toMatchObject([
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Weather?' }], status: 'completed' },
        { type: 'message', content: [{ text: 'Let me see' }], status: 'completed' },
        {
          type: 'function_call',
          call_id: 'call_1',
          name: 'weather',
          arguments: '{"city":"Zürich"}',
          status: 'completed',
        },
      ]);
      const question = { role: 'user' as const, content: asking.input };
      const second = await create({
        ...asking,
        input: [question, ...(first.output as OpenAI.Responses.ResponseInputItem[]), TOLD],
      });
      expect(second.output_text).toBe('It is fine');
      expect(second.output).toMatchObject([
        { content: [{ annotations: [{ type: 'url_citation', url: 'https://x.example' }] }] },
      ]);
    },
  );

  test('sends the result of a tool call by continuing the response', async () => {
    const { id } = await toolClient.responses.create(asking);
    const second = await toolClient.responses.create({ ...asking, previous_response_id: id, input: [TOLD] });
    expect(second.output_text).toBe('It is fine');
  });

  test('receives the events of all items in order', async () => {
    const types: string[] = [];
    for await (const { type } of await toolClient.responses.create({ ...asking, stream: true })) types.push(type);
    expect(types.map((type) => type.replace('response.', ''))).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ]);
  });
});

describe("OpenRouter's client, which validates every field and event", () => {
  const clientOf = (api: string) => new OpenRouter({ apiKey: key, serverURL: `${api}/v1` });

  test.each([false, true])('reads a response (with tools: %p)', async (tools) => {
    const router = clientOf(tools ? toolApi : world.api);
    const responsesRequest = tools ? asking : { model: MODEL, input, metadata: { a: 'x' } };
    const response = await router.beta.responses.send({ responsesRequest });
    expect(response).toMatchObject({ status: 'completed', usage: { cost: expect.any(Number) } });
    expect(response).toMatchObject({ outputText: tools ? 'Let me see' : 'every coin that' });
  });

  test.each([false, true])('reads a stream (with tools: %p)', async (tools) => {
    const router = clientOf(tools ? toolApi : world.api);
    const responsesRequest = tools
      ? { ...asking, stream: true as const }
      : { model: MODEL, input, stream: true as const };
    const types: string[] = [];
    const events = (await router.beta.responses.send({ responsesRequest })) as unknown as AsyncIterable<{
      type: string;
    }>;
    for await (const { type } of events) types.push(type);
    expect(types).not.toContain('UNKNOWN');
    expect([types[0], types.at(-1)]).toEqual(['response.created', 'response.completed']);
  });

  test.each(['fault=cut tokens=8', 'tokens=9'])('reads a stream that fails or is incomplete: %s', async (directive) => {
    const router = clientOf(world.api);
    const more = { input: `[[sandbox ${directive}]]`, maxOutputTokens: 4, stream: true as const };
    const types: string[] = [];
    const events = (await router.beta.responses.send({
      responsesRequest: { model: MODEL, ...more },
    })) as unknown as AsyncIterable<{ type: string }>;
    for await (const { type } of events) types.push(type);
    expect(types.at(-1)).toBe(directive === 'tokens=9' ? 'response.incomplete' : 'response.failed');
  });
});

describe("Vercel's client", () => {
  const modelOf = (apiKey: string, { api }: TestWorld) =>
    createOpenAI({ apiKey, baseURL: `${api}/v1` }).responses(MODEL);

  test('generates text', async () => {
    const { text, usage } = await generateText({ model: modelOf(key, world), prompt: input });
    expect([text, usage.totalTokens]).toEqual(['every coin that', 18]);
  });

  test.each([MODEL, 'anthropic/claude-haiku-4.5', TRANSLATED])(
    'calls a tool after reasoning, and continues the conversation (%s)',
    async (name) => {
      const model = createOpenAI({ apiKey: key, baseURL: `${world.api}/v1` }).responses(name);
      const weather = tool({
        inputSchema: jsonSchema<{ city: string }>(WEATHER.parameters as object),
        execute: ({ city }) => `Sun in ${city}`,
      });
      const question = { role: 'user' as const, content: '[[sandbox tool=weather reasoning=3]]' };
      const options = { model, tools: { weather }, stopWhen: stepCountIs(3), maxRetries: 0 };
      const first = await generateText({ ...options, messages: [question] });
      expect([first.steps.length, first.finishReason]).toEqual([2, 'stop']);
      const more = { role: 'user' as const, content: '[[sandbox tokens=3]]' };
      const { text } = await generateText({ ...options, messages: [question, ...first.response.messages, more] });
      expect(text).toBe('every coin that');
    },
  );

  test.each([MODEL, 'anthropic/claude-haiku-4.5', TRANSLATED])(
    'calls a custom tool with text input (%s)',
    async (name) => {
      const openai = createOpenAI({ apiKey: key, baseURL: `${world.api}/v1` });
      const heard: unknown[] = [];
      const execute = async (sql: string) => {
        heard.push(sql);
        return 'Three rows';
      };
      const format = { type: 'grammar' as const, syntax: 'regex' as const, definition: 'SELECT .+' };
      const sql = openai.tools.customTool({ description: 'Queries', format });
      const written = name === MODEL ? '"SELECT 1"' : JSON.stringify(JSON.stringify({ input: 'SELECT 1' }));
      const options = {
        model: openai.responses(name),
        tools: { sql: { ...sql, execute } },
        stopWhen: stepCountIs(3),
        maxRetries: 0,
        prompt: `[[sandbox tool=sql text=${written}]]`,
      };
      const { steps, text } = await generateText(options as never);
      expect([steps.length, text]).toEqual([2, expect.stringMatching(/^every coin/)]);
      const streamed = streamText(options as never);
      expect(await streamed.text).toMatch(/^every coin/);
      expect(heard).toEqual(['SELECT 1', 'SELECT 1']);
    },
  );

  test('streams text', async () => {
    const { textStream } = streamText({ model: modelOf(key, world), prompt: input });
    let text = '';
    for await (const piece of textStream) text += piece;
    expect(text).toBe('every coin that');
  });
});
