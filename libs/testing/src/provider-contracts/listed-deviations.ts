/**
 * Deviations from the contracts: those that providers tolerate or that their SDKs do not describe, each with its
 * evidence. The contract gate fails for any other deviation, and for an entry that no longer occurs.
 */
import type { Deviation } from './find-deviations.ts';

export interface ListedDeviation extends Pick<Deviation, 'path' | 'problem'> {
  /** Provider and message, such as `groq chatRequest`. */
  readonly message: string;
  /** Why it is not an error, with a source. */
  readonly evidence: string;
}

/** Lists paths of one message. */
function list(
  message: string,
  problem: Deviation['problem'],
  evidence: string,
  paths: readonly string[],
): readonly ListedDeviation[] {
  return paths.map((path) => ({ message, path, problem, evidence }));
}

const CHAT_REQUESTS = ['openai', 'openrouter', 'groq', 'deepinfra'].map((provider) => `${provider} chatRequest`);

const CALL_INDEX =
  'Clients send back the index that a streamed call had; providers ignore it ' +
  '(https://github.com/epam/ai-dial-sdk/issues/293).';
const TOOL_NAME =
  'The name of the called function, which messages of the former role `function` had; providers ignore it. Groq does ' +
  'not get it, because it rejects names (https://console.groq.com/docs/openai).';
const CUSTOM_CALL =
  'The API sends it, and the SDK lacks it: https://platform.openai.com/docs/guides/function-calling#custom-tools has ' +
  'an example.';
const SENT_BY_API =
  'The API sends it: https://platform.openai.com/docs/api-reference/responses/object and responses-streaming have ' +
  'examples.';
const REASONING =
  'The SDK lacks options of the API: https://github.com/OpenRouterTeam/typescript-sdk/issues/693, ' +
  'https://openrouter.ai/docs/use-cases/reasoning-tokens.';
const MAX_PRICE =
  'The SDK has texts, the documentation numbers: https://openrouter.ai/docs/features/provider-routing#maximum-price.';
const SAMPLING =
  'The SDK describes version 2026-10-21 of the API, which has no sampling; version 2023-06-01, which we request, has ' +
  'it for earlier models (https://docs.claude.com/en/api/versioning).';
const BLOCK_BINDING =
  'A beta, so only the beta types of the SDK have it: https://platform.claude.com/docs/en/build-with-claude/preserved-thinking.';
const BASE64 = 'With encoding_format "base64" a vector is text, which the SDK decodes (resources/embeddings.js).';
const GROQ_USAGE =
  'Groq sends usage in a last chunk if it is requested as from OpenAI: https://github.com/Portkey-AI/gateway/issues/1338.';
const DEEPINFRA_EXTRA =
  "Ignored: DeepInfra's document permits other fields here. It closes the objects that reject them, such as " +
  'ModelMetaIn (https://api.deepinfra.com/openapi.json, as of 2026-05-20).';

