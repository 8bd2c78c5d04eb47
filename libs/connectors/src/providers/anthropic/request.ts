/** Translates OpenAI's chat request to Anthropic's Messages API. Most parameters without an equivalent are left out. */

import type { NativeSearch } from '#application';
import { type JsonObject } from '#kernel';
import { type ChatRequestBody, toCacheControl, unsupportedError } from './body.ts';
import { closeSchema } from './closed-schema.ts';
import { type ConversationTurn, toConversation } from './conversation.ts';
import { SEARCH_TOOL_TYPE, WEB_SEARCH } from './searches.ts';
import { isAdaptive, toThinking } from './thinking.ts';

/**
 * @param search options of Anthropic's web search; undefined if the model must not search
 * @param paused content of the turn that the request continues; empty for a new turn
 * @throws UpstreamError with `invalid_request` for a parameter or value that Anthropic does not support and that must
 * not be ignored
 */
export async function toMessagesRequest(
  body: ChatRequestBody,
  defaultMaxTokens: number,
  search?: NativeSearch,
  paused: readonly object[] = [],
): Promise<Record<string, unknown>> {
  if ((body.n ?? 1) !== 1) throw unsupportedError('n must be 1: this model returns one choice only');
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? defaultMaxTokens;
  const { system, messages } = await toConversation(body.messages ?? []);
  const tools = [...(body.tools ?? []).map(toAnthropicTool), ...(search ? [toSearchTool(search)] : [])];
  const requestedChoice = tools.length === 0 ? undefined : toToolChoice(body.tool_choice, body.parallel_tool_calls);
  const isToolForced = requestedChoice?.type === 'any' || requestedChoice?.type === 'tool';
  const { thinking, effort } = toThinking(body, { maxTokens, isToolForced, messages });
  // With thinking, a tool call cannot be forced, so the system message requires the search.
  const firstChoice = search?.isRequired && !thinking ? { type: 'tool', name: WEB_SEARCH } : requestedChoice;
  const choice = paused.length === 0 ? firstChoice : continueToolChoice(requestedChoice, search);
  if (search?.isRequired && thinking) system.push({ type: 'text', text: 'Search the web before you answer.' });
  const format = await toOutputFormat(body.response_format);
  return {
    model: body.model,
    max_tokens: maxTokens,
    messages: continueTurn(messages, paused),
    ...(system.length === 0 ? {} : { system }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(choice ? { tool_choice: choice } : {}),
    ...(thinking ? { thinking } : {}),
    ...(format || effort ? { output_config: { ...(format ? { format } : {}), ...(effort ? { effort } : {}) } } : {}),
    ...toSampling(body, thinking !== undefined || isAdaptive(body.model)),
    ...(body.stop ? { stop_sequences: typeof body.stop === 'string' ? [body.stop] : body.stop } : {}),
    ...(body.user ? { metadata: { user_id: body.user } } : {}),
  };
}

/**
 * Anthropic's maximum temperature is 1. Some models reject temperature and top_p together, so top_p is left out
 * if both are set.
 * With thinking, and to models with adaptive thinking, no sampling parameter is sent.
 */
function toSampling({ temperature, top_p, top_k }: ChatRequestBody, isSamplingFixed: boolean): JsonObject {
  if (isSamplingFixed) return {};
  const toOptionalField = (name: string, value: number | null | undefined) =>
    (value ?? null) === null ? {} : { [name]: value };
  const samplingField =
    (temperature ?? null) === null ? toOptionalField('top_p', top_p) : { temperature: Math.min(temperature ?? 1, 1) };
  return { ...samplingField, ...toOptionalField('top_k', top_k) };
}

function toAnthropicTool({ type, function: declared, cache_control }: JsonObject): JsonObject {
  if (type !== 'function' || typeof declared !== 'object' || declared === null) {
    throw unsupportedError(`Tools of the type "${type}" are not supported by this model; use "function"`);
  }
  const { name, description, parameters, strict } = declared as JsonObject;
  return {
    name,
    ...(description ? { description } : {}),
    input_schema: parameters ?? { type: 'object', properties: {} },
    ...(strict === true ? { strict } : {}),
    ...toCacheControl(cache_control),
  };
}

function toSearchTool({ maxUses, includeDomains, excludeDomains, location }: NativeSearch): JsonObject {
  return {
    type: SEARCH_TOOL_TYPE,
    name: WEB_SEARCH,
    max_uses: Math.max(maxUses, 1),
    ...(includeDomains.length > 0 ? { allowed_domains: includeDomains } : {}),
    ...(excludeDomains.length > 0 ? { blocked_domains: excludeDomains } : {}),
    ...(location === undefined ? {} : { user_location: { type: 'approximate', ...location } }),
  };
}

type ToolChoice = { readonly type: string; readonly name?: unknown; readonly disable_parallel_tool_use?: true };

function toToolChoice(choice: unknown, parallel: boolean | null | undefined): ToolChoice | undefined {
  const one = parallel === false ? { disable_parallel_tool_use: true as const } : {};
  if (choice === 'none') return { type: 'none' };
  if (choice === 'required') return { type: 'any', ...one };
  if (typeof choice === 'object' && choice !== null) {
    const { type, function: target } = choice as { type?: unknown; function?: { name?: unknown } };
    if (type !== 'function') throw unsupportedError(`tool_choice of the type "${type}" is not supported by this model`);
    return { type: 'tool', name: target?.name, ...one };
  }
  return parallel === false || choice === 'auto' ? { type: 'auto', ...one } : undefined;
}

/**
 * Returns the choice for the rest of a turn. A required call has been made, so it is not required again. If no search is
 * left, the tool stays declared, because the content contains its calls, and no tool is called.
 */
function continueToolChoice(choice: ToolChoice | undefined, search: NativeSearch | undefined): ToolChoice | undefined {
  if (search?.maxUses === 0) return { type: 'none' };
  if (choice?.type !== 'any' && choice?.type !== 'tool') return choice;
  return { ...(choice.disable_parallel_tool_use ? { disable_parallel_tool_use: true } : {}), type: 'auto' };
}

/** Appends the content of a turn that is continued. It follows the last message if that is the model's, too. */
function continueTurn(messages: readonly ConversationTurn[], paused: readonly object[]): readonly ConversationTurn[] {
  if (paused.length === 0) return messages;
  const content = paused as readonly JsonObject[];
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return [...messages, { role: 'assistant', content }];
  return [...messages.slice(0, -1), { role: 'assistant', content: [...last.content, ...content] }];
}

/**
 * Anthropic has no equivalent of `json_object`. This format is ignored: OpenAI requires that the messages mention JSON
 * anyway.
 */
async function toOutputFormat(format: JsonObject | null | undefined): Promise<JsonObject | undefined> {
  if (format?.type !== 'json_schema') return undefined;
  const { schema } = (format.json_schema ?? {}) as JsonObject;
  return { type: 'json_schema', schema: await closeSchema(schema) };
}
