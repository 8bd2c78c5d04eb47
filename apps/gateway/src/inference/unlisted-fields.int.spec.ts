/**
 * Unknown fields are not forwarded to a provider, at any level of a request that the gateway interprets. For unknown
 * types of tools and content parts, which are rejected, see hosted-tools.int.spec.ts.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createForm, openTappedWorld, PIXEL, type TappedWorld, type TestAccount, TestWorld } from '#testing';

/** Names of parameters that change the bill of a provider, and names that no provider knows. */
const WORDS = [
  'planted',
  'service_tier',
  'prediction',
  'models',
  'route',
  'transforms',
  'preset',
  'prompt_cache_retention',
  'store_at',
  'container',
  'mcp_servers',
  'inference_geo',
  'speed_tier',
  'betas',
  'citations',
  'cached_content',
  'ttl',
  'web_search',
  'num_inference_steps',
  'enable_web_search',
  'max_images',
  'generate_audio',
  'sync_mode',
  'loras',
  'image_urls',
  'input_fidelity',
  'partial_images',
  'guidance_scale',
  'sampleCount',
  'multichannel',
  'callback',
  'voice_settings',
  'diarize',
];
const MARK = 'planted-by-the-caller';
/** Fields with content for the model, or with names that the caller chooses. `planted` changes only their arrays. */
const FREE: ReadonlySet<string> = new Set(['parameters', 'schema', 'input_schema', 'metadata', 'logit_bias', 'input']);

/** Returns the value with all `WORDS` added as fields to each object, except in fields of `FREE` without an array. */
function planted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(planted);
  if (typeof value !== 'object' || value === null) return value;
  const own = Object.entries(value).map(([name, each]) => [
    name,
    FREE.has(name) && !Array.isArray(each) ? each : planted(each),
  ]);
  return { ...Object.fromEntries(WORDS.map((word) => [word, { [word]: MARK }])), ...Object.fromEntries(own) };
}

let tapped: TappedWorld;
let account: TestAccount;
beforeAll(async () => {
  tapped = await openTappedWorld([], {}, TestWorld.openWithSagas);
  account = await tapped.world.createAccount(1_050);
});
afterAll(() => tapped.close());

const ASK = '[[sandbox tokens=2]]';
const PDF = 'data:application/pdf;base64,JVBERi0=';
const PICTURE = `data:image/png;base64,${PIXEL.toString('base64')}`;
const parameters = { type: 'object', properties: {} };

const CHAT = {
  max_tokens: 64,
  messages: [
    { role: 'system', content: 'Be brief' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: '42' }] },
    { role: 'user', content: [{ type: 'text', text: ASK }] },
  ],
  tools: [{ type: 'function', function: { name: 'f', parameters } }],
  tool_choice: { type: 'function', function: { name: 'f' } },
  response_format: { type: 'json_schema', json_schema: { name: 's', schema: parameters } },
  stream_options: { include_usage: true },
  reasoning: { effort: 'low' },
};
const SEEN = [
  { type: 'text', text: ASK },
  { type: 'image_url', image_url: { url: PICTURE } },
  { type: 'file', file: { filename: 'a.pdf', file_data: PDF } },
];
const SEEING = { ...CHAT, messages: [...CHAT.messages.slice(0, 3), { role: 'user', content: SEEN }] };
const RESPONSE = {
  max_output_tokens: 64,
  input: [
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: ASK },
        { type: 'input_image', image_url: PICTURE },
      ],
    },
    { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: '42' }] },
  ],
  tools: [{ type: 'function', name: 'f', parameters }],
  tool_choice: { type: 'function', name: 'f' },
  text: { format: { type: 'json_schema', name: 's', schema: parameters } },
  reasoning: { effort: 'low' },
};
const NO_CITATIONS = { citations: null }; // other values are rejected in Messages
const MESSAGE = {
  // Messages rejects other values of these three as well.
  container: null,
  mcp_servers: null,
  inference_geo: null,
  max_tokens: 64,
  system: [{ type: 'text', text: 'Be brief', ...NO_CITATIONS }],
  messages: [
    { role: 'user', content: [{ type: 'text', text: ASK, ...NO_CITATIONS }] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {}, ...NO_CITATIONS }] },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'c',
          ...NO_CITATIONS,
          content: [{ type: 'text', text: '42', ...NO_CITATIONS }],
        },
      ],
    },
  ],
  tools: [{ name: 'f', input_schema: parameters }],
  tool_choice: { type: 'tool', name: 'f' },
};
const MADE = { prompt: 'A harbour' };

