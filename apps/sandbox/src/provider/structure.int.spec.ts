/** Tests structured output and parallel tool calls in all three protocols, with the clients of OpenAI and Anthropic. */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import OpenAI from 'openai';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let openai: OpenAI;
let anthropic: Anthropic;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  openai = new OpenAI({ apiKey: 'any', baseURL: `${sandbox.url}/openai/v1`, maxRetries: 0, logLevel: 'off' });
  anthropic = new Anthropic({ apiKey: 'any', baseURL: `${sandbox.url}/anthropic`, maxRetries: 0 });
});
afterAll(() => sandbox.close());

const GPT = 'gpt-5-mini';
const user = (content: string) => [{ role: 'user' as const, content }];
/** Returns the output tokens of each line on the bill. */
const billed = async () => {
  const lines = (await (await fetch(`${sandbox.url}/bill/lines`)).json()) as { tokens: { output: number } }[];
  return lines.map(({ tokens }) => tokens.output);
};

const schema = {
  type: 'object' as const,
  properties: { city: { type: 'string', enum: ['Ur', 'Zürich'] }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
};

/** Requests structured output for a message, and returns the output as text. */
type Ask = (content: string) => Promise<string>;
const STRUCTURED: Readonly<Record<string, Ask>> = {
  async 'a chat'(content) {
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'weather', schema } };
    const asked = { model: GPT, messages: user(content), response_format };
    return (await openai.chat.completions.create(asked)).choices[0]?.message.content ?? '';
  },
  async 'a streamed chat'(content) {
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'weather', schema } };
    const asked = { model: GPT, messages: user(content), response_format };
    let text = '';
    for await (const { choices } of await openai.chat.completions.create({ ...asked, stream: true }))
      text += choices[0]?.delta.content ?? '';
    return text;
  },
  async 'a response'(input) {
    const text = { format: { type: 'json_schema' as const, name: 'weather', schema } };
    return (await openai.responses.create({ model: GPT, input, text })).output_text;
  },
  async 'a message'(content) {
    const output_config = { format: { type: 'json_schema' as const, schema } };
    const asked = { model: 'claude-haiku-4-5', max_tokens: 100, messages: user(content), output_config };
    const [block] = (await anthropic.messages.create(asked)).content;
    return block?.type === 'text' ? block.text : '';
  },
};

describe('structured output', () => {
  test.each(Object.entries(STRUCTURED))('matches its schema and is repeatable: %s', async (_, ask) => {
    const conforms = new Ajv2020().compile(schema);
    const answers: string[] = [];
    for (const content of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const answer = await ask(content);
      expect(conforms(JSON.parse(answer))).toBe(true);
      expect(await ask(content)).toBe(answer);
      answers.push(answer);
    }
    expect(new Set(answers).size).toBeGreaterThan(1);
  });

  test.each(Object.entries(STRUCTURED))('gives way to text or tokens of a directive: %s', async (_, ask) => {
    expect(await ask('[[sandbox text=Yes]]')).toBe('Yes');
    expect(await ask('[[sandbox tokens=2]]')).toBe('every coin');
  });

  test('without a schema is a JSON object', async () => {
    const chat = await openai.chat.completions.create({
      model: GPT,
      messages: user('JSON'),
      response_format: { type: 'json_object' },
    });
    const { output_text } = await openai.responses.create({
      model: GPT,
      input: 'JSON',
      text: { format: { type: 'json_object' } },
    });
    for (const text of [chat.choices[0]?.message.content, output_text])
      expect(JSON.parse(text ?? '')).toEqual(expect.objectContaining({ answer: expect.any(String) }));
  });

  test('is truncated at the token limit', async () => {
    const response_format = { type: 'json_object' as const };
    const asked = { model: GPT, messages: user('JSON'), max_completion_tokens: 2, response_format };
    const [choice] = (await openai.chat.completions.create(asked)).choices;
    expect(choice).toMatchObject({ finish_reason: 'length', message: { content: '{"' } });
  });
});

