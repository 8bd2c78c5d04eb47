/** Translates OpenAI's chat request to Gemini's `generateContent`. Parameters without an equivalent are left out. */
import { disablesReasoning, type ModelRules, type NativeSearch, type Reasoning, UpstreamError } from '#application';
import type { JsonObject } from '#kernel';
import { invalidRequest } from '../../http/field-filter.ts';
import { selectEffort } from '../chat/effort.ts';
import { toContents } from './chat-contents.ts';

/** The fields of a chat request in OpenAI's format that are translated for Gemini. */
export interface GeminiChatBody extends JsonObject {
  readonly model?: unknown;
  readonly messages?: readonly JsonObject[];
  readonly max_completion_tokens?: number | null;
  readonly max_tokens?: number | null;
  readonly n?: number | null;
  readonly temperature?: number | null;
  readonly top_p?: number | null;
  readonly top_k?: number | null;
  readonly seed?: number | null;
  readonly stop?: string | readonly string[] | null;
  readonly tools?: readonly JsonObject[] | null;
  readonly tool_choice?: unknown;
  readonly response_format?: JsonObject | null;
  readonly reasoning?: Reasoning;
}

/** Gemini cannot be forced to search. */
const SEARCH_INSTRUCTION = { text: 'Search the web before you respond.' };

/**
 * Returns the request without the model, which is part of the URL.
 * @param search undefined if the model must not search
 * @throws UpstreamError with `invalid_request` for a value that Gemini does not support and that must not be ignored
 */
export async function toGenerateContentRequest(
  body: GeminiChatBody,
  modelRules: ModelRules,
  search?: NativeSearch,
): Promise<JsonObject> {
  if ((body.n ?? 1) !== 1) throw invalidRequest('n must be 1: this model returns one choice only', 'n');
  const { system: instructions, contents } = await toContents(body.messages ?? [], String(body.model));
  const system = search?.isRequired ? [...instructions, SEARCH_INSTRUCTION] : instructions;
  const functionDeclarations = (body.tools ?? []).map(toFunctionDeclaration);
  const functionCallingConfig = functionDeclarations.length === 0 ? undefined : toCallingConfig(body.tool_choice);
  const ownTools = functionDeclarations.length === 0 ? [] : [{ functionDeclarations }];
  const tools = search ? [toSearchTool(search, functionDeclarations)] : ownTools;
  const generationConfig = toGenerationConfig(body, modelRules);
  return {
    contents,
    ...(system.length === 0 ? {} : { systemInstruction: { parts: system } }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(functionCallingConfig ? { toolConfig: { functionCallingConfig } } : {}),
    ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
  };
}

function toGenerationConfig(body: GeminiChatBody, modelRules: ModelRules): JsonObject {
  const maxOutputTokens = body.max_completion_tokens ?? body.max_tokens;
  const thinkingConfig = toThinkingConfig(body.reasoning ?? {}, modelRules, maxOutputTokens ?? undefined);
  const config = {
    maxOutputTokens,
    temperature: body.temperature,
    topP: body.top_p,
    topK: body.top_k,
    seed: body.seed,
    stopSequences: typeof body.stop === 'string' ? [body.stop] : body.stop,
    ...toResponseFormat(body.response_format),
    thinkingConfig,
  };
  return Object.fromEntries(Object.entries(config).filter(([, value]) => (value ?? null) !== null));
}

/** Without a requested effort, the model reasons as much as it does by default, and does not return its reasoning. */
function toThinkingConfig(
  settings: Reasoning,
  modelRules: ModelRules,
  limit: number | undefined,
): JsonObject | undefined {
  const effort = selectEffort(settings, modelRules, limit);
  if (effort === undefined || effort === 'none') return undefined;
  const includeThoughts = settings.exclude !== true && !disablesReasoning(settings);
  return { includeThoughts, thinkingLevel: (modelRules.effortNames?.[effort] ?? effort).toUpperCase() };
}

function toResponseFormat(format: JsonObject | null | undefined): JsonObject {
  const isJson = format?.type === 'json_object' || format?.type === 'json_schema';
  if (!isJson) return {};
  const { schema } = (format.json_schema ?? {}) as JsonObject;
  return { responseMimeType: 'application/json', responseJsonSchema: schema };
}

function toFunctionDeclaration({ type, function: declared }: JsonObject): JsonObject {
  if (type !== 'function' || typeof declared !== 'object' || declared === null)
    throw invalidRequest(`Tools of the type "${type}" are not supported by this model; use "function"`, 'tools');
  const { name, description, parameters } = declared as JsonObject;
  return {
    name,
    ...(description ? { description } : {}),
    ...(parameters ? { parametersJsonSchema: parameters } : {}),
  };
}

/**
 * Returns Google's search as a tool: https://ai.google.dev/gemini-api/docs/google-search. Its number of searches cannot
 * be limited, and the location is not sent, because it is only a hint. The search cannot be limited to domains, so it
 * is not planned for a request that does. It is rejected together with functions: each later request would have to
 * contain all calls and results of the search with their signatures, for which OpenAI's messages have no field
 * (https://ai.google.dev/gemini-api/docs/tool-combination).
 * @throws UpstreamError with `invalid_request` for domains or functions, which must not be ignored
 */
function toSearchTool({ includeDomains, excludeDomains }: NativeSearch, functions: readonly JsonObject[]): JsonObject {
  if (includeDomains.length > 0 || excludeDomains.length > 0)
    throw new UpstreamError('invalid_request', 'The web search of this model cannot include or exclude domains');
  if (functions.length > 0)
    throw invalidRequest(
      'The native web search of this model cannot be combined with functions; use the engine exa',
      'tools',
    );
  return { googleSearch: {} };
}

function toCallingConfig(choice: unknown): JsonObject | undefined {
  if (choice === 'none') return { mode: 'NONE' };
  if (choice === 'required') return { mode: 'ANY' };
  if (typeof choice !== 'object' || choice === null) return undefined;
  const { type, function: target } = choice as { type?: unknown; function?: { name?: unknown } };
  if (type === 'function') return { mode: 'ANY', allowedFunctionNames: [target?.name] };
  throw invalidRequest(`tool_choice of the type "${type}" is not supported by this model`, 'tool_choice');
}
