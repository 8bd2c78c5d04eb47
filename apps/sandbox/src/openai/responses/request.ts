/** Parses and validates a Responses request as OpenAI does. */
import { type ApplyRule, readWithRules } from '../../provider/leniency.ts';
import { ANY_OBJECT, type OutputFormat } from '../../provider/model-output.ts';
import type { ProtocolRequest } from '../../provider/serve.ts';
import type { Tool, Toolbox } from '../../provider/tools.ts';
import { parseObject } from '../../router.ts';
import {
  assertNoImage,
  countPrompt,
  countRounds,
  getText,
  isObject,
  parseTools,
  type SandboxContentPart,
} from '../chat-request.ts';
import { invalidRequestError } from '../errors.ts';
import { findModel, type OpenAiModel, type OpenAiProvider } from '../models.ts';
import type { SandboxBody } from '../parameters.ts';
import { invalidValueError, isPresent } from '../parameters.ts';
import { type InputTurn, parseTurn } from './items.ts';
import {
  assertModelSupports,
  assertParameters,
  type Extras,
  getOutputLimit,
  missingParameterError,
  parseExtras,
} from './parameters.ts';

export interface SandboxResponsesRequest extends ProtocolRequest<OpenAiModel> {
  /** The request body. The response repeats most of its parameters. */
  readonly body: SandboxBody;
  readonly extras: Extras;
  readonly obfuscate: boolean;
}

const TOOL_TYPES = ['function', 'custom', 'web_search'];
/** Tools of OpenAI that `tool_choice` can name. The web search is not among them. */
const HOSTED_CHOICES = [
  'file_search',
  'web_search_preview',
  'computer_use_preview',
  'code_interpreter',
  'image_generation',
];
/** Maximum number of web searches, if the request has no `max_tool_calls`. */
const MAX_SEARCHES = 10;

/** @throws HttpError in OpenAI's error format */
export function readResponsesRequest(text: string, provider: OpenAiProvider): SandboxResponsesRequest {
  return readWithRules(text, (applyRule) => parseResponsesRequest(text, provider, applyRule));
}

function parseResponsesRequest(text: string, provider: OpenAiProvider, applyRule: ApplyRule): SandboxResponsesRequest {
  const body = parseObject(text);
  if (!body)
    throw invalidRequestError(400, 'We could not parse the JSON body of your request. The API expects a JSON object.');
  if (!isPresent(body.model) || body.model === '') throw missingParameterError('model');
  assertParameters(body, applyRule);
  const model = findModel(provider, body.model as string);
  if (!isPresent(body.input) || (body.input as readonly unknown[]).length === 0) throw missingParameterError('input');
  const turn = parseTurn(body.input);
  if (model.textOnly) assertNoImage(turn.messages);
  applyRule(() => assertModelSupports(body, model));
  const promptTokens = countPromptTokens(body, turn, model);
  applyRule(() => assertSearches(body));
  const options = body.stream_options as SandboxContentPart | null | undefined;
  return {
    body,
    model,
    extras: parseExtras(body),
    stream: body.stream === true,
    obfuscate: options?.include_obfuscation !== false,
    n: 1,
    limit: getOutputLimit(body, model),
    promptTokens,
    reasons: model.reasons,
    toolbox: parseToolbox(body, turn),
    format: parseFormat(body, text),
    lastUserText: getText(turn.messages.findLast(({ role }) => role === 'user')?.content),
  };
}

/**
 * Counts the input tokens. With `truncation: auto` the oldest messages are left out until the rest fits.
 * @throws HttpError if the input does not fit into the context of the model, or if a tool is invalid
 */
function countPromptTokens(
  { tools, text, instructions, truncation }: SandboxBody,
  turn: InputTurn,
  { context }: OpenAiModel,
): number {
  const chatBody = { tools: toChatTools(tools), response_format: toChatFormat(text) };
  const system = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
  let { messages } = turn;
  for (;;) {
    const tokens = countPrompt(chatBody, [...system, ...messages]) + turn.reasoning;
    if (tokens <= context) return tokens;
    if (truncation !== 'auto' || messages.length === 1) throw contextLengthError();
    messages = messages.slice(1);
  }
}

/** Converts tools to those of a chat, so that their tokens count the same. */
function toChatTools(tools: unknown): readonly SandboxContentPart[] | undefined {
  const list = parseTools(tools);
  if (list.length === 0) return undefined;
  return list.map(({ type, ...tool }, at) => {
    if (!TOOL_TYPES.includes(type as string)) throw invalidValueError(`tools[${at}].type`, type, TOOL_TYPES);
    if (type === 'web_search') return { type };
    if (!isPresent(tool.name)) throw missingParameterError(`tools[${at}].name`);
    return { type, [type as string]: omitNulls(tool) };
  });
}

