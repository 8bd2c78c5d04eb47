/** Converts requests for endpoints with the Responses API. */

import type { Endpoint } from '#catalogue';
import { isJsonObject, type JsonObject } from '#kernel';

import { listUsableParameters, type Reasoning } from '../chat/chat-body.ts';
import { MIN_RESPONSES_OUTPUT_TOKENS } from '../chat/chat-quote.ts';
import { countMaxValueTokens } from '../chat/count-tokens.ts';
import type { ParsedResponsesOptions, ResponsesBody } from './body.ts';
import { toSummaryMessage } from './compaction.ts';
import { OMITTED_ITEM_TYPES, SETTING_ITEM_TYPES } from './items.ts';
import { getPartUrl, isTextPart, toAgentMessage, toReadablePart } from './parts.ts';
import { isChatReasoning } from './reasoning.ts';
import type { ToolName, Toolset } from './toolset.ts';

const ENCRYPTED_REASONING = 'reasoning.encrypted_content';
/** Endpoints with this parameter support tools with plain text input. Others get such requests as chats. */
const CUSTOM_TOOLS = 'custom_tools';
/** The value of `include` for log probabilities of tokens. */
export const LOGPROBS_INCLUDE = 'message.output_text.logprobs';
/** Encrypted reasoning has more base64 characters than this per token. */
const BASE64_CHARACTERS_PER_TOKEN = 4;

export interface NativeRequest extends ParsedResponsesOptions {
  readonly body: ResponsesBody;
  /** The items of the continued conversation and of the input. */
  readonly items: readonly JsonObject[];
  /** The request uses a feature that only chats support. */
  readonly isChatOnly: boolean;
}

const CALL_TYPES: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call']);

/** Encrypted reasoning or a search, with the slug of the provider that generated it. No other provider can use it. */
export interface ProviderSpecificItem {
  readonly made_by?: string;
}

/** Whether an endpoint is called through its Responses API. @param limit maximum output tokens */
export function usesNativeResponses(endpoint: Endpoint, request: NativeRequest, limit: number | undefined): boolean {
  const { speaks, parameters } = endpoint;
  if (!speaks.includes('responses') || request.isCompaction) return false;
  if (usesCustomTools(request) && !parameters.includes(CUSTOM_TOOLS)) return false;
  return (
    !speaks.includes('chat') ||
    (!request.isChatOnly && (limit ?? MIN_RESPONSES_OUTPUT_TOKENS) >= MIN_RESPONSES_OUTPUT_TOKENS)
  );
}

function usesCustomTools({ toolset, items }: NativeRequest): boolean {
  return toolset.hasCustomTools || items.some(({ type }) => type === 'custom_tool_call');
}

/**
 * Returns the maximum input tokens in addition to those of the chat: encrypted reasoning, its summaries and earlier
 * searches.
 */
export function countMaxCarriedTokens({ items }: NativeRequest): number {
  let tokens = 0;
  for (const item of items) {
    const { type, encrypted_content: encrypted, ...rest } = item;
    if (!OMITTED_ITEM_TYPES.has(type) || isChatReasoning(item)) continue;
    tokens += countMaxValueTokens(rest);
    if (typeof encrypted === 'string') tokens += encrypted.length / BASE64_CHARACTERS_PER_TOKEN;
  }
  return Math.ceil(tokens);
}

export function requestsLogprobs({ include, top_logprobs }: ResponsesBody): boolean {
  return include?.includes(LOGPROBS_INCLUDE) === true || typeof top_logprobs === 'number';
}

export function requestsEncryptedReasoning({ include }: ResponsesBody): boolean {
  return include?.includes(ENCRYPTED_REASONING) === true;
}

/** Whether a conversation that is too long may be truncated. */
export function allowsTruncation({ truncation }: ResponsesBody): boolean {
  return truncation === 'auto';
}

/**
 * Creates the request for an endpoint, with only the parameters that the endpoint supports. Storage is disabled at
 * the provider, because only the gateway stores responses. Connectors convert `reasoning` to their provider's format.
 * @param limit maximum output tokens; undefined for the model's maximum
 */
