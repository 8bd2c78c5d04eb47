import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ChatCall, Completion, CompletionStream } from '#application';
import { readProviders, readRuleSets } from '#catalogue';
import { type JsonObject } from '#kernel';
import { extendDelay, extendTimeouts } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';
import { ProviderHttp } from '../../http/provider-http.ts';
import { createAnthropicProvider } from './index.ts';

const RULES = readRuleSets();
/** No other timeout lasts as long. */
const IDLE_MS = 59_000;
const timeouts = { connectTimeoutMs: 60_000, idleTimeoutMs: IDLE_MS };
const identity = { id: 'gen-1', model: 'anthropic/claude-haiku-4.5', provider: 'Anthropic', created: 7 };

const errorRules = readProviders().find(({ slug }) => slug === 'anthropic')?.errors;
const anthropicAt = (baseUrl: string) =>
  createAnthropicProvider({ http: new ProviderHttp(baseUrl, timeouts, 'any', { errorRules }), credential: 'any' });

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let chat: ReturnType<typeof createAnthropicProvider>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  chat = anthropicAt(`${sandbox.url}/anthropic`);
});
afterAll(async () => {
  await chat.close();
  await sandbox.close();
});

function createCall(content: string, more: object = {}, signal = new AbortController().signal): ChatCall {
  const body: JsonObject = { model: 'claude-haiku-4-5', messages: [{ role: 'user', content }], ...more };
  const modelRules = body.model === 'claude-opus-4-7' ? RULES['anthropic-adaptive'] : undefined;
  return {
    protocol: 'chat' as const,
    protocols: ['chat' as const],
    body,
    ...(modelRules ? { modelRules } : {}),
    stream: false,
    withoutReasoning: false,
    identity,
    signal,
  };
}

async function whole(content: string, more?: object): Promise<Completion> {
  const answer = await chat.chat(createCall(content, more));
  if (answer.kind !== 'complete') throw new Error('a stream');
  return answer;
}

interface Streamed {
  readonly answer: CompletionStream;
  // biome-ignore lint/suspicious/noExplicitAny: chunks of every shape
  readonly chunks: readonly any[];
  readonly failure: unknown;
}

async function stream(content: string, more?: object): Promise<Streamed> {
  const answer = await chat.chat({ ...createCall(content, more), stream: true });
  if (answer.kind !== 'stream') throw new Error('not a stream');
  let text = '';
  const relay = answer.pipeTo((events) => {
    text += Buffer.from(events).toString();
    return undefined;
  });
  const failure = await relay.then(
    () => undefined,
    (error) => error,
  );
  const events = text.split('\n\n').filter((event) => event !== '');
  return { answer, chunks: events.map((event) => JSON.parse(event.replace('data: ', ''))), failure };
}

const deltas = ({ chunks }: Streamed, field: string): string =>
  chunks.map(({ choices }) => choices[0].delta[field] ?? '').join('');

/** Input tokens are those of the directive and of the message format, as the sandbox counts them. */
const usage = (input: number, output: number, more: object = {}) => {
  return { input, cacheRead: 0, cacheWrite: 0, output, reasoning: 0, ...more };
};

