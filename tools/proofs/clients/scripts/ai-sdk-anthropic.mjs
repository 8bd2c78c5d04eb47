// The AI SDK's provider for Anthropic's Messages: complete, streaming with usage, a tool.
import assert from 'node:assert/strict';
import { createAnthropic } from '@ai-sdk/anthropic';
import { generateObject, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const anthropic = createAnthropic({ baseURL: `${GATEWAY_URL}/v1`, apiKey: API_KEY });
const forecastTool = tool({
  description: 'Returns the forecast of a city',
  inputSchema: z.object({ city: z.enum(['Ur']) }),
  execute: async () => TOOL_RESULT,
});
const stopWhen = isStepCount(3);
const maxRetries = 0;

for (const name of ['anthropic/claude-haiku-4.5', 'claude-haiku-4-5', 'openai/gpt-5-mini']) {
  const model = anthropic(name);
  const prompt = 'Hello [[sandbox tokens=3]]';
  const maxOutputTokens = 2_000;
  const generated = await generateText({ model, prompt, maxOutputTokens, maxRetries });
  assert.equal(generated.text, 'every coin that');
  assert.equal(generated.usage.outputTokens, 3);
  assert.ok(generated.usage.inputTokens > 0);
  const streamed = streamText({ model, prompt, maxOutputTokens, maxRetries });
  assert.equal(await streamed.text, 'every coin that');
  assert.equal(await streamed.finishReason, 'stop');
  assert.equal((await streamed.usage).outputTokens, 3);
  assert.equal((await streamed.usage).inputTokens, generated.usage.inputTokens);

  const request = {
    model,
    prompt: 'Weather? [[sandbox tool=forecast]]',
    tools: { forecast: forecastTool },
    stopWhen,
    maxOutputTokens,
    maxRetries,
  };
  for (const { steps, text } of [await generateText(request), streamText(request)]) {
    assert.equal((await steps).length, 2);
    assert.match(await text, /^every coin/);
  }

  const schema = z.object({ city: z.enum(['Ur']), days: z.number().int() });
  const { object } = await generateObject({ model, schema, prompt: 'Where?', maxOutputTokens, maxRetries });
  assert.equal(object.city, 'Ur');
}

for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
  const request = {
    model: anthropic('openai/gpt-oss-120b'),
    prompt,
    tools: { forecast: forecastTool },
    maxOutputTokens: 2_000,
    maxRetries,
    onError() {},
  };
  const read = async () => {
    for await (const part of streamText(request).fullStream) if (part.type === 'error') throw part.error;
  };
  await assert.rejects(read, Error, `stream ${index + 1} ended without an error`);
}
