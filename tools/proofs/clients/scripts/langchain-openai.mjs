// LangChain over chats and over Responses: complete, streaming with usage, a tool, structured output. And embeddings.
import assert from 'node:assert/strict';
import { HumanMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, TOOL_RESULT, INTERRUPTED_PROMPTS = '[]' } = process.env;
const configuration = { baseURL: `${GATEWAY_URL}/v1` };
const forecastTool = tool(async () => TOOL_RESULT, {
  name: 'forecast',
  description: 'Returns the forecast of a city',
  schema: z.object({ city: z.enum(['Ur']) }),
});

for (const model of ['openai/gpt-5-mini', 'anthropic/claude-haiku-4.5']) {
  for (const useResponsesApi of [false, true]) {
    const chat = new ChatOpenAI({ model, apiKey: API_KEY, configuration, maxRetries: 0, useResponsesApi });
    const message = await chat.invoke('Hello [[sandbox tokens=3]]');
    assert.equal(message.text, 'every coin that');

    let streamed;
    for await (const chunk of await chat.stream('Hello [[sandbox tokens=3]]'))
      streamed = streamed?.concat(chunk) ?? chunk;
    assert.equal(streamed.text, 'every coin that');
    assert.equal(streamed.usage_metadata.output_tokens, 3);
    if (useResponsesApi) assert.equal(streamed.response_metadata.status, 'completed');

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
}

const embeddings = new OpenAIEmbeddings({ model: 'openai/text-embedding-3-small', apiKey: API_KEY, configuration });
assert.equal((await embeddings.embedQuery('one')).length, 1536);

for (const useResponsesApi of [false, true]) {
  const options = { apiKey: API_KEY, configuration, maxRetries: 0, useResponsesApi };
  const chat = new ChatOpenAI({ model: 'openai/gpt-oss-120b', ...options }).bindTools([forecastTool]);
  for (const [index, prompt] of JSON.parse(INTERRUPTED_PROMPTS).entries()) {
    const read = async () => {
      let message;
      for await (const chunk of await chat.stream(prompt)) message = message?.concat(chunk) ?? chunk;
      // Over Responses, LangChain raises no error if a response failed. Only its status is missing then.
      if (useResponsesApi) assert.equal(message.response_metadata.status, 'completed');
    };
    await assert.rejects(read, Error, `stream ${index + 1} ended without an error`);
  }
}
