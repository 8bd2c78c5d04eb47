// What the examples of OpenAI's documentation share.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import OpenAI, { toFile } from 'openai';
import { z } from 'zod';

const { GATEWAY_URL, API_KEY, PDF, PNG } = process.env;
export const { WAV } = process.env;
export const client = new OpenAI({ baseURL: `${GATEWAY_URL}/v1`, apiKey: API_KEY, maxRetries: 0 });
export const MODEL = 'gpt-5-mini';
export const CHAT_MODEL = 'gpt-4o-mini';
export const PNG_URL = `data:image/png;base64,${PNG}`;
export const PDF_URL = `data:application/pdf;base64,${PDF}`;

export const createPng = () => toFile(Buffer.from(PNG, 'base64'), 'image.png', { type: 'image/png' });
export const createWav = () => toFile(Buffer.from(WAV, 'base64'), 'speech.wav', { type: 'audio/wav' });
export const createJsonl = () => toFile(Buffer.from('{"custom_id":"1"}\n'), 'requests.jsonl');

export const user = (content) => [{ role: 'user', content }];
export const chat = (body) => client.chat.completions.create({ model: MODEL, messages: user('Say hello'), ...body });
export const respond = (body) => client.responses.create({ model: MODEL, input: 'Say hello', ...body });
export const search = { input: 'Any good news today? [[sandbox tool=web_search]]', tools: [{ type: 'web_search' }] };

export function assertText(text) {
  assert.ok(typeof text === 'string' && text.length > 0, 'the text is empty');
}

export function assertChat({ object, choices: [choice], usage }) {
  assert.equal(object, 'chat.completion');
  assert.equal(choice.finish_reason, 'stop');
  assertText(choice.message.content);
  assert.ok(usage.total_tokens > 0);
}

export function assertResponse({ object, status, output_text, usage }) {
  assert.equal(object, 'response');
  assert.equal(status, 'completed');
  assertText(output_text);
  assert.ok(usage.total_tokens > 0);
}

export function assertFile(bytes) {
  assert.ok(bytes.byteLength > 0, 'the file is empty');
}

export async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

export const parameters = {
  type: 'object',
  properties: { location: { type: 'string', description: 'City and country, such as Bogotá, Colombia' } },
  required: ['location'],
  additionalProperties: false,
};
export const forecastFunction = {
  name: 'get_weather',
  description: 'Current temperature for a location',
  parameters,
  strict: true,
};
export const CHAT_TOOLS = [{ type: 'function', function: forecastFunction }];
export const TOOLS = [{ type: 'function', ...forecastFunction }];
export const FORECAST_PROMPT = 'What is the weather in Paris? [[sandbox tool=get_weather]]';
export const Step = z.object({ explanation: z.string(), output: z.string() });
export const CalendarEvent = z.object({ name: z.string(), date: z.string(), participants: z.array(z.string()) });
export const Solution = z.object({ steps: z.array(Step), final_result: z.string() });
