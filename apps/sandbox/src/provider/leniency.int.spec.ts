/** The same requests with and without `lenient=true`: what only a rule of the provider rejects, and what is required. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());

const HEADERS = { authorization: 'Bearer any', 'anthropic-version': '2023-06-01' };
const LENIENT = '[[sandbox lenient=true]]';

async function post(path: string, body: object) {
  const response = await fetch(`${sandbox.url}${path}`, {
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

const toMessages = (content: string) => ({ messages: [{ role: 'user', content }] });
const toInput = (input: string) => ({ input });
const toPrefill = (content: string) => ({
  messages: [
    { role: 'user', content },
    { role: 'assistant', content: 'The answer is' },
  ],
});
const toDeveloper = (content: string) => ({
  messages: [{ role: 'developer', content: 'Be short.' }, ...toMessages(content).messages],
});

const CHATS = '/v1/chat/completions';
const city = { type: 'object', properties: { city: { type: 'string', minLength: 1 } }, additionalProperties: false };
const thinking = { type: 'enabled', budget_tokens: 2000 };
const sonnet = { model: 'claude-sonnet-4-6', max_tokens: 100 };
const openTools = [{ name: 'f', input_schema: { type: 'object' } }];
const forced = { tools: openTools, tool_choice: { type: 'any' } };

test.each<[string, string, object, (text: string) => object, number]>([
  ['an unknown argument', `/openai${CHATS}`, { model: 'gpt-4o-mini', top_k: 5 }, toMessages, 400],
  ['a temperature above 2', `/openai${CHATS}`, { model: 'gpt-4o-mini', temperature: 3 }, toMessages, 400],
  ['sampling by a model that reasons', `/openai${CHATS}`, { model: 'gpt-5-mini', stop: 'x' }, toMessages, 400],
  ['max_tokens above the maximum', `/openai${CHATS}`, { model: 'flat', max_tokens: 5000 }, toMessages, 400],
  ['an unknown parameter', '/openai/v1/responses', { model: 'gpt-5-mini', n: 1 }, toInput, 400],
  ['a low limit', '/openai/v1/responses', { model: 'gpt-5-mini', max_output_tokens: 2 }, toInput, 400],
  ['an unknown effort', '/openai/v1/responses', { model: 'o3', reasoning: { effort: 'none' } }, toInput, 400],
  ['an unknown argument', '/openai/v1/embeddings', { model: 'text-embedding-3-small', n: 1 }, toInput, 400],
  ['another limit', `/openrouter${CHATS}`, { model: 'z-ai/glm-5.2', max_completion_tokens: 5 }, toMessages, 400],
  [
    'no reasoning',
    `/openrouter${CHATS}`,
    { model: 'google/gemini-2.5-pro', reasoning: { enabled: false } },
    toMessages,
    400,
  ],
  ['top_k', `/groq${CHATS}`, { model: 'openai/gpt-oss-20b', top_k: 5 }, toMessages, 400],
  ['two choices', `/groq${CHATS}`, { model: 'openai/gpt-oss-20b', n: 2 }, toMessages, 400],
  ['five choices', `/deepinfra${CHATS}`, { model: 'Qwen/Qwen3-32B', n: 5 }, toMessages, 422],
  ['a developer', `/deepinfra${CHATS}`, { model: 'Qwen/Qwen3-32B' }, toDeveloper, 422],
  ['a user', '/deepinfra/v1/embeddings', { model: 'Qwen/Qwen3-Embedding-8B', user: 'me' }, toInput, 422],
  ['prefill', '/anthropic/v1/messages', sonnet, toPrefill, 400],
  ['an unknown field', '/anthropic/v1/messages', { ...sonnet, n: 1 }, toMessages, 400],
  ['a temperature above 1', '/anthropic/v1/messages', { ...sonnet, temperature: 2 }, toMessages, 400],
  ['a forced call', '/anthropic/v1/messages', { ...sonnet, ...forced, model: 'claude-opus-5-5' }, toMessages, 400],
  [
    'thinking and a forced call',
    '/anthropic/v1/messages',
    { ...sonnet, ...forced, max_tokens: 4000, thinking },
    toMessages,
    400,
  ],
  [
    'a schema',
    '/anthropic/v1/messages',
    { ...sonnet, output_config: { format: { type: 'json_schema', schema: city } } },
    toMessages,
    400,
  ],
])('%s at %s is rejected unless the directive is lenient', async (_, path, fields, toBody, status) => {
  const strict = await post(path, { ...fields, ...toBody('Hello') });
  const lenient = await post(path, { ...fields, ...toBody(LENIENT) });
  expect([strict.status, lenient.status, lenient.text]).toEqual([status, 200, lenient.text]);
});

test.each<[string, string, object]>([
  ['an unknown model', `/openai${CHATS}`, { model: 'gpt-1', ...toMessages(LENIENT) }],
  ['no choice', `/openai${CHATS}`, { model: 'gpt-4o-mini', n: 0, ...toMessages(LENIENT) }],
  ['no model', '/anthropic/v1/messages', { max_tokens: 10, ...toMessages(LENIENT) }],
  ['no tools', '/openai/v1/responses', { model: 'gpt-5-mini', tools: 1, input: LENIENT }],
])('%s at %s is rejected even if the directive is lenient', async (_, path, body) => {
  expect((await post(path, body)).status).toBeGreaterThanOrEqual(400);
});

test('only the last directive counts', async () => {
  const messages = [...toMessages(LENIENT).messages, ...toMessages('[[sandbox tokens=2]]').messages];
  expect((await post(`/openai${CHATS}`, { model: 'gpt-4o-mini', top_k: 5, messages })).status).toBe(400);
});

test('lenient must be true', async () => {
  const { status, text } = await post(`/openai${CHATS}`, {
    model: 'gpt-4o-mini',
    ...toMessages('[[sandbox lenient=yes]]'),
  });
  expect(status).toBe(400);
  expect(text).toContain('lenient must be true');
});
