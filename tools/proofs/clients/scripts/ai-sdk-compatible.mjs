// The AI SDK's provider for services that are compatible with OpenAI: complete, streaming with usage, a tool,
// structured output, embeddings.
import assert from 'node:assert/strict';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embed, generateObject, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const gateway = createOpenAICompatible({
  name: 'gateway',
  baseURL: `${GATEWAY_URL}/v1`,
  apiKey: API_KEY,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const forecastTool = tool({
  description: 'Returns the forecast of a city',
  inputSchema: z.object({ city: z.enum(['Ur']) }),
  execute: async () => TOOL_RESULT,
});
const stopWhen = isStepCount(3);
const maxRetries = 0;

for (const name of ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5']) {
  const model = gateway(name);
  const prompt = 'Hello [[sandbox tokens=3]]';
  const generated = await generateText({ model, prompt, maxRetries });
  assert.equal(generated.text, 'every coin that');
  assert.equal(generated.usage.outputTokens, 3);
  const streamed = streamText({ model, prompt, maxRetries });
  assert.equal(await streamed.text, 'every coin that');
  assert.equal(await streamed.finishReason, 'stop');
  assert.equal((await streamed.usage).outputTokens, 3);

  const request = { model, prompt: 'Weather? [[sandbox tool=forecast]]', tools: { forecast: forecastTool }, stopWhen };
  for (const { steps, text } of [
    await generateText({ ...request, maxRetries }),
    streamText({ ...request, maxRetries }),
  ]) {
    assert.equal((await steps).length, 2);
    assert.match(await text, /^every coin/);
  }

  const schema = z.object({ city: z.enum(['Ur']), days: z.number().int() });
  assert.equal((await generateObject({ model, schema, prompt: 'Where?', maxRetries })).object.city, 'Ur');
}

const { embedding } = await embed({ model: gateway.embeddingModel('openai/text-embedding-3-small'), value: 'one' });
assert.equal(embedding.length, 1536);

for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
  const request = {
    model: gateway('openai/gpt-oss-120b'),
    prompt,
    tools: { forecast: forecastTool },
    maxRetries,
    onError() {},
  };
  const read = async () => {
    for await (const part of streamText(request).fullStream) if (part.type === 'error') throw part.error;
  };
  await assert.rejects(read, Error, `stream ${index + 1} ended without an error`);
}
