/** A message's chat as an enclave takes it: without what only Claude, or a router, understands. */

import { type ChatBody } from '#application/messages';
import { isJsonObject, type JsonObject } from '#kernel';
import type { ResolvedPrivateModel } from '../private-model-resolver.ts';
import { ProxyError } from '../proxy-error.ts';

/** What servers of open weights know. How hard to think is not among it: those whose model does not think refuse to hear of it. */
const FIELDS = [
  'temperature',
  'top_p',
  'top_k',
  'stop',
  'response_format',
  'tool_choice',
  'parallel_tool_calls',
  'user',
] as const;

/**
 * Agents demand more tokens than there are as a habit, and servers refuse that: such a limit is left out, as it says nothing.
 * @throws ProxyError for a search of the web, which an enclave cannot make
 */
export function toEnclaveChat(
  chat: ChatBody,
  { id: model, maxOutputTokens = Number.POSITIVE_INFINITY }: ResolvedPrivateModel,
): JsonObject {
  const { messages, tools, max_completion_tokens: limit } = chat;
  const entries = FIELDS.filter((field) => chat[field] !== undefined).map((field) => [field, chat[field]]);
  return {
    ...Object.fromEntries(entries),
    model,
    messages: messages.map(toEnclaveMessage),
    ...(limit && limit <= maxOutputTokens ? { max_tokens: limit } : {}),
    ...(tools ? { tools: tools.map(toEnclaveTool) } : {}),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function toEnclaveMessage({ cache_control, is_error, reasoning_details, content, ...message }: JsonObject): JsonObject {
  return { ...message, content: Array.isArray(content) ? toEnclaveContent(content, message.role) : content };
}

/** One text where there is nothing else: not every template for chats takes parts of a system prompt, or of a result. */
function toEnclaveContent(parts: readonly unknown[], role: unknown): unknown {
  const cleanParts = parts.filter(isJsonObject).map(({ cache_control, ...part }) => part as JsonObject);
  if (!cleanParts.every(({ type }) => type === 'text')) return cleanParts;
  return cleanParts.map(({ text }) => text).join(role === 'tool' || role === 'assistant' ? '' : '\n');
}

function toEnclaveTool(tool: unknown, at: number): JsonObject {
  const { cache_control, ...cleanTool } = tool as JsonObject;
  if (cleanTool.type === 'function') return cleanTool;
  throw new ProxyError(400, 'An enclave cannot search the web', { param: `tools[${at}]` });
}
