/** Parses and validates a chat completion request as OpenAI does. */

import { type ApplyRule, readWithRules } from '../provider/leniency.ts';
import { ANY_OBJECT, type OutputFormat } from '../provider/model-output.ts';
import type { ProtocolRequest } from '../provider/serve.ts';
import { countTokens } from '../provider/tokens.ts';
import type { Tool, Toolbox } from '../provider/tools.ts';
import { parseObject } from '../router.ts';
import { invalidRequestError } from './errors.ts';
import { findModel, type OpenAiModel, type OpenAiProvider } from './models.ts';
import {
  assertModelSupports,
  assertParameters,
  getOutputLimit,
  invalidTypeError,
  invalidValueError,
  isPresent,
  type SandboxBody,
} from './parameters.ts';
import { assertProviderAccepts } from './provider-rules.ts';
import type { ResponseFields } from './response-fields.ts';
import { assertRouterSearch, parseServerTool, ROUTER, withPluginSearch } from './router-search.ts';

export interface SandboxChatRequest extends ProtocolRequest<OpenAiModel> {
  readonly includeUsage: boolean;
  readonly obfuscate: boolean;
  /** Those of the provider. Without reasoning if the request excludes it. */
  readonly fields: ResponseFields;
  /** The tier of the listed prices, by which the request is served. */
  readonly serviceTier: string;
  /** Number of alternatives that are listed for each token; undefined without log probabilities. */
  readonly logprobs: number | undefined;
}

const ROLES = ['system', 'assistant', 'user', 'function', 'tool', 'developer'] as const;
const PARTS = ['text', 'image_url', 'input_audio', 'file', 'refusal'] as const;
/** Tool results are text only. */
const PARTS_OF_RESULTS = ['text'] as const;

const TOKENS_PER_REQUEST = 3;
const TOKENS_PER_MESSAGE = 4;
/** Input tokens of a content part other than a text or a refusal. */
const TOKENS_PER_ATTACHMENT = 85;

export type SandboxContentPart = Readonly<Record<string, unknown>>;

/** @throws HttpError in OpenAI's error format */
export function readChatRequest(text: string, provider: OpenAiProvider): SandboxChatRequest {
  return readWithRules(text, (applyRule) => parseChatRequest(text, provider, applyRule));
}

function parseChatRequest(text: string, provider: OpenAiProvider, applyRule: ApplyRule): SandboxChatRequest {
  const body = parseObject(text);
  if (!body)
    throw invalidRequestError(400, 'We could not parse the JSON body of your request. The API expects a JSON object.');
  if (body.model === undefined || body.model === '')
    throw invalidRequestError(400, 'you must provide a model parameter');
  applyRule(() => assertProviderAccepts(body, provider));
  assertParameters(body, provider, applyRule);
  const model = findModel(provider, body.model as string);
  if (model.responsesOnly) {
    const message = 'This model is only supported in v1/responses and not in v1/chat/completions.';
    throw invalidRequestError(404, message, 'model');
  }
  const messages = readMessages(body);
  if (model.textOnly) assertNoImage(messages);
  applyRule(() => assertModelSupports(body, model));
  const isRouter = provider.name === ROUTER;
  if (isRouter) applyRule(() => assertRouterSearch(body, model));
  const promptTokens = countPrompt(body, messages);
  if (promptTokens > model.context) throw contextLengthError(model, promptTokens);
  const options = body.stream_options as SandboxContentPart | null | undefined;
  const toolbox = parseToolbox(body, messages, isRouter);
  const excludesReasoning = (body.reasoning as SandboxContentPart | null | undefined)?.exclude === true;
  return {
    model,
    stream: body.stream === true,
    includeUsage: options?.include_usage === true,
    fields: excludesReasoning ? { ...provider.fields, reasoning: undefined } : provider.fields,
    serviceTier: provider.serviceTiers[0],
    obfuscate: !provider.fields.lacks.has('obfuscation') && options?.include_obfuscation !== false,
    logprobs: body.logprobs === true ? Number(body.top_logprobs ?? 0) : undefined,
    n: (body.n as number | null | undefined) ?? 1,
    limit: getOutputLimit(body, model),
    promptTokens,
    reasons: true,
    toolbox: isRouter ? withPluginSearch(toolbox, body) : toolbox,
    format: parseFormat(body, text),
    lastUserText: getText(messages.findLast(({ role }) => role === 'user')?.content),
  };
}