export function toUpstreamResponsesBody(
  request: NativeRequest,
  endpoint: Pick<Endpoint, 'model' | 'parameters' | 'modelRules' | 'slug'>,
  limit: number | undefined,
  reasoning?: Reasoning,
): Record<string, unknown> {
  const { body, store } = request;
  const { model, slug } = endpoint;
  const parameters = listUsableParameters(endpoint, reasoning);
  const isSupported: IsSupported = (parameter) => parameters.includes(parameter);
  const logprobs = isSupported('logprobs') && requestsLogprobs(body);
  const encrypted = isSupported('reasoning') && (store || requestsEncryptedReasoning(body));
  const include = [...(logprobs ? [LOGPROBS_INCLUDE] : []), ...(encrypted ? [ENCRYPTED_REASONING] : [])];
  return {
    model,
    input: toProviderInput(request, slug),
    store: false,
    ...omitNullish({
      instructions: body.instructions || null,
      max_output_tokens: limit,
      temperature: isSupported('temperature') ? body.temperature : null,
      top_p: isSupported('top_p') ? body.top_p : null,
      ...pickSupported(body, ['user', 'safety_identifier', 'prompt_cache_key'], isSupported),
      reasoning: isSupported('reasoning') ? toReasoning(body, reasoning) : null,
      text: toTextOptions(request, isSupported),
      include: include.length > 0 ? include : null,
      top_logprobs: logprobs && isSupported('top_logprobs') ? body.top_logprobs : null,
      truncation: allowsTruncation(body) ? 'auto' : null,
    }),
    ...toToolFields(request, isSupported),
    ...(body.stream ? { stream: true, stream_options: { include_obfuscation: false } } : {}),
  };
}

type IsSupported = (parameter: string) => boolean;

function pickSupported(body: ResponsesBody, fields: readonly string[], isSupported: IsSupported): JsonObject {
  return Object.fromEntries(fields.filter(isSupported).map((field) => [field, body[field]]));
}

