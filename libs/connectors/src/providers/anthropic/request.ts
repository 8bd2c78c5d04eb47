/** OpenAI's chat request in the words of Anthropic's Messages. What they have no word for is left out. */
import type { NativeSearch } from '#application';
import { type ChatRequestBody, cached, type JsonObject, unsupported } from './body.ts';
import { closedSchema } from './closed-schema.ts';
import { conversation } from './conversation.ts';
import { SEARCH_TOOL, WEB_SEARCH } from './searches.ts';
import { isAdaptive, thinkingFor } from './thinking.ts';

/**
 * @param search what Anthropic may search the web for, if it may
 * @throws UpstreamError with `invalid_request` for what the caller must have and Anthropic cannot give
 */
export function messagesRequest(
  body: ChatRequestBody,
  defaultMaxTokens: number,
  search?: NativeSearch,
): Record<string, unknown> {
  if ((body.n ?? 1) !== 1) throw unsupported('This model gives one choice only: n must be 1');
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? defaultMaxTokens;
  const { system, messages } = conversation(body.messages ?? []);
  const tools = [...(body.tools ?? []).map(toolFrom), ...(search ? [searchTool(search)] : [])];
  const wanted = tools.length === 0 ? undefined : toolChoice(body.tool_choice, body.parallel_tool_calls);
  const forced = wanted?.type === 'any' || wanted?.type === 'tool';
  const { thinking, effort } = thinkingFor(body, { maxTokens, forced, messages });
  // A model that thinks cannot be forced to search: then its instructions say so.
  const choice = search?.isRequired && !thinking ? { type: 'tool', name: WEB_SEARCH } : wanted;
  if (search?.isRequired && thinking) system.push({ type: 'text', text: 'Search the web before you answer.' });
  const format = formatFrom(body.response_format);
  return {
    model: body.model,
    max_tokens: maxTokens,
    messages,
    ...(system.length === 0 ? {} : { system }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(choice ? { tool_choice: choice } : {}),
    ...(thinking ? { thinking } : {}),
    ...(format || effort ? { output_config: { ...(format ? { format } : {}), ...(effort ? { effort } : {}) } } : {}),
    ...sampling(body, thinking !== undefined || isAdaptive(body.model)),
    ...(body.stop ? { stop_sequences: typeof body.stop === 'string' ? [body.stop] : body.stop } : {}),
    ...(body.user ? { metadata: { user_id: body.user } } : {}),
  };
}

/** Anthropic's temperature ends at 1, newer models refuse it together with top_p, and thinking leaves no choice. */
function sampling({ temperature, top_p, top_k }: ChatRequestBody, fixed: boolean): JsonObject {
  if (fixed) return {};
  const given = (name: string, value: number | null | undefined) => ((value ?? null) === null ? {} : { [name]: value });
  const heat = (temperature ?? null) === null ? given('top_p', top_p) : { temperature: Math.min(temperature ?? 1, 1) };
  return { ...heat, ...given('top_k', top_k) };
}

function toolFrom({ type, function: declared, cache_control }: JsonObject): JsonObject {
  if (type !== 'function' || typeof declared !== 'object' || declared === null) {
    throw unsupported(`This model knows tools of type "function" only, not "${type}"`);
  }
  const { name, description, parameters, strict } = declared as JsonObject;
  return {
    name,
    ...(description ? { description } : {}),
    input_schema: parameters ?? { type: 'object', properties: {} },
    ...(strict === true ? { strict } : {}),
    ...cached(cache_control),
  };
}

function searchTool({ maxUses, includeDomains, excludeDomains, location }: NativeSearch): JsonObject {
  return {
    type: SEARCH_TOOL,
    name: WEB_SEARCH,
    max_uses: maxUses,
    ...(includeDomains.length > 0 ? { allowed_domains: includeDomains } : {}),
    ...(excludeDomains.length > 0 ? { blocked_domains: excludeDomains } : {}),
    ...(location === undefined ? {} : { user_location: { type: 'approximate', ...location } }),
  };
}

type ToolChoice = { readonly type: string; readonly name?: unknown; readonly disable_parallel_tool_use?: true };

function toolChoice(wanted: unknown, parallel: boolean | null | undefined): ToolChoice | undefined {
  const one = parallel === false ? { disable_parallel_tool_use: true as const } : {};
  if (wanted === 'none') return { type: 'none' };
  if (wanted === 'required') return { type: 'any', ...one };
  if (typeof wanted === 'object' && wanted !== null) {
    const { type, function: named } = wanted as { type?: unknown; function?: { name?: unknown } };
    if (type !== 'function') throw unsupported(`This model cannot choose tools by "${type}"`);
    return { type: 'tool', name: named?.name, ...one };
  }
  return parallel === false || wanted === 'auto' ? { type: 'auto', ...one } : undefined;
}

/** A schema binds the answer. For `json_object` there is no word: OpenAI wants it said in the messages anyway. */
function formatFrom(format: JsonObject | null | undefined): JsonObject | undefined {
  if (format?.type !== 'json_schema') return undefined;
  const { schema } = (format.json_schema ?? {}) as JsonObject;
  return { type: 'json_schema', schema: closedSchema(schema) };
}
