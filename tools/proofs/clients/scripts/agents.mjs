// OpenAI's agents, over Responses and over chats: a function, a custom tool and one that returns an image.
import assert from 'node:assert/strict';
import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  Runner,
  setTracingDisabled,
  tool,
} from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, TOOL_SAYS } = process.env;
setTracingDisabled(true);
const client = new OpenAI({ baseURL: `${GATEWAY_URL}/v1`, apiKey: API_KEY, maxRetries: 0 });
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const weather = tool({
  name: 'weather',
  description: 'Returns the weather of a city',
  parameters: z.object({ city: z.enum(['Ur']) }),
  execute: async () => TOOL_SAYS,
});
const picture = tool({
  name: 'picture',
  description: 'Returns a picture of a city',
  parameters: z.object({ city: z.enum(['Ur']) }),
  execute: async () => ({ type: 'image', image: PIXEL }),
});

async function ask(model, tools, input, stream) {
  const agent = new Agent({ name: 'Proof', instructions: 'Be brief.', model, tools });
  const result = await new Runner({ tracingDisabled: true }).run(agent, input, { stream });
  if (stream) {
    for await (const _ of result);
    await result.completed;
  }
  assert.match(result.finalOutput, /^every coin/);
}

for (const name of ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5']) {
  const responses = new OpenAIResponsesModel(client, name);
  const chats = new OpenAIChatCompletionsModel(client, name);
  for (const stream of [false, true]) {
    await ask(responses, [weather], 'Weather? [[sandbox tool=weather]]', stream);
    await ask(responses, [picture], 'Picture? [[sandbox tool=picture]]', stream);
    await ask(chats, [weather], 'Weather? [[sandbox tool=weather]]', stream);
  }
}