/** Of chats, embeddings and searches. */
export const CHAT_DEVIATIONS: readonly ListedDeviation[] = [
  ...CHAT_REQUESTS.flatMap((message) => list(message, 'unknown field', CALL_INDEX, ['messages[].tool_calls[].index'])),
  ...CHAT_REQUESTS.filter((message) => !message.startsWith('groq')).flatMap((message) =>
    list(message, 'unknown field', TOOL_NAME, ['messages[].name']),
  ),
  ...list('openai responsesRequest', 'missing field', 'Functions are strict by default.', ['tools[].strict']),
  ...list(
    'openai responsesRequest',
    'invalid value',
    'Text of the model without id and annotations: https://github.com/langchain-ai/langchain/pull/32557 has both forms.',
    ['input[].content[].type'],
  ),
  ...list('openai responsesResponse', 'unknown field', SENT_BY_API, ['store']),
  ...list('openai responsesEvent', 'unknown field', SENT_BY_API, ['response.store']),
  ...list('openai responsesEvent', 'invalid value', 'Null until the response is complete, as in the same examples.', [
    'response.usage',
  ]),
  ...list('openai responsesResponse', 'unknown field', CUSTOM_CALL, ['output[].status']),
  ...list('openai responsesEvent', 'unknown field', CUSTOM_CALL, ['item.status', 'response.output[].status']),
  ...list('openai embeddingsResponse', 'invalid value', BASE64, ['data[].embedding']),
  ...list('deepinfra embeddingsResponse', 'invalid value', BASE64, ['data[].embedding']),
  ...list('groq chatRequest', 'unknown field', GROQ_USAGE, ['stream_options']),
  ...list('groq chatEvent', 'unknown field', GROQ_USAGE, ['usage']),
  ...list('deepinfra chatRequest', 'unknown field', DEEPINFRA_EXTRA, [
    'tools[].function.strict',
    'response_format.json_schema.strict',
    'parallel_tool_calls',
  ]),
  ...list('openrouter chatRequest', 'unknown field', REASONING, ['reasoning.exclude', 'reasoning.max_tokens']),
  ...list('openrouter chatRequest', 'invalid value', MAX_PRICE, [
    'provider.max_price.prompt',
    'provider.max_price.completion',
    'provider.max_price.request',
    'provider.max_price.image',
  ]),
  ...list(
    'openrouter chatRequest',
    'unknown field',
    'Annotations of files are sent back: https://openrouter.ai/docs/features/multimodal/pdfs.',
    ['messages[].annotations'],
  ),
  ...list(
    'openrouter chatResponse',
    'unknown field',
    'Citations of web searches: https://openrouter.ai/docs/features/web-search.',
    ['choices[].message.annotations'],
  ),
  ...list(
    'openrouter chatEvent',
    'unknown field',
    "Citations in streams, which the SDK lacks and OpenRouter's provider for the AI SDK reads: " +
      'https://github.com/OpenRouterTeam/ai-sdk-provider.',
    ['choices[].delta.annotations'],
  ),
  ...['chatResponse', 'chatEvent'].flatMap((message) =>
    list(`openrouter ${message}`, 'unknown field', 'The API names the provider it called; its SDK has no such field.', [
      'provider',
    ]),
  ),
  ...list('anthropic messagesRequest', 'unknown field', SAMPLING, ['temperature', 'top_p', 'top_k']),
  ...list('anthropic messagesRequest', 'unknown field', BLOCK_BINDING, ['thinking.block_binding']),
  ...list('anthropic messagesEvent', 'invalid value', 'Heartbeats: core/streaming.js of the SDK skips them.', ['type']),
];

/** Of images, audio, videos and data lookups. */
export const MEDIA_DEVIATIONS: readonly ListedDeviation[] = [
  ...list(
    'openai transcriptionsResponse',
    'unknown field',
    'The API sends it: https://platform.openai.com/docs/api-reference/audio/verbose-json-object has an example.',
    ['task'],
  ),
  ...list(
    'fal statusResponse',
    'invalid value',
    'Null unless logs are requested; AIProxySwift has a recorded response: ' +
      'https://github.com/lzell/AIProxySwift/blob/main/Tests/AIProxyTests/FalQueueResponseTests.swift.',
    ['logs'],
  ),
  ...list(
    'deepgram listenResponse',
    'unknown field',
    'The SDK lacks it; https://developers.deepgram.com/docs/smart-format has an example.',
    ['results.channels[].alternatives[].words[].punctuated_word'],
  ),
  ...list(
    'deepgram listenResponse',
    'unknown field',
    'The SDK lacks it; https://developers.deepgram.com/docs/multilingual-code-switching has an example.',
    ['results.channels[].alternatives[].words[].language', 'results.channels[].alternatives[].languages'],
  ),
  ...list(
    'exa searchRequest',
    'unknown field',
    'Customers may send it; it is deprecated and has no effect: https://exa.ai/docs/reference/deprecations.',
    ['useAutoprompt'],
  ),
];

export const LISTED_DEVIATIONS: readonly ListedDeviation[] = [...CHAT_DEVIATIONS, ...MEDIA_DEVIATIONS];
