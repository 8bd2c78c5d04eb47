import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());

const BETA = { 'anthropic-beta': 'thinking-binding-controls-2026-08-01' };
const dropBlock = { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } };
const question = { role: 'user', content: '[[sandbox reasoning=40]] Hello' };
const followUp = { role: 'user', content: 'And then?' };

async function post(model: string, messages: readonly object[], more: object = {}, headers: object = {}) {
  const response = await fetch(`${sandbox.url}/anthropic/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': 'any', 'anthropic-version': '2023-06-01', ...headers },
    body: JSON.stringify({ model, max_tokens: 2_000, messages, ...more }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a message or an error
  const body = (await response.json()) as any;
  return { status: response.status, body, inputTokens: body.usage?.input_tokens };
}

/** Returns a conversation with the thinking of a model, and the same one without it. */
async function converse(model: string) {
  const { body } = await post(model, [question], { thinking: { type: 'adaptive', display: 'summarized' } });
  expect(body.content[0].type).toBe('thinking');
  const toMessages = (content: readonly object[]) => [question, { role: 'assistant', content }, followUp];
  return { messages: toMessages(body.content), withoutThinking: toMessages(body.content.slice(1)) };
}

test.each([
  ['claude-fable-5-1', 'claude-opus-5'],
  ['claude-fable-5-1', 'claude-opus-5-5'],
  ['claude-opus-5-5', 'claude-sonnet-5-5'],
])('thinking of %s that %s cannot read is dropped without an error', async (author, reader) => {
  const { messages, withoutThinking } = await converse(author);
  const own = await post(author, messages);
  const sent = await post(reader, messages);
  const { inputTokens } = await post(reader, withoutThinking);
  expect([sent.status, sent.inputTokens]).toEqual([200, inputTokens]);
  expect(own.inputTokens).toBeGreaterThan(inputTokens);
});

test('thinking that is not bound, and of a model that it knows, is read', async () => {
  for (const [author, reader] of [
    ['claude-opus-5', 'claude-sonnet-5'],
    ['claude-opus-5-5', 'claude-fable-5-1'],
  ] as const) {
    const { messages, withoutThinking } = await converse(author);
    const { inputTokens } = await post(reader, withoutThinking);
    expect((await post(reader, messages)).inputTokens).toBeGreaterThan(inputTokens);
  }
});

test('thinking of a different conversation is rejected, unless the request lets it be dropped', async () => {
  const { messages, withoutThinking } = await converse('claude-fable-5-1');
  const edited = [{ role: 'user', content: 'Something else' }, ...messages.slice(1)];
  for (const [sent, more] of [
    [edited, {}],
    [messages, { system: 'Be brief' }],
    [messages, { tools: [{ name: 'f', input_schema: { type: 'object' } }] }],
  ] as const) {
    const { status, body } = await post('claude-fable-5-1', sent, more);
    expect([status, body.error.message]).toEqual([400, expect.stringContaining('bound to a different conversation')]);
    expect((await post('claude-fable-5-1', sent, { ...more, thinking: dropBlock }, BETA)).status).toBe(200);
  }
  const system = { system: 'Be brief', thinking: dropBlock };
  const dropped = await post('claude-fable-5-1', messages, system, BETA);
  expect(dropped.inputTokens).toBe((await post('claude-fable-5-1', withoutThinking, system, BETA)).inputTokens);
});

test('marks for the cache change no conversation', async () => {
  const { messages } = await converse('claude-fable-5-1');
  const marked = { type: 'text', text: question.content, cache_control: { type: 'ephemeral' } };
  const { status } = await post('claude-fable-5-1', [{ role: 'user', content: [marked] }, ...messages.slice(1)]);
  expect(status).toBe(200);
});

test('the setting requires its beta, and a model that may think', async () => {
  expect((await post('claude-fable-5-1', [question], { thinking: dropBlock })).status).toBe(400);
  const off = { thinking: { ...dropBlock, type: 'between_tools' } };
  expect((await post('claude-sonnet-5-5', [question], off, BETA)).status).toBe(400);
});
