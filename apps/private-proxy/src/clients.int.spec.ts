/** Tests that real client libraries can use an enclave if their base URL is that of the proxy. */
import { randomUUID } from 'node:crypto';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { generateText, isStepCount, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';
import { createLog } from '#foundation/program';
import { listCharges, sampleCases, slowTime, type TestAccount, TestWorld } from '#testing';
import { createEnclaveVerifier } from './attestation/verify-enclaves.ts';
import { type RunningProxy, startProxy } from './proxy.ts';
import { readProxySettings } from './settings.ts';

const ID = 'gpt-oss-120b';
const MODEL = `private/${ID}`;
const SAID = 'every coin that';
const ASKING = '[[sandbox tokens=3]]';
const CALLING = '[[sandbox tool=weather]]';
const PARAMETERS = {
  type: 'object' as const,
  properties: { city: { type: 'string', enum: ['Ur'] } },
  required: ['city'],
};
const WEATHER = {
  type: 'function' as const,
  function: { name: 'weather', description: 'The weather', parameters: PARAMETERS, function: (_: string) => 'fine' },
};

let world: TestWorld;
let account: TestAccount;
let proxy: RunningProxy;
let openai: OpenAI;
let anthropic: Anthropic;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(21);
  proxy = await start(account);
  openai = openaiAt(proxy);
  anthropic = anthropicAt(proxy);
});
afterAll(async () => {
  await proxy.close();
  await world.close();
});

function start({ apiKey }: TestAccount): Promise<RunningProxy> {
  const environment = { PPQ_API_KEY: apiKey, PPQ_API_BASE: world.api, PORT: '0', PRIVATE_MODEL: ID };
  const settings = readProxySettings({ ...environment, ALLOW_UNATTESTED: '1' });
  return startProxy(settings, createEnclaveVerifier(settings), createLog('fatal'));
}

const openaiAt = ({ url }: RunningProxy) => new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 0 });
const anthropicAt = ({ url }: RunningProxy) => new Anthropic({ apiKey: 'none', baseURL: url, maxRetries: 0 });
const user = (content: string) => [{ role: 'user' as const, content }];
const refusalOf = (promise: PromiseLike<unknown>) =>
  Promise.resolve(promise).then(
    () => Promise.reject(new Error('the request was not rejected')),
    (error) => error,
  );

describe('openai', () => {
  test('returns a non-streaming and a streamed completion', async () => {
    const { choices, usage } = await openai.chat.completions.create({ model: MODEL, messages: user(ASKING) });
    expect([choices[0]?.message.content, usage?.completion_tokens]).toEqual([SAID, 3]);
    const stream = openai.chat.completions.stream({
      model: ID,
      messages: user(ASKING),
      stream_options: { include_usage: true },
    });
    const final = await stream.finalChatCompletion();
    expect([final.choices[0]?.message.content, final.usage?.completion_tokens]).toEqual([SAID, 3]);
  });

  test.each([false, true])('runs a tool, streamed: %s', async (stream) => {
    const asked = { model: MODEL, messages: user(CALLING), tools: [WEATHER] };
    const runner = stream
      ? openai.chat.completions.runTools({ ...asked, stream })
      : openai.chat.completions.runTools(asked);
    expect(await runner.finalContent()).toMatch(/^every coin/);
    expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });

  test('lists the private models and no others', async () => {
    const ids: string[] = [];
    for await (const { id, owned_by } of openai.models.list()) ids.push(`${id} of ${owned_by}`);
    expect(ids).toContain(`${MODEL} of ppq-private`);
    expect(ids.every((id) => id.startsWith('private/'))).toBe(true);
    expect((await openai.models.retrieve(MODEL)).id).toBe(MODEL);
  });
});