function toChatFormat(text: unknown): SandboxContentPart | undefined {
  const { type, ...format } = (((text as SandboxContentPart | null | undefined)?.format as SandboxContentPart) ??
    {}) as SandboxContentPart;
  if (type === undefined || type === 'text') return undefined;
  return type === 'json_schema' ? { type, json_schema: omitNulls(format) } : { type };
}

function omitNulls(fields: SandboxContentPart): SandboxContentPart {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function parseFormat({ text }: SandboxBody, seed: string): OutputFormat | undefined {
  const { type, schema } = (((text as SandboxContentPart | null | undefined)?.format as SandboxContentPart) ??
    {}) as SandboxContentPart;
  if (type === 'json_object') return { schema: ANY_OBJECT, seed };
  return type === 'json_schema' ? { schema, seed } : undefined;
}

function parseToolbox(body: SandboxBody, { messages }: InputTurn): Toolbox {
  const { tools, tool_choice, max_tool_calls, parallel_tool_calls } = body;
  const ownUses = (max_tool_calls ?? MAX_SEARCHES) as number;
  const parsedTools = ((tools ?? []) as readonly SandboxContentPart[]).map(({ type, name, parameters }): Tool => {
    if (type === 'web_search') return { name: type, schema: {}, maxProviderUses: ownUses };
    return { name: String(name), schema: type === 'custom' ? undefined : (parameters ?? {}) };
  });
  const parallel = parallel_tool_calls !== false;
  const allowed = parseAllowedTools(tool_choice, parsedTools);
  const choice = parseToolChoice(allowed ? (tool_choice as SandboxContentPart).mode : tool_choice, parsedTools);
  return { tools: allowed ?? parsedTools, choice, allowsParallelCalls: parallel, rounds: countRounds(messages) };
}

function assertSearches({ tools, reasoning }: SandboxBody): void {
  for (const [at, { type, filters }] of ((tools ?? []) as readonly SandboxContentPart[]).entries()) {
    if (type !== 'web_search') continue;
    if ((reasoning as SandboxContentPart | null | undefined)?.effort === 'minimal') {
      const message = "The following tools cannot be used with reasoning.effort 'minimal': web_search.";
      throw invalidRequestError(400, message, 'tools');
    }
    const unknown = Object.keys(filters ?? {}).find((name) => name !== 'allowed_domains');
    if (unknown === undefined) continue;
    const param = `tools[${at}].filters.${unknown}`;
    throw invalidRequestError(400, `Unknown parameter: '${param}'.`, param, 'unknown_parameter');
  }
}

/** Returns the tools of an `allowed_tools` choice; undefined for any other choice. */
function parseAllowedTools(choice: unknown, availableTools: readonly Tool[]): readonly Tool[] | undefined {
  if (!isObject(choice) || choice.type !== 'allowed_tools') return undefined;
  if (choice.mode !== 'auto' && choice.mode !== 'required')
    throw invalidValueError('tool_choice.mode', choice.mode, ['auto', 'required']);
  if (!Array.isArray(choice.tools)) throw missingParameterError('tool_choice.tools');
  return choice.tools.map((tool: unknown, at) => {
    const { type, name = type } = isObject(tool) ? tool : {};
    const match = availableTools.find((candidate) => candidate.name === name);
    if (match && TOOL_TYPES.includes(type as string)) return match;
    throw invalidRequestError(400, `Tool choice '${name}' not found in 'tools' parameter.`, `tool_choice.tools[${at}]`);
  });
}

function parseToolChoice(choice: unknown, tools: readonly Tool[]): Toolbox['choice'] {
  if (!isPresent(choice) || choice === 'auto' || choice === 'none') return (choice ?? 'auto') as 'auto' | 'none';
  if (choice === 'required' && tools.length > 0) return choice;
  if (choice !== 'required' && !isObject(choice))
    throw invalidValueError('tool_choice', choice, ['none', 'auto', 'required']);
  const name = isObject(choice) ? choice.name : undefined;
  if (isObject(choice) && choice.type !== 'function' && choice.type !== 'custom')
    throw invalidValueError('tool_choice.type', choice.type, HOSTED_CHOICES);
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool) return { name: tool.name };
  throw invalidRequestError(400, `Tool choice '${name ?? choice}' not found in 'tools' parameter.`, 'tool_choice');
}

function contextLengthError() {
  const message = 'Your input exceeds the context window of this model. Please adjust your input and try again.';
  return invalidRequestError(400, message, 'input', 'context_length_exceeded');
}
