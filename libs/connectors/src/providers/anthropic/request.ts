/** Translates OpenAI's chat request to Anthropic's Messages API. Most parameters without an equivalent are left out. */

import { type ModelRules, type NativeSearch, stringifyJson, WorkParts } from '#application';
import { type JsonObject } from '#kernel';
import { isReasoning } from './blocks.ts';
import { type ChatRequestBody, toCacheControl, unsupportedError } from './body.ts';
import { parseClientTool } from './client-tools.ts';
import { type ConversationTurn, toConversation } from './conversation.ts';
import { SEARCH_TOOL_TYPE, WEB_SEARCH } from './searches.ts';
import { toStructuredSchema } from './structured-schema.ts';
import { bindThinking, canThink, isAdaptive, toThinking } from './thinking.ts';

interface RequestOptions {
  /** Output limit of a request that specifies none. */
  readonly defaultMaxTokens: number;
  /** Options of Anthropic's web search; undefined if the model must not search. */
  readonly search?: NativeSearch | undefined;
  readonly modelRules: ModelRules;
  /** Content of the turn that the request continues; empty for a new turn. */
  readonly paused?: readonly object[];
}

/**
 * @throws UpstreamError with `invalid_request` for a parameter or value that Anthropic does not support and that must
 * not be ignored
 */