describe('@anthropic-ai/sdk', () => {
  const asked = (content: string) => ({ model: 'claude-sonnet-5', max_tokens: 500, messages: user(content) });

  test('returns a non-streaming message with the usage that is charged, and a streamed message', async () => {
    const message = await anthropic.messages.create(asked(ASKING));
    expect(message).toMatchObject({
      type: 'message',
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: SAID }],
    });
    const [charge] = listCharges((await world.listEvents(account)).slice(-1));
    expect(charge?.items[0]?.usage).toMatchObject({ input: message.usage.input_tokens, output: 3 });
    const streamed = await anthropic.messages.stream(asked(ASKING)).finalMessage();
    expect(streamed).toMatchObject({ content: message.content, usage: { output_tokens: 3 } });
  });

  test.each([false, true])('runs a tool, streamed: %s', async (stream) => {
    const ask = (messages: Anthropic.MessageParam[]) => {
      const body = { ...asked(''), messages, tools: [{ name: 'weather', input_schema: PARAMETERS }] };
      return stream ? anthropic.messages.stream(body).finalMessage() : anthropic.messages.create(body);
    };
    const first = await ask(user(CALLING));
    expect([first.stop_reason, first.content.map(({ type }) => type)]).toEqual(['tool_use', ['tool_use']]);
    const call = first.content[0] as Anthropic.ToolUseBlock;
    expect(call).toMatchObject({ name: 'weather', input: { city: 'Ur' } });
    const result = {
      type: 'tool_result' as const,
      tool_use_id: call.id,
      content: [{ type: 'text' as const, text: 'fine' }],
    };
    const second = await ask([
      ...user(CALLING),
      { role: 'assistant', content: first.content },
      { role: 'user', content: [result] },
    ]);
    expect(second.content).toMatchObject([{ type: 'text', text: expect.stringMatching(/^every coin/) }]);
  });

  test('can send Claude Code’s cache marks, effort, context_management and token limit above the maximum', async () => {
    const mark = { cache_control: { type: 'ephemeral' as const } };
    const stream = anthropic.beta.messages.stream({
      ...asked(''),
      max_tokens: 64_000,
      system: [
        { type: 'text', text: 'You are an agent.', ...mark },
        { type: 'text', text: 'Be brief.', ...mark },
      ],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi', ...mark },
            { type: 'text', text: ASKING, ...mark },
          ],
        },
      ],
      tools: [{ name: 'weather', input_schema: PARAMETERS, ...mark }],
      thinking: { type: 'adaptive' },
      output_config: { effort: 'max' },
      context_management: { edits: [] },
      betas: ['context-management-2025-06-27'],
      metadata: { user_id: 'u'.repeat(100) },
    });
    expect((await stream.finalMessage()).content.at(-1)).toMatchObject({ type: 'text', text: SAID });
    expect((await anthropic.messages.countTokens(asked('Hello'))).input_tokens).toBeGreaterThan(0);
  });
});

