/** Converts a request of Anthropic's Messages API to a chat request. */
import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import type { MessagesBody } from './body.ts';
import { findEffort } from './effort.ts';
import { toChatTools, toToolChoice } from './tools.ts';
import { toChatMessages, toSystemMessages } from './turns.ts';
import {
  assertNoThread,
  assertSupported,
  OUTPUT_CONFIG_RULES,
  parseRetainedThinkingTurns,
  REQUEST_RULES,
  THINKING_RULES,
} from './unsupported.ts';

/**
 * How much of the reasoning the client gets: all of it, only the signatures that it must send back with the results of
 * tools, or nothing.
 */
export type ThinkingVisibility = 'visible' | 'signed' | 'hidden';

export interface ParsedMessagesRequest {
  readonly chat: ChatBody;
  readonly thinkingVisibility: ThinkingVisibility;
}

/** Fields with the same meaning in messages and chats. The last three are OpenRouter's extensions. */
const SHARED_FIELDS = ['model', 'stream', 'temperature', 'top_p', 'top_k', 'models', 'provider', 'plugins'] as const;
/** OpenAI rejects a longer `user`. A longer user id is omitted, because it does not change the output. */
const MAX_USER_LENGTH = 64;

/** @throws InvalidRequestError (400) naming the field that is invalid or not supported */
export async function parseMessagesRequest(body: MessagesBody): Promise<ParsedMessagesRequest> {
  assertNoThread(body);
  assertSupported(body, REQUEST_RULES);
  assertSupported(body.output_config ?? {}, OUTPUT_CONFIG_RULES, 'output_config.');
  assertSupported(body.thinking ?? {}, THINKING_RULES, 'thinking.');
  if (body.messages.length === 0)
    throw invalidRequest('messages must be a non-empty array of objects with a role', 'messages');
  const { max_tokens, stop_sequences, metadata } = body;
  const turns = await toChatMessages(body.messages, parseRetainedThinkingTurns(body.context_management));
  const chat: Record<string, unknown> = {
    messages: withCacheControl([...toSystemMessages(body.system), ...turns], body),
  };
  for (const field of SHARED_FIELDS) if (body[field] !== undefined && body[field] !== null) chat[field] = body[field];
  if (max_tokens !== undefined) chat.max_completion_tokens = max_tokens;
  if (stop_sequences?.length) chat.stop = stop_sequences;
  const user = metadata?.user_id;
  if (typeof user === 'string' && user.length <= MAX_USER_LENGTH) chat.user = user;
  const { thinkingVisibility, reasoning } = parseThinking(body);
  if (reasoning) chat.reasoning = reasoning;
  const format = parseResponseFormat(body);
  if (format) chat.response_format = format;
  const tools = await toChatTools(body.tools ?? []);
  // Providers reject `tool_choice` without tools.
  if (tools.length > 0) Object.assign(chat, { tools, ...toToolChoice(body.tool_choice, tools) });
  return { chat: chat as ChatBody, thinkingVisibility };
}

/** Moves a top-level `cache_control` to the last message, where it has the same effect. */
function withCacheControl(messages: readonly JsonObject[], { cache_control }: MessagesBody): readonly JsonObject[] {
  const last = messages.at(-1);
  if (!cache_control || !last) return messages;
  const { content } = last;
  if (last.role === 'tool') return messages.with(-1, { ...last, cache_control });
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  if (!Array.isArray(parts) || parts.length === 0) return messages;
  return messages.with(-1, { ...last, content: parts.with(-1, { ...parts.at(-1), cache_control }) });
}

/** Parses `thinking`. If it is missing or disabled, reasoning is left to the model and hidden from the client. */
function parseThinking(body: MessagesBody): {
  readonly thinkingVisibility: ThinkingVisibility;
  readonly reasoning?: JsonObject;
} {
  const { thinking, max_tokens } = body;
  const { type, budget_tokens, display } = thinking ?? {};
  const effort = findEffort(body);
  const thinkingVisibility = display === 'omitted' ? 'signed' : 'visible';
  switch (type) {
    case undefined:
    case 'disabled':
      return { thinkingVisibility: 'hidden' };
    case 'adaptive':
    case 'between_tools':
      return { thinkingVisibility, reasoning: effort === undefined ? { enabled: true } : { effort } };
    case 'enabled':
      if (!Number.isSafeInteger(budget_tokens) || (budget_tokens as number) < 1) {
        throw invalidRequest('thinking.budget_tokens must be a positive integer', 'thinking.budget_tokens');
      }
      if (max_tokens !== undefined && (budget_tokens as number) >= max_tokens) {
        throw invalidRequest('max_tokens must be greater than thinking.budget_tokens', 'max_tokens');
      }
      return { thinkingVisibility, reasoning: { max_tokens: budget_tokens } };
    default:
      throw invalidRequest(
        'thinking.type must be "enabled", "adaptive", "between_tools" or "disabled"',
        'thinking.type',
      );
  }
}

/** Parses the JSON schema of the output. `output_format` is the name of the field in Anthropic's beta. */
function parseResponseFormat({ output_config, output_format }: MessagesBody): JsonObject | undefined {
  const [format, param] = output_config?.format
    ? [output_config.format, 'output_config.format']
    : [output_format ?? undefined, 'output_format'];
  if (format === undefined) return undefined;
  if (!isJsonObject(format) || format.type !== 'json_schema' || !isJsonObject(format.schema)) {
    throw invalidRequest(`${param} must have the type "json_schema" and a schema`, param);
  }
  return { type: 'json_schema', json_schema: { name: 'answer', schema: format.schema, strict: true } };
}
