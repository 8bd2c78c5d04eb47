/**
 * The tools of a request: as the caller declares them, and as models get them. Models know a function by one flat name,
 * so a namespace becomes part of the names of its tools and is removed from their calls. For chats, a tool with plain
 * text input becomes a function with one argument.
 */
import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';

import { SEARCH_TOOL } from '../search/search-request.ts';

/** The caller's name of a tool. */
export interface ToolName {
  readonly name: string;
  readonly namespace?: string | null;
}

/** A tool that the caller runs, with its flat name for models. */
export interface ClientTool {
  readonly type: 'function' | 'custom';
  readonly modelName: string;
  readonly toolName: ToolName;
  /** The other fields of the declaration, in OpenAI's flat format. */
  readonly declaration: JsonObject;
}

interface ToolDeclarations {
  readonly tools?: readonly unknown[] | null;
  readonly tool_choice?: unknown;
}

/** A tool that `tool_choice` names. */
type NamedTool = (ToolName & { readonly type: ClientTool['type'] }) | { readonly type: 'web_search' };
interface AllowedTools {
  readonly type: 'allowed_tools';
  readonly mode: 'auto' | 'required';
  readonly tools: readonly NamedTool[];
}
type ToolChoice = string | NamedTool | AllowedTools;

/** Normalised type of the web search tool, which has several names. */
const SEARCH = 'web_search';
/** Type of an item that declares tools within a conversation. */
const ADDITIONAL_TOOLS = 'additional_tools';
/** Providers accept function names up to this length, without the invalid characters. */
const MAX_NAME_CHARACTERS = 64;
const INVALID_NAME_CHARACTERS = /[^a-zA-Z0-9_-]/g;
const SEPARATOR = '__';
/** The only argument of a function that represents a tool with plain text input. */
const INPUT_ARGUMENT = 'input';
/** Limit of the tools of a request, those within its conversation included. OpenAI's own limit is 128. */
const MAX_TOOLS = 4_096;
const CHOICE_MODES: readonly unknown[] = ['auto', 'none', 'required'];

export class Toolset {
  /** The tools of the field `tools` in its order, in the format in which the response repeats them. */
  readonly tools: readonly JsonObject[];
  readonly choice: ToolChoice;
  private readonly clientTools = new Map<string, ClientTool>();
  private readonly searches: JsonObject[] = [];
  /** The tools whose names no other tool has, by name; undefined until it is needed. */
  private uniqueNames: ReadonlyMap<string, ToolName> | undefined;
  private declaredTools = 0;

  /**
   * @param input items of the request; like those of `earlier`, they may declare further tools
   * @throws InvalidRequestError (400) naming the tool or the part of `tool_choice`
   */
  constructor(
    { tools, tool_choice }: ToolDeclarations,
    input: readonly unknown[] = [],
    earlier: readonly JsonObject[] = [],
  ) {
    this.tools = this.declare(tools ?? [], 'tools');
    for (const { type, tools } of earlier) if (type === ADDITIONAL_TOOLS) this.declare(tools, 'previous_response_id');
    for (const [at, item] of input.entries()) {
      if (isJsonObject(item) && item.type === ADDITIONAL_TOOLS) this.declare(item.tools, `input[${at}].tools`);
    }
    this.choice = this.parseChoice(tool_choice);
  }

  /** Whether a tool has plain text input. */
  get hasCustomTools(): boolean {
    return [...this.clientTools.values()].some(({ type }) => type === 'custom');
  }

