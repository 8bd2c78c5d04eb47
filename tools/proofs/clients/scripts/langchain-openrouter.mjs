// LangChain's client for OpenRouter: complete with usage, streaming, with a tool.
import assert from 'node:assert/strict';
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenRouter } from '@langchain/openrouter';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const forecastTool = tool(async () => TOOL_RESULT, {
  name: 'forecast',
  description: 'Returns the forecast of a city',
  schema: z.object({ city: z.enum(['Ur']) }),
});

for (const model of ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5']) {
  const chat = new ChatOpenRouter({ model, apiKey: API_KEY, baseURL: `${GATEWAY_URL}/v1`, maxRetries: 0 });
  const message = await chat.invoke('Hello [[sandbox tokens=3]]');
  assert.equal(message.text, 'every coin that');

  let streamed;
  for await (const chunk of await chat.stream('Hello [[sandbox tokens=3]]'))
    streamed = streamed?.concat(chunk) ?? chunk;
  assert.equal(streamed.text, 'every coin that');
  // The client ignores chunks without a choice. The last chunk, with the usage, has none, like OpenAI's.
  assert.equal(message.usage_metadata.output_tokens, 3);

  const humanMessage = new HumanMessage('Weather? [[sandbox tool=any]]');
  const tooled = chat.bindTools([forecastTool]);
  const called = await tooled.invoke([humanMessage]);
  const results = await Promise.all(called.tool_calls.map((call) => forecastTool.invoke(call)));
  const reply = await tooled.invoke([humanMessage, called, ...results]);
  assert.match(reply.text, /^every coin/);
}

const options = { apiKey: API_KEY, baseURL: `${GATEWAY_URL}/v1`, maxRetries: 0 };
const chat = new ChatOpenRouter({ model: 'openai/gpt-oss-120b', ...options }).bindTools([forecastTool]);
for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
  const read = async () => {
    for await (const _ of await chat.stream(prompt));
  };
  await assert.rejects(read, Error, `stream ${index + 1} ended without an error`);
}