describe('the AI SDK', () => {
  const model = () =>
    createOpenAICompatible({ name: 'private', baseURL: `${proxy.url}/v1`, includeUsage: true })(MODEL);
  const weather = tool({ inputSchema: z.object({ city: z.enum(['Ur']) }), execute: async () => 'fine' });
  const acting = () => ({
    model: model(),
    prompt: CALLING,
    tools: { weather },
    stopWhen: isStepCount(3),
    maxRetries: 0,
  });

  test('runs a tool, non-streaming and streamed', async () => {
    const { steps, text } = await generateText(acting());
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
    expect(text).toMatch(/^every coin/);
    const streamed = streamText(acting());
    expect(await streamed.text).toMatch(/^every coin/);
    expect((await streamed.steps).map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
  });
});

describe('a failed request', () => {
  const chat = (content: string, stream: boolean) => ({ model: MODEL, messages: user(content), stream });
  const heard = async (content: string) => {
    const stream = await openai.chat.completions.create({ ...chat(content, true), stream: true });
    for await (const _ of stream);
  };

  const FAULTS = [
    'cut',
    'cut_frame',
    'no_done',
    'flipped',
    'replayed',
    'replayed_nonce',
    'plaintext',
    'plaintext_error',
    'malformed',
    'error',
    'refuse',
    '500',
    '429',
  ];
  const RECEIVERS: Readonly<Record<string, (prompt: string) => Promise<void>>> = {
    'a completion of OpenAI’s client': async (prompt) => {
      const failure = await refusalOf(openai.chat.completions.create(chat(prompt, false)));
      expect(failure.status).toBeGreaterThanOrEqual(429);
    },
    'a stream of OpenAI’s client': async (prompt) => {
      expect(await refusalOf(heard(prompt))).toBeInstanceOf(OpenAI.APIError);
    },
    'a stream of Anthropic’s client': async (prompt) => {
      const message = { model: MODEL, max_tokens: 50, messages: user(prompt) };
      expect(await refusalOf(anthropic.messages.stream(message).finalMessage())).toBeInstanceOf(Anthropic.APIError);
    },
  };

  test.each(
    FAULTS.flatMap((fault, i) =>
      sampleCases(Object.keys(RECEIVERS), 2, i).map((receiver) => [fault, receiver] as const),
    ),
  )('is an error, and not a completion: %s in %s', (fault, receiver) =>
    RECEIVERS[receiver]?.(`[[sandbox tokens=8 fault=${fault}]]`),
  );

  test('does not occur if only the enclave’s key has changed: the proxy attests the new key', async () => {
    await fetch(`${world.sandbox}/enclaves/${ID}/rotate`, { method: 'POST' });
    expect((await openai.chat.completions.create({ model: MODEL, messages: user(ASKING) })).choices).toHaveLength(1);
  });

  test('has the status with which the gateway rejects it', async () => {
    const poor = await start(await world.createAccount());
    expect(await refusalOf(openaiAt(poor).chat.completions.create(chat(ASKING, false)))).toMatchObject({ status: 402 });
    const refused = refusalOf(
      anthropicAt(poor).messages.create({ model: MODEL, max_tokens: 9, messages: user(ASKING) }),
    );
    expect(await refused).toMatchObject({ status: 402, error: { error: { type: 'billing_error' } } });
    await poor.close();
    const stranger = await start({ creditId: '', apiKey: 'sk-stranger' });
    expect(await refusalOf(openaiAt(stranger).chat.completions.create(chat(ASKING, false)))).toBeInstanceOf(
      OpenAI.AuthenticationError,
    );
    await stranger.close();
    const unknown = openai.chat.completions.create({ ...chat(ASKING, false), model: 'private/unknown' });
    expect(await refusalOf(unknown)).toBeInstanceOf(OpenAI.NotFoundError);
  });

  test('reports that the limit of its key was reached during a response: with 402 or as a stream event', async () => {
    const asked = {
      model: 'private/kimi-k3',
      max_tokens: 9_000,
      messages: user('[[sandbox tokens=4000 chunks=2000]]'),
    };
    const error = { message: 'The balance or the limit of the API key is used up; the response is incomplete' };
    const refused = await receiveRejection((capped) => openaiAt(capped).chat.completions.create(asked));
    expect(refused).toMatchObject({ status: 402, error: { ...error, code: 'insufficient_balance' } });
    let heard = 0;
    const { error: event } = await receiveRejection(async (capped) => {
      const events = await anthropicAt(capped).messages.create({ ...asked, stream: true });
      for await (const _ of events) heard++;
    });
    expect(event).toMatchObject({ error: { ...error, type: 'billing_error' }, request_id: expect.any(String) });
    expect(heard).toBeGreaterThan(2);
  });

  /** Calls a proxy whose key has a low limit. Its hold is extended in time, however busy the host is. */
  async function receiveRejection(call: (capped: RunningProxy) => PromiseLike<unknown>) {
    const capped = await startCapped();
    const rejection = await slowTime(() => refusalOf(call(capped)));
    await capped.close();
    return rejection;
  }

  /** Starts a proxy whose API key has a low spending limit. */
  async function startCapped(): Promise<RunningProxy> {
    const asked = {
      headers: { 'x-credit-id': account.creditId },
      body: { name: randomUUID().slice(0, 8), usage_limit_usd: 0.02 },
    };
    const { body } = await world.send('POST', '/keys', asked);
    return start({ ...account, apiKey: body.data.api_key });
  }

  test('is aborted in the enclave if its caller disconnects', async () => {
    await world.bill.clear();
    const stream = await openai.chat.completions.create({
      ...chat('[[sandbox tokens=400 chunks=400 chunk_delay=20000]]', true),
      stream: true,
    });
    for await (const _ of stream) break;
    const lineOf = async () => (await world.bill.fetchLines()).find(({ tokens }) => tokens.output < 400);
    await world.waitUntil(async () => (await lineOf()) !== undefined);
  });
});
