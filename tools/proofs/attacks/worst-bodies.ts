/**
 * The bodies that a gateway takes longest to handle, among those that it accepts for reading: for every route with a
 * body, those that reach most of its work.
 */
import { gzipSync } from 'node:zlib';
import {
  BLOCKS,
  type Cases,
  CHAT_MODEL,
  CHATS,
  CLAUDE,
  COMPRESSED,
  ITEMS,
  STORED,
  TEXTS,
  TRANSLATED,
} from './worst-chats.ts';
import {
  dataUrl,
  FORM,
  fields,
  form,
  ideographs,
  LARGE,
  LONG_TEXT,
  list,
  mp3,
  type Part,
  png,
  repeatText,
} from './worst-contents.ts';

export interface WorstBody {
  readonly name: string;
  readonly path: string;
  readonly contentType: string;
  readonly body: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

const EMBEDDING_MODEL = 'openai/text-embedding-3-large';
const EDIT_MODEL = 'openai/gpt-image-1.5';
const VIDEO_MODEL = 'kling/kling-2.5-turbo-i2v';
const SPEECH_MODEL = 'openai/tts-1';
const TRANSCRIPTION_MODEL = 'openai/whisper-1';
/** Limits of the bodies of lookups and of webhooks. */
const [LOOKUP_BYTES, WEBHOOK_BYTES] = [1024 * 1024, 256 * 1024];
/** Some bytes for the JSON around a text. */
const FRAME_BYTES = 256;

/** The prefixes of the settings of the providers to which these bodies are sent. */
const PROVIDERS = ['OPENAI', 'ANTHROPIC', 'OPENROUTER', 'DEEPINFRA', 'FAL', 'DEEPGRAM', 'TINFOIL', 'EXA'];
const LOOKUP_PROVIDERS = ['FIRECRAWL', 'FULLENRICH', 'MINERVA'];

/** Returns the settings that send what the bodies request from providers to one address. */
export function createProviderSettings(address: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...PROVIDERS, ...LOOKUP_PROVIDERS].map((name) => [`${name}_BASE_URL`, address]));
}

type Messages = readonly { readonly role: string; readonly content: unknown }[];

/** Converts the messages of a chat to the input of a response. */
function toInput({ messages, ...rest }: object & { readonly messages?: Messages }): object {
  const toPart = (role: string) => (part: { readonly text: string }) => ({
    type: role === 'user' ? 'input_text' : 'output_text',
    text: part.text,
  });
  const input = messages?.map(({ role, content }) => ({
    role,
    content: Array.isArray(content) ? content.map(toPart(role)) : content,
  }));
  return { ...(input ? { input } : {}), ...rest };
}

const mapCases = (cases: Cases, map: (body: object) => object): Cases =>
  Object.fromEntries(Object.entries(cases).map(([name, body]) => [name, map(body)]));

const toChat = (body: object) => ({ model: CHAT_MODEL, max_tokens: 16, ...body });
const toResponse = (body: object) => ({ model: CHAT_MODEL, max_output_tokens: 16, store: false, ...toInput(body) });
const toCount = (body: object) => ({ model: CHAT_MODEL, ...toInput(body) });

