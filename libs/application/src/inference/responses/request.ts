/** Converts a request of OpenAI's Responses API to a chat request. */

import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';
import { forbidsRetention } from '../../routing/data-retention.ts';

import type { ChatBody } from '../chat/chat-body.ts';
import type { ParsedResponsesOptions, ResponsesBody } from './body.ts';
import { COMPACTION_PROMPT, isCompactionRequest } from './compaction.ts';
import { toChatMessages, toItems } from './items.ts';
import { type NativeRequest, requestsLogprobs } from './native-request.ts';
import type { ChatMessage } from './parts.ts';
import { Toolset } from './toolset.ts';

export interface ParsedResponsesRequest extends ParsedResponsesOptions {
  readonly chat: ChatBody;
  /** The request for endpoints with the Responses API. */
  readonly native: NativeRequest;
  /** All items of the conversation so far, for later requests. Instructions are not items. */
  readonly inputItems: readonly JsonObject[];
  readonly metadata: JsonObject;
}

const MAX_METADATA_ENTRIES = 16;
/** Fields with the same meaning in responses and chats. */
const SHARED_FIELDS = [
  'model',
  'models',
  'stream',
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'parallel_tool_calls',
  'user',
  'safety_identifier',
  'prompt_cache_key',
  'provider',
  'plugins',
] as const;
/** Fields that are rejected rather than ignored, because they change the response. */
const UNSUPPORTED_FIELDS = ['background', 'conversation', 'prompt'] as const;
const TEXT_FORMAT = { type: 'text' };
/** Type of an item that changes settings for the rest of the conversation. */
const UPDATE_ITEM_TYPE = 'configuration_update';

/**
 * @param earlier items of the stored conversation that the request continues
 * @param storesByDefault whether the response is stored if neither `store` nor `provider` specifies it
 * @throws InvalidRequestError (400) naming the field that is invalid or not supported
 */
export function parseResponsesRequest(
  requestBody: ResponsesBody,
  earlier: readonly JsonObject[] = [],
  storesByDefault = true,
): ParsedResponsesRequest {
  for (const field of UNSUPPORTED_FIELDS)
    if (requestBody[field]) throw invalidRequest(`${field} is not supported`, field);
  const allItems = toItems(requestBody.input);
  const compacts = isCompactionRequest(allItems);
  const input = compacts ? allItems.slice(0, -1) : allItems;
  const toolset = new Toolset(requestBody, input, earlier);
  const messages = toChatMessages(input, earlier, toolset);
  const inputItems = [...earlier, ...(input as readonly JsonObject[])];
  const body = applyUpdates(requestBody, input, earlier);
  const format = flattenFormat(body.text?.format ?? body.response_format ?? TEXT_FORMAT);
  const metadata = parseMetadata(body.metadata ?? {});
  const store = body.store ?? (storesByDefault && !forbidsRetention(body));
  const options = { toolset, format, store, isCompaction: compacts };
  const native = { ...options, body, items: inputItems, isChatOnly: compacts || isChatOnly(body, messages) };
  return { ...options, chat: toChatBody(body, options, messages), native, inputItems, metadata };
}

interface SettingChanges {
  readonly effort?: unknown;
  readonly format?: unknown;
}

/** Applies the settings that items of the conversation change. The last change of each setting counts. */
function applyUpdates(body: ResponsesBody, input: readonly unknown[], earlier: readonly JsonObject[]): ResponsesBody {
  let changes: SettingChanges = {};
  for (const item of earlier)
    if (item.type === UPDATE_ITEM_TYPE) changes = { ...changes, ...parseUpdate(item, 'previous_response_id') };
  for (const [at, item] of input.entries()) {
    if (isJsonObject(item) && item.type === UPDATE_ITEM_TYPE)
      changes = { ...changes, ...parseUpdate(item, `input[${at}]`) };
  }
  const { effort, format } = changes;
  return {
    ...body,
    ...(effort ? { reasoning: { ...body.reasoning, effort } } : {}),
    ...(format ? { text: { ...body.text, format } } : {}),
  };
}

