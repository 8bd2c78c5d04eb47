// OpenAI's Agents SDK over Responses: a function, a function in a namespace, a tool of an MCP server, and a function
// that returns an image. Over chats: a function.
import assert from 'node:assert/strict';
import {
  Agent,
  MCPServerStdio,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  Runner,
  setTracingDisabled,
  tool,
  toolNamespace,
} from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, NODE, MCP_SERVER, INTERRUPTED_PROMPTS = '[]' } = process.env;
setTracingDisabled(true);
const client = new OpenAI({ baseURL: `${GATEWAY_URL}/v1`, apiKey: API_KEY, maxRetries: 0 });
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const forecastTool = tool({
  name: 'forecast',
  description: 'Returns the forecast of a city',
  parameters: z.object({ city: z.enum(['Ur']) }),
  execute: async () => TOOL_RESULT,
});
const imageTool = tool({
  name: 'picture',
  description: 'Returns a picture of a city',
  parameters: z.object({ city: z.enum(['Ur']) }),
  execute: async () => ({ type: 'image', image: PIXEL }),
});

const [inNamespace] = toolNamespace({ name: 'sky', description: 'What is above', tools: [forecastTool] });
const server = new MCPServerStdio({ name: 'proof', command: NODE, args: [MCP_SERVER] });
await server.connect();

async function runAgent(model, { tools = [], mcpServers = [] }, input, stream) {
  const agent = new Agent({ name: 'Proof', instructions: 'Be brief.', model, tools, mcpServers });
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
    await runAgent(responses, { tools: [forecastTool] }, 'Weather? [[sandbox tool=forecast]]', stream);
    await runAgent(responses, { tools: [inNamespace] }, 'Weather? [[sandbox tool=sky__forecast]]', stream);
    await runAgent(responses, { mcpServers: [server] }, 'Weather? [[sandbox tool=forecast]]', stream);
    await runAgent(responses, { tools: [imageTool] }, 'Picture? [[sandbox tool=picture]]', stream);
    await runAgent(chats, { tools: [forecastTool] }, 'Weather? [[sandbox tool=forecast]]', stream);
  }
}
await server.close();

for (const Model of [OpenAIResponsesModel, OpenAIChatCompletionsModel]) {
  const model = new Model(client, 'openai/gpt-oss-120b');
  for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
    const agent = new Agent({ name: 'Proof', model, tools: [forecastTool] });
    const read = async () => {
      const result = await new Runner({ tracingDisabled: true }).run(agent, prompt, { stream: true });
      for await (const _ of result);
      await result.completed;
    };
    await assert.rejects(read, Error, `stream ${index + 1} ended without an error`);
  }
}