  /** Tools and tool choice for a chat, in which the caller's tools are functions; undefined without tools. */
  get chatParameters(): Readonly<Record<'tools' | 'tool_choice', unknown>> | undefined {
    const { choice } = this;
    const allowed = isAllowedTools(choice) ? new Set(choice.tools.map((tool) => this.getKey(tool))) : undefined;
    const ownTools = [...this.clientTools.values()].filter(({ modelName: called }) => allowed?.has(called) ?? true);
    const searches = this.searches.filter(() => allowed?.has(SEARCH) ?? true);
    if (ownTools.length + searches.length === 0) return undefined;
    const tools = [...ownTools.map(toChatFunction), ...searches];
    if (typeof choice === 'string') return { tools, tool_choice: choice };
    if (isAllowedTools(choice)) return { tools, tool_choice: choice.mode };
    if (choice.type === SEARCH) return { tools, tool_choice: choice };
    return { tools, tool_choice: { type: 'function', function: { name: this.getModelName(choice) } } };
  }

  /** Tools and tool choice for the Responses API, without web searches. */
  get nativeParameters(): {
    readonly tools: readonly JsonObject[];
    readonly tool_choice: string | JsonObject | undefined;
  } {
    const { choice } = this;
    const tools = [...this.clientTools.values()].map(({ type, modelName: called, declaration }) => ({
      type,
      name: called,
      ...declaration,
    }));
    const toNativeChoice = (tool: NamedTool) =>
      tool.type === SEARCH ? [] : [{ type: tool.type, name: this.getModelName(tool) }];
    if (typeof choice === 'string') return { tools, tool_choice: choice };
    if (isAllowedTools(choice))
      return { tools, tool_choice: { ...choice, tools: choice.tools.flatMap(toNativeChoice) } };
    return { tools, tool_choice: toNativeChoice(choice)[0] };
  }

  /** Returns the flat name of a tool, which need not be declared: conversations may have calls of former tools. */
  getModelName({ name, namespace }: ToolName): string {
    return typeof namespace === 'string' ? flattenName(namespace, name) : name;
  }

  /** Returns the tool that a model called. An undeclared name is treated as that of a function. */
  getTool(name: string): Pick<ClientTool, 'type' | 'toolName'> {
    return this.clientTools.get(name) ?? { type: 'function', toolName: { name } };
  }

  private declare(tools: unknown, param: string, namespace?: string): readonly JsonObject[] {
    if (!Array.isArray(tools)) throw invalidRequest(`${param} must be an array`, param);
    this.declaredTools += tools.length;
    if (this.declaredTools > MAX_TOOLS) throw invalidRequest(`A request must have at most ${MAX_TOOLS} tools`, param);
    return tools.map((tool, at) => this.declareTool(tool, `${param}[${at}]`, namespace));
  }

  private declareTool(tool: unknown, param: string, namespace?: string): JsonObject {
    if (!isJsonObject(tool) || typeof tool.type !== 'string') {
      throw invalidRequest(`${param} must be an object with a type`, param);
    }
    const { type } = tool;
    if (type === 'function' || type === 'custom') return this.add(type, tool, param, namespace);
    if (namespace === undefined && type === 'namespace') {
      const name = parseName(tool, param);
      return { type, name, ...toDescription(tool), tools: this.declare(tool.tools, `${param}.tools`, name) };
    }
    if (namespace === undefined && SEARCH_TOOL.test(type)) {
      const search = { ...tool, type: SEARCH };
      this.searches.push(search);
      return search;
    }
    throw invalidRequest(`Tools of the type "${type}" are not supported`, `${param}.type`);
  }

  private add(type: ClientTool['type'], tool: JsonObject, param: string, namespace?: string): JsonObject {
    const nested = tool[type];
    const fields = isJsonObject(nested) ? nested : tool;
    const name = parseName(fields, param);
    const declared = type === 'function' ? toFunctionFields(fields) : toCustomFields(fields, param);
    const toolName = namespace === undefined ? { name } : { name, namespace };
    const called = this.getModelName(toolName);
    const existing = this.clientTools.get(called)?.toolName;
    if (existing && (existing.name !== name || existing.namespace !== namespace)) {
      throw invalidRequest(`${param} has the name of another tool: "${called}"`, `${param}.name`);
    }
    this.clientTools.set(called, { type, modelName: called, toolName, declaration: declared });
    return { type, name, ...declared };
  }

