/** A request in the shape of OpenAI's Responses, and the chat request that it means. */

import { InvalidRequestError } from '../../errors.ts';
import { isJsonObject, type JsonObject } from '../../wire/json-object.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import type { ParsedResponsesOptions, ResponsesBody } from './body.ts';
import { COMPACTION_PROMPT, isCompacted } from './compaction.ts';
import { toChatMessages, toItems } from './items.ts';
import { type NativeRequest, wantsLogprobs } from './native-request.ts';
import type { ChatMessage } from './parts.ts';
import { Toolset } from './toolset.ts';

/** A request as it was understood, and the chat request that it means. */
export interface ParsedResponsesRequest extends ParsedResponsesOptions {
  readonly chat: ChatBody;
  /** The same, for endpoints that speak Responses. */
  readonly native: NativeRequest;
  /** The conversation so far, for requests that continue it: all but the instructions, which are never carried on. */
  readonly said: readonly JsonObject[];
  readonly metadata: JsonObject;
}

const MAX_TAGS = 16;
/** The same in both shapes. */
const SHARED = [
  'model',
  'stream',
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'parallel_tool_calls',
  'user',
  'provider',
  'plugins',
] as const;
/** These change the answer: to ignore them would be to answer something else. */
const UNSUPPORTED = ['background', 'conversation', 'prompt'] as const;
const TEXT = { type: 'text' };
/** An item that changes settings for what follows. */
const UPDATE = 'configuration_update';

/**
 * @param earlier what was said before, where the request continues a stored response
 * @param keeps whether it is stored where it does not say so
 * @throws InvalidRequestError that names the field that cannot be served
 */
export function parseResponsesRequest(
  asked: ResponsesBody,
  earlier: readonly JsonObject[] = [],
  keeps = true,
): ParsedResponsesRequest {
  for (const field of UNSUPPORTED) if (asked[field]) throw refusal(`${field} is not supported`, field);
  const whole = toItems(asked.input);
  const compacts = isCompacted(whole);
  const input = compacts ? whole.slice(0, -1) : whole;
  const toolset = new Toolset(asked, input, earlier);
  const messages = toChatMessages(input, earlier, toolset);
  const said = [...earlier, ...(input as readonly JsonObject[])];
  const body = updated(asked, input, earlier);
  const format = flatFormat(body.text?.format ?? body.response_format ?? TEXT);
  const metadata = tagsOf(body.metadata ?? {});
  const store = body.store ?? (keeps && !wantsNoRetention(body));
  const understood = { toolset, format, store, compacts };
  const native = { ...understood, body, items: said, chatOnly: compacts || isChatOnly(body, messages) };
  return { ...understood, chat: chatOf(body, understood, messages), native, said, metadata };
}

/** With the settings that items of the conversation have changed: the last one holds. */
function updated(asked: ResponsesBody, input: readonly unknown[], earlier: readonly JsonObject[]): ResponsesBody {
  let body = asked;
  for (const item of earlier) if (item.type === UPDATE) body = updatedBy(item, body, 'previous_response_id');
  for (const [at, item] of input.entries()) {
    if (isJsonObject(item) && item.type === UPDATE) body = updatedBy(item, body, `input[${at}]`);
  }
  return body;
}

function updatedBy({ reasoning, text }: JsonObject, body: ResponsesBody, param: string): ResponsesBody {
  for (const [field, value] of Object.entries({ reasoning, text })) {
    if (!isJsonObject(value ?? {})) throw refusal(`${param}.${field} must be an object`, `${param}.${field}`);
  }
  const { effort } = (reasoning ?? {}) as JsonObject;
  const { format } = (text ?? {}) as JsonObject;
  if (typeof (effort ?? '') !== 'string') {
    throw refusal(`${param}.reasoning.effort must be a string`, `${param}.reasoning.effort`);
  }
  return {
    ...body,
    ...(effort ? { reasoning: { ...body.reasoning, effort } } : {}),
    ...(format ? { text: { ...body.text, format } } : {}),
  };
}

function chatOf(body: ResponsesBody, understood: ParsedResponsesOptions, messages: readonly ChatMessage[]): ChatBody {
  const { toolset, format, compacts } = understood;
  const { instructions, max_output_tokens, reasoning, top_logprobs } = body;
  const system = instructions ? [{ role: 'system', content: instructions }] : [];
  const chat: Record<string, unknown> = {
    messages: [...system, ...messages, ...(compacts ? [COMPACTION_PROMPT] : [])],
  };
  for (const field of SHARED) if (body[field] !== undefined && body[field] !== null) chat[field] = body[field];
  if (max_output_tokens) chat.max_completion_tokens = max_output_tokens;
  if (reasoning) chat.reasoning = reasoning;
  if (body.text?.verbosity) chat.verbosity = body.text.verbosity;
  if (format.type !== 'text' && !compacts) chat.response_format = chatFormat(format);
  if (wantsLogprobs(body)) chat.logprobs = true;
  if (top_logprobs !== undefined && top_logprobs !== null) chat.top_logprobs = top_logprobs;
  // Upstreams refuse a choice of tools, and how to call them, where there are none.
  const tools = toolset.chat;
  if (tools) Object.assign(chat, tools, compacts ? { tool_choice: 'none' } : {});
  else delete chat.parallel_tool_calls;
  return chat as ChatBody;
}

/** Responses know neither penalties nor sounds. */
function isChatOnly({ presence_penalty, frequency_penalty }: ResponsesBody, messages: readonly ChatMessage[]): boolean {
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as readonly JsonObject[]) : []));
  return Boolean(presence_penalty || frequency_penalty) || parts.some(({ type }) => type === 'input_audio');
}

/** A caller that asks for upstreams without retention does not expect us to store anything. */
function wantsNoRetention({ provider }: ResponsesBody): boolean {
  return isJsonObject(provider) && (provider.zdr === true || provider.data_collection === 'deny');
}

/** Chat nests the schema, Responses does not; clients send both. */
function flatFormat(format: unknown): JsonObject {
  const param = 'text.format';
  if (isJsonObject(format)) {
    if (format.type === 'text' || format.type === 'json_object') return { type: format.type };
    const { name, description, schema, strict } = isJsonObject(format.json_schema) ? format.json_schema : format;
    if (format.type === 'json_schema') {
      if (typeof name !== 'string') throw refusal(`${param}.name must be a string`, `${param}.name`);
      if (!isJsonObject(schema)) throw refusal(`${param}.schema must be a JSON schema`, `${param}.schema`);
      const about = typeof description === 'string' ? { description } : {};
      return { type: 'json_schema', name, ...about, schema, strict: strict ?? null };
    }
  }
  throw refusal(`${param} must have the type "text", "json_object" or "json_schema"`, param);
}

function chatFormat({ type, ...format }: JsonObject): JsonObject {
  if (type !== 'json_schema') return { type };
  return { type, json_schema: Object.fromEntries(Object.entries(format).filter(([, value]) => value !== null)) };
}

/** As they came: what a tag means is the caller's. */
function tagsOf(metadata: JsonObject): JsonObject {
  const tags = Object.entries(metadata);
  if (tags.length > MAX_TAGS) throw refusal(`metadata can have at most ${MAX_TAGS} tags`, 'metadata');
  for (const [name, value] of tags) {
    if (!['string', 'number', 'boolean'].includes(typeof value))
      throw refusal(`metadata.${name} must be a string, a number or a boolean`, `metadata.${name}`);
  }
  return metadata;
}

function refusal(message: string, param: string): InvalidRequestError {
  return new InvalidRequestError(400, message, param);
}
