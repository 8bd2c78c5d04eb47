// The AI SDK over Responses and over chats: complete, streaming, a function, structured output. Over Responses also a
// custom tool.
import assert from 'node:assert/strict';
import { createOpenAI } from '@ai-sdk/openai';
import { generateObject, generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const openai = createOpenAI({ baseURL: `${GATEWAY_URL}/v1`, apiKey: API_KEY });
const forecastTool = tool({
  description: 'Returns the forecast of a city',
  inputSchema: z.object({ city: z.enum(['Ur']) }),
  execute: async () => TOOL_RESULT,
});
const custom = openai.tools.customTool({ description: 'Runs a line', execute: async () => TOOL_RESULT });
const stopWhen = isStepCount(3);
const maxRetries = 0;

for (const name of ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5']) {
  for (const model of [openai.responses(name), openai.chat(name)]) {
    const generated = await generateText({ model, prompt: 'Hello [[sandbox tokens=3]]', maxRetries });
    assert.equal(generated.text, 'every coin that');
    assert.equal(generated.usage.outputTokens, 3);

    const request = {
      model,
      prompt: 'Weather? [[sandbox tool=forecast]]',
      tools: { forecast: forecastTool },
      stopWhen,
      maxRetries,
    };
    assert.match((await generateText(request)).text, /^every coin/);
    const stream = streamText(request);
    assert.match(await stream.text, /^every coin/);
    assert.equal((await stream.steps).length, 2);

    const schema = z.object({ city: z.enum(['Ur']), days: z.number().int() });
    assert.equal((await generateObject({ model, schema, prompt: 'Where?', maxRetries })).object.city, 'Ur');
  }
  const model = openai.responses(name);
  const request = { model, prompt: 'Run! [[sandbox tool=any]]', tools: { line: custom }, stopWhen, maxRetries };
  for (const { steps, text } of [await generateText(request), streamText(request)]) {
    assert.equal((await steps)[0].toolCalls[0].toolName, 'line');
    assert.match(await text, /^every coin/);
  }
}

for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
  const model = openai.chat('openai/gpt-oss-120b');
  const stream = streamText({ model, prompt, tools: { forecast: forecastTool }, maxRetries, onError: () => {} });
  const read = async () => {
    for await (const part of stream.fullStream) if (part.type === 'error') throw part.error;
  };
  await assert.rejects(read, Error, `stream ${index + 1} ended without an error`);
}
