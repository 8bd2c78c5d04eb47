// LangChain over Anthropic's Messages: complete, streaming with usage, a tool, structured output.
import assert from 'node:assert/strict';
import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const forecastTool = tool(async () => TOOL_RESULT, {
  name: 'forecast',
  description: 'Returns the forecast of a city',
  schema: z.object({ city: z.enum(['Ur']) }),
});

function createChat(model) {
  return new ChatAnthropic({ model, apiKey: API_KEY, anthropicApiUrl: GATEWAY_URL, maxTokens: 2_000, maxRetries: 0 });
}

for (const model of ['anthropic/claude-haiku-4.5', 'claude-haiku-4-5', 'openai/gpt-5-mini']) {
  const chat = createChat(model);
  const message = await chat.invoke('Hello [[sandbox tokens=3]]');
  assert.equal(message.text, 'every coin that');
  assert.equal(message.usage_metadata.output_tokens, 3);

  let streamed;
  for await (const chunk of await chat.stream('Hello [[sandbox tokens=3]]'))
    streamed = streamed?.concat(chunk) ?? chunk;
  assert.equal(streamed.text, 'every coin that');
  assert.equal(streamed.additional_kwargs.stop_reason, 'end_turn');
  assert.equal(streamed.usage_metadata.output_tokens, 3);
  // LangChain ignores the input tokens at the end of a stream. At its start, other providers have not reported theirs.
  const { input_tokens: inputTokens } = streamed.usage_metadata;
  if (model === 'openai/gpt-5-mini') assert.ok(inputTokens > 0);
  else assert.equal(inputTokens, message.usage_metadata.input_tokens);

  const humanMessage = new HumanMessage('Weather? [[sandbox tools=2]]');
  const tooled = chat.bindTools([forecastTool]);
  const called = await tooled.invoke([humanMessage]);
  assert.equal(called.tool_calls.length, 2);
  const results = await Promise.all(called.tool_calls.map((call) => forecastTool.invoke(call)));
  const reply = await tooled.invoke([humanMessage, called, ...results]);
  assert.match(reply.text, /^every coin/);

  const structured = chat.withStructuredOutput(z.object({ city: z.enum(['Ur']), days: z.number().int() }));
  assert.equal((await structured.invoke('Where?')).city, 'Ur');
}

const chat = createChat('openai/gpt-oss-120b').bindTools([forecastTool]);
for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
  const read = async () => {
    for await (const _ of await chat.stream(prompt));
  };
  await assert.rejects(read, Error, `stream ${index + 1} ended without an error`);
}