export async function toMessagesRequest(
  body: ChatRequestBody,
  { defaultMaxTokens, search, modelRules, paused = [] }: RequestOptions,
): Promise<Record<string, unknown>> {
  if ((body.n ?? 1) !== 1) throw unsupportedError('n must be 1: this model returns one choice only');
  const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? defaultMaxTokens;
  const { system, messages } = await toConversation(body.messages ?? [], search !== undefined);
  const parts = new WorkParts();
  const tools: JsonObject[] = [];
  for (const tool of body.tools ?? []) tools.push(await toAnthropicTool(tool, parts));
  if (search) tools.push(toSearchTool(search));
  const requestedChoice = tools.length === 0 ? undefined : toToolChoice(body.tool_choice, body.parallel_tool_calls);
  const forcesTool = isForced(requestedChoice);
  const canForce = modelRules.forcedTools !== false;
  const { thinking: requested, effort } = toThinking(body, {
    modelRules,
    maxTokens,
    isToolForced: forcesTool && canForce,
    messages,
  });
  const { thinking, acceptsBlocks } = bindThinking(requested, modelRules);
  // A required search does not disable thinking, with which no call can be forced: the system message requires it.
  const choosesSearch = search?.isRequired === true && canForce && !canThink(thinking, modelRules);
  if (search?.isRequired && !choosesSearch) system.push({ type: 'text', text: 'Search the web before you answer.' });
  if (forcesTool && !canForce) system.push({ type: 'text', text: describeForcedCall(requestedChoice) });
  const allowedChoice = forcesTool && !canForce ? toUnforced(requestedChoice) : requestedChoice;
  const firstChoice = choosesSearch ? { type: 'tool', name: WEB_SEARCH } : allowedChoice;
  const turns = continueTurn(messages, paused);
  const continuesTurn = paused.length > 0 || hasSearched(messages.at(-1));
  const choice = continuesTurn ? continueToolChoice(requestedChoice, search) : firstChoice;
  const { format, instruction } = await toOutputFormat(body.response_format, parts);
  if (instruction) system.push({ type: 'text', text: instruction });
  return {
    model: body.model,
    max_tokens: maxTokens,
    messages: acceptsBlocks ? turns : withoutThinking(turns),
    ...(system.length === 0 ? {} : { system }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(choice ? { tool_choice: choice } : {}),
    ...(thinking ? { thinking } : {}),
    ...(format || effort ? { output_config: { ...(format ? { format } : {}), ...(effort ? { effort } : {}) } } : {}),
    ...toSampling(body, thinking !== undefined || isAdaptive(modelRules)),
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

const NO_PARAMETERS = { type: 'object', properties: {} };

async function toAnthropicTool(
  { type, function: declared, cache_control, anthropic_tool }: JsonObject,
  parts: WorkParts,
): Promise<JsonObject> {
  const clientTool = parseClientTool(anthropic_tool);
  if (clientTool) return { ...clientTool, ...toCacheControl(cache_control) };
  if (type !== 'function' || typeof declared !== 'object' || declared === null) {
    throw unsupportedError(`Tools of the type "${type}" are not supported by this model; use "function"`);
  }
  const { name, description, parameters, strict } = declared as JsonObject;
  const enforced = strict === true ? await toStructuredSchema(parameters ?? NO_PARAMETERS, parts) : undefined;
  // Anthropic rejects a strict tool whose schema it cannot enforce, but accepts any schema of other tools.
  const isStrict = enforced?.type === 'object';
  return {
    name,
    ...(description ? { description } : {}),
    input_schema: isStrict ? enforced : (parameters ?? NO_PARAMETERS),
    ...(isStrict ? { strict } : {}),
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

function isForced(choice: ToolChoice | undefined): choice is ToolChoice {
  return choice?.type === 'any' || choice?.type === 'tool';
}

/** Returns what the system message says to a model that does not support a choice which forces a call. */
function describeForcedCall({ type, name }: ToolChoice): string {
  return type === 'tool' ? `Call the tool "${name}" before you respond.` : 'Call at least one tool before you respond.';
}

function toUnforced({ disable_parallel_tool_use }: ToolChoice): ToolChoice {
  return { type: 'auto', ...(disable_parallel_tool_use ? { disable_parallel_tool_use } : {}) };
}

/**
 * Returns the choice for the rest of a turn. A required call has been made, so it is not required again. If no search
 * is left, the tool stays declared, because the content contains its calls, and no tool is called.
 */
function continueToolChoice(choice: ToolChoice | undefined, search: NativeSearch | undefined): ToolChoice | undefined {
  if (search?.maxUses === 0) return { type: 'none' };
  return isForced(choice) ? toUnforced(choice) : choice;
}

/** Whether a turn of the assistant has searches, and is therefore one that the request continues. */
function hasSearched(turn: ConversationTurn | undefined): boolean {
  return turn?.role === 'assistant' && turn.content.some(({ type }) => type === 'server_tool_use');
}

/** Appends the content of a turn that is continued. It follows the last message if that is the model's, too. */
function continueTurn(messages: readonly ConversationTurn[], paused: readonly object[]): readonly ConversationTurn[] {
  if (paused.length === 0) return messages;
  const content = paused as readonly JsonObject[];
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return [...messages, { role: 'assistant', content }];
  return [...messages.slice(0, -1), { role: 'assistant', content: [...last.content, ...content] }];
}

/** Leaves out thinking, and turns that consist of it. */
function withoutThinking(turns: readonly ConversationTurn[]): readonly ConversationTurn[] {
  return turns
    .map(({ role, content }) => ({ role, content: content.filter((block) => !isReasoning(block)) }))
    .filter(({ content }) => content.length > 0);
}

const JSON_INSTRUCTION = 'Respond only with a valid JSON object, without a code fence or any other text.';

/**
 * Anthropic has no equivalent of `json_object`, and cannot enforce every schema. Both become an instruction of the
 * system message then.
 */
async function toOutputFormat(
  format: JsonObject | null | undefined,
  parts: WorkParts,
): Promise<{ readonly format?: JsonObject; readonly instruction?: string }> {
  if (format?.type === 'json_object') return { instruction: JSON_INSTRUCTION };
  if (format?.type !== 'json_schema') return {};
  const { schema } = (format.json_schema ?? {}) as JsonObject;
  const enforced = await toStructuredSchema(schema, parts);
  if (enforced) return { format: { type: 'json_schema', schema: enforced } };
  return { instruction: `Respond only with JSON that matches this schema:\n${await stringifyJson(schema ?? {})}` };
}
