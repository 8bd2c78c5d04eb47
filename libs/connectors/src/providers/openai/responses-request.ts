/**
 * Translates a chat request to the Responses API. Parameters without an equivalent are left out, except that `n` must
 * be 1.
 */

import { LOGPROBS_INCLUDE, MIN_RESPONSES_OUTPUT_TOKENS, type NativeSearch, UpstreamError } from '#application';
import { isJsonObject, type JsonObject } from '#kernel';

/** Parameters with the same name and meaning in both APIs. */
const SHARED = ['model', 'temperature', 'top_p', 'user', 'metadata', 'parallel_tool_calls', 'top_logprobs'] as const;

/**
 * @throws UpstreamError with `invalid_request` for several choices, an output limit below the minimum, or tools that are
 * not functions
 */
export function toResponsesRequest(body: JsonObject): JsonObject {
  if ((body.n ?? 1) !== 1) {
    throw new UpstreamError('invalid_request', 'n must be 1: this model returns one choice only');
  }
  const limit = body.max_completion_tokens ?? body.max_tokens;
  if (typeof limit === 'number' && limit < MIN_RESPONSES_OUTPUT_TOKENS) {
    throw new UpstreamError(
      'invalid_request',
      `The output limit must be at least ${MIN_RESPONSES_OUTPUT_TOKENS} tokens for this request`,
    );
  }
  const { messages, tools, tool_choice, response_format, reasoning_effort, verbosity, logprobs, stream } = body;
  const text = omitNullish({ format: toFormat(response_format), verbosity });
  return omitNullish({
    ...Object.fromEntries(SHARED.map((field) => [field, body[field]])),
    input: toArray(messages).flatMap(toItems),
    max_output_tokens: limit,
    reasoning: reasoning_effort ? { effort: reasoning_effort } : undefined,
    text: Object.keys(text).length > 0 ? text : undefined,
    tools: tools ? toArray(tools).map(flattenFunction) : undefined,
    tool_choice: toToolChoice(tool_choice),
    include: logprobs === true ? [LOGPROBS_INCLUDE] : undefined,
    store: false,
    ...(stream === true ? { stream, stream_options: { include_obfuscation: false } } : {}),
  });
}

/** Requires a search by a request with other tools. A `tool_choice` of the type `web_search` does not exist. */
const ONLY_SEARCH = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'web_search' }] };

/**
 * Adds OpenAI's web search to the tools: https://platform.openai.com/docs/guides/tools-web-search. The search cannot
 * exclude domains, so it is not planned for a request that does.
 * @throws UpstreamError with `invalid_request` for excluded domains, which must not be ignored
 */
export function withSearch(request: JsonObject, search: NativeSearch | undefined): JsonObject {
  if (search === undefined) return request;
  const { maxUses, isRequired, includeDomains, excludeDomains, location, isOffline } = search;
  if (excludeDomains.length > 0)
    throw new UpstreamError('invalid_request', 'The web search of this model cannot exclude domains');
  const otherTools = toArray(request.tools);
  const { effort } = (request.reasoning ?? {}) as JsonObject;
  const tool = {
    type: 'web_search',
    ...(includeDomains.length > 0 ? { filters: { allowed_domains: includeDomains } } : {}),
    ...(location === undefined ? {} : { user_location: { type: 'approximate', ...location } }),
    ...(isOffline ? { external_web_access: false } : {}),
  };
  return {
    ...request,
    tools: [...otherTools, tool],
    max_tool_calls: maxUses,
    // OpenAI does not support the web search with minimal reasoning.
    ...(effort === 'minimal' ? { reasoning: { ...(request.reasoning as JsonObject), effort: 'low' } } : {}),
    ...(isRequired
      ? { tool_choice: otherTools.length > 0 ? ONLY_SEARCH : 'required' }
      : withSearchAllowed(request.tool_choice)),
  };
}

