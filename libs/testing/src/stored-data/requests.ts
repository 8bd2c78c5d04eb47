/**
 * Requests whose responses the gateway stores, or that its rate limits count. Bodies are text, because the order of
 * their properties matters.
 */
import { PIXEL } from '../inputs/forms.ts';
import type { Exchange } from './fixture.ts';

export type RequestSpec = Pick<Exchange, 'name' | 'method' | 'path' | 'headers' | 'body'>;

/** A video model whose provider has its own names, values and additional fields for the parameters. */
export const VIDEO_MODEL = {
  id: 'test/moving-image-i2v',
  type: 'video',
  name: 'Moving image',
  provider: 'Test',
  description: 'Sets an image in motion.',
  released: '2026-01-01',
  popular: false,
  privacy: 'anon',
  inputs: ['text', 'image'],
  outputs: ['video'],
  capabilities: ['image_to_video', 'requires_image'],
  choices: { duration: ['5', '8'], quality: ['720p', '540p'] },
  endpoints: [
    {
      provider: 'fal',
      upstream: 'fal',
      model: 'fal-ai/test',
      margin: '1.15',
      usdPerUnit: { unit: 'second', usd: '0.1' },
      parameters: ['prompt', 'duration', 'quality', 'image_url'],
      wire: {
        names: { quality: 'size_class' },
        words: { duration: { '5': '5s', '8': '8s' } },
        always: { sound: false },
        withImage: { model: 'fal-ai/test/with-image', always: { motion: 3 } },
      },
    },
  ],
};
/** Videos to be submitted: one of one provider, one that two providers can generate, and one from an image. */
export const PENDING_VIDEOS = [
  { model: 'kling/kling-2.5-turbo', prompt: 'A harbour at dusk', duration: 5 },
  { model: 'google/veo-3-fast', prompt: 'A lighthouse', duration: 6, aspect_ratio: '16:9' },
  {
    model: VIDEO_MODEL.id,
    prompt: 'It turns',
    duration: 8,
    quality: '540p',
    image_url: `data:image/png;base64,${PIXEL.toString('base64')}`,
  },
];

export const VIDEO_BODY = '{"model":"kling/kling-2.5-turbo","prompt":"A harbour at dusk","duration":5}';
export const CLAUDE = 'anthropic/claude-haiku-4.5';
export const TOOL = { type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } };
/** Parameters for a model that reasons before it calls its tool. */
export const REASONING_PARAMS = { tools: [TOOL], reasoning: { effort: 'medium' }, max_output_tokens: 4_000 };
export const TOOL_CALL_PROMPT = { role: 'user', content: '[[sandbox tool=weather reasoning=4]]' };

const JSON_TYPE = { 'content-type': 'application/json' };
const BOUNDARY = 'a-boundary';
const HELLO = '[{"role":"user","content":"[[sandbox tokens=8]]"}]';

export function createAuthHeaders(apiKey: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${apiKey}` };
}

export function createPostRequest(
  name: string,
  path: string,
  headers: Exchange['headers'],
  body?: string,
): RequestSpec {
  return body === undefined
    ? { name, method: 'POST', path, headers }
    : { name, method: 'POST', path, headers: { ...JSON_TYPE, ...headers }, body };
}

export function createGetRequest(name: string, path: string, headers: Exchange['headers']): RequestSpec {
  return { name, method: 'GET', path, headers };
}

/** Creates requests, each with its own Idempotency-Key. */
export function createKeyedRequests(apiKey: string, creditId: string): readonly RequestSpec[] {
  const createHeaders = (name: string) => ({ ...createAuthHeaders(apiKey), 'idempotency-key': `key of ${name}` });
  const createRequest = (name: string, path: string, body: string) =>
    createPostRequest(name, path, createHeaders(name), body);
  return [
    createRequest('chat', '/v1/chat/completions', `{"model":"openai/gpt-5-mini","messages":${HELLO}}`),
    createRequest(
      'streamed chat',
      '/v1/chat/completions',
      `{"model":"openai/gpt-5-mini","messages":${HELLO},"stream":true}`,
    ),
    createRequest('response', '/v1/responses', '{"model":"openai/gpt-5-mini","input":"Hello","store":true}'),
    createRequest('message', '/v1/messages', `{"model":"${CLAUDE}","max_tokens":64,"messages":${HELLO}}`),
    createRequest(
      'embedding',
      '/v1/embeddings',
      '{"model":"openai/text-embedding-3-small","input":"Hello","dimensions":4}',
    ),
    createRequest('image', '/v1/images/generations', formatImageBody('A coin', 'url')),
    {
      ...createPostRequest('image of a form', '/v1/images/edits', createHeaders('image of a form')),
      headers: { ...createHeaders('image of a form'), 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
      body: formatImageForm(),
    },
    createRequest('video', '/v1/videos', VIDEO_BODY),
    createPostRequest(
      'new key',
      '/keys',
      { 'x-credit-id': creditId, 'idempotency-key': 'key of new key' },
      '{"name":"site"}',
    ),
    createRequest('invoice', '/topup/create/btc-lightning', '{"amount":1,"currency":"USD"}'),
  ];
}

/** Returns the body of an image request that an account or an anonymous caller can pay. */
export function formatImageBody(prompt: string, form = 'b64_json'): string {
  return `{"model":"google/nano-banana-2","prompt":"${prompt}","response_format":"${form}","provider":{"only":["fal"]}}`;
}

function formatImageForm(): string {
  const pixel = PIXEL.toString('latin1');
  const formatField = (disposition: string, value: string, extraHeaders = '') =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; ${disposition}\r\n${extraHeaders}\r\n${value}\r\n`;
  return [
    formatField('name="model"', 'google/nano-banana-2'),
    formatField('name="prompt"', 'At night'),
    formatField('name="image"; filename="pixel.png"', pixel, 'Content-Type: image/png\r\n'),
    `--${BOUNDARY}--\r\n`,
  ].join('');
}

/** Creates requests that together increase every counter of the rate limits. Some requests increase several. */
export function createRateLimitedRequests(apiKey: string, creditId: string): readonly RequestSpec[] {
  const free = `{"model":"openai/gpt-oss-20b:free","messages":${HELLO}}`;
  return [
    createPostRequest('new account', '/accounts/create', {}),
    createPostRequest(
      'invoice of a key',
      '/topup/create/btc-lightning',
      createAuthHeaders(apiKey),
      '{"amount":2,"currency":"USD"}',
    ),
    createPostRequest('change of a key', '/keys', { 'x-credit-id': creditId }, '{"name":"counted"}'),
    createPostRequest('wrong credential', '/credits/balance', createAuthHeaders('sk-wrong')),
    createPostRequest('challenge', '/v1/images/generations', {}, formatImageBody('A tree')),
    createPostRequest('free request', '/v1/chat/completions', createAuthHeaders(apiKey), free),
  ];
}
