/** A message's chat as an enclave takes it: without what only Claude, or a router, understands. */

import { type ChatBody, isJsonObject, type JsonObject } from '#application/messages';
import type { ResolvedPrivateModel } from '../model-names.ts';
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
export function enclaveChat(
  chat: ChatBody,
  { id: model, maxOutput = Number.POSITIVE_INFINITY }: ResolvedPrivateModel,
): JsonObject {
  const { messages, tools, max_completion_tokens: limit } = chat;
  const known = FIELDS.filter((field) => chat[field] !== undefined).map((field) => [field, chat[field]]);
  return {
    ...Object.fromEntries(known),
    model,
    messages: messages.map(messageIn),
    ...(limit && limit <= maxOutput ? { max_tokens: limit } : {}),
    ...(tools ? { tools: tools.map(toolIn) } : {}),
    stream: true,
    stream_options: { include_usage: true },
  };
}

function messageIn({ cache_control, is_error, reasoning_details, content, ...message }: JsonObject): JsonObject {
  return { ...message, content: Array.isArray(content) ? contentIn(content, message.role) : content };
}

/** One text where there is nothing else: not every template for chats takes parts of a system prompt, or of a result. */
function contentIn(parts: readonly unknown[], role: unknown): unknown {
  const plain = parts.filter(isJsonObject).map(({ cache_control, ...part }) => part as JsonObject);
  if (!plain.every(({ type }) => type === 'text')) return plain;
  return plain.map(({ text }) => text).join(role === 'tool' || role === 'assistant' ? '' : '\n');
}

function toolIn(tool: unknown, at: number): JsonObject {
  const { cache_control, ...plain } = tool as JsonObject;
  if (plain.type === 'function') return plain;
  throw new ProxyError(400, 'An enclave cannot search the web', { param: `tools[${at}]` });
}
