// TanStack AI over chats and Responses: complete, streaming with usage, a tool.
import assert from 'node:assert/strict';
import { chat, toolDefinition } from '@tanstack/ai';
import { openaiCompatibleText } from '@tanstack/ai-openai/compatible';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const forecast = toolDefinition({
  name: 'forecast',
  description: 'Returns the forecast of a city',
  inputSchema: z.object({ city: z.enum(['Ur']) }),
}).server(async () => TOOL_RESULT);

function createAdapter(model, api) {
  return openaiCompatibleText(model, { baseURL: `${GATEWAY_URL}/v1`, apiKey: API_KEY, api, maxRetries: 0 });
}

/** Reads a stream. @returns its text, finish reason and usage */
async function read(stream) {
  const read = { text: '' };
  for await (const event of stream) {
    if (event.type === 'TEXT_MESSAGE_CONTENT') read.text += event.delta;
    if (event.type === 'RUN_FINISHED') {
      read.usage = event.usage;
      read.finishReason = event.metadata.tanstack.finishReason;
    }
    if (event.type === 'RUN_ERROR') throw new Error(event.message);
  }
  return read;
}

for (const name of ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5']) {
  for (const api of ['chat-completions', 'responses']) {
    const adapter = createAdapter(name, api);
    const messages = [{ role: 'user', content: 'Hello [[sandbox tokens=3]]' }];
    assert.equal(await chat({ adapter, messages, stream: false }), 'every coin that');
    const { text, finishReason, usage } = await read(chat({ adapter, messages }));
    assert.equal(text, 'every coin that');
    assert.equal(finishReason, 'stop');
    assert.equal(usage.completionTokens, 3);

    const toolMessages = [{ role: 'user', content: 'Weather? [[sandbox tool=forecast]]' }];
    assert.match((await read(chat({ adapter, messages: toolMessages, tools: [forecast] }))).text, /^every coin/);
  }
}

for (const api of ['chat-completions', 'responses']) {
  const adapter = createAdapter('openai/gpt-oss-120b', api);
  for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
    const messages = [{ role: 'user', content: prompt }];
    const readInterrupted = () => read(chat({ adapter, messages, tools: [forecast] }));
    await assert.rejects(readInterrupted, Error, `stream ${index + 1} ended without an error`);
  }
}
