/** Parses and validates a request for a chat model as Google does: https://ai.google.dev/api/generate-content */
import type { JsonObject } from '#kernel';
import { ANY_OBJECT, type OutputFormat } from '../provider/model-output.ts';
import type { ProtocolRequest } from '../provider/serve.ts';
import { countTokens } from '../provider/tokens.ts';
import { type Tool, type Toolbox, UNLIMITED_SEARCH } from '../provider/tools.ts';
import { parseObject } from '../router.ts';
import {
  countPartTokens,
  countRounds,
  getLastUserText,
  parseContents,
  parseSystemInstruction,
} from './chat-contents.ts';
import type { ChatModel } from './chat-models.ts';
import { createError } from './errors.ts';
import { parseFields, parseList } from './fields.ts';

export interface GeminiChatRequest extends ProtocolRequest<ChatModel> {
  readonly includesThoughts: boolean;
}

const NAMES = [
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'generationConfig',
  'safetySettings',
  'cachedContent',
  'serviceTier',
];
const CONFIG = [
  'candidateCount',
  'stopSequences',
  'maxOutputTokens',
  'temperature',
  'topP',
  'topK',
  'seed',
  'presencePenalty',
  'frequencyPenalty',
  'responseMimeType',
  'responseSchema',
  'responseJsonSchema',
  'responseLogprobs',
  'logprobs',
  'responseModalities',
  'thinkingConfig',
  'mediaResolution',
  'speechConfig',
  'responseFormat',
];
const TOOLS = ['functionDeclarations', 'googleSearch', 'urlContext', 'codeExecution'];
const DECLARATION = ['name', 'description', 'parameters', 'parametersJsonSchema', 'response', 'responseJsonSchema'];
const FUNCTION_NAME = /^[a-zA-Z_][\w.:-]{0,127}$/;
const MODES = ['AUTO', 'ANY', 'NONE', 'VALIDATED'];
const MIME_TYPES = ['text/plain', 'application/json', 'text/x.enum'];
const MAX_STOP_SEQUENCES = 5;
/** Input tokens that each content adds. */
const TOKENS_PER_CONTENT = 4;

/** @throws HttpError 400 */
export function readChatRequest(text: string, model: ChatModel, stream: boolean): GeminiChatRequest {
  const body = parseFields(parseObject(text), '', NAMES);
  const contents = parseContents(body.contents, model);
  const system = parseSystemInstruction(body.systemInstruction);
  const config = parseConfig(body.generationConfig, model);
  const toolbox = parseToolbox(body, countRounds(contents));
  const parts = [...system, ...contents.flatMap((content) => content.parts)];
  const promptTokens =
    parts.reduce((total, part) => total + countPartTokens(part), TOKENS_PER_CONTENT * contents.length) +
    (body.tools === undefined ? 0 : countTokens(JSON.stringify(body.tools)));
  if (promptTokens > model.context)
    throw createError(
      400,
      `The input token count (${promptTokens}) exceeds the maximum number of tokens allowed (${model.context}).`,
    );
  return {
    model,
    stream,
    n: 1,
    limit: (config.maxOutputTokens ?? model.maxOutput) as number,
    promptTokens,
    reasons: true,
    includesThoughts: parseThinking(config.thinkingConfig, model),
    toolbox,
    format: toFormat(config, text),
    lastUserText: getLastUserText(contents),
    tokensPerSearch: 0,
  };
}

function parseConfig(value: unknown, { maxOutput }: ChatModel): JsonObject {
  const config = parseFields(value, 'generation_config', CONFIG);
  const { candidateCount = 1, maxOutputTokens = maxOutput, stopSequences, responseMimeType = 'text/plain' } = config;
  if (candidateCount !== 1) throw createError(400, 'Multiple candidates is not enabled for this model');
  if (config.presencePenalty !== undefined || config.frequencyPenalty !== undefined)
    throw createError(400, 'Penalty is not enabled for this model');
  if (!Number.isInteger(maxOutputTokens) || Number(maxOutputTokens) < 1 || Number(maxOutputTokens) > maxOutput)
    throw createError(400, `max_output_tokens must be an integer from 1 to ${maxOutput}.`);
  if (parseList(stopSequences, 'generation_config.stop_sequences').length > MAX_STOP_SEQUENCES)
    throw createError(400, `The number of stop sequences must be at most ${MAX_STOP_SEQUENCES}.`);
  for (const [name, max] of [
    ['temperature', 2],
    ['topP', 1],
  ] as const)
    if (config[name] !== undefined && !(Number(config[name]) >= 0 && Number(config[name]) <= max))
      throw createError(
        400,
        `* GenerateContentRequest.generation_config.${name}: must be in the range [0.0, ${max}.0].`,
      );
  if (!MIME_TYPES.includes(String(responseMimeType)))
    throw createError(
      400,
      `* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are ${MIME_TYPES.join(', ')}.`,
    );
  const hasSchema = config.responseSchema !== undefined || config.responseJsonSchema !== undefined;
  if (hasSchema && responseMimeType === 'text/plain')
    throw createError(400, 'Response schema is only supported with the response_mime_type application/json.');
  return config;
}

