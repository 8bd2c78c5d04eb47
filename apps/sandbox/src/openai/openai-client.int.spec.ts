import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let client: OpenAI;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  client = new OpenAI({ apiKey: 'any', baseURL: `${sandbox.url}/openai/v1`, maxRetries: 0 });
});
afterAll(() => sandbox.close());

const prompt = (content: string) => ({ model: 'gpt-5-mini', messages: [{ role: 'user' as const, content }] });

describe("OpenAI's own client", () => {
  test('reads a chat completion', async () => {
    const { choices, usage } = await client.chat.completions.create(prompt('[[sandbox text=Yes reasoning=3]]'));
    expect(choices[0]).toMatchObject({ message: { content: 'Yes' }, finish_reason: 'stop' });
    expect(usage?.completion_tokens).toBe(4);
  });

  test('reads a stream', async () => {
    const stream = client.chat.completions.stream({
      ...prompt('[[sandbox tokens=8 chunks=3]]'),
      stream_options: { include_usage: true },
    });
    const { choices, usage } = await stream.finalChatCompletion();
    expect(choices[0]?.message.content).toBe('every coin that comes in is counted twice');
    expect(usage?.completion_tokens).toBe(8);
  });

  test('receives a tool call, non-streaming or streamed, and then text', async () => {
    const parameters = { type: 'object', properties: { city: { enum: ['Zürich', 'Ur'] } }, required: ['city'] };
    const tools = [{ type: 'function' as const, function: { name: 'weather', parameters } }];
    const asked = { ...prompt('[[sandbox tool=any chunks=2]]'), tools };
    const answers = [
      await client.chat.completions.create(asked),
      await client.chat.completions.stream(asked).finalChatCompletion(),
    ];
    for (const { choices } of answers) {
      const [choice] = choices;
      expect(choice?.finish_reason).toBe('tool_calls');
      const call = { type: 'function', function: { name: 'weather', arguments: '{"city":"Zürich"}' } };
      expect(choice?.message).toMatchObject({ content: null, tool_calls: [call] });
      const result = {
        role: 'tool' as const,
        tool_call_id: choice?.message.tool_calls?.[0]?.id ?? '',
        content: 'sunny',
      };
      const messages = [...asked.messages, choice?.message ?? [], result].flat();
      const next = await client.chat.completions.create({ ...asked, messages });
      expect(next.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: expect.any(String) } });
    }
  });

  test.each([
    ['required', 'tool_calls'],
    ['auto', 'stop'],
    ['none', 'stop'],
  ] as const)('without a directive, gets a tool call only if one is required: %s', async (tool_choice, reason) => {
    const tools = [{ type: 'function' as const, function: { name: 'now' } }];
    const { choices } = await client.chat.completions.create({ ...prompt('Hello'), tools, tool_choice });
    expect(choices[0]?.finish_reason).toBe(reason);
  });

  test('receives a call of a custom tool with plain text, non-streaming or streamed', async () => {
    const tools = [{ type: 'custom' as const, custom: { name: 'python' } }];
    const request = { ...prompt('[[sandbox tool=python text="1 + 1"]]'), tools };
    const { choices } = await client.chat.completions.create(request);
    expect(choices[0]?.message.tool_calls).toMatchObject([
      { type: 'custom', custom: { name: 'python', input: '1 + 1' } },
    ]);
    const deltas: { type?: string; custom?: { input?: string } }[] = [];
    for await (const chunk of await client.chat.completions.create({ ...request, stream: true }))
      deltas.push(...(chunk.choices[0]?.delta.tool_calls ?? []));
    expect(deltas[0]).toMatchObject({ type: 'custom', custom: { name: 'python', input: '' } });
    expect(deltas.map(({ custom }) => custom?.input).join('')).toBe('1 + 1');
  });

  test('gets a call of an allowed tool only', async () => {
    const tools = ['now', 'weather'].map((name) => ({ type: 'function' as const, function: { name } }));
    const allow = (name: string, mode: 'auto' | 'required') => ({
      ...prompt('Hello'),
      tools,
      tool_choice: {
        type: 'allowed_tools' as const,
        allowed_tools: { mode, tools: [{ type: 'function', function: { name } }] },
      },
    });
    const { choices } = await client.chat.completions.create(allow('weather', 'required'));
    expect(choices[0]?.message.tool_calls).toMatchObject([{ function: { name: 'weather' } }]);
    const auto = await client.chat.completions.create(allow('weather', 'auto'));
    expect(auto.choices[0]?.finish_reason).toBe('stop');
    await expect(client.chat.completions.create(allow('other', 'auto'))).rejects.toThrow("'other' not found");
  });

  test('lists the models and retrieves one', async () => {
    const ids = (await client.models.list()).data.map(({ id }) => id);
    expect(ids).toEqual(
      expect.arrayContaining(['gpt-5-mini', 'gpt-5.4-mini', 'gpt-4o-mini', 'flat', 'gpt-image-2', 'tts-1']),
    );
    expect(await client.models.retrieve('flat')).toMatchObject({ id: 'flat', object: 'model' });
    await expect(client.models.retrieve('gpt-6')).rejects.toBeInstanceOf(OpenAI.NotFoundError);
  });

  test('receives an error in the middle of a stream', async () => {
    const stream = client.chat.completions.stream(prompt('[[sandbox fault=error]]'));
    await expect(stream.finalChatCompletion()).rejects.toBeInstanceOf(OpenAI.APIError);
  });

  test.each([
    ['400', OpenAI.BadRequestError],
    ['429', OpenAI.RateLimitError],
    ['500', OpenAI.InternalServerError],
    ['overloaded', OpenAI.InternalServerError],
    ['error', OpenAI.InternalServerError],
    ['refuse', OpenAI.APIConnectionError],
  ])('throws the matching error class for the fault %s', async (fault, error) => {
    await expect(client.chat.completions.create(prompt(`[[sandbox fault=${fault}]]`))).rejects.toBeInstanceOf(error);
  });
});
