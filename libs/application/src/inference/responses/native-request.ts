/** A request in the protocol of Responses, for endpoints that speak it: the fields that the endpoint knows. */
import type { Endpoint } from '#catalogue';
import { countMaxTextTokens } from '../../tokenizer.ts';
import { isJsonObject, type JsonObject } from '../../wire/json-object.ts';
import type { Reasoning } from '../chat/chat-body.ts';
import { MIN_RESPONSES_OUTPUT_TOKENS } from '../chat/chat-quote.ts';
import type { ParsedResponsesOptions, ResponsesBody } from './body.ts';
import { summaryMessage } from './compaction.ts';
import { OMITTED_ITEM_TYPES, SETTING_ITEM_TYPES } from './items.ts';
import { agentMessage, getPartUrl, isTextPart, toReadablePart } from './parts.ts';
import { isChatReasoning } from './reasoning.ts';
import type { ToolName, Toolset } from './toolset.ts';

const ENCRYPTED = 'reasoning.encrypted_content';
/** The parameter of endpoints that know tools with plain text; all others are asked in a chat for them. */
const CUSTOM_TOOLS = 'custom_tools';
/** What to `include` for the probabilities of tokens. */
export const LOGPROBS = 'message.output_text.logprobs';
/** Encrypted reasoning has more characters of base64 than this for each of its tokens. */
const BASE64_PER_TOKEN = 4;

export interface NativeRequest extends ParsedResponsesOptions {
  readonly body: ResponsesBody;
  /** All that was said: what was said before, and the input. */
  readonly items: readonly JsonObject[];
  /** It has a field that only chats support. */
  readonly chatOnly: boolean;
}

const CALLS: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call']);

/** Reasoning that an upstream has encrypted or a search that it has made, and the upstream: no other can use it. */
export interface ProviderSpecificItem {
  readonly made_by?: string;
}

/** Whether an endpoint is called with Responses; it may speak both. @param limit output tokens at most */
export function usesNativeResponses(endpoint: Endpoint, request: NativeRequest, limit: number | undefined): boolean {
  const { speaks, parameters } = endpoint;
  if (!speaks.includes('responses') || request.compacts) return false;
  if (usesCustom(request) && !parameters.includes(CUSTOM_TOOLS)) return false;
  return (
    !speaks.includes('chat') ||
    (!request.chatOnly && (limit ?? MIN_RESPONSES_OUTPUT_TOKENS) >= MIN_RESPONSES_OUTPUT_TOKENS)
  );
}

function usesCustom({ toolset, items }: NativeRequest): boolean {
  return toolset.hasCustom || items.some(({ type }) => type === 'custom_tool_call');
}

/** Tokens that come on top of those of the chat, at most: of reasoning, its summary, and searches that were made. */
export function countMaxCarriedTokens({ items }: NativeRequest): number {
  let tokens = 0;
  for (const item of items) {
    const { type, encrypted_content: encrypted, ...rest } = item;
    if (!OMITTED_ITEM_TYPES.has(type) || isChatReasoning(item)) continue;
    tokens += countMaxTextTokens(JSON.stringify(rest));
    if (typeof encrypted === 'string') tokens += encrypted.length / BASE64_PER_TOKEN;
  }
  return Math.ceil(tokens);
}

export function wantsLogprobs({ include, top_logprobs }: ResponsesBody): boolean {
  return include?.includes(LOGPROBS) === true || typeof top_logprobs === 'number';
}

export function wantsEncrypted({ include }: ResponsesBody): boolean {
  return include?.includes(ENCRYPTED) === true;
}

/** Whether a conversation that is too long may be truncated. */
export function allowsTruncation({ truncation }: ResponsesBody): boolean {
  return truncation === 'auto';
}

/**
 * The request for an upstream: the fields that it knows. It keeps nothing, since we do. Connectors say the reasoning in
 * their upstream's words.
 * @param limit output tokens at most; undefined for as many as the model makes
 */
export function toUpstreamResponsesBody(
  request: NativeRequest,
  { model, parameters, slug }: Pick<Endpoint, 'model' | 'parameters' | 'slug'>,
  limit: number | undefined,
  reasoning?: Reasoning,
): Record<string, unknown> {
  const { body, store } = request;
  const knows: Knows = (parameter) => parameters.includes(parameter);
  const logprobs = knows('logprobs') && wantsLogprobs(body);
  const encrypted = knows('reasoning') && (store || wantsEncrypted(body));
  const include = [...(logprobs ? [LOGPROBS] : []), ...(encrypted ? [ENCRYPTED] : [])];
  return {
    model,
    input: inputFor(request, slug),
    store: false,
    ...given({
      instructions: body.instructions || null,
      max_output_tokens: limit,
      temperature: knows('temperature') ? body.temperature : null,
      top_p: knows('top_p') ? body.top_p : null,
      user: knows('user') ? body.user : null,
      reasoning: knows('reasoning') ? reasoningOf(body, reasoning) : null,
      text: textOf(request, knows),
      include: include.length > 0 ? include : null,
      top_logprobs: logprobs && knows('top_logprobs') ? body.top_logprobs : null,
      truncation: allowsTruncation(body) ? 'auto' : null,
    }),
    ...toolsOf(request, knows),
    ...(body.stream ? { stream: true, stream_options: { include_obfuscation: false } } : {}),
  };
}

type Knows = (parameter: string) => boolean;

