import { describe, expect, test } from '@jest/globals';
import { readProviders } from '#catalogue';
import { createChatFilter, responsesFilter } from './field-filter.ts';

const dialectOf = (vendor: string) => readProviders().find(({ slug }) => slug === vendor)?.dialect ?? {};
const chat = (body: object, vendor = 'openai') => createChatFilter(dialectOf(vendor))({ model: 'm', ...body }, '');

describe('a chat request', () => {
  test.each([
    ['service_tier', 'priority'],
    ['prediction', { type: 'content', content: 'x' }],
    ['audio', { voice: 'alloy', format: 'wav' }],
    ['web_search_options', {}],
    ['plugins', [{ id: 'file-parser', pdf: { engine: 'mistral-ocr' } }]],
    ['models', ['openai/gpt-5.4']],
    ['route', 'fallback'],
    ['transforms', ['middle-out']],
    ['preset', 'dear'],
    ['store', true],
    ['prompt_cache_retention', '24h'],
    ['functions', [{ name: 'f' }]],
  ])('is sent without %s to OpenAI, OpenRouter and Groq', (name, value) => {
    for (const vendor of ['openai', 'openrouter', 'groq'])
      expect(chat({ [name]: value }, vendor)).toEqual({ model: 'm' });
  });

  test.each(['google/gemini-2.5-pro:online', 'm:ONLINE', 'm:free: online :beta'])(
    'is rejected for the model %s',
    (model) => {
      expect(() => chat({ model })).toThrow(`The model "${model}" cannot be requested`);
    },
  );

  test.each(['m:free', 'online', 'vendor/online-7b', 'm:online2'])('is sent unchanged for the model %s', (model) => {
    expect(chat({ model })).toEqual({ model });
  });

  test('has the fields of a role in messages of that role only', () => {
    const fields = { content: 'Hi', refusal: ' ', tool_calls: null, tool_call_id: 'call_1' };
    const roles = ['user', 'system', 'assistant', 'tool'];
    const { messages } = chat({ messages: roles.map((role) => ({ role, ...fields })) }) as { messages: object[] };
    expect(messages.map((message) => Object.keys(message))).toEqual([
      ['role', 'content'],
      ['role', 'content'],
      ['role', 'content', 'refusal', 'tool_calls'],
      ['role', 'content', 'tool_call_id'],
    ]);
  });

  test('has only the fields of a replayed message that the provider supports', () => {
    const replayed = {
      role: 'assistant',
      content: 'Hi',
      name: 'n',
      refusal: null,
      annotations: [],
      audio: { id: 'a' },
      reasoning: 'Hm',
      reasoning_details: [],
      cache_control: { type: 'ephemeral', ttl: '1h' },
    };
    const sentTo = (vendor: string) => (chat({ messages: [replayed] }, vendor) as { messages: object[] }).messages[0];
    expect(sentTo('openai')).toEqual({ role: 'assistant', content: 'Hi', name: 'n', refusal: null });
    expect(sentTo('groq')).toEqual({ role: 'assistant', content: 'Hi', reasoning: 'Hm' });
    expect(sentTo('deepinfra')).toEqual({ role: 'assistant', content: 'Hi', name: 'n' });
    const { audio: _, ...known } = replayed;
    expect(sentTo('openrouter')).toEqual({ ...known, cache_control: { type: 'ephemeral' } });
  });

  test('has cache_control only for providers that support it, and without a lifetime', () => {
    const cache_control = { type: 'ephemeral', ttl: '1h' };
    const marked = {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', cache_control }] }],
      tools: [{ type: 'function', function: { name: 'f' }, cache_control }],
    };
    expect(JSON.stringify(chat(marked, 'openai'))).not.toContain('cache_control');
    const sent = JSON.stringify(chat(marked, 'openrouter'));
    expect(sent.match(/"cache_control":\{"type":"ephemeral"\}/g)).toHaveLength(2);
  });
});

describe('a Responses request', () => {
  test('has no field for storage at the provider, and is rejected with an unlisted type of tool or item', () => {
    const sent = (body: object) => responsesFilter({ model: 'm', input: 'Hi', ...body }, '');
    expect(sent({ store: true, background: true, conversation: 'c', prompt: { id: 'p' } })).toEqual({
      model: 'm',
      input: 'Hi',
    });
    expect(sent({ store: false, tools: [{ type: 'web_search' }] })).toMatchObject({ tools: [{ type: 'web_search' }] });
    expect(() => sent({ tools: [{ type: 'code_interpreter' }] })).toThrow('"code_interpreter" are not supported');
    expect(() => sent({ input: [{ type: 'mcp_call' }] })).toThrow('Items of the type "mcp_call" are not supported');
  });
});