  private parseChoice(choice: unknown): ToolChoice {
    if (choice === undefined || choice === null) return 'auto';
    if (CHOICE_MODES.includes(choice)) return choice as string;
    if (isJsonObject(choice) && choice.type === 'allowed_tools') return this.parseAllowedTools(choice);
    return this.parseNamedTool(choice, 'tool_choice');
  }

  /** Parses a restriction to some of the tools: https://platform.openai.com/docs/guides/function-calling */
  private parseAllowedTools(choice: JsonObject): AllowedTools {
    const { mode = 'auto', tools } = isJsonObject(choice.allowed_tools) ? choice.allowed_tools : choice;
    if (mode !== 'auto' && mode !== 'required') {
      throw invalidRequest('tool_choice.mode must be "auto" or "required"', 'tool_choice.mode');
    }
    if (!Array.isArray(tools) || tools.length === 0) {
      throw invalidRequest('tool_choice.tools must name at least one tool', 'tool_choice.tools');
    }
    if (tools.length > MAX_TOOLS) {
      throw invalidRequest(`tool_choice.tools must name at most ${MAX_TOOLS} tools`, 'tool_choice.tools');
    }
    const namedTools = tools.map((tool, at) => {
      const allowed = this.parseNamedTool(tool, `tool_choice.tools[${at}]`);
      if (this.has(allowed)) return allowed;
      throw invalidRequest(`tool_choice.tools[${at}] must be one of the tools`, `tool_choice.tools[${at}]`);
    });
    return { type: 'allowed_tools', mode, tools: namedTools };
  }

  private parseNamedTool(choice: unknown, param: string): NamedTool {
    const kinds = 'the type of a web search, or the type and name of a function or a custom tool';
    if (isJsonObject(choice) && typeof choice.type === 'string') {
      const { type } = choice;
      if (SEARCH_TOOL.test(type)) return { type: SEARCH };
      const { name, namespace } = isJsonObject(choice[type]) ? choice[type] : choice;
      if ((type === 'function' || type === 'custom') && typeof name === 'string')
        return { type, ...this.resolveToolName(name, namespace) };
    }
    const modes = param === 'tool_choice' ? '"auto", "none", "required", or ' : '';
    throw invalidRequest(`${param} must be ${modes}an object with ${kinds}`, param);
  }

  /** A tool may be named without its namespace if no other tool has its name. */
  private resolveToolName(name: string, namespace: unknown): ToolName {
    if (typeof namespace === 'string') return { name, namespace };
    if (this.clientTools.has(name)) return { name };
    this.uniqueNames ??= findUniqueNames([...this.clientTools.values()]);
    return this.uniqueNames.get(name) ?? { name };
  }

  private has(tool: NamedTool): boolean {
    return tool.type === SEARCH
      ? this.searches.length > 0
      : this.clientTools.get(this.getKey(tool))?.type === tool.type;
  }

  private getKey(tool: NamedTool): string {
    return tool.type === SEARCH ? SEARCH : this.getModelName(tool);
  }
}

function findUniqueNames(tools: readonly ClientTool[]): ReadonlyMap<string, ToolName> {
  const names = new Map<string, ToolName>();
  const repeatedNames = new Set<string>();
  for (const { toolName } of tools) {
    if (names.has(toolName.name)) repeatedNames.add(toolName.name);
    names.set(toolName.name, toolName);
  }
  for (const name of repeatedNames) names.delete(name);
  return names;
}

function isAllowedTools(choice: ToolChoice): choice is AllowedTools {
  return typeof choice === 'object' && choice.type === 'allowed_tools';
}

/** Converts plain text input of a tool to the arguments of the function that represents the tool. */
export function toFunctionArguments(input: string): string {
  return JSON.stringify({ [INPUT_ARGUMENT]: input });
}