describe('parallel tool calls', () => {
  const FUNCTION = { name: 'weather', parameters: schema };
  const TOKENS = 15;
  const content = 'Hi [[sandbox tools=2 chunks=3]]';
  const ARGUMENTS = { city: 'Ur', days: 1 };

  test('are returned in a chat, non-streaming or streamed, and all are billed', async () => {
    const asked = { model: GPT, messages: user(content), tools: [{ type: 'function' as const, function: FUNCTION }] };
    await fetch(`${sandbox.url}/bill`, { method: 'DELETE' });
    const chats = [
      await openai.chat.completions.create(asked),
      await openai.chat.completions.stream(asked).finalChatCompletion(),
    ];
    expect(await billed()).toEqual([2 * TOKENS, 2 * TOKENS]);
    for (const { choices, usage } of chats) {
      expect(usage?.completion_tokens ?? 2 * TOKENS).toBe(2 * TOKENS);
      const [choice] = choices;
      const calls = choice?.message.tool_calls as OpenAI.ChatCompletionMessageFunctionToolCall[];
      expect(calls.map((call) => JSON.parse(call.function.arguments))).toEqual([ARGUMENTS, ARGUMENTS]);
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
      const results = calls.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: 'sunny' }));
      const messages = [...asked.messages, choice?.message ?? [], results].flat();
      const next = await openai.chat.completions.create({ ...asked, messages });
      expect(next.choices[0]?.finish_reason).toBe('stop');
    }
  });

  test('are returned in a response, non-streaming or streamed, with events that are numbered in order', async () => {
    const asked = { model: GPT, input: content, tools: [{ type: 'function' as const, ...FUNCTION, strict: true }] };
    const stream = openai.responses.stream(asked);
    const numbers: number[] = [];
    stream.on('event', ({ sequence_number }) => numbers.push(sequence_number));
    for (const response of [await openai.responses.create(asked), await stream.finalResponse()]) {
      const calls = response.output as OpenAI.Responses.ResponseFunctionToolCall[];
      expect(calls.map(({ type, arguments: args }) => [type, JSON.parse(args)])).toEqual([
        ['function_call', ARGUMENTS],
        ['function_call', ARGUMENTS],
      ]);
      expect(new Set(calls.flatMap(({ id, call_id }) => [id, call_id])).size).toBe(4);
      expect(response.usage?.output_tokens).toBe(2 * TOKENS);
    }
    expect(numbers).toEqual([...numbers.keys()]);
  });

  test('are returned in a message, non-streaming or streamed', async () => {
    const tools = [{ name: 'weather', input_schema: schema }];
    const asked = { model: 'claude-haiku-4-5', max_tokens: 100, messages: user(content), tools };
    for (const message of [
      await anthropic.messages.create(asked),
      await anthropic.messages.stream(asked).finalMessage(),
    ]) {
      const calls = message.content as Anthropic.ToolUseBlock[];
      expect(calls.map(({ type, input }) => [type, input])).toEqual([
        ['tool_use', ARGUMENTS],
        ['tool_use', ARGUMENTS],
      ]);
      expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
      expect([message.stop_reason, message.usage.output_tokens]).toEqual(['tool_use', 2 * TOKENS]);
    }
  });

  test('are reduced to one if the request allows only one, or the token limit excludes the second', async () => {
    const asked = { model: GPT, messages: user(content), tools: [{ type: 'function' as const, function: FUNCTION }] };
    const one = await openai.chat.completions.create({ ...asked, parallel_tool_calls: false });
    expect(one.choices[0]).toMatchObject({ finish_reason: 'tool_calls', message: { tool_calls: [{}] } });
    const cut = await openai.chat.completions.create({ ...asked, max_completion_tokens: TOKENS + 1 });
    expect(cut.choices[0]).toMatchObject({ finish_reason: 'length', message: { tool_calls: [{}] } });
    expect(cut.usage?.completion_tokens).toBe(TOKENS);
  });
});