function parseToolbox(
  { tools, tool_choice, parallel_tool_calls }: SandboxBody,
  messages: readonly SandboxContentPart[],
  isRouter: boolean,
): Toolbox {
  const parsedTools = parseTools(tools).map((tool): Tool => {
    const { function: definition, custom } = tool;
    const serverTool = isRouter ? parseServerTool(tool) : undefined;
    if (serverTool) return serverTool;
    const { name, parameters } = (definition ?? custom ?? {}) as SandboxContentPart;
    return {
      name: String(name),
      schema: definition === undefined && custom !== undefined ? undefined : (parameters ?? {}),
    };
  });
  const parallel = parallel_tool_calls !== false;
  const allowed = parseAllowedTools(tool_choice, parsedTools);
  return {
    tools: allowed?.tools ?? parsedTools,
    choice: parseToolChoice(allowed ? allowed.mode : tool_choice, parsedTools),
    allowsParallelCalls: parallel,
    rounds: countRounds(messages),
  };
}

/** @throws HttpError if a tool is not an object */
export function parseTools(tools: unknown): readonly SandboxContentPart[] {
  return ((tools ?? []) as readonly unknown[]).map((tool, at) => {
    if (!isObject(tool)) throw invalidTypeError(`tools[${at}]`, 'an object', tool);
    return tool;
  });
}

function parseFormat({ response_format }: SandboxBody, seed: string): OutputFormat | undefined {
  const { type, json_schema } = (response_format ?? {}) as SandboxContentPart;
  if (type === 'json_object') return { schema: ANY_OBJECT, seed };
  const { schema } = (json_schema ?? {}) as SandboxContentPart;
  return type === 'json_schema' && isPresent(schema) ? { schema, seed } : undefined;
}

/** @throws HttpError if a message has an image */
export function assertNoImage(messages: readonly SandboxContentPart[]): void {
  messages.forEach(({ content }, at) => {
    const part = Array.isArray(content)
      ? content.findIndex(({ type }: SandboxContentPart) => type === 'image_url')
      : -1;
    if (part < 0) return;
    const message = 'Invalid content type. image_url is only supported by certain models.';
    throw invalidRequestError(400, message, `messages.[${at}].content.[${part}].type`);
  });
}

/**
 * Returns the number of rounds of tool calls and results since the last user message; 0 if the last message is not a
 * result.
 */
export function countRounds(messages: readonly SandboxContentPart[]): number {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1);
  return since.at(-1)?.role === 'tool' ? since.filter(({ role }) => role === 'assistant').length : 0;
}

/** Returns the tools and the mode of an `allowed_tools` choice; undefined for any other choice. */
function parseAllowedTools(choice: unknown, tools: readonly Tool[]) {
  if (!isObject(choice) || choice.type !== 'allowed_tools') return undefined;
  const { mode, tools: allowed } = (choice.allowed_tools ?? {}) as SandboxContentPart;
  if (mode !== 'auto' && mode !== 'required')
    throw invalidValueError('tool_choice.allowed_tools.mode', mode, ['auto', 'required']);
  return { mode, tools: parseTools(allowed).map((tool) => findChosenTool(tool, tools)) };
}

export function parseToolChoice(choice: unknown, tools: readonly Tool[]): Toolbox['choice'] {
  if (choice === undefined || choice === null) return 'auto';
  if (tools.length === 0) {
    throw invalidRequestError(
      400,
      "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
      'tool_choice',
    );
  }
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice;
  return { name: findChosenTool(choice as SandboxContentPart, tools).name };
}