/** Bodies in JSON by their route; a text in parentheses distinguishes bodies of the same route. */
function createJsonCases(): Readonly<Record<string, Cases>> {
  const image = dataUrl('image/png', png((LARGE - FRAME_BYTES) * 0.75));
  const lookup = (create: (bytes: number) => object) => create(LOOKUP_BYTES - FRAME_BYTES);
  const records = (bytes: number) => list(Math.floor(bytes / 64), (i) => ({ value: `company ${i}`, exclude: false }));
  return {
    '/v1/chat/completions': mapCases(CHATS, toChat),
    '/v1/chat/completions (translated)': mapCases(TRANSLATED, toChat),
    '/v1/completions': mapCases(
      { 'one text': { prompt: LONG_TEXT }, 'one text of ideographs': { prompt: ideographs(LARGE / 3) } },
      toChat,
    ),
    '/v1/messages': mapCases({ ...TEXTS, ...BLOCKS }, toChat),
    '/v1/messages (translated)': mapCases(BLOCKS, (body) => toChat({ model: CLAUDE, ...body })),
    '/v1/messages/count_tokens': mapCases({ ...TEXTS, ...BLOCKS }, (body) => ({ model: CHAT_MODEL, ...body })),
    '/v1/responses': mapCases({ ...TEXTS, ...ITEMS }, toResponse),
    '/v1/responses (stored)': mapCases(STORED, (body) => ({ ...toResponse(body), store: undefined })),
    '/v1/responses (truncation)': mapCases(TEXTS, (body) => ({ ...toResponse(body), truncation: 'auto' })),
    '/v1/responses/input_tokens': mapCases({ ...TEXTS, ...ITEMS }, toCount),
    '/v1/responses/compact': mapCases({ ...TEXTS, ...ITEMS }, toCount),
    '/v1/embeddings': mapCases(
      {
        '2,047 inputs': { input: list(2_047, (i) => `${i} ${repeatText(11_400)}`) },
        '700 inputs of ideographs': { input: list(700, () => ideographs(11_000)) },
        '300,000 tokens': { input: list(300, () => list(1_000, (i) => 10_000 + i)) },
        'one input': { input: LONG_TEXT },
      },
      (body) => ({ model: EMBEDDING_MODEL, ...body }),
    ),
    '/v1/images/generations': {
      'one prompt': { model: EDIT_MODEL, prompt: ideographs(4_000) },
      'one long prompt': { model: 'flux-1-schnell', prompt: ideographs(32_000) },
      'one prompt for a queue': { model: 'recraft-v3', prompt: ideographs(32_000) },
      'one image': { model: EDIT_MODEL, prompt: 'x', image_url: image },
      'one image for a queue': { model: 'flux-kontext-pro', prompt: 'x', image_url: image },
    },
    '/v1/videos': {
      'one image': { model: VIDEO_MODEL, prompt: 'x', image_url: image },
      'one prompt': { model: 'veo3', prompt: ideographs(20_000), negative_prompt: ideographs(4_096) },
    },
    '/v1/audio/speech': {
      'one text': { model: SPEECH_MODEL, voice: 'alloy', input: ideographs(4_096) },
      'one text that is too long': { model: SPEECH_MODEL, voice: 'alloy', input: LONG_TEXT },
    },
    '/v1/data/api/web/search': {
      'one query': lookup((bytes) => ({ query: repeatText(bytes) })),
      'many sites': lookup((bytes) => ({ query: 'x', includeDomains: list(bytes / 12, (i) => `s${i % 10_000}.de`) })),
    },
    '/v1/data/api/crawler/scrape': {
      'one URL': lookup((bytes) => ({ url: `https://${'a.'.repeat(bytes / 2 - 8)}a/` })),
    },
    '/v1/data/api/professionals/people-search': {
      'many companies': lookup((bytes) => ({ current_company_names: records(bytes) })),
    },
    '/v1/data/api/identity/validate-emails': {
      'long addresses': lookup((bytes) => ({ records: list(10, () => 'a'.repeat(Math.min(bytes / 10, 4_096))) })),
    },
    '/keys': { 'many fields': { name: 'a key', usage_limit_usd: 1, ...fields(990, 'n') } },
    '/credits/balance': { 'many fields': fields(450, 'n') },
    '/accounts/create': { 'many fields': fields(450, 'n') },
    '/topup/create/btc-lightning': { 'many fields': { amount: 1, currency: 'USD', ...fields(430, 'n') } },
    '/topup/card/session': { 'many fields': { amount: 5, currency: 'USD', ...fields(430, 'n') } },
    '/nwc-auto-topup/connect': {
      'one address': { nwc_url: `nostr+walletconnect://${'a'.repeat(2_000)}`, ...fields(990, 'n') },
    },
  };
}