function parseUpdate({ reasoning, text }: JsonObject, param: string): SettingChanges {
  for (const [field, value] of Object.entries({ reasoning, text })) {
    if (!isJsonObject(value ?? {})) throw invalidRequest(`${param}.${field} must be an object`, `${param}.${field}`);
  }
  const { effort } = (reasoning ?? {}) as JsonObject;
  const { format } = (text ?? {}) as JsonObject;
  if (typeof (effort ?? '') !== 'string') {
    throw invalidRequest(`${param}.reasoning.effort must be a string`, `${param}.reasoning.effort`);
  }
  return { ...(effort ? { effort } : {}), ...(format ? { format } : {}) };
}

function toChatBody(body: ResponsesBody, options: ParsedResponsesOptions, messages: readonly ChatMessage[]): ChatBody {
  const { toolset, format, isCompaction } = options;
  const { instructions, max_output_tokens, reasoning, top_logprobs } = body;
  const system = instructions ? [{ role: 'system', content: instructions }] : [];
  const chat: Record<string, unknown> = {
    messages: [...system, ...messages, ...(isCompaction ? [COMPACTION_PROMPT] : [])],
  };
  for (const field of SHARED_FIELDS) if (body[field] !== undefined && body[field] !== null) chat[field] = body[field];
  if (max_output_tokens) chat.max_completion_tokens = max_output_tokens;
  if (reasoning) chat.reasoning = reasoning;
  if (body.text?.verbosity) chat.verbosity = body.text.verbosity;
  if (format.type !== 'text' && !isCompaction) chat.response_format = toChatFormat(format);
  if (requestsLogprobs(body)) chat.logprobs = true;
  if (top_logprobs !== undefined && top_logprobs !== null) chat.top_logprobs = top_logprobs;
  // Providers reject `tool_choice` and `parallel_tool_calls` without tools.
  const tools = toolset.chatParameters;
  if (tools) Object.assign(chat, tools, isCompaction ? { tool_choice: 'none' } : {});
  else delete chat.parallel_tool_calls;
  return chat as ChatBody;
}

/** Whether a request has penalties or audio, which the Responses API does not support. */
function isChatOnly({ presence_penalty, frequency_penalty }: ResponsesBody, messages: readonly ChatMessage[]): boolean {
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as readonly JsonObject[]) : []));
  return Boolean(presence_penalty || frequency_penalty) || parts.some(({ type }) => type === 'input_audio');
}

/** Accepts the flat format of the Responses API and the nested one of chats, because clients send both. */
function flattenFormat(format: unknown): JsonObject {
  const param = 'text.format';
  if (isJsonObject(format)) {
    if (format.type === 'text' || format.type === 'json_object') return { type: format.type };
    const { name, description, schema, strict } = isJsonObject(format.json_schema) ? format.json_schema : format;
    if (format.type === 'json_schema') {
      if (typeof name !== 'string') throw invalidRequest(`${param}.name must be a string`, `${param}.name`);
      if (!isJsonObject(schema)) throw invalidRequest(`${param}.schema must be a JSON schema`, `${param}.schema`);
      const descriptionField = typeof description === 'string' ? { description } : {};
      return { type: 'json_schema', name, ...descriptionField, schema, strict: strict ?? null };
    }
  }
  throw invalidRequest(`${param} must have the type "text", "json_object" or "json_schema"`, param);
}

function toChatFormat({ type, ...format }: JsonObject): JsonObject {
  if (type !== 'json_schema') return { type };
  return { type, json_schema: Object.fromEntries(Object.entries(format).filter(([, value]) => value !== null)) };
}

/** Validates metadata and returns it unchanged. */
function parseMetadata(metadata: JsonObject): JsonObject {
  const tags = Object.entries(metadata);
  if (tags.length > MAX_METADATA_ENTRIES)
    throw invalidRequest(`metadata must have at most ${MAX_METADATA_ENTRIES} entries`, 'metadata');
  for (const [name, value] of tags) {
    if (!['string', 'number', 'boolean'].includes(typeof value))
      throw invalidRequest(`metadata.${name} must be a string, a number or a boolean`, `metadata.${name}`);
  }
  return metadata;
}