test.each<[string, string, object]>([
  ['/v1/chat/completions', 'openai/gpt-5-mini', SEEING],
  ['/v1/chat/completions', 'openai/gpt-5-codex', SEEING],
  ['/v1/chat/completions', 'google/gemini-2.5-pro', SEEING],
  ['/v1/chat/completions', 'anthropic/claude-haiku-4.5', { ...SEEING, response_format: undefined }],
  ['/v1/chat/completions', 'openai/gpt-oss-120b', CHAT],
  ['/v1/completions', 'openai/gpt-4o-mini', { prompt: ASK, stream_options: {} }],
  ['/v1/responses', 'openai/gpt-5-mini', RESPONSE],
  ['/v1/responses', 'qwen/qwen3-coder', { ...RESPONSE, input: RESPONSE.input.slice(1) }],
  ['/v1/messages', 'anthropic/claude-haiku-4.5', MESSAGE],
  ['/v1/messages', 'openai/gpt-5-mini', MESSAGE],
  ['/v1/embeddings', 'openai/text-embedding-3-small', { input: ['a'] }],
  ['/v1/embeddings', 'qwen/qwen3-embedding-8b', { input: ['a'] }],
  ['/v1/images/generations', 'openai/gpt-image-1.5', MADE],
  ['/v1/images/generations', 'black-forest-labs/flux-1-schnell', MADE],
  ['/v1/images/generations', 'google/nano-banana-2', { ...MADE, image_url: PICTURE }],
  ['/v1/images/generations', 'qwen/qwen-image', MADE],
  ['/v1/videos', 'google/veo-3', MADE],
  ['/v1/videos', 'kling/kling-2.5-turbo-i2v', { ...MADE, image_url: PICTURE }],
  ['/v1/audio/speech', 'deepgram_aura_2', { input: 'Hi' }],
  ['/v1/audio/speech', 'eleven_v3', { input: 'Hi' }],
  ['/v1/audio/speech', 'openai/tts-1', { input: 'Hi' }],
])('forwards no unknown field from %s to the provider of %s', async (path, model, body) => {
  const { world, tap } = tapped;
  tap.takeReceived();
  const { status, text } = await world.post(path, { ...(planted(body) as object), model, models: [] }, account);
  expect([status, text.slice(0, 300)]).toEqual([path === '/v1/videos' ? 202 : 200, expect.anything()]);
  await world.waitUntil(async () => tap.received.length > 0);
  expect(JSON.stringify(tap.takeReceived())).not.toContain(MARK);
});

test.each([
  ['/v1/images/edits', { model: 'openai/gpt-image-1.5', prompt: 'At night', image: '@image' }],
  ['/v1/images/edits', { model: 'google/nano-banana-2', prompt: 'At night', image: '@image' }],
  ['/v1/audio/transcriptions', { model: 'nova-3', file: '@file' }],
  ['/v1/audio/transcriptions', { model: 'openai/whisper-1', file: '@file' }],
])('forwards no unknown field of a form from %s with %j', async (path, form) => {
  const { world, tap } = tapped;
  tap.takeReceived();
  const words = Object.fromEntries(WORDS.map((word) => [word, MARK]));
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const { status, text } = await world.send('POST', path, { headers, body: createForm({ ...words, ...form }) });
  expect([status, text.slice(0, 300)]).toEqual([200, expect.anything()]);
  const received = JSON.stringify(tap.takeReceived());
  expect(received.length).toBeGreaterThan(2);
  expect(received).not.toContain(MARK);
});
