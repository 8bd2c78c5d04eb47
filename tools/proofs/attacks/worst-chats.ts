/** The fields of chats, Responses and messages that take a gateway longest to handle. */
import {
  compressible,
  dataUrl,
  fields,
  ideographs,
  LARGE,
  LONG_TEXT,
  list,
  MIB,
  mp3,
  objects,
  repeatText,
} from './worst-contents.ts';

export const CHAT_MODEL = 'openai/gpt-5-mini';
/** The model of the provider with a protocol of its own, to which conversations are translated. */
export const CLAUDE = 'anthropic/claude-sonnet-4.6';
/** A model without a search of its own. */
const SEARCHED_MODEL = 'meta-llama/llama-3.1-8b-instruct:online';
const AUDIO_MODEL = 'google/gemini-2.5-pro';
/** The id of the output item in the Responses of rejecting-provider.ts. */
const STORED_ITEM = 'msg_worst';

/** The fields of a body, by the name of the case. */
export type Cases = Readonly<Record<string, object>>;

const user = (content: unknown) => ({ messages: [{ role: 'user', content }] });
const tool = (i: number, parameters: object) => ({ type: 'function', function: { name: `f${i}`, parameters } });
const createNested = (depth: number): object =>
  depth === 0 ? { type: 'string' } : { properties: { a: createNested(depth - 1) } };
const createCall = (id: string, text: string) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: text } }],
});
const createResult = (id: string, content: unknown) => ({ role: 'tool', tool_call_id: id, content });
const callOnce = (text: string) => ({ messages: [createCall('a', text), createResult('a', 'x')] });
const image = (url: string) => ({ type: 'image_url', image_url: { url } });
const file = (type: string) => ({ type: 'file', file: { filename: 'a', file_data: dataUrl(type, PRINTABLE) } });

const PRINTABLE = Buffer.alloc((LARGE - 256) * 0.75, 'ABC ');
const SMALL_IMAGE = 'data:image/png;base64,iVBORw0KGgo=';

/** Texts and lists for all routes of conversations. */
export const TEXTS: Cases = {
  'one text': user(LONG_TEXT),
  'one text of escapes': user('\n"'.repeat(LARGE / 4)),
  'one text of ideographs': user(ideographs(LARGE / 3)),
  'one text without gaps': user('a'.repeat(LARGE)),
  'many messages': {
    messages: list(24_500, (i) => ({ role: i % 2 ? 'assistant' : 'user', content: `message ${i}` })),
  },
  'many parts': user(list(24_500, (i) => ({ type: 'text', text: `part ${i}` }))),
};

/** Texts that hardly fill the connection. */
export const COMPRESSED: Cases = { 'one text': user(compressible(LARGE)) };

