/** The fields and errors of providers with OpenAI's API that differ from OpenAI's. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startSandbox } from '../sandbox.ts';
import { PROVIDERS } from './models.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());

function post(provider: string, body: object): Promise<Response> {
  const request = { method: 'POST', headers: { authorization: 'Bearer any' }, body: JSON.stringify(body) };
  return fetch(`${sandbox.url}/${provider}/v1/chat/completions`, request);
}

async function ask(provider: string, model: string, directive: string, stream: boolean, fields = {}): Promise<string> {
  const messages = [{ role: 'user', content: `[[sandbox ${directive}]]` }];
  return (await post(provider, { model, messages, stream, ...fields })).text();
}

const parseChunks = (text: string) =>
  text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice(6)));

test('Groq sends x_groq with the id of the request in the first chunk and with the usage in the last one', async () => {
  const chunks = parseChunks(await ask('groq', 'openai/gpt-oss-20b', 'tokens=2', true));
  const id = expect.stringMatching(/^req_/);
  expect(chunks.map(({ x_groq }) => x_groq)).toEqual([
    { id },
    undefined,
    undefined,
    { id, usage: expect.objectContaining({ completion_tokens: 2 }) },
  ]);
  const complete = JSON.parse(await ask('groq', 'openai/gpt-oss-20b', 'tokens=2', false));
  expect(complete.x_groq).toEqual({ id });
});

test('an error of Groq within a stream is in x_groq of a chunk with a finish reason', async () => {
  const chunks = parseChunks(await ask('groq', 'openai/gpt-oss-20b', 'tokens=2 fault=error', true));
  expect(chunks.at(-1)).toMatchObject({ choices: [{ finish_reason: 'stop' }], x_groq: { error: 'over_capacity' } });
});

test('OpenRouter names the provider that it has called in each chunk', async () => {
  const chunks = parseChunks(await ask('openrouter', 'mistralai/mistral-large-2512', 'tokens=2', true));
  expect(chunks.map(({ provider }) => provider)).toEqual(Array(4).fill('Sandbox'));
  const complete = JSON.parse(await ask('openrouter', 'mistralai/mistral-large-2512', 'tokens=2', false));
  expect(complete).toMatchObject({ provider: 'Sandbox' });
  expect(parseChunks(await ask('openai', 'gpt-4o-mini', 'tokens=2', true))[0]).not.toHaveProperty('provider');
});

test('only OpenAI pads its chunks, and has a usage that is null in those before the last one', async () => {
  const listFields = async (provider: string, model: string) => {
    const chunks = parseChunks(
      await ask(provider, model, 'tokens=2', true, { stream_options: { include_usage: true } }),
    );
    return ['obfuscation', 'usage', 'service_tier', 'system_fingerprint'].filter((field) => field in chunks[1]);
  };
  expect(await listFields('openai', 'gpt-4o-mini')).toEqual([
    'obfuscation',
    'usage',
    'service_tier',
    'system_fingerprint',
  ]);
  expect(await listFields('openai', 'gpt-4.1')).toEqual(['obfuscation', 'usage', 'service_tier']);
  expect(await listFields('openrouter', 'mistralai/mistral-large-2512')).toEqual(['service_tier']);
  expect(await listFields('deepinfra', 'Qwen/Qwen3-32B')).toEqual(['usage', 'service_tier']);
  expect(await listFields('groq', 'openai/gpt-oss-20b')).toEqual([]);
});

test('Groq has neither refusals nor tokens of audio and predictions', async () => {
  const { choices, usage } = JSON.parse(await ask('groq', 'openai/gpt-oss-20b', 'tokens=2 fault=refusal', false));
  expect(choices[0].message).toEqual({ role: 'assistant', content: 'every coin' });
  expect(usage.prompt_tokens_details).toEqual({ cached_tokens: 0 });
  expect(usage.completion_tokens_details).toEqual({ reasoning_tokens: 0 });
});

test('OpenRouter reports the cost, and a fingerprint that is null in completions only', async () => {
  const complete = JSON.parse(await ask('openrouter', 'mistralai/mistral-large-2512', 'tokens=2', false));
  expect(complete).toMatchObject({ system_fingerprint: null, usage: { cost: expect.any(Number), is_byok: false } });
  const deepInfra = JSON.parse(await ask('deepinfra', 'Qwen/Qwen3-32B', 'tokens=2', false));
  expect(deepInfra.usage.estimated_cost).toEqual(expect.any(Number));
  expect(deepInfra).not.toHaveProperty('system_fingerprint');
});

test('an error of OpenRouter within a stream is in a chunk with the finish reason error', async () => {
  const chunks = parseChunks(await ask('openrouter', 'mistralai/mistral-large-2512', 'tokens=2 fault=error', true));
  const error = { code: 502, message: expect.any(String) };
  expect(chunks.at(-1)).toMatchObject({ choices: [{ finish_reason: 'error' }], error });
});

const NOT_FOUND = {
  error: { message: expect.any(String), type: 'invalid_request_error', param: null, code: 'model_not_found' },
};
const tooMany = 'Input should be less than or equal to 4';

test.each<[string, string, object, number, object]>([
  ['openai', 'gpt-5-codex-mini', {}, 404, NOT_FOUND],
  ['groq', 'llama-3.1-8b-instant', {}, 404, NOT_FOUND],
  ['deepinfra', 'Qwen/Qwen2-72B-Instruct', {}, 404, NOT_FOUND],
  ['openrouter', 'x-ai/grok-4', {}, 400, { error: { code: 400, message: 'x-ai/grok-4 is not a valid model ID' } }],
  [
    'deepinfra',
    'Qwen/Qwen3-32B',
    { n: 5 },
    422,
    { detail: [{ loc: ['body', 'n'], msg: tooMany, type: 'less_than_equal' }] },
  ],
  [
    'openrouter',
    'mistralai/mistral-large-2512',
    { max_completion_tokens: 5 },
    400,
    { error: { code: 400, message: 'Unrecognized request argument supplied: max_completion_tokens' } },
  ],
])('%s rejects the model %s with %j in its own format', async (provider, model, fields, status, body) => {
  const response = await post(provider, { model, messages: [{ role: 'user', content: 'Hello' }], ...fields });
  expect([response.status, await response.json()]).toEqual([status, body]);
});

test.each(['openai', 'openrouter', 'groq', 'deepinfra'])(
  'fault=404 is how %s responds for a retired model',
  async (provider) => {
    const [model = ''] = PROVIDERS.find(({ name }) => name === provider)?.models.keys() ?? [];
    const content = '[[sandbox fault=404]]';
    const retired = await post(provider, { model, messages: [{ role: 'user', content }] });
    const unknown = await post(provider, { model: 'sandbox/model', messages: [{ role: 'user', content: 'Hello' }] });
    const { error } = (await unknown.json()) as { error: object };
    expect([retired.status, await retired.json()]).toEqual([
      unknown.status,
      { error: { ...error, message: expect.any(String) } },
    ]);
  },
);