/** Forms by their route. */
function createForms(): Readonly<Record<string, Readonly<Record<string, readonly Part[]>>>> {
  const text = (field: string, content: string): Part => ({ field, content });
  const file = (field: string, content: Buffer): Part => ({ field, filename: 'a', content });
  const transcribe = text('model', TRANSCRIPTION_MODEL);
  const edit = [text('model', EDIT_MODEL), text('prompt', 'x')];
  const manyFields = list(60, (i) => text(`field ${i}`, repeatText(4_090)));
  return {
    '/v1/audio/transcriptions': {
      'one recording': [transcribe, file('file', mp3())],
      'one recording for another provider': [text('model', 'nova-3'), file('file', mp3())],
      'many fields': [transcribe, file('file', mp3(720_000)), ...manyFields],
      'many parts': [transcribe, file('file', mp3(72_000)), ...list(95, (i) => file(`other ${i}`, Buffer.from('x')))],
    },
    '/v1/images/edits': {
      'two large images': [...edit, file('image', png()), file('mask', png())],
      'many images': [...edit, ...list(16, () => file('image[]', png(1_000_000))), file('mask', png(1_000_000))],
      'many fields': [...edit, file('image', png(10_000)), ...manyFields],
    },
  };
}

/** Bodies that the gateway does not interpret: ciphertext, which it relays, and webhooks, whose signature it checks. */
function createRawBodies(): readonly WorstBody[] {
  const [contentType, webhook] = ['application/octet-stream', Buffer.alloc(WEBHOOK_BYTES, '{"a":1} ')];
  const privateChat = { 'x-private-model': 'private/gpt-oss-120b', 'ehbp-encapsulated-key': 'a'.repeat(64) };
  return [
    { path: '/private/v1/chat/completions', contentType, body: Buffer.alloc(LARGE), headers: privateChat },
    {
      path: '/topup/webhooks/btcpay',
      contentType,
      body: webhook,
      headers: { 'btcpay-sig': `sha256=${'0'.repeat(64)}` },
    },
    { path: `/v1/videos/webhooks/fal/gen_${'0'.repeat(32)}.1.${'a'.repeat(43)}`, contentType, body: webhook },
  ].map((one) => ({ ...one, name: `${one.path.slice(0, 40)}: bytes` }));
}

const JSON_TYPE = 'application/json';

/** Creates all cases. They have about two GB in total. */
export function createWorstBodies(): readonly WorstBody[] {
  const json = Object.entries(createJsonCases()).flatMap(([route, cases]) =>
    Object.entries(cases).map(([name, value]) => createBody(route, name, Buffer.from(JSON.stringify(value)))),
  );
  const chats = json.filter(({ path }) => path === '/v1/chat/completions');
  const repeated = chats.map((one, i) =>
    withHeaders(one, 'with an Idempotency-Key', { 'idempotency-key': `key ${i}` }),
  );
  const compressed = Object.entries(mapCases(COMPRESSED, toChat)).map(([name, value]) =>
    withHeaders(createBody('/v1/chat/completions', name, gzipSync(JSON.stringify(value))), 'compressed', {
      'content-encoding': 'gzip',
    }),
  );
  const longHeaders = withHeaders(
    createBody(
      '/v1/chat/completions',
      'many headers',
      Buffer.from(JSON.stringify(toChat({ messages: [{ role: 'user', content: 'x' }] }))),
    ),
    'of the request',
    Object.fromEntries(list(900, (i) => [`x-h${i}`, `v${i}`])),
  );
  const forms = Object.entries(createForms()).flatMap(([route, cases]) =>
    Object.entries(cases).map(([name, parts]) => ({ ...createBody(route, name, form(parts)), contentType: FORM })),
  );
  return [...json, ...repeated, ...compressed, longHeaders, ...forms, ...createRawBodies()];
}

function createBody(route: string, name: string, body: Buffer): WorstBody {
  return { name: `${route}: ${name}`, path: route.split(' ')[0] ?? '', contentType: JSON_TYPE, body };
}

function withHeaders(body: WorstBody, name: string, headers: Readonly<Record<string, string>>): WorstBody {
  return { ...body, name: `${body.name}, ${name}`, headers };
}
