/** The turns of Anthropic's Messages as messages of a chat. */
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';

import type { ChatMessage } from '../responses/parts.ts';
import { toChatParts } from './parts.ts';
import { toReasoningDetails } from './reasoning.ts';

/** What Anthropic has done by itself: its text says what came of it, and no chat takes it. */
const OMITTED_BLOCK_TYPES = /^server_tool_use$|^(?!tool_result$).*_tool_result$/;

/** The system prompt: no message where there is none. @throws InvalidRequestError that names the block */
export function toSystemMessages(system: string | readonly unknown[] | null | undefined): readonly ChatMessage[] {
  if (system === undefined || system === null || system.length === 0) return [];
  return [{ role: 'system', content: parseText(system, 'system') }];
}

/** @throws InvalidRequestError that names the block */
export function toChatMessages(turns: readonly unknown[]): readonly ChatMessage[] {
  const callIds = new Set<string>();
  const messages = turns.flatMap((turn, at) => {
    const param = `messages[${at}]`;
    if (!isJsonObject(turn)) throw invalidRequest(`${param} must be an object`, param);
    const { role, content } = turn;
    if (role === 'user') return toUserMessages(content, `${param}.content`, callIds);
    if (role === 'assistant') return [toAssistantMessage(content, `${param}.content`, callIds)];
    if (role === 'system') return [{ role, content: parseText(content, `${param}.content`) }];
    throw invalidRequest(`${param}.role must be "user" or "assistant"`, `${param}.role`);
  });
  if (messages.length === 0) throw invalidRequest('messages must say something', 'messages');
  return messages;
}

/** The results of tools come before the words that stand beside them: they answer the turn before. */
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
    throw invalidRequest(`There is no tool_use before ${param} with its tool_use_id`, `${param}.tool_use_id`);
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

/** What the assistant said: its thoughts, if the client kept them, its words, and the calls it made. */
function toAssistantMessage(content: unknown, param: string, callIds: Set<string>): ChatMessage {
  if (typeof content === 'string') return { role: 'assistant', content };
  const parts: JsonObject[] = [];
  const calls: JsonObject[] = [];
  const details: JsonObject[] = [];
  for (const [block, at] of parseBlocks(content, param)) {
    const { type } = block;
    if (type === 'tool_use') calls.push(toToolCall(block, at, callIds));
    else if (type === 'thinking' || type === 'redacted_thinking')
      details.push(...toReasoningDetails(block, details.length));
    else if (typeof type !== 'string' || !OMITTED_BLOCK_TYPES.test(type)) parts.push(...toChatParts(block, at));
  }
  return {
    role: 'assistant',
    content: parts.length === 0 && calls.length > 0 ? null : joinTextParts(parts),
    ...(details.length > 0 ? { reasoning_details: details } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function toToolCall({ id, name, input }: JsonObject, param: string, callIds: Set<string>): JsonObject {
  if (typeof id !== 'string' || id === '') throw invalidRequest(`${param}.id must be a string`, `${param}.id`);
  if (typeof name !== 'string' || name === '') throw invalidRequest(`${param}.name must be a string`, `${param}.name`);
  callIds.add(id);
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input ?? {}) } };
}

/** Each block with its path. */
function* parseBlocks(content: unknown, param: string): Generator<readonly [block: JsonObject, param: string]> {
  if (!Array.isArray(content)) throw invalidRequest(`${param} must be a string or an array of objects`, param);
  for (const [at, block] of content.entries()) {
    if (!isJsonObject(block)) throw invalidRequest(`${param}[${at}] must be an object`, `${param}[${at}]`);
    yield [block, `${param}[${at}]`];
  }
}

/** Content that can only be text. */
function parseText(content: unknown, param: string): string | readonly JsonObject[] {
  if (typeof content === 'string') return content;
  const parts = [...parseBlocks(content, param)].flatMap(([block, at]) => {
    if (block.type !== 'text') throw invalidRequest(`${at} must be text`, at);
    return toChatParts(block, at);
  });
  return joinTextParts(parts, '\n');
}

/** One text without a mark is best understood as it is. */
function simplifyParts(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  return parts.length === 1 ? joinTextParts(parts) : parts;
}

/** Texts as one, which every vendor takes, unless there is more to them. */
function joinTextParts(parts: readonly JsonObject[], between = ''): string | readonly JsonObject[] {
  const isTextOnly = parts.every(({ type, cache_control }) => type === 'text' && cache_control === undefined);
  return isTextOnly ? parts.map(({ text }) => text).join(between) : parts;
}

function invalidRequest(message: string, param: string): InvalidRequestError {
  return new InvalidRequestError(400, message, param);
}
