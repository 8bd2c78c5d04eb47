/** Parses and validates a Messages request as Anthropic does. */
import { isJsonObject, type JsonObject } from '#kernel';
import { type ApplyRule, readWithRules } from '../provider/leniency.ts';
import type { OutputFormat } from '../provider/model-output.ts';
import type { ProtocolRequest } from '../provider/serve.ts';
import { countTokens } from '../provider/tokens.ts';
import type { Tool, Toolbox } from '../provider/tools.ts';
import { parseObject } from '../router.ts';
import { parseClientTool } from './client-tools.ts';
import { assertEnforceable } from './enforceable-schema.ts';
import { invalidRequestError, type Version } from './errors.ts';
import { type AnthropicModel, findModel, getModel } from './models.ts';
import { assertModelSupports, assertParameters } from './parameters.ts';
import { selectThinking, sign } from './thinking-blocks.ts';
import { assertTurns, type MessageBlock, type MessageTurn, toBlocks } from './turns.ts';

/** Input tokens that each request adds. */
const TOKENS_PER_REQUEST = 3;
/** Input tokens that each turn adds. */
const TOKENS_PER_TURN = 4;
/** Input tokens of a block that is not counted by its content, such as an image. */
const TOKENS_PER_ATTACHMENT = 85;
/** Maximum number of web searches per response, if the tool has no `max_uses`. */
const MAX_SEARCHES = 10;

export interface SandboxMessagesRequest extends ProtocolRequest<AnthropicModel> {
  readonly isThinkingVisible: boolean;
  /** The signature of the thinking in the response. */
  readonly signature: string;
}

/** @param betas value of the header `anthropic-beta` @throws HttpError in Anthropic's error format */
export function readMessagesRequest(text: string, version: Version, betas = ''): SandboxMessagesRequest {
  return readWithRules(text, (applyRule) => parseMessagesRequest(text, { version, betas }, applyRule));
}

function parseMessagesRequest(
  text: string,
  { version, betas }: { readonly version: Version; readonly betas: string },
  applyRule: ApplyRule,
): SandboxMessagesRequest {
  const body = parseObject(text);
  if (!body) throw invalidRequestError('The request body is not valid JSON');
  assertParameters(body, version, applyRule);
  const model = findModel(body.model as string);
  applyRule(() => assertModelSupports(body, model));
  const turns = assertTurns(body.messages);
  applyRule(() => assertNoPrefill(turns, model));
  const reasons = isThinkingEnabled(body.thinking, model);
  const toolbox = parseToolbox(body, turns, { applyRule, betas });
  if (reasons) applyRule(() => assertNoForcedCall(toolbox));
  let readable = turns;
  applyRule(() => {
    readable = selectThinking(body, turns, model, { betas, findAuthor: getModel });
  });
  const promptTokens = countPrompt(body, readable);
  if (promptTokens > model.context) {
    throw invalidRequestError(`prompt is too long: ${promptTokens} tokens > ${model.context} maximum`);
  }
  return {
    model,
    stream: body.stream === true,
    n: 1,
    limit: Math.min(body.max_tokens as number, model.maxOutput),
    promptTokens,
    hourCachedTokens: Math.min(countHourCached(body, readable), promptTokens),
    reasons,
    isThinkingVisible: isThinkingVisible(body.thinking, model),
    signature: sign(body, turns, model),
    toolbox,
    format: parseFormat(body, text),
    lastUserText: getLastUserText(turns),
  };
}

function assertNoPrefill(turns: readonly MessageTurn[], { rejectsPrefill }: AnthropicModel): void {
  if (!rejectsPrefill || !isPrefilled(turns)) return;
  const message = 'This model does not support assistant message prefill.';
  throw invalidRequestError(`${message} The conversation must end with a user message.`);
}

/** Whether the conversation ends with a turn of the assistant that is no paused one, which has calls of a search. */
function isPrefilled(turns: readonly MessageTurn[]): boolean {
  const last = turns.at(-1);
  return last?.role === 'assistant' && !toBlocks(last.content).some(({ type }) => type === 'server_tool_use');
}

