// Mastra's agents over chats: complete, streaming with usage, a tool.
import assert from 'node:assert/strict';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const forecast = createTool({
  id: 'forecast',
  description: 'Returns the forecast of a city',
  inputSchema: z.object({ city: z.enum(['Ur']) }),
  execute: async () => TOOL_RESULT,
});
const modelSettings = { maxRetries: 0 };

function createAgent(modelId) {
  const model = { providerId: 'gateway', modelId, url: `${GATEWAY_URL}/v1`, apiKey: API_KEY };
  return new Agent({
    id: 'proof',
    name: 'Proof',
    instructions: 'Be brief.',
    model,
    tools: { forecast },
    maxRetries: 0,
  });
}

for (const name of ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5']) {
  const agent = createAgent(name);
  const prompt = 'Hello [[sandbox tokens=3]]';
  assert.equal((await agent.generate(prompt, { modelSettings })).text, 'every coin that');
  const streamed = await agent.stream(prompt, { modelSettings });
  assert.equal(await streamed.text, 'every coin that');
  assert.equal(await streamed.finishReason, 'stop');
  assert.equal((await streamed.usage).outputTokens, 3);

  const toolPrompt = 'Weather? [[sandbox tool=forecast]]';
  for (const { text } of [
    await agent.generate(toolPrompt, { modelSettings }),
    await agent.stream(toolPrompt, { modelSettings }),
  ])
    assert.match(await text, /^every coin/);
}

const agent = createAgent('openai/gpt-oss-120b');
for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
  const read = async () => {
    const { fullStream } = await agent.stream(prompt, { modelSettings });
    for await (const { type, payload } of fullStream) if (type === 'error') throw payload.error;
  };
  await assert.rejects(read, Error, `stream ${index + 1} ended without an error`);
}