describe('a response (non-streaming unless stated)', () => {
  test('is a chat completion with the identity of the call', async () => {
    const { body, usage: used, getDeliveredText: deliveredText } = await whole('[[sandbox text=Yes]]');
    expect(body).toEqual({
      ...identity,
      object: 'chat.completion',
      created: expect.any(Number),
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Yes', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      system_fingerprint: null,
    });
    expect(used).toEqual(usage(15, 1));
    expect(deliveredText()).toBe('Yes');
  });

  test.each(['claude-opus-4-7', 'claude-opus-4-6'])('includes the reasoning of %s', async (model) => {
    const more = { model, temperature: 0.5, top_k: 3, reasoning: { effort: 'high' } };
    const { body } = await whole('[[sandbox text=Yes reasoning=3]]', more);
    expect(body.choices).toMatchObject([{ message: { content: 'Yes', reasoning: 'every coin that' } }]);
  });

  test.each([true, false])('has no reasoning if the request excludes it (streamed: %s)', async (streamed) => {
    const call = createCall('[[sandbox text=Yes reasoning=3]]', { reasoning: { max_tokens: 1_024 } });
    const answer = await chat.chat({ ...call, stream: streamed, withoutReasoning: true });
    let text = answer.kind === 'complete' ? JSON.stringify(answer.body) : '';
    if (answer.kind === 'stream') {
      await answer.pipeTo((events) => {
        text += Buffer.from(events).toString();
        return undefined;
      });
    }
    expect(text).toContain('Yes');
    expect(text).not.toMatch(/reasoning|every coin/);
    expect(answer.getDeliveredText()).toBe('every coin thatYes');
  });

  test('includes the reasoning and reports its tokens separately', async () => {
    const more = { reasoning: { max_tokens: 1_024 } };
    const { body, usage: used } = await whole('[[sandbox text=Yes reasoning=3]]', more);
    const details = [{ type: 'reasoning.text', text: 'every coin that', signature: expect.any(String) }];
    expect(body.choices).toMatchObject([
      { message: { content: 'Yes', reasoning: 'every coin that', reasoning_details: details } },
    ]);
    expect(used).toMatchObject({ output: 1, reasoning: 3 });
  });

  test('has the finish reason "length" at the output limit', async () => {
    const { body } = await whole('[[sandbox tokens=9]]', { max_completion_tokens: 2 });
    expect(body.choices).toMatchObject([{ finish_reason: 'length' }]);
  });

  test('reports cached tokens separately', async () => {
    expect((await whole('[[sandbox fault=cached]]')).usage).toEqual(usage(8, 16, { cacheRead: 7 }));
  });

  test('has a usage of zero if zero is reported, and no usage if none is reported', async () => {
    expect((await whole('[[sandbox fault=zero]]')).usage).toEqual(usage(0, 0));
    expect((await whole('[[sandbox fault=no_usage]]')).usage).toBeUndefined();
  });

  test.each([
    ['cut', 'upstream_error', 'ended the response early'],
    ['malformed', 'upstream_error', 'not a message'],
  ])('reports the received text after the fault %s, since it may be invoiced', async (fault, code, words) => {
    const failure = {
      code,
      message: expect.stringContaining(words),
      deliveredText: expect.stringMatching(/^every coin/),
    };
    await expect(whole(`[[sandbox fault=${fault}]]`)).rejects.toMatchObject(failure);
  });
});

describe('a stream', () => {
  test('consists of chat completion chunks with the identity of the call, and reports the exact usage', async () => {
    const streamed = await stream('[[sandbox tokens=8 chunks=3]]');
    expect(streamed.failure).toBeUndefined();
    expect(streamed.chunks).toHaveLength(1 + 3 + 1);
    for (const chunk of streamed.chunks) expect(chunk).toMatchObject({ ...identity, object: 'chat.completion.chunk' });
    expect(deltas(streamed, 'content')).toBe('every coin that comes in is counted twice');
    expect(streamed.chunks.at(-1).choices[0].finish_reason).toBe('stop');
    expect(streamed.answer.usage()).toEqual(usage(18, 8));
    expect(streamed.answer.getDeliveredText()).toBe('every coin that comes in is counted twice');
  });

  test('has the reasoning and the text in separate fields', async () => {
    const streamed = await stream('[[sandbox text=Yes reasoning=3]]', { reasoning: { effort: 'medium' } });
    expect([deltas(streamed, 'reasoning'), deltas(streamed, 'content')]).toEqual(['every coin that', 'Yes']);
    expect(streamed.answer.usage()).toMatchObject({ output: 1, reasoning: 3 });
  });

  test('reports cached tokens, zero tokens or no usage as Anthropic does', async () => {
    expect((await stream('[[sandbox fault=cached]]')).answer.usage()).toEqual(usage(8, 16, { cacheRead: 7 }));
    expect((await stream('[[sandbox fault=zero]]')).answer.usage()).toEqual(usage(0, 0));
    expect((await stream('[[sandbox fault=no_usage]]')).answer.usage()).toBeUndefined();
  });

  test.each([
    ['cut', 'The provider ended the response early'],
    ['error', 'The provider ended the response early'],
  ])('fails after the delivered text with the fault %s, without a usage', async (fault, message) => {
    const streamed = await stream(`[[sandbox tokens=8 chunks=8 fault=${fault}]]`);
    expect(streamed.failure).toMatchObject({ code: 'upstream_error', message });
    expect(streamed.answer.usage()).toBeUndefined();
    expect(streamed.answer.getDeliveredText()).toBe('every coin that comes ');
  });
});

