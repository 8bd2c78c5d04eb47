// Anthropic's client with models of Anthropic and of another provider: complete, streaming, tools, token counting.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const client = new Anthropic({ baseURL: GATEWAY_URL, apiKey: API_KEY, maxRetries: 0 });
const forecastTool = {
  name: 'forecast',
  description: 'Returns the forecast of a city',
  input_schema: { type: 'object', properties: { city: { type: 'string', enum: ['Ur'] } }, required: ['city'] },
};
const user = (content) => ({ role: 'user', content });

for (const model of ['anthropic/claude-haiku-4.5', 'claude-haiku-4-5', 'openai/gpt-5-mini']) {
  const request = { model, max_tokens: 2_000, messages: [user('Hello [[sandbox tokens=3]]')] };
  const message = await client.messages.create(request);
  assert.equal(message.content[0].text, 'every coin that');
  assert.equal(message.usage.output_tokens, 3);
  const streamed = await client.messages.stream(request).finalMessage();
  assert.equal(streamed.content[0].text, 'every coin that');
  assert.equal(streamed.usage.output_tokens, 3);
  assert.ok((await client.messages.countTokens({ model, messages: request.messages })).input_tokens > 0);

  for (const stream of [false, true]) {
    const messages = [user('Weather? [[sandbox tools=2]]')];
    const sendMessages = () => {
      const body = { model, max_tokens: 2_000, messages, tools: [forecastTool] };
      return stream ? client.messages.stream(body).finalMessage() : client.messages.create(body);
    };
    const called = await sendMessages();
    assert.equal(called.stop_reason, 'tool_use');
    const calls = called.content.filter(({ type }) => type === 'tool_use');
    assert.deepEqual(
      calls.map(({ input }) => input),
      [{ city: 'Ur' }, { city: 'Ur' }],
    );
    const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: TOOL_RESULT }));
    messages.push({ role: 'assistant', content: called.content }, user(results));
    const reply = await sendMessages();
    assert.match(reply.content.at(-1).text, /^every coin/);
  }
}

for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
  const body = { model: 'openai/gpt-oss-120b', max_tokens: 2_000, messages: [user(prompt)], tools: [forecastTool] };
  const read = () => client.messages.stream(body).finalMessage();
  await assert.rejects(read, Anthropic.AnthropicError, `stream ${index + 1} ended without an error`);
}
