/**
 * Providers that send one JSON object although a stream was requested. The client still gets the stream it requested.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { type TestAccount, TestWorld } from '#testing';
import { respondWithJson, StubServer } from '../../../../libs/testing/src/servers/stub-server.ts';

const MODELS = { groq: 'openai/gpt-oss-120b', openai: 'openai/gpt-5-codex', anthropic: 'anthropic/claude-haiku-4.5' };
const TEXT = 'Every coin has two sides, é and 記.';
const ARGUMENTS = '{"city":"Bern"}';

const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: ARGUMENTS } };
const RESPONSES = {
  groq: {
    id: 'cmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: TEXT, refusal: null, reasoning: 'Hm', tool_calls: [call] },
        finish_reason: 'tool_calls',
      },
    ],
    usage: { prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 },
  },
  openai: {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    output: [
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm' }] },
      {
        type: 'message',
        id: 'msg_1',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: TEXT, annotations: [] }],
      },
      {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'call_1',
        name: 'weather',
        arguments: ARGUMENTS,
        status: 'completed',
      },
    ],
    usage: { input_tokens: 5, output_tokens: 9, total_tokens: 14 },
  },
  anthropic: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'Hm', signature: 's' },
      { type: 'text', text: TEXT },
      { type: 'tool_use', id: 'call_1', name: 'weather', input: { city: 'Bern' } },
    ],
    stop_reason: 'tool_use',
    usage: { input_tokens: 5, output_tokens: 9 },
  },
};

const provider = new StubServer();
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  const url = await provider.listen();
  const names = ['GROQ', 'OPENAI', 'ANTHROPIC'];
  const settings = names.flatMap((name) => [
    [`${name}_API_KEY`, 'secret'],
    [`${name}_BASE_URL`, `${url}/v1`],
  ]);
  world = await TestWorld.open(Object.fromEntries(settings));
  account = await world.createAccount(10);
});
afterAll(async () => {
  await world.close();
  await provider.close();
});

const client = () => new OpenAI({ apiKey: account.apiKey, baseURL: `${world.api}/v1`, maxRetries: 0 });
const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } }];
const messages = [{ role: 'user' as const, content: 'Is it raining in Bern?' }];
async function lastCharge() {
  const settled = (await world.listEvents(account)).findLast(({ type }) => type === 'HoldSettled');
  return settled?.type === 'HoldSettled' ? settled.data.charge : undefined;
}

describe.each(['groq', 'openai', 'anthropic'] as const)(
  'a complete response of %s to a request for a stream',
  (slug) => {
    test('becomes a chat stream with all of its content, and is charged by its usage', async () => {
      provider.handler = respondWithJson(RESPONSES[slug]);
      const stream = client().chat.completions.stream({
        model: MODELS[slug],
        messages,
        tools,
        max_tokens: 500,
        stream_options: { include_usage: true },
      });
      const { choices, usage } = await stream.finalChatCompletion();
      expect(choices).toMatchObject([
        {
          finish_reason: 'tool_calls',
          message: { content: TEXT, tool_calls: [{ id: 'call_1', function: call.function }] },
        },
      ]);
      expect(usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 9 });
      expect(JSON.parse(provider.requests.at(-1)?.body ?? '')).toMatchObject({ stream: true });
      expect(await lastCharge()).toMatchObject({ items: [{ estimated: false, vendorId: RESPONSES[slug].id }] });
    });

    test('becomes a stream of the Responses API', async () => {
      provider.handler = respondWithJson(RESPONSES[slug]);
      const [{ function: declared }] = tools as [(typeof tools)[0]];
      const stream = client().responses.stream({
        model: MODELS[slug],
        input: 'Is it raining in Bern?',
        max_output_tokens: 500,
        tools: [{ type: 'function', ...declared, strict: false }],
      });
      const deltas: string[] = [];
      stream.on('response.output_text.delta', ({ delta }) => void deltas.push(delta));
      const { status, output } = await stream.finalResponse();
      expect([status, deltas.join('')]).toEqual(['completed', TEXT]);
      expect(output).toContainEqual(
        expect.objectContaining({ type: 'function_call', name: 'weather', arguments: ARGUMENTS }),
      );
    });
  },
);

test('a stream of Anthropic that ends without usage is charged by an estimate of its text, not of its start', async () => {
  const events = [
    { type: 'message_start', message: { id: 'msg_1', content: [], usage: { input_tokens: 5, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: TEXT } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_stop' },
  ];
  provider.handler = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''));
  };
  expect((await world.sendChat(account, '', { model: MODELS.anthropic, stream: true })).status).toBe(200);
  const [item] = (await lastCharge())?.items ?? [];
  expect(item).toMatchObject({ estimated: true });
  expect(Number(item?.usage.output)).toBeGreaterThan(5);
});

test('a complete response without usage is charged by an estimate of its text', async () => {
  const { usage: _, ...unmetered } = RESPONSES.groq;
  provider.handler = respondWithJson(unmetered);
  const { status } = await world.sendChat(account, '', { model: MODELS.groq, stream: true });
  expect(status).toBe(200);
  const [item] = (await lastCharge())?.items ?? [];
  expect(item).toMatchObject({ estimated: true });
  expect(Number(item?.usage.output)).toBeGreaterThan(9);
});

describe.each([true, false])('a response with a text (stream: %p)', (stream) => {
  const names = { groq: ['prompt_tokens', 'completion_tokens'], openai: ['input_tokens', 'output_tokens'] };
  const report = (slug: keyof typeof RESPONSES, input: number, output: number, more: object = {}) => {
    const [inputName, outputName] = slug === 'groq' ? names.groq : names.openai;
    return { ...RESPONSES[slug], usage: { [`${inputName}`]: input, [`${outputName}`]: output, ...more } };
  };
  async function chargeFor(slug: keyof typeof RESPONSES, body: object) {
    provider.handler = respondWithJson(body);
    expect((await world.sendChat(account, '', { model: MODELS[slug], stream, max_tokens: 500 })).status).toBe(200);
    return (await lastCharge())?.items[0];
  }

  test.each(['groq', 'openai', 'anthropic'] as const)(
    'of %s without used tokens is charged by an estimate',
    async (slug) => {
      const item = await chargeFor(slug, report(slug, 0, 0));
      expect(item).toMatchObject({ estimated: true });
      expect(Number(item?.usage.input)).toBeGreaterThan(0);
      expect(Number(item?.usage.output)).toBeGreaterThan(9);
    },
  );

  test.each(['groq', 'openai', 'anthropic'] as const)(
    'of %s without output tokens is charged for the reported input and an estimate of the text',
    async (slug) => {
      const item = await chargeFor(slug, report(slug, 5, 0));
      expect(item).toMatchObject({ estimated: true, usage: { input: 5 } });
      expect(Number(item?.usage.output)).toBeGreaterThan(9);
    },
  );

  test('is charged as reported if all of its input was cached', async () => {
    const details = { prompt_tokens_details: { cached_tokens: 5 } };
    const item = await chargeFor('groq', report('groq', 5, 9, details));
    expect(item).toMatchObject({ estimated: false, usage: { output: 9 } });
  });

  test('is charged as reported if all of its output is reasoning', async () => {
    const details = { completion_tokens_details: { reasoning_tokens: 9 } };
    expect(await chargeFor('groq', report('groq', 5, 9, details))).toMatchObject({ estimated: false });
  });
});

test('a complete response that is cut off is not requested again, because the provider may invoice it', async () => {
  const json = JSON.stringify(RESPONSES.groq);
  provider.handler = (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': json.length + 9 });
    response.write(json.slice(0, -100), () => response.destroy());
  };
  const [before, calls] = [await world.fetchBalance(account), provider.requests.length];
  const { status } = await world.sendChat(account, '', { model: MODELS.groq, stream: true, max_tokens: 20 });
  expect([status, provider.requests.length]).toEqual([502, calls + 1]);
  expect(await world.fetchBalance(account)).toBe(before);
  expect((await world.listEvents(account)).at(-1)?.type).toBe('ChargeAbsorbed');
});

test('a complete response that is an error fails before the stream begins, and costs nothing', async () => {
  provider.handler = respondWithJson({ error: { message: 'overloaded' } });
  const before = await world.fetchBalance(account);
  const { status } = await world.sendChat(account, '', { model: MODELS.groq, stream: true, max_tokens: 20 });
  expect(status).toBe(502);
  expect(await world.fetchBalance(account)).toBe(before);
});
