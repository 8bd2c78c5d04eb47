/** Anthropic's tools and the choice between them, as a chat has them. */
import { InvalidRequestError } from '../../errors.ts';
import { isJsonObject, type JsonObject } from '../../wire/json-object.ts';

/** Anthropic's search of the web, in every version. Of its other tools none has a price here. */
const WEB_SEARCH = /^web_search_\d{8}$/;
const OUR_SEARCH = 'web_search';

/** @throws InvalidRequestError that names the tool */
export function declaredTools(tools: readonly unknown[]): readonly JsonObject[] {
  return tools.map((tool, at) => declared(tool, `tools[${at}]`));
}

function declared(tool: unknown, param: string): JsonObject {
  if (!isJsonObject(tool)) throw refusal(`${param} must be an object`, param);
  const { type, name, description, input_schema, strict, cache_control } = tool;
  if (typeof type === 'string' && WEB_SEARCH.test(type)) return searchTool(tool);
  if (type !== undefined && type !== null && type !== 'custom') {
    throw refusal(`Tools of the type "${shown(type)}" are not supported`, `${param}.type`);
  }
  if (typeof name !== 'string' || name === '') throw refusal(`${param}.name must be a string`, `${param}.name`);
  if (!isJsonObject(input_schema))
    throw refusal(`${param}.input_schema must be a JSON Schema`, `${param}.input_schema`);
  const about = typeof description === 'string' ? { description } : {};
  const called = { name, ...about, parameters: input_schema, ...(strict === true ? { strict } : {}) };
  return { type: 'function', function: called, ...(isJsonObject(cache_control) ? { cache_control } : {}) };
}

function searchTool({ max_uses, allowed_domains, blocked_domains }: JsonObject): JsonObject {
  return { type: OUR_SEARCH, max_uses, allowed_domains, blocked_domains };
}

/**
 * @param tools as the chat has them
 * @throws InvalidRequestError when it is none of Anthropic's
 */
export function toolChoice(choice: JsonObject | null | undefined, tools: readonly JsonObject[]): JsonObject {
  if (!choice) return {};
  const { type, name, disable_parallel_tool_use: alone } = choice;
  const parallel = alone === true ? { parallel_tool_calls: false } : {};
  switch (type) {
    case 'auto':
    case 'none':
      return { tool_choice: type, ...parallel };
    case 'any':
      return { tool_choice: 'required', ...parallel };
    case 'tool':
      return { tool_choice: chosen(name, tools), ...parallel };
    default:
      throw refusal('tool_choice.type must be "auto", "any", "tool" or "none"', 'tool_choice.type');
  }
}

function chosen(name: unknown, tools: readonly JsonObject[]): JsonObject {
  const functions = tools.map((tool) => (tool.function as JsonObject | undefined)?.name);
  if (typeof name === 'string' && functions.includes(name)) return { type: 'function', function: { name } };
  if (name === OUR_SEARCH && tools.some(({ type }) => type === OUR_SEARCH)) return { type: OUR_SEARCH };
  throw refusal('tool_choice.name must be the name of one of the tools', 'tool_choice.name');
}

function shown(type: unknown): string {
  return String(type).slice(0, 64);
}

function refusal(message: string, param: string): InvalidRequestError {
  return new InvalidRequestError(400, message, param);
}
