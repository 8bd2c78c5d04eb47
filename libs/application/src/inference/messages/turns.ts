/** The turns of Anthropic's Messages as messages of a chat. */
import { InvalidRequestError } from '../../errors.ts';
import { isJsonObject, type JsonObject } from '../../wire/json-object.ts';
import type { ChatMessage } from '../responses/parts.ts';
import { toChatParts } from './parts.ts';
import { toReasoningDetails } from './reasoning.ts';

/** What Anthropic has done by itself: its text says what came of it, and no chat takes it. */
const LEFT_OUT = /^server_tool_use$|^(?!tool_result$).*_tool_result$/;

/** The system prompt: no message where there is none. @throws InvalidRequestError that names the block */
export function toSystemMessages(system: string | readonly unknown[] | null | undefined): readonly ChatMessage[] {
  if (system === undefined || system === null || system.length === 0) return [];
  return [{ role: 'system', content: textOf(system, 'system') }];
}

/** @throws InvalidRequestError that names the block */
export function toChatMessages(turns: readonly unknown[]): readonly ChatMessage[] {
  const callIds = new Set<string>();
  const messages = turns.flatMap((turn, at) => {
    const param = `messages[${at}]`;
    if (!isJsonObject(turn)) throw refusal(`${param} must be an object`, param);
    const { role, content } = turn;
    if (role === 'user') return heard(content, `${param}.content`, callIds);
    if (role === 'assistant') return [spoken(content, `${param}.content`, callIds)];
    if (role === 'system') return [{ role, content: textOf(content, `${param}.content`) }];
    throw refusal(`${param}.role must be "user" or "assistant"`, `${param}.role`);
  });
  if (messages.length === 0) throw refusal('messages must say something', 'messages');
  return messages;
}

/** The results of tools come before the words that stand beside them: they answer the turn before. */
function heard(content: unknown, param: string, callIds: ReadonlySet<string>): readonly ChatMessage[] {
  if (typeof content === 'string') return [{ role: 'user', content }];
  const results: ChatMessage[] = [];
  const parts: JsonObject[] = [];
  for (const [block, at] of blocksOf(content, param)) {
    if (block.type === 'tool_result') results.push(resultOf(block, at, callIds));
    else parts.push(...toChatParts(block, at));
  }
  return parts.length === 0 ? results : [...results, { role: 'user', content: plain(parts) }];
}

function resultOf(block: JsonObject, param: string, callIds: ReadonlySet<string>): ChatMessage {
  const { tool_use_id: id, content, is_error, cache_control } = block;
  if (typeof id !== 'string' || !callIds.has(id)) {
    throw refusal(`There is no tool_use before ${param} with its tool_use_id`, `${param}.tool_use_id`);
  }
  const given = content ?? '';
  const parts =
    typeof given === 'string'
      ? given
      : [...blocksOf(given, `${param}.content`)].flatMap((each) => toChatParts(...each));
  return {
    role: 'tool',
    tool_call_id: id,
    content: typeof parts === 'string' ? parts : joined(parts),
    ...(is_error === true ? { is_error } : {}),
    ...(isJsonObject(cache_control) ? { cache_control } : {}),
  };
}

/** What the assistant said: its thoughts, if the client kept them, its words, and the calls it made. */
function spoken(content: unknown, param: string, callIds: Set<string>): ChatMessage {
  if (typeof content === 'string') return { role: 'assistant', content };
  const parts: JsonObject[] = [];
  const calls: JsonObject[] = [];
  const details: JsonObject[] = [];
  for (const [block, at] of blocksOf(content, param)) {
    const { type } = block;
    if (type === 'tool_use') calls.push(callOf(block, at, callIds));
    else if (type === 'thinking' || type === 'redacted_thinking')
      details.push(...toReasoningDetails(block, details.length));
    else if (typeof type !== 'string' || !LEFT_OUT.test(type)) parts.push(...toChatParts(block, at));
  }
  return {
    role: 'assistant',
    content: parts.length === 0 && calls.length > 0 ? null : joined(parts),
    ...(details.length > 0 ? { reasoning_details: details } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function callOf({ id, name, input }: JsonObject, param: string, callIds: Set<string>): JsonObject {
  if (typeof id !== 'string' || id === '') throw refusal(`${param}.id must be a string`, `${param}.id`);
  if (typeof name !== 'string' || name === '') throw refusal(`${param}.name must be a string`, `${param}.name`);
  callIds.add(id);
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input ?? {}) } };
}

/** Each block with its path. */
function* blocksOf(content: unknown, param: string): Generator<readonly [block: JsonObject, param: string]> {
  if (!Array.isArray(content)) throw refusal(`${param} must be a string or an array of objects`, param);
  for (const [at, block] of content.entries()) {
    if (!isJsonObject(block)) throw refusal(`${param}[${at}] must be an object`, `${param}[${at}]`);
    yield [block, `${param}[${at}]`];
  }
}

/** Content that can only be text. */
function textOf(content: unknown, param: string): string | readonly JsonObject[] {
  if (typeof content === 'string') return content;
  const parts = [...blocksOf(content, param)].flatMap(([block, at]) => {
    if (block.type !== 'text') throw refusal(`${at} must be text`, at);
    return toChatParts(block, at);
  });
  return joined(parts, '\n');
}

/** One text without a mark is best understood as it is. */
function plain(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  return parts.length === 1 ? joined(parts) : parts;
}

/** Texts as one, which every vendor takes, unless there is more to them. */
function joined(parts: readonly JsonObject[], between = ''): string | readonly JsonObject[] {
  const isPlain = parts.every(({ type, cache_control }) => type === 'text' && cache_control === undefined);
  return isPlain ? parts.map(({ text }) => text).join(between) : parts;
}

function refusal(message: string, param: string): InvalidRequestError {
  return new InvalidRequestError(400, message, param);
}
