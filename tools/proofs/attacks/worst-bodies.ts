/** The bodies that a gateway takes longest to handle, among those that it accepts for reading. */

export interface WorstBody {
  readonly name: string;
  readonly path: string;
  readonly contentType: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

const MIB = 1024 * 1024;
/** Just below the limit of a body, 25 MiB. */
const LARGE = 24 * MIB;
const CHAT_MODEL = 'openai/gpt-5-mini';
const EMBEDDING_MODEL = 'openai/text-embedding-3-large';

const chat = (fields: object) => ({ model: CHAT_MODEL, max_tokens: 16, ...fields });
const user = (content: unknown) => [{ role: 'user', content }];
/** Text of random ideographs, the slowest for a tokenizer. */
const ideographs = (length: number) =>
  Array.from({ length }, () => String.fromCharCode(0x4e00 + Math.random() * 20_000)).join('');
const list = <T>(length: number, create: (i: number) => T) => Array.from({ length }, (_, i) => create(i));
const createNested = (depth: number): object =>
  depth === 0 ? { type: 'string' } : { properties: { a: createNested(depth - 1) } };
const tool = (i: number, parameters: object) => ({ type: 'function', function: { name: `f${i}`, parameters } });
const base64 = (start: string) => start + 'A'.repeat(LARGE - start.length);
const dataUrl = (type: string) => `data:${type};base64,${'QUJD'.repeat((LARGE - 64) / 4)}`;

/** Bodies by the name of the case, for the routes of models with messages. */
const MESSAGES: Readonly<Record<string, object>> = {
  'one text': { messages: user('lorem ipsum dolor '.repeat(LARGE / 18)) },
  'one text of escapes': { messages: user('\n"'.repeat(LARGE / 4)) },
  'one text of ideographs': { messages: user(ideographs(LARGE / 3)) },
  'one text without gaps': { messages: user('a'.repeat(LARGE)) },
  'many messages': { messages: list(33_000, (i) => ({ role: i % 2 ? 'assistant' : 'user', content: `message ${i}` })) },
  'many parts': { messages: user(list(32_000, (i) => ({ type: 'text', text: `part ${i}` }))) },
};
const CHATS: Readonly<Record<string, object>> = {
  ...MESSAGES,
  'many fields': {
    messages: list(9_000, (i) => ({
      role: 'user',
      content: 'x',
      ...Object.fromEntries(list(9, (j) => [`n${i}.${j}`, 1])),
    })),
  },
  'one image': { messages: user([{ type: 'image_url', image_url: { url: dataUrl('image/png') } }]) },
  'many images': {
    messages: user(
      list(8_000, () => ({ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } })),
    ),
  },
  'one PDF': { messages: user([{ type: 'file', file: { filename: 'a.pdf', file_data: dataUrl('application/pdf') } }]) },
  'one text file': {
    messages: user([{ type: 'file', file: { filename: 'a.txt', file_data: dataUrl('text/plain') } }]),
  },
  'one recording': {
    messages: user([{ type: 'input_audio', input_audio: { format: 'mp3', data: base64('SUQzBAAAAAAA') } }]),
  },
  'many tools': { messages: user('x'), tools: list(700, (i) => tool(i, createNested(28))) },
  'a tool with a long description': { messages: user('x'), tools: [tool(1, { description: 'a '.repeat(LARGE / 2) })] },
  'a schema of many fields': {
    messages: user('x'),
    tools: [
      tool(
        1,
        list(9, (k) => Object.fromEntries(list(9_900, (i) => [`n${k}.${i}`, 1]))),
      ),
    ],
  },
  'a schema of many numbers': { messages: user('x'), tools: [tool(1, { enum: list(490_000, (i) => i % 10_000) })] },
  'a schema of many words': { messages: user('x'), tools: [tool(1, { enum: list(190_000, (i) => `w${i}`) })] },
};

function createCases(): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const mapBodies = (bodies: Readonly<Record<string, object>>, map: (body: object) => unknown) =>
    Object.fromEntries(Object.entries(bodies).map(([name, body]) => [name, map(body)]));
  const toInput = (body: object) => {
    const { messages, ...rest } = body as {
      readonly messages: readonly { readonly role: string; readonly content: unknown }[];
    };
    const toPart = (role: string, part: { readonly text: string }) => ({
      type: role === 'user' ? 'input_text' : 'output_text',
      text: part.text,
    });
    const input = messages.map(({ role, content }) => ({
      role,
      content: Array.isArray(content) ? content.map((part) => toPart(role, part)) : content,
    }));
    return { model: CHAT_MODEL, input, ...rest };
  };
  return {
    '/v1/chat/completions': mapBodies(CHATS, chat),
    '/v1/completions': { 'one text': { model: CHAT_MODEL, prompt: 'lorem ipsum '.repeat(LARGE / 12) } },
    '/v1/messages': mapBodies(MESSAGES, (body) => ({ ...chat(body) })),
    '/v1/messages/count_tokens': mapBodies(MESSAGES, (body) => ({ model: CHAT_MODEL, ...body })),
    '/v1/responses': mapBodies(MESSAGES, (body) => ({ ...toInput(body), store: false })),
    '/v1/responses (truncation)': mapBodies(MESSAGES, (body) => ({
      ...toInput(body),
      store: false,
      truncation: 'auto',
    })),
    '/v1/responses/input_tokens': mapBodies(MESSAGES, toInput),
    '/v1/responses/compact': mapBodies(MESSAGES, toInput),
    '/v1/embeddings': {
      '2,047 inputs': { model: EMBEDDING_MODEL, input: list(2_047, (i) => `${i} ${'lorem ipsum '.repeat(950)}`) },
      '700 inputs of ideographs': { model: EMBEDDING_MODEL, input: list(700, () => ideographs(11_000)) },
      '300,000 tokens': { model: EMBEDDING_MODEL, input: list(300, () => list(1_000, (i) => 10_000 + i)) },
      'one input': { model: EMBEDDING_MODEL, input: 'lorem ipsum '.repeat(LARGE / 12) },
    },
    '/v1/images/generations': {
      'one prompt': { model: 'gpt-image-1', prompt: 'lorem ipsum '.repeat(2_500) },
      'one image': { model: 'gpt-image-1', prompt: 'x', image_url: dataUrl('image/png') },
    },
    '/v1/videos': { 'one image': { model: 'kling-2.5-turbo', prompt: 'x', image_url: dataUrl('image/png') } },
    '/v1/audio/speech': {
      'one text': { model: 'gpt-4o-mini-tts', voice: 'alloy', input: 'lorem ipsum '.repeat(LARGE / 12) },
    },
    '/v1/data/api/exa/search': { 'one query': { query: 'lorem ipsum '.repeat(80_000) } },
    '/keys': { 'one name': { name: 'x'.repeat(60_000) } },
    '/credits/balance': { 'one field': { x: 'y'.repeat(4_000) } },
  };
}

/** Creates all cases. They have several hundred MB in total. */
export function createWorstBodies(): readonly WorstBody[] {
  const json = Object.entries(createCases()).flatMap(([route, cases]) =>
    Object.entries(cases).map(([name, value]) => {
      const body = Buffer.from(JSON.stringify(value));
      return { name: `${route}: ${name}`, path: route.split(' ')[0] ?? '', contentType: 'application/json', body };
    }),
  );
  const chatCases = json.filter(({ path }) => path === '/v1/chat/completions');
  const repeated = chatCases.map((one, i) => ({
    ...one,
    name: `${one.name}, with an Idempotency-Key`,
    headers: { 'idempotency-key': `key ${i}` },
  }));
  return [...json, ...repeated];
}
