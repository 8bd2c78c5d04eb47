/** The fields that providers with OpenAI's API add to its responses. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());

async function ask(provider: string, model: string, directive: string, stream: boolean): Promise<string> {
  const messages = [{ role: 'user', content: `[[sandbox ${directive}]]` }];
  const request = { method: 'POST', headers: { authorization: 'Bearer any' } };
  const body = JSON.stringify({ model, messages, stream });
  return (await fetch(`${sandbox.url}/${provider}/v1/chat/completions`, { ...request, body })).text();
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
