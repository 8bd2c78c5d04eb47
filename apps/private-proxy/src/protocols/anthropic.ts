/**
 * Anthropic's protocol: translates a Messages request into a chat, and the completion into a message, with the code
 * that the gateway uses for both.
 */

import { randomUUID } from 'node:crypto';
import {
  estimateInputTokens,
  formatSseEvent,
  getMessageErrorType,
  InvalidRequestError,
  MessageBuilder,
  type MessagesBody,
  type MessageUsage,
  type ParsedMessagesRequest,
  parseMessagesRequest,
  type TokenCounter,
  type TypedEvent,
} from '#application/messages';
import { isJsonObject, type JsonObject } from '#kernel';
import { limitSize, parseChunks } from '../completion-events.ts';
import type { TranslatedExchange } from '../exchanges.ts';
import { PRIVATE_MODEL_PREFIX } from '../gateway-client.ts';
import type { EnclaveResponse } from '../private-chats.ts';
import type { ResolvedPrivateModel } from '../private-model-resolver.ts';
import { ProxyError } from '../proxy-error.ts';
import type { ClientProtocol } from './client-protocol.ts';
import { toEnclaveChat } from './enclave-chat.ts';

function formatError({ status, message, code, param, money }: ProxyError, request_id: string | null = null) {
  const details = { error_code: code, ...(param ? { param } : {}), ...money };
  return { type: 'error', error: { type: getMessageErrorType(status), message, details }, request_id };
}

export const ANTHROPIC_PROTOCOL: ClientProtocol = {
  name: 'anthropic',
  idHeaders: ['x-request-id', 'request-id'],
  formatError,
  formatErrorEvent: (failure, requestId) => formatEvent(formatError(failure, requestId)),
  closesIncompleteStreams: false, // its clients know the event
  keepAlive: formatEvent({ type: 'ping' }),
};

/** Checks like those of the gateway, except that `top_k` may be below 1. Contents are checked when they are parsed. */
const FIELD_CHECKS: readonly (readonly [
  field: keyof MessagesBody & string,
  is: (value: unknown) => boolean,
  requirement: string,
])[] = [
  ['system', (value) => typeof value === 'string' || Array.isArray(value), 'a string or an array of text blocks'],
  ['max_tokens', (value) => Number.isSafeInteger(value) && (value as number) > 0, 'a positive integer'],
  ['stream', (value) => typeof value === 'boolean', 'a boolean'],
  ['tools', Array.isArray, 'an array'],
  ['tool_choice', isJsonObject, 'an object'],
  ['thinking', isJsonObject, 'an object'],
  ['output_config', isJsonObject, 'an object'],
  ['metadata', isJsonObject, 'an object'],
  ['cache_control', isJsonObject, 'an object'],
  ['stop_sequences', isNonEmptyTextArray, 'an array of non-empty strings'],
  ['temperature', isFraction, 'a number from 0 to 1'],
  ['top_p', isFraction, 'a number from 0 to 1'],
  ['top_k', (value) => Number.isSafeInteger(value), 'an integer'],
];

/** @throws ProxyError that names the invalid field */
export function parseMessagesBody(body: JsonObject): MessagesBody {
  if (!Array.isArray(body.messages) || body.messages.length === 0) {
    throw new ProxyError(400, 'messages must be a non-empty array', { param: 'messages' });
  }
  for (const [field, isValid, requirement] of FIELD_CHECKS) {
    const value = body[field] ?? undefined;
    if (value !== undefined && !isValid(value))
      throw new ProxyError(400, `${field} must be ${requirement}`, { param: field });
  }
  return body as unknown as MessagesBody;
}

