// Ax over chats: complete, streaming with usage, a tool.
import assert from 'node:assert/strict';
import { ai } from '@ax-llm/ax';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const parameters = { type: 'object', properties: { city: { type: 'string', enum: ['Ur'] } }, required: ['city'] };
const functions = [{ name: 'forecast', description: 'Returns the forecast of a city', parameters }];
const user = (content) => ({ role: 'user', content });

function createModel(model) {
  return ai({ name: 'openai-compatible', apiKey: API_KEY, apiURL: `${GATEWAY_URL}/v1`, config: { model } });
}

/** Reads a stream. @returns its text, function calls, finish reason and usage */
async function read(stream) {
  const read = { text: '', calls: [] };
  for await (const { results, modelUsage } of stream) {
    read.usage = modelUsage ?? read.usage;
    for (const { content = '', functionCalls = [], finishReason } of results) {
      read.text += content;
      read.calls.push(...functionCalls);
      read.finishReason = finishReason ?? read.finishReason;
    }
  }
  return read;
}

for (const name of ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5']) {
  const model = createModel(name);
  const request = { chatPrompt: [user('Hello [[sandbox tokens=3]]')] };
  const { results } = await model.chat(request, { stream: false });
  assert.equal(results[0].content, 'every coin that');

  const streamed = await read(await model.chat(request, { stream: true }));
  assert.equal(streamed.text, 'every coin that');
  assert.equal(streamed.finishReason, 'stop');
  assert.equal(streamed.usage.tokens.completionTokens, 3);

  const chatPrompt = [user('Weather? [[sandbox tool=forecast]]')];
  const called = await model.chat({ chatPrompt, functions }, { stream: false });
  const { functionCalls } = called.results[0];
  chatPrompt.push({ role: 'assistant', functionCalls });
  chatPrompt.push({ role: 'function', functionId: functionCalls[0].id, result: TOOL_RESULT });
  assert.match((await read(await model.chat({ chatPrompt, functions }, { stream: true }))).text, /^every coin/);
}

const { embeddings } = await ai({
  name: 'openai-compatible',
  apiKey: API_KEY,
  apiURL: `${GATEWAY_URL}/v1`,
  config: { model: 'openai/gpt-5-mini', embedModel: 'openai/text-embedding-3-small' },
}).embed({ texts: ['one'] });
assert.equal(embeddings[0].length, 1536);

const model = createModel('openai/gpt-oss-120b');
for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
  const options = { stream: true, retry: { maxRetries: 0 } };
  const readInterrupted = async () => read(await model.chat({ chatPrompt: [user(prompt)], functions }, options));
  await assert.rejects(readInterrupted, Error, `stream ${index + 1} ended without an error`);
}