export const CHATS: Cases = {
  ...TEXTS,
  'many fields': { messages: list(4_500, (i) => ({ role: 'user', content: 'x', ...fields(9, `n${i}.`) })) },
  'many fields of its own': { ...user('x'), ...fields(990, 'n'), metadata: fields(9_900, 'm', 'x') },
  'one image': user([image(dataUrl('image/png', PRINTABLE))]),
  'many images': user(list(16_000, () => image(SMALL_IMAGE))),
  'one PDF': user([file('application/pdf')]),
  'one text file': user([file('text/plain')]),
  'one recording': {
    model: AUDIO_MODEL,
    ...user([{ type: 'input_audio', input_audio: { format: 'mp3', data: mp3(PRINTABLE.length).toString('base64') } }]),
  },
  'many tools': { ...user('x'), tools: list(790, (i) => tool(i, createNested(28))) },
  'a tool with a long description': { ...user('x'), tools: [tool(1, { description: LONG_TEXT })] },
  'a schema of many fields': { ...user('x'), tools: [tool(1, { anyOf: list(5, (k) => fields(9_900, `n${k}.`)) })] },
  'a schema of many numbers': { ...user('x'), tools: [tool(1, { enum: list(490_000, (i) => i % 10_000) })] },
  'a schema of many words': { ...user('x'), tools: [tool(1, { enum: list(95_000, (i) => `w${i}`) })] },
  'an output schema': {
    ...user('x'),
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'x', schema: { anyOf: list(5, (k) => fields(9_900, `n${k}.`, {})) } },
    },
  },
  'an output schema of many objects': {
    ...user('x'),
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'x',
        schema: { anyOf: list(5, (k) => ({ properties: fields(4_900, `n${k}.`, { type: 'object' }) })) },
      },
    },
  },
  'many calls': {
    messages: list(9_000, (i) => (i % 2 ? createResult(`c${i - 1}`, 'x') : createCall(`c${i}`, '{"a":1}'))),
  },
  'many calls at once': {
    messages: [
      { role: 'assistant', content: null, tool_calls: list(9_500, (i) => createCall(`c${i}`, '{}').tool_calls[0]) },
    ],
  },
  'long arguments': callOnce(JSON.stringify({ text: LONG_TEXT })),
  'arguments of many objects': callOnce(objects(LARGE)),
  'arguments of many fields': callOnce(
    JSON.stringify([...list(1_700, (k) => fields(9, `n${k}.`)), repeatText(1.8 * MIB)]),
  ),
  'a long result': { messages: [createCall('a', '{}'), createResult('a', LONG_TEXT)] },
  'a result of many images': {
    messages: [
      createCall('a', '{}'),
      createResult(
        'a',
        list(16_000, () => image(SMALL_IMAGE)),
      ),
    ],
  },
  'many legacy functions': {
    messages: list(7_000, (i) => ({
      role: 'assistant',
      content: null,
      function_call: { name: `f${i}`, arguments: '{}' },
    })),
    functions: list(7_000, (i) => ({ name: `f${i}`, parameters: {} })),
  },
  'long reasoning': {
    messages: [{ role: 'assistant', content: 'x', reasoning_details: [{ type: 'reasoning.text', text: LONG_TEXT }] }],
  },
  'many stop words': { ...user('x'), stop: list(95_000, (i) => `s${i}`) },
  'many providers': { ...user('x'), provider: { order: list(95_000, (i) => `p${i}`) } },
  'a search for one text': { model: SEARCHED_MODEL, ...user(LONG_TEXT) },
  'a search in many sites': {
    model: SEARCHED_MODEL,
    ...user('x'),
    plugins: [{ id: 'web', include_domains: list(95_000, (i) => `s${i}.example`) }],
  },
};

/** Chats that are translated for another protocol. */
export const TRANSLATED: Cases = Object.fromEntries(
  [
    'one text',
    'many messages',
    'many parts',
    'one image',
    'one PDF',
    'one text file',
    'a schema of many fields',
    'an output schema',
    'an output schema of many objects',
    'many calls',
    'many calls at once',
    'long arguments',
    'arguments of many objects',
    'arguments of many fields',
    'a result of many images',
  ].map((name) => [name, { ...CHATS[name], model: CLAUDE }]),
);

const callItem = (i: number) => ({ type: 'function_call', call_id: `c${i}`, name: 'f', arguments: '{}' });
const reasoningItem = (details: string) => ({
  type: 'reasoning',
  encrypted_content: `chat-reasoning.${Buffer.from(details).toString('base64')}`,
});
const inputImage = { type: 'input_image', image_url: SMALL_IMAGE };