/** @throws ProxyError for an invalid request, or one that enclaves do not support */
export async function createMessageExchange(
  body: JsonObject,
  model: ResolvedPrivateModel,
): Promise<TranslatedExchange> {
  const request = parseMessagesBody(body);
  if (request.max_tokens === undefined) throw new ProxyError(400, 'max_tokens is required', { param: 'max_tokens' });
  const { chat, thinkingVisibility } = await parseRequest(request);
  const createDraft = (retainsTexts: boolean) => {
    const id = randomUUID().replaceAll('-', '');
    return new MessageBuilder(id, PRIVATE_MODEL_PREFIX + model.id, { thinkingVisibility, retainsTexts });
  };
  return {
    isStreaming: chat.stream === true,
    chat: toEnclaveChat(chat, model),
    collect: (response) => collectMessage(response, createDraft(true)),
    streamEvents: (response) => streamMessage(response, createDraft(false)),
  };
}

/** All programs that use the proxy are one owner of the token counter. */
const LOCAL_OWNER = 'local';

/** Estimates the number of input tokens in this process, without a call to the gateway. @throws ProxyError */
export async function estimateMessageTokens(body: MessagesBody, tokenCounter: TokenCounter): Promise<number> {
  const { chat } = await parseRequest(body);
  return estimateInputTokens(chat, (text) => tokenCounter.count(LOCAL_OWNER, text)).catch((error) => {
    throw translateError(error);
  });
}

async function parseRequest(body: MessagesBody): Promise<ParsedMessagesRequest> {
  try {
    return await parseMessagesRequest(body);
  } catch (error) {
    throw translateError(error);
  }
}

function translateError(error: unknown): unknown {
  // The stack overflowed: the body is nested deeper than any valid request.
  if (error instanceof RangeError) return new ProxyError(400, 'The body is nested too deeply');
  if (!(error instanceof InvalidRequestError)) return error;
  const { status, message, param, code } = error;
  return new ProxyError(status, message, { ...(param ? { param } : {}), ...(code ? { code } : {}) });
}

async function collectMessage({ plaintext }: EnclaveResponse, draft: MessageBuilder): Promise<string> {
  let usage: MessageUsage | undefined;
  for await (const chunk of parseChunks(limitSize(plaintext))) {
    usage = parseUsage(chunk.usage) ?? usage;
    draft.accept(chunk);
  }
  return JSON.stringify(draft.build(usage));
}

/** @throws ProxyError if the completion is incomplete or invalid: after the events so far, and without end events */
async function* streamMessage({ plaintext }: EnclaveResponse, draft: MessageBuilder): AsyncGenerator<string> {
  let usage: MessageUsage | undefined;
  let output = formatEvent(draft.createStartEvent());
  for await (const chunk of parseChunks(plaintext)) {
    usage = parseUsage(chunk.usage) ?? usage;
    output += draft.accept(chunk).map(formatEvent).join('');
    if (output !== '') yield output;
    output = '';
  }
  yield draft.createEndEvents(usage).map(formatEvent).join('');
}

/** Converts the usage of a chat to Anthropic's, which counts cached input separately from the other input. */
function parseUsage(usage: unknown): MessageUsage | undefined {
  if (!isJsonObject(usage)) return undefined;
  const { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details } = usage;
  const cached = parseCount(isJsonObject(prompt_tokens_details) ? prompt_tokens_details.cached_tokens : 0);
  const reasoningTokens = parseCount(
    isJsonObject(completion_tokens_details) ? completion_tokens_details.reasoning_tokens : 0,
  );
  return {
    input_tokens: Math.max(0, parseCount(prompt_tokens) - cached),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: parseCount(completion_tokens),
    output_tokens_details: { thinking_tokens: reasoningTokens },
    service_tier: 'standard',
  };
}

function parseCount(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0;
}

function formatEvent(event: TypedEvent): string {
  return formatSseEvent(JSON.stringify(event), event.type);
}

function isNonEmptyTextArray(value: unknown): boolean {
  return Array.isArray(value) && value.every((text) => typeof text === 'string' && text !== '');
}

function isFraction(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= 1;
}
