import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { startSandbox } from '../../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let client: OpenAI;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  client = new OpenAI({ apiKey: 'any', baseURL: `${sandbox.url}/openai/v1`, maxRetries: 0, logLevel: 'off' });
});
afterAll(() => sandbox.close());

type Asked = OpenAI.Responses.ResponseCreateParamsNonStreaming;
const prompt = (input: Asked['input'], more: Partial<Asked> = {}) => ({ model: 'gpt-5-mini', input, ...more });
const both = async (asked: Asked) => [
  await client.responses.create(asked),
  await client.responses.stream({ ...asked } as never).finalResponse(),
];
const lines = async () =>
  (await fetch(`${sandbox.url}/bill/lines`)).json() as Promise<{ tokens: object; usd: string }[]>;

const WEATHER = {
  type: 'function' as const,
  name: 'weather',
  parameters: { type: 'object', properties: { city: { enum: ['Zürich'] } }, required: ['city'] },
  strict: false,
};

describe("OpenAI's own client", () => {
  test('reads a response, non-streaming or streamed', async () => {
    for (const response of await both(prompt('[[sandbox tokens=8 chunks=3]]'))) {
      expect(response).toMatchObject({ status: 'completed', model: 'gpt-5-mini-2025-08-07', store: true });
      expect(response.output_text).toBe('every coin that comes in is counted twice');
      expect(response.usage).toMatchObject({ output_tokens: 8 });
    }
  });

  test('reads reasoning with its summary, and sends it back encrypted', async () => {
    const asked = prompt('[[sandbox tokens=8 reasoning=5]]', {
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      store: false,
    });
    for (const response of await both(asked)) {
      expect(response.output.map(({ type }) => type)).toEqual(['reasoning', 'message']);
      expect(response.output[0]).toMatchObject({ summary: [{ type: 'summary_text' }] });
      expect(response.usage?.output_tokens_details.reasoning_tokens).toBe(5);
      const question = { role: 'user' as const, content: 'Hi' };
      const next = await client.responses.create(prompt([question, ...response.output, question] as Asked['input']));
      const without = await client.responses.create(prompt([question, response.output[1], question] as Asked['input']));
      expect((next.usage?.input_tokens ?? 0) - (without.usage?.input_tokens ?? 0)).toBe(5);
    }
  });

  test('sends reasoning back without its id, as stateless clients do', async () => {
    const asked = prompt('[[sandbox tokens=8 reasoning=5]]', { include: ['reasoning.encrypted_content'] });
    const { output } = await client.responses.create(asked);
    const { id: _, ...thought } = output[0] as OpenAI.Responses.ResponseReasoningItem;
    const next = await client.responses.create(
      prompt([
        { role: 'user', content: 'Hi' },
        thought,
        output[1],
        { role: 'user', content: 'Go on' },
      ] as Asked['input']),
    );
    expect(next.status).toBe('completed');
  });

  test('receives a tool call with plain text, and sends the output of the tool back', async () => {
    const tools = [{ type: 'custom' as const, name: 'python' }];
    const user = { role: 'user' as const, content: '[[sandbox tool=python text="1 + 1"]]' };
    for (const { output } of await both(prompt([user], { tools }))) {
      const [call] = output as [OpenAI.Responses.ResponseCustomToolCall];
      expect(call).toMatchObject({ type: 'custom_tool_call', name: 'python', input: '1 + 1' });
      const said = { type: 'custom_tool_call_output' as const, call_id: call.call_id, output: '2' };
      const next = await client.responses.create(prompt([user, call, said], { tools }));
      expect(next.output_text).toMatch(/^every coin/);
    }
  });

  test('receives a call of the allowed tool, and an error if the request does not offer that tool', async () => {
    const tools = [WEATHER, { ...WEATHER, name: 'tide' }];
    const allowed = (name: string) => ({
      type: 'allowed_tools' as const,
      mode: 'required' as const,
      tools: [{ type: 'function', name }],
    });
    const { output } = await client.responses.create(prompt('Hi', { tools, tool_choice: allowed('tide') }));
    expect(output[0]).toMatchObject({ type: 'function_call', name: 'tide' });
    await expect(client.responses.create(prompt('Hi', { tools, tool_choice: allowed('moon') }))).rejects.toThrow(
      /moon/,
    );
  });

  test('receives a call, and then text', async () => {
    const asked = prompt('[[sandbox tool=any]]', { tools: [WEATHER] });
    for (const { output } of await both(asked)) {
      const [call] = output;
      expect(call).toMatchObject({ type: 'function_call', name: 'weather', arguments: '{"city":"Zürich"}' });
      const { call_id } = call as OpenAI.Responses.ResponseFunctionToolCall;
      const result = { type: 'function_call_output' as const, call_id, output: 'sunny' };
      const input = [{ role: 'user', content: asked.input }, call, result] as Asked['input'];
      expect((await client.responses.create({ ...asked, input })).output[0]?.type).toBe('message');
    }
  });

  test.each(['required', { type: 'function', name: 'weather' }])('forces a call: tool_choice %j', async (choice) => {
    const tool_choice = choice as NonNullable<Asked['tool_choice']>;
    const { output } = await client.responses.create(prompt('Hello', { tools: [WEATHER], tool_choice }));
    expect(output[0]?.type).toBe('function_call');
  });

  test('parses structured output', async () => {
    const format = { type: 'json_schema' as const, name: 's', schema: { type: 'object' } };
    const parsed = await client.responses.parse(prompt('[[sandbox text="{\\"a\\":1}"]]', { text: { format } }));
    expect(parsed.output_parsed).toEqual({ a: 1 });
  });

  test('reads a response that reached the output limit', async () => {
    for (const response of await both(prompt('[[sandbox tokens=40]]', { max_output_tokens: 16 }))) {
      expect(response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
      expect(response.usage?.output_tokens).toBe(16);
    }
  });

  test('reads the log probabilities of each token', async () => {
    const asked = { include: ['message.output_text.logprobs' as const], top_logprobs: 2, model: 'gpt-4o-mini' };
    for (const response of await both({ ...prompt('[[sandbox tokens=3]]'), ...asked })) {
      const [item] = response.output as OpenAI.Responses.ResponseOutputMessage[];
      const [part] = (item?.content ?? []) as OpenAI.Responses.ResponseOutputText[];
      expect(part?.logprobs?.map(({ token }) => token)).toEqual(['every ', 'coin ', 'that']);
      expect(part?.logprobs?.[0]?.top_logprobs).toHaveLength(2);
    }
  });

  test('reads a response that failed in the middle of its stream', async () => {
    const stream = client.responses.stream({ ...prompt('[[sandbox fault=error tokens=8]]'), stream: true });
    const numbers: number[] = [];
    stream.on('event', ({ sequence_number }) => numbers.push(sequence_number));
    expect(await stream.finalResponse()).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect(numbers).toEqual([...numbers.keys()]);
  });

  test('sends images and files, which count as input tokens', async () => {
    const content = [
      { type: 'input_text' as const, text: 'Hi' },
      { type: 'input_image' as const, image_url: 'https://x.example/i.png', detail: 'auto' as const },
      { type: 'input_file' as const, file_data: 'data:application/pdf;base64,AA', filename: 'a.pdf' },
    ];
    const { usage } = await client.responses.create(prompt([{ role: 'user', content }]));
    expect(usage?.input_tokens).toBe(3 + 4 + 1 + 85 + 85);
  });
});

describe('a response', () => {
  test('costs the same as the equivalent chat', async () => {
    const content = '[[sandbox tokens=9 reasoning=4 fault=cached]]';
    const tool = { name: 'weather', parameters: WEATHER.parameters, strict: false };
    const messages = [
      { role: 'system' as const, content: 'Be brief' },
      { role: 'user' as const, content },
    ];
    await client.chat.completions.create({
      model: 'gpt-5-mini',
      messages,
      tools: [{ type: 'function', function: tool }],
    });
    await client.responses.create(prompt(content, { instructions: 'Be brief', tools: [WEATHER] }));
    const [chat, response] = (await lines()).slice(-2);
    expect([response?.tokens, response?.usd]).toEqual([chat?.tokens, chat?.usd]);
  });

  test('with too much input is rejected, or truncated on request', async () => {
    const long = { role: 'user' as const, content: 'word '.repeat(400_000) };
    const input = [long, { role: 'user' as const, content: 'Hi' }];
    await expect(client.responses.create(prompt(input))).rejects.toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    });
    const { usage } = await client.responses.create(prompt(input, { truncation: 'auto' }));
    expect(usage?.input_tokens).toBe(8);
  });

  test.each([
    [{ top_k: 3 }, { status: 400, param: 'top_k', code: 'unknown_parameter' }],
    [{ max_output_tokens: 15 }, { status: 400, code: 'integer_below_min_value' }],
    [{ previous_response_id: 'resp_x' }, { status: 400, code: 'previous_response_not_found' }],
    [{ include: ['everything'] }, { status: 400, param: 'include[0]' }],
    [{ include: ['message.output_text.logprobs'] }, { status: 400, param: 'include' }],
    [{ model: 'gpt-4o-mini', include: ['reasoning.encrypted_content'] }, { status: 400 }],
    [
      { model: 'gpt-4o-mini', reasoning: { effort: 'low' } },
      { status: 400, param: 'reasoning.effort' },
    ],
    [{ text: { format: { type: 'json_schema', schema: {} } } }, { status: 400, param: 'text.format.name' }],
    [{ input: [{ type: 'function_call_output', call_id: 'c', output: '' }] }, { status: 400, param: 'input' }],
    [{ input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }, { status: 404, param: 'input' }],
    [{ input: [{ type: 'message', role: 'user', content: [{ type: 'text', text: '' }] }] }, { status: 400 }],
    [{ input: [{ role: 'tool', content: 'x' }] }, { status: 400, param: 'input[0].role' }],
    [{ tools: [null] }, { status: 400, param: 'tools[0]' }],
    [
      {
        model: 'flat',
        input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,AA' }] }],
      },
      { status: 400, param: 'messages.[0].content.[0].type' },
    ],
    [{ tool_choice: 'required' }, { status: 400, param: 'tool_choice' }],
  ])('is an error for a request with %j', async (more, error) => {
    await expect(client.responses.create(prompt('Hello', more as Partial<Asked>))).rejects.toMatchObject(error);
  });
});

test.each(['400', '429', '500', 'overloaded', 'refuse', 'malformed'])('the fault %s costs nothing', async (fault) => {
  const before = (await lines()).length;
  for (const stream of [false, true]) {
    const asked = client.responses.create({ ...prompt(`[[sandbox fault=${fault}]]`), stream } as Asked);
    const read = async () => {
      for await (const _ of (await asked) as unknown as AsyncIterable<unknown>);
    };
    await expect(stream ? read() : asked.then(({ output }) => output.length)).rejects.toThrow();
  }
  expect((await lines()).length).toBe(before);
});

test('an interrupted stream is billed for its reasoning and the delivered chunks', async () => {
  const stream = await client.responses.create({
    ...prompt('[[sandbox fault=cut tokens=8 reasoning=2]]'),
    stream: true,
  });
  const read = async () => {
    for await (const _ of stream);
  };
  await expect(read()).rejects.toThrow();
  expect((await lines()).at(-1)?.tokens).toMatchObject({ output: 2 + 3 });
});
