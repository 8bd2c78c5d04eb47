// OpenAI's client, run with several major versions: chats, Responses and embeddings.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const client = new OpenAI({ baseURL: `${GATEWAY_URL}/v1`, apiKey: API_KEY, maxRetries: 0 });
const MODELS = ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5', 'openai/gpt-oss-120b'];
const PROMPT = '[[sandbox tokens=3]]';
const EXPECTED_TEXT = 'every coin that';

const parameters = {
  type: 'object',
  properties: { city: { type: 'string', enum: ['Ur'] } },
  required: ['city'],
  additionalProperties: false,
};
const user = (content) => [{ role: 'user', content }];

for (const model of MODELS) {
  const chat = await client.chat.completions.create({ model, messages: user(PROMPT) });
  assert.equal(chat.choices[0].message.content, EXPECTED_TEXT);

  let text = '';
  // Without include_usage every chunk has a choice with a delta.
  for await (const chunk of await client.chat.completions.create({ model, messages: user(PROMPT), stream: true }))
    text += chunk.choices[0]?.delta.content ?? '';
  assert.equal(text, EXPECTED_TEXT);

  const options = { stream: true, stream_options: { include_usage: true } };
  const chunks = [];
  for await (const chunk of await client.chat.completions.create({ model, messages: user(PROMPT), ...options }))
    chunks.push(chunk);
  assert.equal(chunks.at(-1).usage.completion_tokens, 3);

  const forecastTool = {
    name: 'forecast',
    description: 'The forecast',
    parameters,
    parse: JSON.parse,
    function: () => TOOL_RESULT,
  };
  const tools = [{ type: 'function', function: forecastTool }];
  const chats = client.chat.completions.runTools ? client.chat.completions : client.beta.chat.completions;
  for (const stream of [false, true]) {
    const runner = chats.runTools({ model, messages: user('Weather? [[sandbox tools=2]]'), tools, stream });
    assert.match(await runner.finalContent(), /^every coin/);
  }

  const response = await client.responses.create({ model, input: PROMPT });
  assert.equal(response.output_text, EXPECTED_TEXT);
  // With models that store nothing by default, a response is stored only on request.
  const request = { model, store: true, tools: [{ type: 'function', name: 'forecast', parameters, strict: true }] };
  const stream = client.responses.stream({ ...request, input: 'Weather? [[sandbox tool=any]]' });
  const { id, output } = await stream.finalResponse();
  const call = output.find(({ type }) => type === 'function_call');
  assert.deepEqual(JSON.parse(call.arguments), { city: 'Ur' });
  const input = [{ type: 'function_call_output', call_id: call.call_id, output: TOOL_RESULT }];
  const followUp = await client.responses.create({ ...request, previous_response_id: id, input });
  assert.match(followUp.output_text, /^every coin/);
}

const { data } = await client.embeddings.create({ model: 'openai/text-embedding-3-small', input: ['one', 'two'] });
assert.deepEqual(
  data.map(({ embedding }) => embedding.length),
  [1536, 1536],
);

const forecastTool = { type: 'function', function: { name: 'forecast', parameters } };
for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
  const request = { model: 'openai/gpt-oss-120b', messages: user(prompt), tools: [forecastTool], stream: true };
  const read = async () => {
    for await (const _ of await client.chat.completions.create(request));
  };
  await assert.rejects(read, OpenAI.APIError, `stream ${index + 1} ended without an error`);
}