/** Whether the model thinks; by default or on request. */
function isThinkingEnabled(thinking: unknown, { thinkingOff }: AnthropicModel): boolean {
  const { type = thinkingOff && 'adaptive' } = (thinking ?? {}) as JsonObject;
  return type === 'enabled' || type === 'adaptive';
}

function isThinkingVisible(thinking: unknown, { adaptive }: AnthropicModel): boolean {
  const { display = adaptive ? 'omitted' : 'summarized' } = (thinking ?? {}) as JsonObject;
  return display !== 'omitted';
}

function parseFormat({ output_config }: JsonObject, seed: string): OutputFormat | undefined {
  const { format } = (output_config ?? {}) as { readonly format?: JsonObject | null };
  return format ? { schema: format.schema, seed } : undefined;
}

interface Choice {
  readonly type: string;
  readonly name?: string;
  readonly disable_parallel_tool_use?: boolean;
}

interface ToolContext {
  readonly applyRule: ApplyRule;
  readonly betas: string;
}

function parseToolbox(
  { tools, tool_choice }: JsonObject,
  turns: readonly MessageTurn[],
  context: ToolContext,
): Toolbox {
  const parsedTools = ((tools ?? []) as readonly JsonObject[]).map((tool, at) => parseTool(tool, at, context));
  if (new Set(parsedTools.map(({ name }) => name)).size < parsedTools.length)
    throw invalidRequestError('tools: Tool names must be unique.');
  const choice = (tool_choice ?? { type: 'auto' }) as Choice;
  if (tool_choice && parsedTools.length === 0)
    throw invalidRequestError('tool_choice may only be specified while providing tools.');
  const parallel = choice.disable_parallel_tool_use !== true;
  return {
    tools: parsedTools,
    choice: parseToolChoice(choice, parsedTools),
    allowsParallelCalls: parallel,
    rounds: countRounds(turns),
  };
}

function assertNoForcedCall({ choice }: Toolbox): void {
  if (choice === 'auto' || choice === 'none') return;
  throw invalidRequestError('Thinking may not be enabled when tool_choice forces tool use.');
}

/**
 * Returns the number of rounds of tool calls and results since the last user turn with text: the number of user turns
 * after that turn. Returns 0 if the last turn is not a user turn.
 */
function countRounds(turns: readonly MessageTurn[]): number {
  const since = turns.slice(turns.findLastIndex((turn) => turn.role === 'user' && getText(turn.content) !== '') + 1);
  return since.at(-1)?.role === 'user' ? since.filter(({ role }) => role === 'user').length : 0;
}

