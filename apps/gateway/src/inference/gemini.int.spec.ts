/** Chats with Gemini at Google's own API over HTTP: what is sent, charged and billed, and its fallback. */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { listCharges, openTappedWorld, type TappedWorld, type TestAccount } from '#testing';

const MODEL = 'google/gemini-3.8-flash';
const NATIVE = { model: MODEL, provider: { only: ['google-ai-studio'] } };
const WEATHER = { type: 'object' as const, properties: { city: { type: 'string', enum: ['Ur'] } }, required: ['city'] };

let tapped: TappedWorld;
let account: TestAccount;
beforeAll(async () => {
  tapped = await openTappedWorld();
  account = await tapped.world.createAccount(50);
});
afterAll(() => tapped.close());
beforeEach(() => void tapped.tap.takeReceived());

const chat = (directive: string, more: object = {}) =>
  tapped.world.sendChat(account, directive, { ...NATIVE, ...more });

async function findLastCharge() {
  const charge = listCharges(await tapped.world.listEvents(account)).at(-1);
  if (!charge) throw new Error('nothing was charged');
  return charge;
}

describe.each([false, true])('a chat (stream: %s)', (stream) => {
  test.each([
    ['a text', 'tokens=9', {}],
    ['reasoning', 'tokens=9 reasoning=4', { reasoning: { effort: 'high' } }],
    ['reasoning that is not returned', 'tokens=9 reasoning=4', { reasoning: { exclude: true } }],
    ['cached tokens', 'tokens=9 fault=cached', {}],
    ['a call', 'tool=weather', { tools: [{ type: 'function', function: { name: 'weather', parameters: WEATHER } }] }],
    ['a text that is stopped for safety', 'tokens=9 fault=refusal', {}],
  ])('with %s costs what Google bills', async (_, directive, more) => {
    const { status, text } = await chat(directive, { ...more, stream });
    expect([status, text]).toEqual([200, text]);
    const { cost, items } = await findLastCharge();
    const [line] = (await tapped.world.bill.fetchLines()).slice(-1);
    expect(BigInt(cost)).toBe(BigInt(Math.round(Number(line?.usd) * 1e12)));
    expect(items).toMatchObject([{ creditor: 'google', estimated: false }]);
  });

  test('without a usage in the response is estimated', async () => {
    expect((await chat('tokens=9 fault=no_usage', { stream })).status).toBe(200);
    expect((await findLastCharge()).items).toMatchObject([{ creditor: 'google', estimated: true }]);
  });

  test('is served by the router if Google is overloaded', async () => {
    const provider = { order: ['google-ai-studio', 'google-vertex'] };
    expect((await chat('tokens=9 fault=overloaded at=google', { stream, provider })).status).toBe(200);
    expect((await findLastCharge()).items).toMatchObject([{ creditor: 'openrouter' }]);
  });

  test('with a last message of the assistant is rejected by both providers, so neither is called', async () => {
    const messages = [
      { role: 'user', content: '[[sandbox tokens=2]]' },
      { role: 'assistant', content: 'So' },
    ];
    expect((await tapped.world.sendChat(account, '', { model: MODEL, messages, stream })).status).toBe(400);
    expect(tapped.tap.takeReceived()).toEqual([]);
  });
});

test('a request does not contain sampling, which the model ignores', async () => {
  await chat('tokens=2', { temperature: 0.5, top_p: 0.9, top_k: 3, presence_penalty: 1, seed: 7, max_tokens: 50 });
  expect(tapped.tap.takeReceived()).toMatchObject([
    { body: { contents: [{ role: 'user' }], generationConfig: { maxOutputTokens: 50, seed: 7 } } },
  ]);
});

test('a signature comes back through Messages, by the unmodified client', async () => {
  const client = new Anthropic({ apiKey: account.apiKey, baseURL: tapped.world.api, maxRetries: 0 });
  const request = {
    ...NATIVE,
    max_tokens: 4_000,
    thinking: { type: 'enabled' as const, budget_tokens: 1_024 },
    tools: [{ name: 'weather', input_schema: WEATHER }],
  };
  const user = { role: 'user' as const, content: '[[sandbox tool=weather reasoning=3]]' };
  const { content } = await client.messages.stream({ ...request, messages: [user] }).finalMessage();
  expect(content.map(({ type }) => type)).toEqual(['thinking', 'redacted_thinking', 'tool_use']);
  const call = content.find((block) => block.type === 'tool_use');
  const result = { type: 'tool_result' as const, tool_use_id: call?.id ?? '', content: 'fine' };
  await client.messages.create({
    ...request,
    messages: [user, { role: 'assistant', content }, { role: 'user', content: [result] }],
  });
  const [, next] = tapped.tap.takeReceived();
  const sent = expect.stringMatching(/^(?!skip_)[\w+/]+=*$/);
  expect(next?.body.contents[1].parts).toMatchObject([{ functionCall: { name: 'weather' }, thoughtSignature: sent }]);
});
