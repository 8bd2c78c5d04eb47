/** Converts the turns of Anthropic's Messages API to messages of a chat. */
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';
import { WorkParts } from '../../event-loop.ts';
import { parseSearchBlocks } from '../../providers/search-blocks.ts';
import { stringifyJson } from '../../wire/serialize-json.ts';
import type { ChatMessage } from '../responses/parts.ts';
import { ReasoningDecoder } from '../responses/reasoning.ts';
import { toChatParts } from './parts.ts';
import { toReasoningDetails } from './reasoning.ts';

/**
 * Blocks of tools that the provider ran. Chats have no equivalent; the text after these blocks has their outcome. A turn
 * that is not complete also has them in `content_blocks`, with which its provider continues it.
 */
const OMITTED_BLOCK_TYPES = /^server_tool_use$|^(?!tool_result$).*_tool_result$/;

/** Converts the system prompt, if there is one. @throws InvalidRequestError (400) naming the content block */
export function toSystemMessages(system: string | readonly unknown[] | null | undefined): readonly ChatMessage[] {
  if (system === undefined || system === null || system.length === 0) return [];
  return [{ role: 'system', content: parseText(system, 'system') }];
}

/** @throws InvalidRequestError (400) naming the message or content block */
export async function toChatMessages(turns: readonly unknown[]): Promise<readonly ChatMessage[]> {
  const callIds = new Set<string>();
  const messages: ChatMessage[] = [];
  const parts = new WorkParts();
  const decoder = new ReasoningDecoder();
  const openTurn = findOpenTurn(turns);
  for (const [at, turn] of turns.entries()) {
    const param = `messages[${at}]`;
    if (!isJsonObject(turn)) throw invalidRequest(`${param} must be an object`, param);
    const { role, content } = turn;
    if (role === 'user') messages.push(...toUserMessages(content, `${param}.content`, callIds));
    else if (role === 'assistant') {
      const message = await toAssistantMessage(content, `${param}.content`, { callIds, decoder });
      const content_blocks = at === openTurn ? parseSearchBlocks(content) : undefined;
      messages.push(content_blocks ? { ...message, content_blocks } : message);
    } else if (role === 'system') messages.push({ role, content: parseText(content, `${param}.content`) });
    else throw invalidRequest(`${param}.role must be "user", "assistant" or "system"`, `${param}.role`);
    await parts.rest();
  }
  if (messages.length === 0) throw invalidRequest('messages must contain text or other content', 'messages');
  return messages;
}

/** Returns the position of the assistant's turn that ends the conversation, apart from the results of its calls. */
function findOpenTurn(turns: readonly unknown[]): number {
  return turns.findLastIndex((turn) => !isJsonObject(turn) || !isToolResultTurn(turn));
}

function isToolResultTurn({ role, content }: JsonObject): boolean {
  return role === 'user' && Array.isArray(content) && content.every((block) => block?.type === 'tool_result');
}

/** Moves tool results before the other content of a turn, because they must directly follow the turn with the calls. */
function toUserMessages(content: unknown, param: string, callIds: ReadonlySet<string>): readonly ChatMessage[] {
  if (typeof content === 'string') return [{ role: 'user', content }];
  const results: ChatMessage[] = [];
  const parts: JsonObject[] = [];
  for (const [block, at] of parseBlocks(content, param)) {
    if (block.type === 'tool_result') results.push(toToolMessage(block, at, callIds));
    else parts.push(...toChatParts(block, at));
  }
  return parts.length === 0 ? results : [...results, { role: 'user', content: simplifyParts(parts) }];
}

function toToolMessage(block: JsonObject, param: string, callIds: ReadonlySet<string>): ChatMessage {
  const { tool_use_id: id, content, is_error, cache_control } = block;
  if (typeof id !== 'string' || !callIds.has(id)) {
    throw invalidRequest(`${param}.tool_use_id must be the id of an earlier tool_use`, `${param}.tool_use_id`);
  }
  const resultContent = content ?? '';
  const parts =
    typeof resultContent === 'string'
      ? resultContent
      : [...parseBlocks(resultContent, `${param}.content`)].flatMap((entry) => toChatParts(...entry));
  return {
    role: 'tool',
    tool_call_id: id,
    content: typeof parts === 'string' ? parts : joinTextParts(parts),
    ...(is_error === true ? { is_error } : {}),
    ...(isJsonObject(cache_control) ? { cache_control } : {}),
  };
}

/** Combines the blocks of an assistant's turn, which are reasoning, content and tool calls, into one message. */
async function toAssistantMessage(
  content: unknown,
  param: string,
  { callIds, decoder }: { readonly callIds: Set<string>; readonly decoder: ReasoningDecoder },
): Promise<ChatMessage> {
  if (typeof content === 'string') return { role: 'assistant', content };
  const parts: JsonObject[] = [];
  const calls: JsonObject[] = [];
  const details: JsonObject[] = [];
  for (const [block, at] of parseBlocks(content, param)) {
    const { type } = block;
    if (type === 'tool_use') calls.push(await toToolCall(block, at, callIds));
    else if (type === 'thinking' || type === 'redacted_thinking')
      details.push(...toReasoningDetails(block, { index: details.length, decoder, param: at }));
    else if (typeof type !== 'string' || !OMITTED_BLOCK_TYPES.test(type)) parts.push(...toChatParts(block, at));
  }
  return {
    role: 'assistant',
    content: parts.length === 0 && calls.length > 0 ? null : joinTextParts(parts),
    ...(details.length > 0 ? { reasoning_details: details } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

async function toToolCall({ id, name, input }: JsonObject, param: string, callIds: Set<string>): Promise<JsonObject> {
  if (typeof id !== 'string' || id === '')
    throw invalidRequest(`${param}.id must be a non-empty string`, `${param}.id`);
  if (typeof name !== 'string' || name === '')
    throw invalidRequest(`${param}.name must be a non-empty string`, `${param}.name`);
  callIds.add(id);
  return { id, type: 'function', function: { name, arguments: await stringifyJson(input ?? {}) } };
}

/** Yields each content block with its path. @throws InvalidRequestError (400) unless content is an array of objects */
function* parseBlocks(content: unknown, param: string): Generator<readonly [block: JsonObject, param: string]> {
  if (!Array.isArray(content)) throw invalidRequest(`${param} must be a string or an array of objects`, param);
  for (const [at, block] of content.entries()) {
    if (!isJsonObject(block)) throw invalidRequest(`${param}[${at}] must be an object`, `${param}[${at}]`);
    yield [block, `${param}[${at}]`];
  }
}

/** Parses content that must be text. */
function parseText(content: unknown, param: string): string | readonly JsonObject[] {
  if (typeof content === 'string') return content;
  const parts = [...parseBlocks(content, param)].flatMap(([block, at]) => {
    if (block.type !== 'text') throw invalidRequest(`${at} must be a text block`, at);
    return toChatParts(block, at);
  });
  return joinTextParts(parts, '\n');
}

/** Replaces a single text part without `cache_control` with a string. */
function simplifyParts(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  return parts.length === 1 ? joinTextParts(parts) : parts;
}

/** Joins the parts into a string, which every provider supports, if they are all text without `cache_control`. */
function joinTextParts(parts: readonly JsonObject[], between = ''): string | readonly JsonObject[] {
  const isTextOnly = parts.every(({ type, cache_control }) => type === 'text' && cache_control === undefined);
  return isTextOnly ? parts.map(({ text }) => text).join(between) : parts;
}

function invalidRequest(message: string, param: string): InvalidRequestError {
  return new InvalidRequestError(400, message, param);
}