function parseTool(tool: JsonObject | null, index: number, { applyRule, betas }: ToolContext): Tool {
  if (typeof tool !== 'object' || tool === null) throw invalidRequestError(`tools.${index}: Input should be an object`);
  const { type = 'custom', name, input_schema, strict } = tool;
  if (type === 'web_search_20250305') return parseWebSearch(tool, index, applyRule);
  if (type !== 'custom') {
    const clientTool = parseClientTool(tool, betas, `tools.${index}`);
    if (clientTool) return clientTool;
    const expected = "'custom', 'web_search_20250305'";
    throw invalidRequestError(
      `tools.${index}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${expected}`,
    );
  }
  if (typeof name !== 'string' || !/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
    throw invalidRequestError(`tools.${index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
  }
  if ((input_schema as JsonObject | undefined)?.type !== 'object') {
    throw invalidRequestError(`tools.${index}.custom.input_schema.type: Input should be 'object'`);
  }
  if (strict === true) applyRule(() => assertEnforceable(input_schema, `tools.${index}.custom`));
  return { name, schema: input_schema };
}

const SEARCH_FIELDS = [
  'type',
  'name',
  'max_uses',
  'allowed_domains',
  'blocked_domains',
  'user_location',
  'cache_control',
];

function parseWebSearch(tool: JsonObject, index: number, applyRule: ApplyRule): Tool {
  const where = `tools.${index}.web_search_20250305`;
  const { name, max_uses } = tool;
  applyRule(() => assertSearchFields(tool, where));
  if (name !== 'web_search') throw invalidRequestError(`${where}.name: Input should be 'web_search'`);
  if (max_uses !== undefined && !(Number.isInteger(max_uses) && (max_uses as number) > 0)) {
    throw invalidRequestError(`${where}.max_uses: Input should be greater than 0`);
  }
  return { name, schema: {}, maxProviderUses: (max_uses ?? MAX_SEARCHES) as number };
}

function assertSearchFields(tool: JsonObject, where: string): void {
  const unknown = Object.keys(tool).find((field) => !SEARCH_FIELDS.includes(field));
  if (unknown) throw invalidRequestError(`${where}.${unknown}: Extra inputs are not permitted`);
  if (tool.allowed_domains && tool.blocked_domains)
    throw invalidRequestError(`${where}: only one of allowed_domains and blocked_domains may be specified`);
}

function parseToolChoice({ type, name }: Choice, tools: readonly Tool[]): Toolbox['choice'] {
  if (type === 'auto' || type === 'none') return type;
  if (type === 'any') return 'required';
  if (type !== 'tool')
    throw invalidRequestError(
      `tool_choice: Input tag '${type}' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'`,
    );
  const tool = tools.find((candidate) => candidate.name === name);
  if (!tool) throw invalidRequestError(`Tool '${name}' not found in provided tools`);
  return { name: tool.name };
}

/** Counts the input tokens. The system prompt counts as a turn, and `tools` and `output_config` count as JSON. */
function countPrompt({ system, tools, output_config }: JsonObject, turns: readonly MessageTurn[]): number {
  let tokens = TOKENS_PER_REQUEST;
  const contents = [...(system === undefined ? [] : [system]), ...turns.map(({ content }) => content)];
  for (const content of contents) {
    tokens += TOKENS_PER_TURN;
    for (const block of toBlocks(content)) tokens += countBlock(block);
  }
  for (const field of [tools, output_config]) if (field) tokens += countTokens(JSON.stringify(field));
  return tokens;
}

/** Counts the input tokens up to the last content that is to be cached for an hour. Every cache is empty. */
function countHourCached({ tools, system }: JsonObject, turns: readonly MessageTurn[]): number {
  let tokens = TOKENS_PER_REQUEST;
  let cachedTokens = 0;
  const add = (count: number, { cache_control }: { readonly cache_control?: unknown }) => {
    tokens += count;
    if (isJsonObject(cache_control) && cache_control.ttl === '1h') cachedTokens = tokens;
  };
  for (const tool of (tools ?? []) as readonly JsonObject[]) add(countTokens(JSON.stringify(tool)), tool);
  const contents = [...(system === undefined ? [] : [system]), ...turns.map(({ content }) => content)];
  for (const content of contents) {
    tokens += TOKENS_PER_TURN;
    for (const block of toBlocks(content)) add(countBlock(block), block);
  }
  return cachedTokens;
}

function countBlock(block: MessageBlock): number {
  const { type, text, name, input, thinking, content } = block;
  switch (type) {
    case 'text':
      return countTokens(String(text));
    case 'thinking':
      return countTokens(String(thinking));
    case 'tool_use':
      return countTokens(String(name)) + countTokens(JSON.stringify(input ?? {}));
    case 'tool_result':
      return toBlocks(content).reduce((total, nestedBlock) => total + countBlock(nestedBlock), 0);
    default:
      return TOKENS_PER_ATTACHMENT;
  }
}

/** Returns the text of the last user turn with text, or an empty string. Texts in tool results do not count. */
function getLastUserText(turns: readonly MessageTurn[]): string {
  const userTexts = turns.filter(({ role }) => role === 'user').map(({ content }) => getText(content));
  return userTexts.findLast((text) => text !== '') ?? '';
}

function getText(content: unknown): string {
  return toBlocks(content)
    .flatMap(({ type, text }) => (type === 'text' ? [text] : []))
    .join('\n');
}
