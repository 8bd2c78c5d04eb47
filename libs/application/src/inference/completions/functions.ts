/**
 * Converts legacy functions to tools. A legacy message has at most one function call, which has no id. See `functions`
 * and `function_call` in https://platform.openai.com/docs/api-reference/chat/create
 */
import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';

import type { ChatBody } from '../chat/chat-body.ts';
import { getChoices, type TranslatedRequest } from './translate.ts';

/**
 * Replaces the functions of a request with tools. The response has legacy function calls only if the request has
 * `functions` or `function_call`.
 * @returns undefined if the request uses no legacy functions
 * @throws InvalidRequestError (400) naming the invalid field
 */
export function toToolsRequest(body: ChatBody): TranslatedRequest<ChatBody> | undefined {
  const declaresFunctions = (body.functions ?? body.function_call ?? undefined) !== undefined;
  if (!declaresFunctions && !body.messages.some(isLegacyMessage)) return undefined;
  const { functions, function_call, messages, ...rest } = body;
  if (declaresFunctions && rest.tools) throw invalidRequest('functions and tools cannot be used together', 'functions');
  const tools = toTools(functions ?? []);
  const choice = tools.length > 0 ? toToolChoice(function_call, tools) : undefined;
  const chat: JsonObject = {
    ...rest,
    messages: convertLegacyMessages(messages),
    // A legacy message can have only one call.
    ...(tools.length > 0 ? { tools, parallel_tool_calls: false } : {}),
    ...(choice === undefined ? {} : { tool_choice: choice }),
  };
  return { body: chat as ChatBody, translate: declaresFunctions ? withFunctionCalls : (completion) => completion };
}

/** Whether a field is missing is checked first, because that is faster than to read a missing field. */
function isLegacyMessage(message: JsonObject): boolean {
  if (Object.hasOwn(message, 'function_call') && (message.function_call ?? undefined) !== undefined) return true;
  return message.role === 'function';
}

function toTools(functions: unknown): readonly JsonObject[] {
  if (!Array.isArray(functions)) throw invalidRequest('functions must be an array', 'functions');
  return functions.map((definition, at) => {
    const param = `functions[${at}]`;
    if (!isJsonObject(definition)) throw invalidRequest(`${param} must be an object`, param);
    if (!isName(definition.name)) throw invalidRequest(`${param}.name must be a non-empty string`, `${param}.name`);
    return { type: 'function', function: definition };
  });
}

function toToolChoice(choice: unknown, tools: readonly JsonObject[]): unknown {
  if (choice === undefined || choice === null || choice === 'auto' || choice === 'none') return choice ?? undefined;
  const name = isJsonObject(choice) ? choice.name : undefined;
  if (tools.some(({ function: definition }) => (definition as JsonObject).name === name))
    return { type: 'function', function: { name } };
  throw invalidRequest(
    'function_call must be "auto", "none" or an object with the name of one of the functions',
    'function_call',
  );
}

/** Converts legacy calls to tool calls. Each result gets the id of the last earlier call of its function. */
function convertLegacyMessages(messages: readonly JsonObject[]): readonly JsonObject[] {
  const ids = new Map<unknown, string>();
  return messages.map((message, at) => {
    const param = `messages[${at}]`;
    const { function_call: call, role, name, ...rest } = message;
    if (role === 'function') {
      const tool_call_id = ids.get(name);
      if (tool_call_id === undefined) {
        throw invalidRequest(`${param}.name must be the name of an earlier function_call`, `${param}.name`);
      }
      return { role: 'tool', ...rest, tool_call_id };
    }
    if (call === undefined || call === null) return message;
    if (!isJsonObject(call) || !isName(call.name) || typeof call.arguments !== 'string') {
      throw invalidRequest(
        `${param}.function_call must have a non-empty name and arguments, both strings`,
        `${param}.function_call`,
      );
    }
    const id = `call_${at}`;
    ids.set(call.name, id);
    const called = { name: call.name, arguments: call.arguments };
    const tool_calls = [{ id, type: 'function', function: called }];
    return { ...rest, role, ...(name === undefined ? {} : { name }), content: rest.content ?? null, tool_calls };
  });
}

function isName(name: unknown): name is string {
  return typeof name === 'string' && name !== '';
}

/** Converts the tool call with index 0 of each message or chunk to a legacy function call. Other calls are omitted. */
function withFunctionCalls(completion: JsonObject): JsonObject {
  const choices = getChoices(completion).map(({ message, delta, finish_reason, ...choice }) => ({
    ...choice,
    ...(message ? { message: withFunctionCall(message as JsonObject) } : {}),
    ...(delta ? { delta: withFunctionCall(delta as JsonObject) } : {}),
    finish_reason: finish_reason === 'tool_calls' ? 'function_call' : finish_reason,
  }));
  return { ...completion, choices };
}

function withFunctionCall({ tool_calls, ...message }: JsonObject): JsonObject {
  const calls = Array.isArray(tool_calls) ? (tool_calls as readonly JsonObject[]) : [];
  const first = calls.find(({ index }, at) => (index ?? at) === 0);
  return first ? { ...message, function_call: first.function } : message;
}