function omitNullish(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function omitIfEmpty(fields: JsonObject): JsonObject | undefined {
  return Object.keys(fields).length > 0 ? fields : undefined;
}

/** Adds the `summary` of the Responses API to the reasoning options of a chat. */
function toReasoning({ reasoning }: ResponsesBody, requested: Reasoning | undefined): JsonObject | undefined {
  const summary = requested?.exclude ? null : reasoning?.summary;
  return omitIfEmpty(omitNullish({ ...requested, summary }));
}

function toTextOptions({ format, body }: NativeRequest, isSupported: IsSupported): JsonObject | undefined {
  const includesFormat = format.type !== 'text' && isSupported('response_format');
  const verbosity = isSupported('verbosity') ? body.text?.verbosity : null;
  return omitIfEmpty(omitNullish({ format: includesFormat ? omitNullish(format) : null, verbosity }));
}

/** Includes only tools that the caller runs. Web searches are planned separately. */
function toToolFields({ toolset, body }: NativeRequest, isSupported: IsSupported): JsonObject {
  const { tools, tool_choice } = toolset.nativeParameters;
  if (tools.length === 0 || !isSupported('tools')) return {};
  return omitNullish({
    tools: tools.map(({ parameters, ...tool }) => ({
      ...omitNullish(tool),
      ...(tool.type === 'function' ? { parameters } : {}),
    })),
    tool_choice: isSupported('tool_choice') ? tool_choice : null,
    parallel_tool_calls: isSupported('parallel_tool_calls') ? body.parallel_tool_calls : null,
  });
}

/**
 * Converts items for a provider that stores nothing. Messages and calls are sent without ids, which the provider does
 * not know. Reasoning is sent encrypted and only before the item that it led to. Reasoning of other providers is
 * omitted, and so are searches that are not known to be this provider's.
 */
function toProviderInput({ items, toolset }: NativeRequest, slug: string): readonly JsonObject[] {
  const input: JsonObject[] = [];
  /** Reasoning that belongs to the next item. */
  let pendingReasoning: JsonObject[] = [];
  for (const item of items) {
    const { type = 'message', role } = item;
    if (type === 'reasoning') {
      pendingReasoning.push(...toReasoningItems(item, slug));
      continue;
    }
    if (type === 'web_search_call') {
      const { made_by, ...search } = item as JsonObject & ProviderSpecificItem;
      if (made_by === slug) input.push(...pendingReasoning, search);
      pendingReasoning = [];
      continue;
    }
    if (SETTING_ITEM_TYPES.has(type)) continue;
    if (role === 'assistant' || CALL_TYPES.has(type)) input.push(...pendingReasoning);
    pendingReasoning = [];
    input.push(toProviderItem(item, toolset));
  }
  return input;
}

/** Converts encrypted reasoning; the id is optional, because some clients do not send it. */
function toReasoningItems(item: JsonObject & ProviderSpecificItem, slug: string): readonly JsonObject[] {
  const { made_by, id, summary, encrypted_content } = item;
  if (typeof encrypted_content !== 'string' || isChatReasoning(item)) return [];
  if (made_by !== undefined && made_by !== slug) return [];
  return [{ type: 'reasoning', ...omitNullish({ id }), summary: summary ?? [], encrypted_content }];
}

function toProviderItem(item: JsonObject, toolset: Toolset): JsonObject {
  const { type = 'message', call_id, arguments: args, input } = item;
  switch (type) {
    case 'function_call':
      return { type, call_id, name: toolset.getModelName(item as JsonObject & ToolName), arguments: args };
    case 'custom_tool_call':
      return { type, call_id, name: toolset.getModelName(item as JsonObject & ToolName), input };
    case 'function_call_output':
    case 'custom_tool_call_output':
      return { type, call_id, output: toProviderOutput(item.output) };
    case 'agent_message':
      return { type: 'message', ...toAgentMessage(item, 'input') };
    case 'compaction':
      return { type: 'message', ...toSummaryMessage(item, 'input') };
    default:
      return toProviderMessage(item);
  }
}

function toProviderMessage({ role, content, phase }: JsonObject): JsonObject {
  const type = 'message';
  if (role === 'user') return { type, role, content: toProviderContent(content) };
  if (role !== 'assistant') return { type, role, content: joinText(content) };
  const assistantContent =
    typeof content === 'string' ? content : (content as readonly JsonObject[]).map(toAssistantPart);
  return { type, role, content: assistantContent, ...omitNullish({ phase: typeof phase === 'string' ? phase : null }) };
}

/** Returns the output of a tool as a string if it contains only text. */
function toProviderOutput(output: unknown): unknown {
  if (typeof output === 'string') return output;
  const parts = (output as readonly JsonObject[]).map(toReadablePart);
  return parts.every(({ type }) => isTextPart(type)) ? joinText(parts) : toProviderContent(parts);
}

function toProviderContent(content: unknown): unknown {
  return typeof content === 'string' ? content : (content as readonly JsonObject[]).map(toUserPart);
}

function toAssistantPart({ type, text, refusal }: JsonObject): JsonObject {
  return type === 'refusal' ? { type, refusal } : { type: 'output_text', text };
}

function toUserPart(part: JsonObject): JsonObject {
  if (isTextPart(part.type)) return { type: 'input_text', text: part.text };
  if (part.type === 'input_image' || part.type === 'image_url') {
    const detail = isJsonObject(part.image_url) ? part.image_url.detail : part.detail;
    return { type: 'input_image', image_url: getPartUrl(part), detail: typeof detail === 'string' ? detail : 'auto' };
  }
  if (part.type === 'input_audio') return part;
  const { file_data, filename } = isJsonObject(part.file) ? part.file : part;
  return { type: 'input_file', file_data, ...(typeof filename === 'string' ? { filename } : {}) };
}

function joinText(content: unknown): string {
  if (typeof content === 'string') return content;
  return (content as readonly { readonly text: string }[]).map(({ text }) => text).join('');
}
