import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import type { Charge } from '#domain';
import { isEstimated, type TestAccount, TestWorld } from '#testing';

/** A model whose endpoint supports only the Responses API. */
const CODEX = 'openai/gpt-5-codex';

let world: TestWorld;
let account: TestAccount;
let client: OpenAI;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(5);
  client = new OpenAI({ apiKey: account.apiKey, baseURL: `${world.api}/v1`, maxRetries: 0, logLevel: 'off' });
});
afterAll(() => world.close());

const ask = (directive: string, more: object = {}) => world.sendChat(account, directive, { model: CODEX, ...more });
const lastLine = async () => {
  const lines = await world.bill.fetchLines();
  return lines.at(-1) as { id: string; usd: string };
};
const lastCharge = async () => {
  const settled = (await world.listEvents(account)).at(-1) as unknown as { data: { charge: Charge } };
  return settled.data.charge;
};
const pico = (usd: string) => String(BigInt(Math.round(Number(usd) * 1e12)));

const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'weather',
    parameters: { type: 'object', properties: { city: { enum: ['Zürich'] } }, required: ['city'] },
  },
};

describe('a chat with a model that supports only the Responses API', () => {
  test('has the format of a chat completion, and its charge matches the bill', async () => {
    const { body } = await ask('tokens=9 reasoning=4 fault=cached');
    expect(body).toMatchObject({
      id: expect.stringMatching(/^gen-/),
      object: 'chat.completion',
      model: CODEX,
      provider: 'OpenAI',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'every coin that comes in', refusal: null },
          finish_reason: 'stop',
        },
      ],
      usage: { completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 4 } },
    });
    const line = await lastLine();
    expect(line.id).toMatch(/^resp_/);
    expect(await lastCharge()).toMatchObject({ cost: pico(line.usd), items: [{ estimated: false }] });
  });

  test('is rejected with 402 if the money does not cover the minimum output of OpenAI', async () => {
    const headers = { 'x-credit-id': account.creditId };
    const { data } = (await world.send('POST', '/keys', { body: { name: 'poor', usage_limit_usd: 0.01 }, headers }))
      .body;
    const poor = { ...account, apiKey: data.api_key };
    const say = (words: number, more: object = {}) =>
      world.sendChat(poor, 'tokens=4', {
        model: CODEX,
        messages: [{ role: 'user', content: 'a '.repeat(words) }],
        ...more,
      });
    const affordable = async (words: number) =>
      Number((await say(words, { max_tokens: 4_096 })).body.error.metadata.affordable_tokens);
    let words = 0;
    for (let step = 4_096; step >= 1; step /= 2) if ((await affordable(words + step)) > 1) words += step;
    expect(await affordable(words)).toBeGreaterThan(1);
    expect(await affordable(words)).toBeLessThan(16);
    const { status, body } = await say(words);
    expect([status, body.error.type]).toEqual([402, 'key_limit_exceeded']);
    expect(body.message).toMatch(/not enough for this input$/);
  });

  test('is streamed as chat completion chunks', async () => {
    const { events } = await ask('tokens=5 reasoning=2', { stream: true });
    const deltas = events.slice(0, -2).map(({ choices: [choice] }) => [choice.delta, choice.finish_reason]);
    expect(deltas).toEqual([
      [{ role: 'assistant', content: '' }, null],
      [{ content: 'every ' }, null],
      [{ content: 'coin ' }, null],
      [{ content: 'that' }, null],
      [{}, 'stop'],
    ]);
    expect(events.at(-2)).toMatchObject({ usage: { completion_tokens: 5, cost: expect.any(Number) } });
    for (const { id, model, object } of events.slice(0, -1))
      expect([id, model, object]).toEqual([events[0].id, CODEX, 'chat.completion.chunk']);
    expect((await lastCharge()).cost).toBe(pico((await lastLine()).usd));
  });

  test.each([false, true])('calls tools and receives their results (stream: %p)', async (streamed) => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: [{ type: 'text', text: '[[sandbox tool=weather]]' }] },
    ];
    const asked = { model: CODEX, messages, tools: [WEATHER] };
    const { choices } = streamed
      ? await client.chat.completions.stream(asked).finalChatCompletion()
      : await client.chat.completions.create(asked);
    const [choice] = choices;
    expect(choice?.finish_reason).toBe('tool_calls');
    const calls = choice?.message.tool_calls ?? [];
    expect(calls).toMatchObject([{ type: 'function', function: { name: 'weather', arguments: '{"city":"Zürich"}' } }]);
    const result = { role: 'tool' as const, tool_call_id: calls[0]?.id ?? '', content: 'sunny' };
    const next = await client.chat.completions.create({
      ...asked,
      messages: [...messages, { role: 'assistant', content: null, tool_calls: calls }, result],
    });
    expect(next.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: expect.any(String) } });
  });

  test('supports a tool choice, an output limit and a JSON schema', async () => {
    const chosen = await ask('', {
      tools: [WEATHER],
      tool_choice: { type: 'function', function: { name: 'weather' } },
    });
    expect(chosen.body.choices[0].finish_reason).toBe('tool_calls');
    const short = await ask('tokens=40', { max_tokens: 20 });
    expect(short.body).toMatchObject({ choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 20 } });
    const json_schema = { name: 's', schema: { type: 'object' } };
    expect((await ask('text={}', { response_format: { type: 'json_schema', json_schema } })).status).toBe(200);
  });

  test('supports a choice among allowed functions', async () => {
    const tools = [{ ...WEATHER, function: { ...WEATHER.function, name: 'now' } }, WEATHER];
    const allowed_tools = { mode: 'required', tools: [{ type: 'function', function: { name: 'weather' } }] };
    const { body } = await ask('', { tools, tool_choice: { type: 'allowed_tools', allowed_tools } });
    expect(body.choices[0].message.tool_calls).toMatchObject([{ function: { name: 'weather' } }]);
  });

  test('is rejected for custom tools and their calls, which have no charge', async () => {
    const tool = { type: 'custom', custom: { name: 'python' } };
    const call = { id: 'c', type: 'custom', custom: { name: 'python', input: '1' } };
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: null, tool_calls: [call] },
    ];
    const result = { role: 'tool', tool_call_id: 'c', content: '1' };
    for (const more of [{ tools: [tool] }, { messages: [...messages, result] }]) {
      const { status, body } = await ask('', more);
      expect([status, body.message]).toEqual([
        400,
        'Tools of the type "custom" are not supported by this model; use "function"',
      ]);
      expect((await world.listEvents(account)).at(-1)?.type).toBe('HoldReleased');
    }
  });

  test('supports images and files', async () => {
    const content = [
      { type: 'text', text: 'Hi' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AA==', filename: 'a.pdf' } },
    ];
    const { body } = await ask('', { messages: [{ role: 'user', content }] });
    expect(body.usage.prompt_tokens).toBe(3 + 4 + 1 + 85 + 85);
  });

  test('is rejected for several choices or a limit below the minimum of OpenAI', async () => {
    expect((await ask('', { n: 2 })).status).toBe(400);
    const { status, body } = await ask('', { max_tokens: 4 });
    expect([status, body.message]).toEqual([400, 'The output limit must be at least 16 tokens for this request']);
    expect((await world.listEvents(account)).at(-1)?.type).toBe('HoldReleased');
  });

  test.each(['cut', 'error'])('is charged for what was delivered if it ends early (%s)', async (fault) => {
    const { events } = await ask(`fault=${fault} tokens=8`, { stream: true });
    expect(events.at(-1)).toMatchObject({ error: { code: 'upstream_error' }, choices: [{ finish_reason: 'error' }] });
    expect(await lastCharge()).toMatchObject({ errorCode: 'upstream_error', items: [{ estimated: true }] });
  });

  test.each([false, true])(
    'is charged as an estimate if the provider reports no usage (stream: %p)',
    async (stream) => {
      await ask('fault=no_usage tokens=8', { stream });
      expect(isEstimated(await lastCharge())).toBe(true);
    },
  );

  test.each(['400', '429', '500', 'refuse', 'malformed'])('costs nothing if it fails at once (%s)', async (fault) => {
    const { status } = await ask(`fault=${fault}`, { stream: true });
    expect(status).toBeGreaterThanOrEqual(400);
    expect((await world.listEvents(account)).at(-1)?.type).toBe('HoldReleased');
  });
});

test('creates a response with presence_penalty even if the model supports only the Responses API', async () => {
  const input = '[[sandbox tokens=3]]';
  const { status, body } = await world.post('/v1/responses', { model: CODEX, input, presence_penalty: 1 }, account);
  expect([status, body.output_text]).toEqual([200, 'every coin that']);
});
