/** A Messages request as Anthropic would understand it, or refuse it. */
import type { Format } from '../provider/model-output.ts';
import type { Question } from '../provider/serve.ts';
import { countTokens } from '../provider/tokens.ts';
import type { Tool, Toolbox } from '../provider/tools.ts';
import { parseObject } from '../router.ts';
import { invalid, type Version } from './errors.ts';
import { type AnthropicModel, findModel } from './models.ts';
import { assertModelTakes, assertParameters } from './parameters.ts';
import { assertTurns, blocksOf, type MessageBlock, type MessageTurn } from './turns.ts';

/** A request costs this many tokens, each turn this many, and each block that is not text this many. */
const TOKENS_PER_REQUEST = 3;
const TOKENS_PER_TURN = 4;
const TOKENS_PER_ATTACHMENT = 85;
/** Of one message, where the request does not say. */
const MOST_SEARCHES = 10;

type Fields = Readonly<Record<string, unknown>>;

export interface SandboxMessagesRequest extends Question<AnthropicModel> {
  readonly showsThoughts: boolean;
}

/** @throws Refusal in Anthropic's shape */
export function readMessagesRequest(text: string, version: Version): SandboxMessagesRequest {
  const body = parseObject(text);
  if (!body) throw invalid('The request body is not valid JSON');
  assertParameters(body, version);
  const model = findModel(body.model as string);
  assertModelTakes(body, model);
  const limit = body.max_tokens as number;
  if (limit > model.maxOutput) {
    const which = `the maximum allowed number of output tokens for ${model.id}`;
    throw invalid(`max_tokens: ${limit} > ${model.maxOutput}, which is ${which}`);
  }
  const turns = assertTurns(body.messages);
  const toolbox = toolboxOf(body, turns);
  const promptTokens = countPrompt(body, turns);
  if (promptTokens > model.context) {
    throw invalid(`prompt is too long: ${promptTokens} tokens > ${model.context} maximum`);
  }
  return {
    model,
    stream: body.stream === true,
    n: 1,
    limit,
    promptTokens,
    reasons: thinks(body.thinking),
    showsThoughts: showsThoughts(body.thinking, model),
    toolbox,
    format: formatOf(body, text),
    lastUserText: lastUserText(turns),
  };
}

function thinks(thinking: unknown): boolean {
  const { type } = (thinking ?? {}) as Fields;
  return type === 'enabled' || type === 'adaptive';
}

function showsThoughts(thinking: unknown, { adaptive }: AnthropicModel): boolean {
  const { display = adaptive ? 'omitted' : 'summarized' } = (thinking ?? {}) as Fields;
  return display !== 'omitted';
}

function formatOf({ output_config }: Fields, seed: string): Format | undefined {
  const { format } = (output_config ?? {}) as { readonly format?: Fields | null };
  return format ? { schema: format.schema, seed } : undefined;
}

interface Choice {
  readonly type: string;
  readonly name?: string;
  readonly disable_parallel_tool_use?: boolean;
}

function toolboxOf({ tools, tool_choice, thinking }: Fields, turns: readonly MessageTurn[]): Toolbox {
  const offered = ((tools ?? []) as readonly Fields[]).map(toolFrom);
  if (new Set(offered.map(({ name }) => name)).size < offered.length)
    throw invalid('tools: Tool names must be unique.');
  const choice = (tool_choice ?? { type: 'auto' }) as Choice;
  if (tool_choice && offered.length === 0) throw invalid('tool_choice may only be specified while providing tools.');
  if (thinks(thinking) && (choice.type === 'any' || choice.type === 'tool')) {
    throw invalid('Thinking may not be enabled when tool_choice forces tool use.');
  }
  const parallel = choice.disable_parallel_tool_use !== true;
  return { tools: offered, choice: chosen(choice, offered), parallel, rounds: roundsIn(turns) };
}

/** How often tools were called and answered since the user last spoke: turns of the user's that have no words. */
function roundsIn(turns: readonly MessageTurn[]): number {
  const since = turns.slice(turns.findLastIndex((turn) => turn.role === 'user' && wordsIn(turn.content) !== '') + 1);
  return since.at(-1)?.role === 'user' ? since.filter(({ role }) => role === 'user').length : 0;
}

function toolFrom(tool: Fields | null, index: number): Tool {
  if (typeof tool !== 'object' || tool === null) throw invalid(`tools.${index}: Input should be an object`);
  const { type = 'custom', name, input_schema } = tool;
  if (type === 'web_search_20250305') return webSearchFrom(tool, index);
  if (type !== 'custom') {
    const expected = "'custom', 'web_search_20250305'";
    throw invalid(
      `tools.${index}: Input tag '${type}' found using 'type' does not match any of the expected tags: ${expected}`,
    );
  }
  if (typeof name !== 'string' || !/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
    throw invalid(`tools.${index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
  }
  if ((input_schema as Fields | undefined)?.type !== 'object') {
    throw invalid(`tools.${index}.custom.input_schema.type: Input should be 'object'`);
  }
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

function webSearchFrom(tool: Fields, index: number): Tool {
  const where = `tools.${index}.web_search_20250305`;
  const { name, max_uses, allowed_domains, blocked_domains } = tool;
  const unknown = Object.keys(tool).find((field) => !SEARCH_FIELDS.includes(field));
  if (unknown) throw invalid(`${where}.${unknown}: Extra inputs are not permitted`);
  if (name !== 'web_search') throw invalid(`${where}.name: Input should be 'web_search'`);
  if (allowed_domains && blocked_domains) {
    throw invalid(`${where}: only one of allowed_domains and blocked_domains may be specified`);
  }
  if (max_uses !== undefined && !(Number.isInteger(max_uses) && (max_uses as number) > 0)) {
    throw invalid(`${where}.max_uses: Input should be greater than 0`);
  }
  return { name, schema: {}, ownUses: (max_uses ?? MOST_SEARCHES) as number };
}

function chosen({ type, name }: Choice, tools: readonly Tool[]): Toolbox['choice'] {
  if (type === 'auto' || type === 'none') return type;
  if (type === 'any') return 'required';
  if (type !== 'tool')
    throw invalid(
      `tool_choice: Input tag '${type}' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'`,
    );
  const tool = tools.find((each) => each.name === name);
  if (!tool) throw invalid(`Tool '${name}' not found in provided tools`);
  return { name: tool.name };
}

/** Input tokens as the sandbox counts them: the system prompt counts as a turn, tools and schemas as their JSON. */
function countPrompt({ system, tools, output_config }: Fields, turns: readonly MessageTurn[]): number {
  let tokens = TOKENS_PER_REQUEST;
  const contents = [...(system === undefined ? [] : [system]), ...turns.map(({ content }) => content)];
  for (const content of contents) {
    tokens += TOKENS_PER_TURN;
    for (const block of blocksOf(content)) tokens += countBlock(block);
  }
  for (const more of [tools, output_config]) if (more) tokens += countTokens(JSON.stringify(more));
  return tokens;
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
      return blocksOf(content).reduce((total, each) => total + countBlock(each), 0);
    default:
      return TOKENS_PER_ATTACHMENT;
  }
}

/** Results of tools stand on the user's side as well, and are not the user's words. */
function lastUserText(turns: readonly MessageTurn[]): string {
  const said = turns.filter(({ role }) => role === 'user').map(({ content }) => wordsIn(content));
  return said.findLast((words) => words !== '') ?? '';
}

function wordsIn(content: unknown): string {
  return blocksOf(content)
    .flatMap(({ type, text }) => (type === 'text' ? [text] : []))
    .join('\n');
}
