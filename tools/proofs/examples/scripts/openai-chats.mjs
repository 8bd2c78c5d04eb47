// The examples of chats and text completions.
import assert from 'node:assert/strict';
import { zodResponseFormat } from 'openai/helpers/zod';
import {
  assertChat,
  assertText,
  CalendarEvent,
  CHAT_MODEL,
  CHAT_TOOLS,
  chat,
  client,
  collect,
  FORECAST_PROMPT,
  forecastFunction,
  MODEL,
  PDF_URL,
  PNG_URL,
  user,
  WAV,
} from './openai-common.mjs';

export const chats = {
  'chat: default': async () => {
    const messages = [{ role: 'developer', content: 'You are a helpful assistant.' }, ...user('Hello!')];
    assertChat(await chat({ messages }));
  },
  'chat: several turns': async () => {
    const first = await chat();
    assertChat(await chat({ messages: [...user('Hello'), first.choices[0].message, ...user('And again')] }));
  },
  'chat: image input': async () => {
    const image = { type: 'image_url', image_url: { url: PNG_URL, detail: 'high' } };
    assertChat(await chat({ messages: user([{ type: 'text', text: 'What is in this image?' }, image]) }));
  },
  'chat: file input': async () => {
    const file = { type: 'file', file: { filename: 'draconomicon.pdf', file_data: PDF_URL } };
    assertChat(await chat({ messages: user([file, { type: 'text', text: 'What is this file about?' }]) }));
  },
  'chat: file by id': () =>
    chat({ messages: user([{ type: 'file', file: { file_id: 'file-6F2ksmvXxt4VdoqmHRw6kL' } }]) }),
  'chat: audio input': async () => {
    const audio = { type: 'input_audio', input_audio: { data: WAV, format: 'wav' } };
    const messages = user([{ type: 'text', text: 'What is in this recording?' }, audio]);
    assertChat(await chat({ model: 'gemini-3.1-pro', messages }));
  },
  'chat: audio output': () => chat({ modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }),
  'chat: streaming': async () => {
    const chunks = await collect(await chat({ stream: true, stream_options: { include_usage: true } }));
    assert.equal(chunks[0].choices[0].delta.role, 'assistant');
    assertText(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''));
    assert.ok(chunks.some(({ choices }) => choices[0]?.finish_reason === 'stop'));
    assert.deepEqual(chunks.at(-1).choices, []);
    assert.ok(chunks.at(-1).usage.total_tokens > 0);
  },
  'chat: streaming helper': async () => {
    const runner = client.chat.completions.stream({ model: MODEL, messages: user('Say hello') });
    assertChat(await runner.finalChatCompletion());
  },
  'chat: functions': async () => {
    const messages = user(FORECAST_PROMPT);
    const { choices } = await chat({ messages, tools: CHAT_TOOLS, tool_choice: 'auto' });
    assert.equal(choices[0].finish_reason, 'tool_calls');
    const [{ id, function: call }] = choices[0].message.tool_calls;
    assert.equal(call.name, 'get_weather');
    assert.ok('location' in JSON.parse(call.arguments));
    messages.push(choices[0].message, { role: 'tool', tool_call_id: id, content: '18 °C' });
    assertChat(await chat({ messages, tools: CHAT_TOOLS }));
  },
  'chat: functions, streaming': async () => {
    const chunks = await collect(await chat({ messages: user(FORECAST_PROMPT), tools: CHAT_TOOLS, stream: true }));
    const calls = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
    assert.equal(calls[0].function.name, 'get_weather');
    assert.ok('location' in JSON.parse(calls.map((call) => call.function.arguments ?? '').join('')));
  },
  'chat: required function': async () => {
    const tool_choice = { type: 'function', function: { name: 'get_weather' } };
    const { choices } = await chat({ tools: CHAT_TOOLS, tool_choice });
    assert.equal(choices[0].message.tool_calls[0].function.name, 'get_weather');
  },
  'chat: allowed functions': async () => {
    const tools = CHAT_TOOLS.map(({ function: { name } }) => ({ type: 'function', function: { name } }));
    const tool_choice = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools } };
    const { choices } = await chat({ tools: CHAT_TOOLS, tool_choice });
    assert.equal(choices[0].message.tool_calls[0].function.name, 'get_weather');
  },
  'chat: custom tool': async () => {
    const tools = [{ type: 'custom', custom: { name: 'code_exec', description: 'Executes Python code' } }];
    const { choices } = await chat({ messages: user('Print hello [[sandbox tool=code_exec]]'), tools });
    assertText(choices[0].message.tool_calls[0].custom.input);
  },
  'chat: tool runner': async () => {
    const definition = { ...forecastFunction, parse: JSON.parse, function: () => '18 °C' };
    const tools = [{ type: 'function', function: definition }];
    assertText(
      await client.chat.completions.runTools({ model: MODEL, messages: user(FORECAST_PROMPT), tools }).finalContent(),
    );
  },
  'chat: logprobs': async () => {
    const { choices } = await chat({ model: CHAT_MODEL, logprobs: true, top_logprobs: 2 });
    assert.equal(choices[0].logprobs.content[0].top_logprobs.length, 2);
  },
  'chat: structured output': async () => {
    const response_format = zodResponseFormat(CalendarEvent, 'event');
    const request = { model: MODEL, messages: user('Alice and Bob meet on Friday.'), response_format };
    const { choices } = await client.chat.completions.parse(request);
    assert.ok(Array.isArray(choices[0].message.parsed.participants));
  },
  'chat: JSON mode': async () => {
    const messages = user('Return a JSON object');
    const { choices } = await chat({ messages, response_format: { type: 'json_object' } });
    JSON.parse(choices[0].message.content);
  },
  'chat: reasoning': async () => {
    const messages = user('Write a bash script [[sandbox tokens=30 reasoning=10]]');
    const { usage } = await chat({ messages, reasoning_effort: 'medium' });
    assert.ok(usage.completion_tokens_details.reasoning_tokens > 0);
  },
  'chat: web search': async () => {
    const { choices } = await chat({ messages: user('Any good news today?'), web_search_options: {} });
    assert.equal(choices[0].message.annotations[0].type, 'url_citation');
  },
  'chat: predicted output': async () =>
    assertChat(await chat({ model: CHAT_MODEL, prediction: { type: 'content', content: 'class User {}' } })),
  'chat: several choices': async () => {
    assert.equal((await chat({ model: CHAT_MODEL, n: 2, temperature: 0.8, stop: ['###'], seed: 7 })).choices.length, 2);
  },
  'chat: service tier, cache key, metadata': async () => {
    const options = { service_tier: 'auto', prompt_cache_key: 'example', safety_identifier: 'user-1' };
    assertChat(await chat({ ...options, metadata: { topic: 'demo' }, verbosity: 'low' }));
  },
  'chat: store': () => chat({ store: true }).then(assertChat),
  'chat: list stored': () => client.chat.completions.list(),
  'chat: get stored': () => client.chat.completions.retrieve('chatcmpl-abc123'),
  'chat: list messages of stored': () => client.chat.completions.messages.list('chatcmpl-abc123'),
  'chat: update stored': () => client.chat.completions.update('chatcmpl-abc123', { metadata: { topic: 'demo' } }),
  'chat: delete stored': () => client.chat.completions.delete('chatcmpl-abc123'),
  'completion: default': async () => {
    const { object, choices } = await client.completions.create({ model: CHAT_MODEL, prompt: 'Say this is a test' });
    assert.equal(object, 'text_completion');
    assertText(choices[0].text);
  },
  'completion: streaming': async () => {
    const request = { model: CHAT_MODEL, prompt: 'Say this is a test', stream: true };
    const chunks = await collect(await client.completions.create(request));
    assertText(chunks.map(({ choices }) => choices[0]?.text ?? '').join(''));
  },
};