/** Returns the plain text input in the arguments of such a function, or the arguments if they have another format. */
export function parseToolInput(args: string): string {
  try {
    const text = (JSON.parse(args) as JsonObject | null)?.[INPUT_ARGUMENT];
    if (typeof text === 'string') return text;
  } catch {} // not JSON: the arguments are the text
  return args;
}

/**
 * Combines namespace and name into a valid function name. The result must never change, because conversations contain
 * it in earlier calls. A long or invalid name becomes a hash and the end of the name.
 */
function flattenName(namespace: string, name: string): string {
  const joined = `${namespace}${namespace.endsWith(SEPARATOR) ? '' : SEPARATOR}${name}`;
  const flat = joined.replace(INVALID_NAME_CHARACTERS, '_');
  if (flat === joined && flat.length <= MAX_NAME_CHARACTERS) return flat;
  const mark = hashName(joined);
  return `${mark}${SEPARATOR}${flat.slice(-(MAX_NAME_CHARACTERS - mark.length - SEPARATOR.length))}`;
}

/** Returns a short hash (FNV-1a). A request in which two tools get the same name is rejected. */
function hashName(text: string): string {
  let mark = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) mark = Math.imul(mark ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return `n${mark.toString(36)}`;
}

function parseName({ name }: JsonObject, param: string): string {
  if (typeof name === 'string' && name !== '') return name;
  throw invalidRequest(`${param}.name must be a non-empty string`, `${param}.name`);
}

function toDescription({ description }: JsonObject): JsonObject {
  return typeof description === 'string' ? { description } : {};
}

function toFunctionFields(tool: JsonObject): JsonObject {
  return {
    ...toDescription(tool),
    parameters: removeEncryptedMarks(tool.parameters ?? null),
    strict: tool.strict ?? null,
  };
}

/**
 * Removes `encrypted` from the properties of a schema. OpenAI would encrypt these arguments so that only OpenAI can
 * read them; other providers reject the keyword.
 */
function removeEncryptedMarks(schema: unknown): unknown {
  if (!isJsonObject(schema) || !isJsonObject(schema.properties)) return schema;
  const properties = Object.entries(schema.properties);
  if (!properties.some(([, property]) => isJsonObject(property) && property.encrypted === true)) return schema;
  const readableProperties = properties.map(([name, property]) => {
    const { encrypted: _, ...rest } = isJsonObject(property) ? property : {};
    return [name, isJsonObject(property) ? rest : property];
  });
  return { ...schema, properties: Object.fromEntries(readableProperties) };
}

function toCustomFields(tool: JsonObject, param: string): JsonObject {
  const { format } = tool;
  if (format === undefined || format === null) return toDescription(tool);
  // Chats nest the grammar, the Responses API does not.
  if (isJsonObject(format) && typeof format.type === 'string') {
    const { type, grammar } = format;
    return { ...toDescription(tool), format: isJsonObject(grammar) ? { type, ...grammar } : format };
  }
  throw invalidRequest(`${param}.format must be an object with a type`, `${param}.format`);
}

function toChatFunction({ type, modelName: name, declaration }: ClientTool): JsonObject {
  const definition = type === 'function' ? declaration : toTextFunction(declaration);
  const definedFields = Object.entries(definition).filter(([, value]) => value !== null);
  return { type: 'function', function: { name, ...Object.fromEntries(definedFields) } };
}

/** Describes the grammar in the description of the function, because a chat cannot enforce it. */
function toTextFunction({ description, format }: JsonObject): JsonObject {
  const { syntax, definition } = (format ?? {}) as JsonObject;
  const grammarLines = definition ? [`The text keeps to this grammar (${syntax}):\n${definition}`] : [];
  const descriptionText = [...(description ? [description] : []), ...grammarLines].join('\n\n');
  const text = { type: 'string', description: 'The input of the tool: plain text, word for word as it takes it' };
  const properties = { [INPUT_ARGUMENT]: text };
  return {
    description: descriptionText === '' ? null : descriptionText,
    parameters: { type: 'object', properties, required: [INPUT_ARGUMENT], additionalProperties: false },
  };
}
