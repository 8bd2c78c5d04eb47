/** Converts the turns of Anthropic's Messages API to messages of a chat. */
import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';
import { WorkParts } from '../../event-loop.ts';
import { parseSearchBlocks } from '../../providers/search-blocks.ts';
import { stringifyJson } from '../../wire/serialize-json.ts';
import type { ChatMessage } from '../responses/parts.ts';
import { ReasoningDecoder } from '../responses/reasoning.ts';
import { toChatParts } from './parts.ts';
import { toReasoningDetails } from './reasoning.ts';

/**
 * Blocks of searches that the provider made. Chats have no equivalent; the text after these blocks has their outcome. A
 * turn that is not complete also has them in `content_blocks`, with which its provider continues it.
 */
function isSearchBlock({ type, name }: JsonObject): boolean {
  return type === 'web_search_tool_result' || (type === 'server_tool_use' && name === 'web_search');
}

/** Converts the system prompt, if there is one. @throws InvalidRequestError (400) naming the content block */
export function toSystemMessages(system: string | readonly unknown[] | null | undefined): readonly ChatMessage[] {
  if (system === undefined || system === null || system.length === 0) return [];
  return [{ role: 'system', content: parseText(system, 'system') }];
}

/**
 * @param retainedThinkingTurns for how many of the last turns with thinking it is retained
 * @throws InvalidRequestError (400) naming the message or content block
 */
export async function toChatMessages(
  turns: readonly unknown[],
  retainedThinkingTurns = Number.POSITIVE_INFINITY,
): Promise<readonly ChatMessage[]> {
  const callIds = new Set<string>();
  const messages: ChatMessage[] = [];
  const parts = new WorkParts();
  const decoder = new ReasoningDecoder();
  const openTurn = findOpenTurn(turns);
  const firstThinking = findFirstRetainedThinking(turns, retainedThinkingTurns);
  const lastUserTurn = turns.findLastIndex((turn) => isJsonObject(turn) && turn.role === 'user');
  for (const [at, turn] of turns.entries()) {
    const param = `messages[${at}]`;
    if (!isJsonObject(turn)) throw invalidRequest(`${param} must be an object`, param);
    const { role, content } = turn;
    if (role === 'user') messages.push(...toUserMessages(content, `${param}.content`, callIds));
    else if (role === 'assistant') {
      const options = { callIds, decoder, retainsThinking: at >= firstThinking };
      const message = await toAssistantMessage(content, `${param}.content`, options);
      const content_blocks = at === openTurn ? parseSearchBlocks(content) : undefined;
      messages.push(content_blocks ? { ...message, content_blocks } : message);
    } else if (role === 'system') {
      const isCleared = turn.clear_at === 'next_user_message' && at < lastUserTurn;
      const message = { role, content: parseText(turn.output_config ? (content ?? []) : content, `${param}.content`) };
      if (!isCleared && message.content.length > 0) messages.push(message);
    } else throw invalidRequest(`${param}.role must be "user", "assistant" or "system"`, `${param}.role`);
    await parts.rest();
  }
  if (messages.length === 0) throw invalidRequest('messages must contain text or other content', 'messages');
  return messages;
}

/** Returns the position of the assistant's turn that ends the conversation, apart from the results of its calls. */
function findOpenTurn(turns: readonly unknown[]): number {
  return turns.findLastIndex((turn) => !isJsonObject(turn) || !isToolResultTurn(turn));
}

/**
 * Returns the position from which turns retain their thinking. A turn of the assistant continues after the results of
 * its calls, so all of its messages count as one.
 */
function findFirstRetainedThinking(turns: readonly unknown[], retainedTurns: number): number {
  if (retainedTurns === Number.POSITIVE_INFINITY) return 0;
  let [turnCount, isCounted] = [0, false];
  for (let at = turns.length - 1; at >= 0; at--) {
    const turn = turns[at];
    if (!isJsonObject(turn)) continue;
    if (turn.role === 'user' && !isToolResultTurn(turn)) {
      if (turnCount >= retainedTurns) return at;
      isCounted = false;
    }
    if (isCounted || turn.role !== 'assistant' || !hasThinking(turn)) continue;
    isCounted = true;
    turnCount++;
  }
  return 0;
}

function hasThinking({ content }: JsonObject): boolean {
  return Array.isArray(content) && content.some(isThinking);
}

function isThinking(block: { readonly type?: unknown } | null): boolean {
  return block?.type === 'thinking' || block?.type === 'redacted_thinking';
}

/** Whether the turn of a user has results of tools, and no new input. */
export function isToolResultTurn({ role, content }: JsonObject): boolean {
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

interface AssistantOptions {
  readonly callIds: Set<string>;
  readonly decoder: ReasoningDecoder;
  readonly retainsThinking: boolean;
}

/** Combines the blocks of an assistant's turn, which are reasoning, content and tool calls, into one message. */
async function toAssistantMessage(
  content: unknown,
  param: string,
  { callIds, decoder, retainsThinking }: AssistantOptions,
): Promise<ChatMessage> {
  if (typeof content === 'string') return { role: 'assistant', content };
  const parts: JsonObject[] = [];
  const calls: JsonObject[] = [];
  const details: JsonObject[] = [];
  for (const [block, at] of parseBlocks(content, param)) {
    const { type } = block;
    if (type === 'tool_use') calls.push(await toToolCall(block, at, callIds));
    else if (isThinking(block)) {
      if (retainsThinking) details.push(...toReasoningDetails(block, { index: details.length, decoder, param: at }));
    } else if (!isSearchBlock(block)) parts.push(...toChatParts(block, at));
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
