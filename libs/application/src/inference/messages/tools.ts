/** Converts Anthropic's tools and tool choice to those of a chat. */
import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';
import { stringifyJson } from '../../wire/serialize-json.ts';
import { parseClientTool } from './client-tools.ts';
import { assertSupported, TOOL_RULES } from './unsupported.ts';

/** All versions of Anthropic's web search tool. Other tools that Anthropic runs have no price here and are rejected. */
const WEB_SEARCH_TOOL_TYPE = /^web_search_\d{8}$/;
const SEARCH_TOOL_NAME = 'web_search';

/** @throws InvalidRequestError (400) naming the tool */
export function toChatTools(tools: readonly unknown[]): Promise<readonly JsonObject[]> {
  return Promise.all(tools.map((tool, at) => toChatTool(tool, `tools[${at}]`)));
}

async function toChatTool(tool: unknown, param: string): Promise<JsonObject> {
  if (!isJsonObject(tool)) throw invalidRequest(`${param} must be an object`, param);
  assertSupported(tool, TOOL_RULES, `${param}.`);
  const { type, name, input_schema, strict } = tool;
  if (typeof type === 'string' && WEB_SEARCH_TOOL_TYPE.test(type)) return toSearchTool(tool);
  const clientTool = parseClientTool(tool, param);
  if (clientTool) {
    const { description, parameters, anthropicTool } = clientTool;
    const described = await describeTool({ ...tool, description }, param);
    return { ...toFunctionTool({ name, ...described, parameters }, tool), anthropic_tool: anthropicTool };
  }
  if (type !== undefined && type !== null && type !== 'custom') {
    throw invalidRequest(`Tools of the type "${formatType(type)}" are not supported`, `${param}.type`);
  }
  if (typeof name !== 'string' || name === '')
    throw invalidRequest(`${param}.name must be a non-empty string`, `${param}.name`);
  if (!isJsonObject(input_schema))
    throw invalidRequest(`${param}.input_schema must be a JSON Schema`, `${param}.input_schema`);
  const described = await describeTool(tool, param);
  return toFunctionTool({ name, ...described, parameters: input_schema, ...(strict === true ? { strict } : {}) }, tool);
}

function toFunctionTool(called: JsonObject, { cache_control }: JsonObject): JsonObject {
  return { type: 'function', function: called, ...(isJsonObject(cache_control) ? { cache_control } : {}) };
}

function toSearchTool({ max_uses, allowed_domains, blocked_domains, user_location }: JsonObject): JsonObject {
  return { type: SEARCH_TOOL_NAME, max_uses, allowed_domains, blocked_domains, user_location };
}

/** Adds the examples of inputs to the description, because chats have no such field. */
async function describeTool({ description, input_examples }: JsonObject, param: string): Promise<JsonObject> {
  const texts = typeof description === 'string' ? [description] : [];
  const examples = input_examples ?? [];
  if (!Array.isArray(examples) || !examples.every(isJsonObject))
    throw invalidRequest(`${param}.input_examples must be an array of objects`, `${param}.input_examples`);
  if (examples.length > 0) texts.push(`Examples of its input: ${await stringifyJson(examples)}`);
  return texts.length > 0 ? { description: texts.join('\n\n') } : {};
}

/**
 * Converts Anthropic's `tool_choice`.
 * @param tools the converted tools
 * @throws InvalidRequestError (400) if it is invalid or names no tool of the request
 */
export function toToolChoice(choice: JsonObject | null | undefined, tools: readonly JsonObject[]): JsonObject {
  if (!choice) return {};
  const { type, name, disable_parallel_tool_use: isParallelDisabled } = choice;
  const parallel = isParallelDisabled === true ? { parallel_tool_calls: false } : {};
  switch (type) {
    case 'auto':
    case 'none':
      return { tool_choice: type, ...parallel };
    case 'any':
      return { tool_choice: 'required', ...parallel };
    case 'tool':
      return { tool_choice: toNamedToolChoice(name, tools), ...parallel };
    default:
      throw invalidRequest('tool_choice.type must be "auto", "any", "tool" or "none"', 'tool_choice.type');
  }
}

function toNamedToolChoice(name: unknown, tools: readonly JsonObject[]): JsonObject {
  const functions = tools.map((tool) => (tool.function as JsonObject | undefined)?.name);
  if (typeof name === 'string' && functions.includes(name)) return { type: 'function', function: { name } };
  if (name === SEARCH_TOOL_NAME && tools.some(({ type }) => type === SEARCH_TOOL_NAME))
    return { type: SEARCH_TOOL_NAME };
  throw invalidRequest('tool_choice.name must be the name of one of the tools', 'tool_choice.name');
}

function formatType(type: unknown): string {
  return String(type).slice(0, 64);
}
