// OpenRouter's client: the streaming loop of its README, and a chat whose tools are run until the model returns a text.
import assert from 'node:assert/strict';
import { OpenRouter } from '@openrouter/sdk';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const client = new OpenRouter({ apiKey: API_KEY, serverURL: `${GATEWAY_URL}/v1`, retryConfig: { strategy: 'none' } });
const parameters = { type: 'object', properties: { city: { type: 'string', enum: ['Ur'] } }, required: ['city'] };
const tools = [{ type: 'function', function: { name: 'forecast', description: 'The forecast', parameters } }];

for (const model of ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5', 'openai/gpt-oss-120b']) {
  const messages = [{ role: 'user', content: 'Weather? [[sandbox tools=2]]' }];
  for (let round = 1; ; round++) {
    const { choices } = await client.chat.send({ chatRequest: { model, messages, tools, stream: false } });
    const { message } = choices[0];
    messages.push(message);
    if (!message.toolCalls?.length) {
      assert.equal(round, 2);
      assert.match(message.content, /^every coin/);
      break;
    }
    for (const { id } of message.toolCalls) messages.push({ role: 'tool', toolCallId: id, content: TOOL_RESULT });
  }

  const request = { model, messages: [{ role: 'user', content: '[[sandbox tokens=3]]' }], stream: true };
  let text = '';
  let usage;
  for await (const chunk of await client.chat.send({ chatRequest: request })) {
    // Like the README of the client, this assumes that every chunk has a choice.
    text += chunk.choices[0]?.delta.content ?? '';
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, 'every coin that');
  assert.equal(usage.completionTokens, 3);
}

for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
  const messages = [{ role: 'user', content: prompt }];
  const read = async () => {
    const request = { model: 'openai/gpt-oss-120b', messages, tools, stream: true };
    for await (const _ of await client.chat.send({ chatRequest: request }));
  };
  await assert.rejects(read, Error, `stream ${index + 1} ended without an error`);
}