describe('a tool', () => {
  const parameters = { type: 'object', properties: { city: { enum: ['Zürich', 'Ur'] } }, required: ['city'] };
  const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
  const called = { name: 'weather', arguments: '{"city":"Zürich"}' };

  test('is called, and its result is sent back', async () => {
    const content = '[[sandbox tool=weather]]';
    const { body } = await whole(content, { tools });
    const [choice] = body.choices as { message: { tool_calls: { id: string }[] }; finish_reason: string }[];
    expect(choice).toMatchObject({
      message: { content: null, tool_calls: [{ type: 'function', function: called }] },
      finish_reason: 'tool_calls',
    });
    const result = { role: 'tool', tool_call_id: choice?.message.tool_calls[0]?.id, content: 'sunny' };
    const next = await whole('', { tools, messages: [{ role: 'user', content }, choice?.message, result] });
    expect(next.body.choices).toMatchObject([{ finish_reason: 'stop' }]);
  });

  test('is called in chunks of a stream', async () => {
    const streamed = await stream('[[sandbox tool=any chunks=3]]', { tools, tool_choice: 'auto' });
    const pieces = streamed.chunks.flatMap(({ choices }) => choices[0].delta.tool_calls ?? []);
    expect(pieces[0]).toEqual({
      index: 0,
      id: expect.stringMatching(/^toolu_/),
      type: 'function',
      function: { name: 'weather', arguments: '' },
    });
    expect(pieces.map((piece) => piece.function.arguments).join('')).toBe(called.arguments);
    expect(streamed.chunks.at(-1).choices[0].finish_reason).toBe('tool_calls');
  });

  test.each([
    ['required', 'tool_calls'],
    [{ type: 'function', function: { name: 'weather' } }, 'tool_calls'],
    ['none', 'stop'],
  ])('is called or not as tool_choice requires: %j', async (tool_choice, reason) => {
    const { body } = await whole('Hello', { tools, tool_choice, parallel_tool_calls: false });
    expect(body.choices).toMatchObject([{ finish_reason: reason }]);
  });
});

describe('a failed call', () => {
  test.each([
    [
      '400',
      { code: 'invalid_request', status: 400, publicMessage: expect.stringContaining('as the sandbox was instructed') },
    ],
    ['429', { code: 'rate_limited', status: 429, retryAfterSeconds: 1 }],
    ['500', { code: 'upstream_error', status: 500, message: 'The provider responded with status 500' }],
    ['overloaded', { code: 'upstream_unavailable', status: 529 }],
    ['refuse', { code: 'upstream_unavailable', status: undefined }],
  ])('with %s has the same error whether or not it is streamed', async (fault, failure) => {
    await expect(whole(`[[sandbox fault=${fault}]]`)).rejects.toMatchObject({ ...failure, deliveredText: undefined });
    await expect(stream(`[[sandbox fault=${fault}]]`)).rejects.toMatchObject({ ...failure, deliveredText: undefined });
  });

  test('times out if its stream becomes idle, but not before the first output', async () => {
    let idle = extendTimeouts(IDLE_MS);
    const idling = stream('[[sandbox tokens=2 chunk_delay=60000]]');
    await idle.started;
    idle.end();
    expect((await idling).failure).toMatchObject({ code: 'timeout' });
    const LATENCY_MS = 1_000;
    idle = extendTimeouts(IDLE_MS);
    const generation = extendDelay(LATENCY_MS);
    const waiting = stream(`[[sandbox tokens=2 latency=${LATENCY_MS}]]`);
    await generation.started;
    idle.end(); // would end the stream if the timeout had started
    generation.end();
    const { chunks } = await waiting;
    expect(chunks.at(-1).choices[0].finish_reason).toBe('stop');
  });

  test('ends before anything is forwarded if its first event is not JSON', async () => {
    await expect(stream('[[sandbox fault=malformed]]')).rejects.toMatchObject({ code: 'upstream_error' });
  });

  test('is not sent to Anthropic if a parameter is unsupported', async () => {
    await expect(whole('Hello', { n: 2 })).rejects.toMatchObject({ code: 'invalid_request', status: undefined });
  });
});

describe('a response states how much thinking its request permits', () => {
  const tools = [{ type: 'function', function: { name: 'find', parameters: { type: 'object', properties: {} } } }];

  test.each<[string, object, number | undefined]>([
    ['nothing, if none was requested', {}, 0],
    ['nothing, if it is turned off', { reasoning: { enabled: false, max_tokens: 2_000 } }, 0],
    ['nothing, with the effort none', { reasoning: { effort: 'none' } }, 0],
    ['nothing, if a tool must be called', { reasoning: { effort: 'high' }, tools, tool_choice: 'required' }, 0],
    ['the requested budget', { reasoning: { max_tokens: 2_000 } }, 2_000],
    ['the smallest budget of Anthropic', { reasoning: { max_tokens: 20 } }, 1_024],
    ['the budget of an effort', { reasoning: { effort: 'medium' }, max_completion_tokens: 4_000 }, 2_000],
    ['any amount, if the model chooses it', { model: 'claude-opus-4-7', reasoning: { max_tokens: 2_000 } }, undefined],
  ])('%s', async (_, more, permitted) => {
    const { answer } = await stream('[[sandbox text=Yes]]', more);
    expect(answer.maxReasoningTokens).toBe(permitted);
  });
});
