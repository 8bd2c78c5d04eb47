/** Converts a translated Messages request for enclaves: removes fields that only Claude or a router supports. */

import { type ChatBody } from '#application/messages';
import { isJsonObject, type JsonObject } from '#kernel';
import type { ResolvedPrivateModel } from '../private-model-resolver.ts';
import { ProxyError } from '../proxy-error.ts';

/**
 * Fields that servers of open-weight models support. The reasoning effort is omitted, because servers of models without
 * reasoning reject it.
 */
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
 * Returns the chat for the enclave of a model. A token limit above the model's maximum is omitted: agents often send
 * such limits, and servers reject them.
 * @throws ProxyError for a web search tool
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

/**
 * Removes cache marks, and joins the parts into one text if all of them are text: not every chat template supports
 * parts in a system prompt or a tool result.
 */
function toEnclaveContent(parts: readonly unknown[], role: unknown): unknown {
  const cleanParts = parts.filter(isJsonObject).map(({ cache_control, ...part }) => part as JsonObject);
  if (!cleanParts.every(({ type }) => type === 'text')) return cleanParts;
  return cleanParts.map(({ text }) => text).join(role === 'tool' || role === 'assistant' ? '' : '\n');
}

function toEnclaveTool(tool: unknown, at: number): JsonObject {
  const { cache_control, anthropic_tool, ...cleanTool } = tool as JsonObject;
  if (cleanTool.type === 'function') return cleanTool;
  throw new ProxyError(400, 'Private models do not support web search', { param: `tools[${at}]` });
}