/** Returns whether the response includes the thoughts. The models always think. */
function parseThinking(value: unknown, { levels }: ChatModel): boolean {
  const names = ['includeThoughts', 'thinkingLevel', 'thinkingBudget'];
  const { includeThoughts = false, thinkingLevel } = parseFields(value, 'generation_config.thinking_config', names);
  if (typeof includeThoughts !== 'boolean')
    throw createError(400, "Invalid value at 'generation_config.thinking_config.include_thoughts' (TYPE_BOOL)");
  if (thinkingLevel !== undefined && !levels.includes(String(thinkingLevel)))
    throw createError(
      400,
      `Thinking level ${thinkingLevel} is not supported for this model. Please retry with other thinking level.`,
    );
  return includeThoughts;
}

function toFormat(config: JsonObject, seed: string): OutputFormat | undefined {
  if (config.responseMimeType !== 'application/json') return undefined;
  return { schema: config.responseJsonSchema ?? config.responseSchema ?? ANY_OBJECT, seed };
}

/** Without the fields that only Vertex AI supports, such as `excludeDomains`. */
const SEARCH_FIELDS = ['searchTypes', 'timeRangeFilter'];

/** Google supports the search together with functions, but the sandbox does not simulate it. */
function parseToolbox({ tools, toolConfig }: JsonObject, rounds: number): Toolbox {
  let canSearch = false;
  const declared = parseList(tools, 'tools').flatMap((tool, i) => {
    const { functionDeclarations, googleSearch } = parseFields(tool, `tools[${i}]`, TOOLS);
    parseFields(googleSearch, `tools[${i}].google_search`, SEARCH_FIELDS);
    canSearch ||= googleSearch !== undefined;
    return parseList(functionDeclarations, `tools[${i}].function_declarations`).map((declaration, j) =>
      parseDeclaration(declaration, `tools[${i}].function_declarations[${j}]`),
    );
  });
  const twice = declared.find(({ name }, i) => declared.findIndex((other) => other.name === name) !== i);
  if (twice) throw createError(400, `Duplicate function declaration found: ${twice.name}`);
  if (canSearch && declared.length > 0)
    throw createError(
      400,
      'Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.',
    );
  const { functionCallingConfig } = parseFields(toolConfig, 'tool_config', ['functionCallingConfig']);
  const path = 'tool_config.function_calling_config';
  const config = parseFields(functionCallingConfig, path, ['mode', 'allowedFunctionNames']);
  const { mode = 'AUTO' } = config;
  if (!MODES.includes(String(mode))) throw createError(400, `Invalid value at '${path}.mode': "${mode}"`);
  const allowed = parseList(config.allowedFunctionNames, `${path}.allowed_function_names`);
  if (functionCallingConfig !== undefined && declared.length === 0)
    throw createError(400, 'Function calling config is set without function_declarations.');
  if (allowed.length > 0 && mode !== 'ANY' && mode !== 'VALIDATED')
    throw createError(400, 'allowed_function_names should only be set when the function calling mode is ANY.');
  const unknown = allowed.find((name) => !declared.some((tool) => tool.name === name));
  if (unknown !== undefined)
    throw createError(400, `allowed_function_names contains ${unknown}, which is not among the function_declarations.`);
  const availableTools = canSearch ? [UNLIMITED_SEARCH] : declared;
  return { tools: availableTools, choice: toChoice(mode, allowed), allowsParallelCalls: true, rounds };
}

function toChoice(mode: unknown, allowed: readonly unknown[]): Toolbox['choice'] {
  if (mode === 'NONE') return 'none';
  if (mode !== 'ANY') return 'auto';
  return allowed.length === 1 ? { name: String(allowed[0]) } : 'required';
}

function parseDeclaration(value: unknown, path: string): Tool {
  const { name, parameters, parametersJsonSchema } = parseFields(value, path, DECLARATION);
  if (typeof name !== 'string' || !FUNCTION_NAME.test(name))
    throw createError(400, `* GenerateContentRequest.${path}.name: Invalid function name.`);
  if (parameters !== undefined && parametersJsonSchema !== undefined)
    throw createError(
      400,
      `* GenerateContentRequest.${path}: only one of parameters and parameters_json_schema may be set.`,
    );
  return { name, schema: parametersJsonSchema ?? parameters ?? {} };
}