function findChosenTool(choice: SandboxContentPart, tools: readonly Tool[]): Tool {
  const { name } = (choice.function ?? choice.custom ?? {}) as SandboxContentPart;
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool) return tool;
  throw invalidRequestError(400, `Tool choice '${name}' not found in 'tools' parameter.`, 'tool_choice');
}

function readMessages({ messages }: SandboxBody): readonly SandboxContentPart[] {
  if (messages === undefined || messages === null) {
    throw invalidRequestError(400, "Missing required parameter: 'messages'.", 'messages', 'missing_required_parameter');
  }
  const list = messages as readonly SandboxContentPart[];
  if (list.length === 0) {
    const message =
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.";
    throw invalidRequestError(400, message, 'messages', 'empty_array');
  }
  list.forEach(assertMessage);
  return list;
}

function assertMessage(message: unknown, index: number): void {
  const name = `messages[${index}]`;
  if (!isObject(message)) throw invalidTypeError(name, 'an object', message);
  const { role, content } = message;
  if (role === undefined) {
    throw invalidRequestError(
      400,
      `Missing required parameter: '${name}.role'.`,
      `${name}.role`,
      'missing_required_parameter',
    );
  }
  if (!ROLES.some((allowedRole) => allowedRole === role)) throw invalidValueError(`${name}.role`, role, ROLES);
  if (role === 'tool' && typeof message.tool_call_id !== 'string') {
    const param = `${name}.tool_call_id`;
    throw invalidRequestError(400, `Missing required parameter: '${param}'.`, param, 'missing_required_parameter');
  }
  if (typeof content === 'string' || (role === 'assistant' && (content ?? null) === null)) return;
  if (!Array.isArray(content))
    throw invalidTypeError(`${name}.content`, 'one of a string or array of objects', content ?? null);
  content.forEach((part: unknown, at) => {
    const param = `${name}.content[${at}]`;
    if (!isObject(part)) throw invalidTypeError(param, 'an object', part);
    const allowedTypes = role === 'tool' ? PARTS_OF_RESULTS : PARTS;
    if (!allowedTypes.some((allowedType) => allowedType === part.type))
      throw invalidValueError(`${param}.type`, part.type, allowedTypes);
    if (part.type === 'text' && typeof part.text !== 'string')
      throw invalidTypeError(`${param}.text`, 'a string', part.text ?? null);
  });
}

export function isObject(value: unknown): value is SandboxContentPart {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Counts the input tokens: those of texts, names, tool calls, tools and schemas, and fixed numbers for the request,
 * each message and each attachment.
 */
export function countPrompt(
  { tools, functions, response_format }: SandboxBody,
  messages: readonly SandboxContentPart[],
): number {
  let tokens = TOKENS_PER_REQUEST;
  for (const { content, name, tool_calls } of messages) {
    tokens += TOKENS_PER_MESSAGE;
    if (typeof content === 'string') tokens += countTokens(content);
    else if (Array.isArray(content)) for (const part of content) tokens += countPart(part);
    if (typeof name === 'string') tokens += countTokens(name);
    if (tool_calls) tokens += countTokens(JSON.stringify(tool_calls));
  }
  for (const field of [tools, functions, response_format]) if (field) tokens += countTokens(JSON.stringify(field));
  return tokens;
}

function countPart({ type, text, refusal: refusalText }: SandboxContentPart): number {
  if (type === 'text') return countTokens(text as string);
  if (type === 'refusal') return countTokens(String(refusalText));
  return TOKENS_PER_ATTACHMENT;
}

export function getText(content: unknown): string {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : '';
  return content.flatMap(({ type, text }: SandboxContentPart) => (type === 'text' ? [text] : [])).join('\n');
}

function contextLengthError({ context }: OpenAiModel, tokens: number) {
  const message =
    `This model's maximum context length is ${context} tokens. However, your messages resulted in ${tokens} tokens. ` +
    'Please reduce the length of the messages.';
  return invalidRequestError(400, message, 'messages', 'context_length_exceeded');
}