/** Items of conversations in the Responses API, and settings that items change. */
export const ITEMS: Cases = {
  'items of every type': {
    input: list(1_600, (i) => [
      { role: 'user', content: [{ type: 'input_text', text: 'x' }] },
      reasoningItem('[{}]'),
      callItem(i),
      { type: 'function_call_output', call_id: `c${i}`, output: [{ type: 'input_text', text: 'x' }] },
      { type: 'custom_tool_call', call_id: `d${i}`, name: 'f', input: 'x' },
      { type: 'custom_tool_call_output', call_id: `d${i}`, output: 'x' },
      { type: 'web_search_call', id: `w${i}`, status: 'completed' },
      { type: 'reasoning', id: `r${i}`, summary: [], encrypted_content: 'x' },
      { type: 'compaction', encrypted_content: 'chat-compaction.eA==' },
    ]).flat(),
  },
  'many outputs of one call': {
    input: [callItem(1), ...list(9_500, () => ({ type: 'function_call_output', call_id: 'c1', output: [inputImage] }))],
  },
  'much reasoning of one turn': { input: list(8_000, (i) => [reasoningItem('[{}]'), callItem(i)]).flat() },
  'reasoning of many objects': { input: [{ role: 'user', content: 'x' }, reasoningItem(objects(LARGE * 0.75 - 64))] },
  'long encrypted reasoning': {
    input: [
      { role: 'user', content: 'x' },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: LONG_TEXT }],
        encrypted_content: 'x',
      },
    ],
  },
  'a long summary': {
    input: [{ type: 'compaction', encrypted_content: `chat-compaction.${'QUJD'.repeat(LARGE / 4 - 64)}` }],
  },
  'a long custom call': {
    input: [
      { type: 'custom_tool_call', call_id: 'a', name: 'f', input: LONG_TEXT },
      { type: 'custom_tool_call_output', call_id: 'a', output: 'x' },
    ],
  },
  'many settings': {
    input: [
      { role: 'user', content: 'x' },
      ...list(16_000, () => ({ type: 'configuration_update', reasoning: { effort: 'low' } })),
    ],
    ...fields(990, 'n'),
  },
  'many allowed tools': {
    input: 'x',
    tools: [{ type: 'namespace', name: 'n', tools: list(4_095, (i) => ({ type: 'function', name: `f${i}` })) }],
    tool_choice: { type: 'allowed_tools', tools: list(4_095, (i) => ({ type: 'function', name: `f${i}` })) },
  },
  'one image': {
    input: [{ role: 'user', content: [{ type: 'input_image', image_url: dataUrl('image/png', PRINTABLE) }] }],
  },
  'one text file': {
    input: [
      {
        role: 'user',
        content: [{ type: 'input_file', filename: 'a', file_data: dataUrl('text/plain', PRINTABLE) }],
      },
    ],
  },
};

/** Responses that are stored, because their provider does not reject them, and one that continues one of these. */
export const STORED: Cases = {
  'one text, stored': { input: LONG_TEXT },
  'many messages, stored': { input: list(24_500, (i) => ({ role: i % 2 ? 'assistant' : 'user', content: `m ${i}` })) },
  'a stored conversation': {
    input: [
      { type: 'item_reference', id: STORED_ITEM },
      { role: 'user', content: 'x' },
    ],
  },
};

const useBlock = (i: number, input: object) => ({ type: 'tool_use', id: `u${i}`, name: 'f', input });
const resultBlock = (i: number, content: unknown) => ({ type: 'tool_result', tool_use_id: `u${i}`, content });
const document = (source: object) => user([{ type: 'document', source }]);

/** Content blocks of Anthropic's Messages API. */
export const BLOCKS: Cases = {
  'blocks of every type': {
    messages: [
      {
        role: 'assistant',
        content: list(2_300, (i) => [
          { type: 'thinking', thinking: 'x', signature: 'x' },
          { type: 'redacted_thinking', data: 'x' },
          { type: 'text', text: 'x' },
          useBlock(i, { a: 1 }),
        ]).flat(),
      },
      {
        role: 'user',
        content: list(2_300, (i) => [
          resultBlock(i, [{ type: 'text', text: 'x' }]),
          { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } },
        ]).flat(),
      },
    ],
  },
  'a tool with a long input': {
    messages: [
      { role: 'assistant', content: [useBlock(1, { text: LONG_TEXT })] },
      { role: 'user', content: [resultBlock(1, 'x')] },
    ],
  },
  'a tool with an input of many fields': {
    messages: [
      { role: 'assistant', content: [useBlock(1, { all: list(5, (k) => fields(9_900, `n${k}.`)) })] },
      { role: 'user', content: [resultBlock(1, 'x')] },
    ],
  },
  'a document of text': document({ type: 'text', media_type: 'text/plain', data: LONG_TEXT }),
  'a document in base64': document({
    type: 'base64',
    media_type: 'text/plain',
    data: PRINTABLE.toString('base64'),
  }),
  'a document of many blocks': document({
    type: 'content',
    content: list(24_500, () => ({ type: 'text', text: 'x' })),
  }),
  'long thinking': {
    messages: [{ role: 'assistant', content: [{ type: 'thinking', thinking: LONG_TEXT, signature: 'x' }] }],
  },
  'a long system prompt': { ...user('x'), system: list(24_500, () => ({ type: 'text', text: 'x' })) },
  'tools of many fields': {
    ...user('x'),
    tools: [{ name: 'f', input_schema: { anyOf: list(5, (k) => fields(9_900, `n${k}.`)) } }],
  },
};