/** Adds the search to the allowed tools of a `tool_choice`; otherwise OpenAI would not search. */
function withSearchAllowed(choice: unknown): JsonObject {
  if (!isJsonObject(choice) || choice.type !== 'allowed_tools' || !Array.isArray(choice.tools)) return {};
  return { tool_choice: { ...choice, tools: [...choice.tools, { type: 'web_search' }] } };
}

/** The text and the tool calls of an assistant message become separate items. */
function toItems({ role, content, refusal, tool_calls, tool_call_id }: JsonObject): readonly JsonObject[] {
  if (role === 'tool') return [{ type: 'function_call_output', call_id: tool_call_id, output: toToolOutput(content) }];
  if (role !== 'assistant') return [{ type: 'message', role, content: toParts(content, toUserPart) }];
  const convertedContent = toParts(content, toAssistantPart);
  const parts = [
    ...(typeof convertedContent === 'string' ? [{ type: 'output_text', text: convertedContent }] : convertedContent),
    ...(refusal ? [{ type: 'refusal', refusal }] : []),
  ];
  const calls = toArray(tool_calls).map(({ id, type, function: called }) => {
    if (!isJsonObject(called)) throw unsupportedToolError(type);
    const { name, arguments: args } = called;
    return { type: 'function_call', call_id: id, name, arguments: args };
  });
  const isEmpty = parts.length === 0 || (calls.length > 0 && convertedContent === '');
  return [...(isEmpty ? [] : [{ type: 'message', role, content: parts }]), ...calls];
}

function toParts(content: unknown, part: (part: JsonObject) => JsonObject): string | readonly JsonObject[] {
  return typeof content === 'string' ? content : toArray(content).map(part);
}

/** Returns a string if the tool has returned only text. */
function toToolOutput(content: unknown): string | readonly JsonObject[] {
  const parts = toParts(content, toUserPart);
  const isPlain = typeof parts === 'string' || parts.every(({ type }) => type === 'input_text');
  return isPlain && typeof parts !== 'string' ? parts.map(({ text }) => text).join('') : parts;
}

function toAssistantPart({ type, text, refusal }: JsonObject): JsonObject {
  return type === 'refusal' ? { type, refusal } : { type: 'output_text', text };
}

function toUserPart(part: JsonObject): JsonObject {
  const { type, text, image_url, file } = part;
  if (type === 'text') return { type: 'input_text', text };
  if (type === 'image_url') {
    const { url, detail = 'auto' } = isJsonObject(image_url) ? image_url : { url: image_url };
    return { type: 'input_image', image_url: url, detail };
  }
  return type === 'file' ? { type: 'input_file', ...(file as JsonObject) } : part;
}

function toFormat(format: unknown): JsonObject | undefined {
  if (!isJsonObject(format)) return undefined;
  const { type, json_schema } = format;
  return isJsonObject(json_schema) ? { type, ...json_schema } : { type };
}

/** Names functions as the Responses API does, also those of `allowed_tools`, which are nested only in chats. */
function toToolChoice(choice: unknown): unknown {
  if (!isJsonObject(choice)) return choice;
  const { type, allowed_tools } = choice;
  if (!isJsonObject(allowed_tools)) return flattenFunction(choice);
  return { type, ...allowed_tools, tools: toArray(allowed_tools.tools).map(flattenFunction) };
}

/** Functions are nested objects only in chats. There, `strict` is false by default; in the Responses API it is true. */
function flattenFunction({ type, function: definition }: JsonObject): JsonObject {
  if (!isJsonObject(definition)) throw unsupportedToolError(type);
  return 'parameters' in definition ? { type, strict: false, ...definition } : { type, ...definition };
}

/** Calls of custom tools are not translated back to chats. */
function unsupportedToolError(type: unknown): UpstreamError {
  return new UpstreamError(
    'invalid_request',
    `Tools of the type "${type}" are not supported by this model; use "function"`,
  );
}

function omitNullish(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function toArray(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value : [];
}