function given(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function orNothing(fields: JsonObject): JsonObject | undefined {
  return Object.keys(fields).length > 0 ? fields : undefined;
}

/** As in a chat, with the summary that only Responses know. */
function reasoningOf({ reasoning }: ResponsesBody, requested: Reasoning | undefined): JsonObject | undefined {
  const summary = requested?.exclude ? null : reasoning?.summary;
  return orNothing(given({ ...requested, summary }));
}

function textOf({ format, body }: NativeRequest, knows: Knows): JsonObject | undefined {
  const wanted = format.type !== 'text' && knows('response_format');
  const verbosity = knows('verbosity') ? body.text?.verbosity : null;
  return orNothing(given({ format: wanted ? given(format) : null, verbosity }));
}

/** The caller's own: searches are ours to make. */
function toolsOf({ toolset, body }: NativeRequest, knows: Knows): JsonObject {
  const { tools, tool_choice } = toolset.native;
  if (tools.length === 0 || !knows('tools')) return {};
  return given({
    tools: tools.map(({ parameters, ...tool }) => ({
      ...given(tool),
      ...(tool.type === 'function' ? { parameters } : {}),
    })),
    tool_choice: knows('tool_choice') ? tool_choice : null,
    parallel_tool_calls: knows('parallel_tool_calls') ? body.parallel_tool_calls : null,
  });
}

/**
 * Items as an upstream that keeps nothing takes them. What it made of its own goes without the ids that it does not know
 * any more; reasoning goes encrypted, together with what it led to, or not at all.
 */
function inputFor({ items, toolset }: NativeRequest, slug: string): readonly JsonObject[] {
  const input: JsonObject[] = [];
  /** Reasoning whose consequence has not come yet. */
  let thought: JsonObject[] = [];
  for (const item of items) {
    const { type = 'message', role } = item;
    if (type === 'reasoning') {
      thought.push(...reasoningFor(item, slug));
      continue;
    }
    if (type === 'web_search_call') {
      const { made_by, ...search } = item as JsonObject & ProviderSpecificItem;
      if (made_by === slug) input.push(...thought, search);
      thought = [];
      continue;
    }
    if (SETTING_ITEM_TYPES.has(type)) continue;
    if (role === 'assistant' || CALLS.has(type)) input.push(...thought);
    thought = [];
    input.push(itemFor(item, toolset));
  }
  return input;
}

/** Clients that keep nothing send it without an id. */
function reasoningFor(item: JsonObject & ProviderSpecificItem, slug: string): readonly JsonObject[] {
  const { made_by, id, summary, encrypted_content } = item;
  if (typeof encrypted_content !== 'string' || isChatReasoning(item)) return [];
  if (made_by !== undefined && made_by !== slug) return [];
  return [{ type: 'reasoning', ...given({ id }), summary: summary ?? [], encrypted_content }];
}

function itemFor(item: JsonObject, toolset: Toolset): JsonObject {
  const { type = 'message', call_id, arguments: args, input } = item;
  switch (type) {
    case 'function_call':
      return { type, call_id, name: toolset.calledBy(item as JsonObject & ToolName), arguments: args };
    case 'custom_tool_call':
      return { type, call_id, name: toolset.calledBy(item as JsonObject & ToolName), input };
    case 'function_call_output':
    case 'custom_tool_call_output':
      return { type, call_id, output: outputFor(item.output) };
    case 'agent_message':
      return { type: 'message', ...agentMessage(item, 'input') };
    case 'compaction':
      return { type: 'message', ...summaryMessage(item, 'input') };
    default:
      return messageFor(item);
  }
}

function messageFor({ role, content, phase }: JsonObject): JsonObject {
  const type = 'message';
  if (role === 'user') return { type, role, content: contentFor(content) };
  if (role !== 'assistant') return { type, role, content: textIn(content) };
  const said = typeof content === 'string' ? content : (content as readonly JsonObject[]).map(assistantPart);
  return { type, role, content: said, ...given({ phase: typeof phase === 'string' ? phase : null }) };
}

/** Text where it is nothing else. */
function outputFor(output: unknown): unknown {
  if (typeof output === 'string') return output;
  const parts = (output as readonly JsonObject[]).map(toReadablePart);
  return parts.every(({ type }) => isTextPart(type)) ? textIn(parts) : contentFor(parts);
}

function contentFor(content: unknown): unknown {
  return typeof content === 'string' ? content : (content as readonly JsonObject[]).map(userPart);
}

function assistantPart({ type, text, refusal }: JsonObject): JsonObject {
  return type === 'refusal' ? { type, refusal } : { type: 'output_text', text };
}

function userPart(part: JsonObject): JsonObject {
  if (isTextPart(part.type)) return { type: 'input_text', text: part.text };
  if (part.type === 'input_image' || part.type === 'image_url') {
    const detail = isJsonObject(part.image_url) ? part.image_url.detail : part.detail;
    return { type: 'input_image', image_url: getPartUrl(part), detail: typeof detail === 'string' ? detail : 'auto' };
  }
  if (part.type === 'input_audio') return part;
  const { file_data, filename } = isJsonObject(part.file) ? part.file : part;
  return { type: 'input_file', file_data, ...(typeof filename === 'string' ? { filename } : {}) };
}

function textIn(content: unknown): string {
  if (typeof content === 'string') return content;
  return (content as readonly { readonly text: string }[]).map(({ text }) => text).join('');
}
