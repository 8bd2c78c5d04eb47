/**
 * The tools of a request: as the caller declared them, and as models know them. Models know functions by one name each,
 * so a namespace becomes part of the names of its tools, and is taken off again when one is called. A tool whose input is
 * plain text is, for models that know none, a function with one argument.
 */
import { InvalidRequestError } from '../../errors.ts';
import { isJsonObject, type JsonObject } from '../../wire/json-object.ts';
import { SEARCH_TOOL } from '../search/search-request.ts';

/** The name of a tool, as its caller knows it. */
export interface ToolName {
  readonly name: string;
  readonly namespace?: string | null;
}

/** A tool that the caller runs, under the one name that models know it by. */
export interface OwnTool {
  readonly type: 'function' | 'custom';
  readonly called: string;
  readonly own: ToolName;
  /** All else that is declared of it, in OpenAI's flat form. */
  readonly declared: JsonObject;
}

/** Of a request. */
interface Declared {
  readonly tools?: readonly unknown[] | null;
  readonly tool_choice?: unknown;
}

/** A tool that a choice names. */
type Chosen = (ToolName & { readonly type: OwnTool['type'] }) | { readonly type: 'web_search' };
interface AllowedTools {
  readonly type: 'allowed_tools';
  readonly mode: 'auto' | 'required';
  readonly tools: readonly Chosen[];
}
type Choice = string | Chosen | AllowedTools;

/** What all names of that tool mean. */
const SEARCH = 'web_search';
/** An item that declares tools in the middle of a conversation. */
const MORE_TOOLS = 'additional_tools';
/** What a vendor takes for the name of a function. */
const MOST_CHARACTERS = 64;
const UNNAMEABLE = /[^a-zA-Z0-9_-]/g;
const SEPARATOR = '__';
/** The one argument of a function that stands for a tool with plain text. */
const ARGUMENT = 'input';
const MODES: readonly unknown[] = ['auto', 'none', 'required'];

export class Toolset {
  /** As the request declares them, complete: what an answer repeats. */
  readonly tools: readonly JsonObject[];
  readonly choice: Choice;
  private readonly own = new Map<string, OwnTool>();
  private readonly searches: JsonObject[] = [];

  /**
   * @param input items, some of which declare tools as well; so do those of `earlier`
   * @throws InvalidRequestError that names the tool
   */
  constructor({ tools, tool_choice }: Declared, input: readonly unknown[] = [], earlier: readonly JsonObject[] = []) {
    this.tools = this.declare(tools ?? [], 'tools');
    for (const { type, tools } of earlier) if (type === MORE_TOOLS) this.declare(tools, 'previous_response_id');
    for (const [at, item] of input.entries()) {
      if (isJsonObject(item) && item.type === MORE_TOOLS) this.declare(item.tools, `input[${at}].tools`);
    }
    this.choice = this.chosen(tool_choice);
  }

  /** Whether one of them takes plain text. */
  get hasCustom(): boolean {
    return [...this.own.values()].some(({ type }) => type === 'custom');
  }

  /** The tools and the choice of them for a chat, where every tool of the caller's is a function; nothing for none. */
  get chat(): Readonly<Record<'tools' | 'tool_choice', unknown>> | undefined {
    const { choice } = this;
    const allowed = isAllowed(choice) ? new Set(choice.tools.map((tool) => this.keyOf(tool))) : undefined;
    const own = [...this.own.values()].filter(({ called }) => allowed?.has(called) ?? true);
    const searches = this.searches.filter(() => allowed?.has(SEARCH) ?? true);
    if (own.length + searches.length === 0) return undefined;
    const tools = [...own.map(chatFunction), ...searches];
    if (typeof choice === 'string') return { tools, tool_choice: choice };
    if (isAllowed(choice)) return { tools, tool_choice: choice.mode };
    if (choice.type === SEARCH) return { tools, tool_choice: choice };
    return { tools, tool_choice: { type: 'function', function: { name: this.calledBy(choice) } } };
  }

  /** The caller's tools and the choice of them for an upstream that speaks Responses; searches are not the caller's. */
  get native(): { readonly tools: readonly JsonObject[]; readonly tool_choice: string | JsonObject | undefined } {
    const { choice } = this;
    const tools = [...this.own.values()].map(({ type, called, declared }) => ({ type, name: called, ...declared }));
    const named = (tool: Chosen) => (tool.type === SEARCH ? [] : [{ type: tool.type, name: this.calledBy(tool) }]);
    if (typeof choice === 'string') return { tools, tool_choice: choice };
    if (isAllowed(choice)) return { tools, tool_choice: { ...choice, tools: choice.tools.flatMap(named) } };
    return { tools, tool_choice: named(choice)[0] };
  }

  /** The name that models know a tool by, also one that is declared no more: a conversation has calls of such. */
  calledBy({ name, namespace }: ToolName): string {
    return typeof namespace === 'string' ? flatName(namespace, name) : name;
  }

  /** The tool that a model has called. One that nobody declared is a function of this name. */
  called(name: string): Pick<OwnTool, 'type' | 'own'> {
    return this.own.get(name) ?? { type: 'function', own: { name } };
  }

  private declare(tools: unknown, param: string, namespace?: string): readonly JsonObject[] {
    if (!Array.isArray(tools)) throw refusal(`${param} must be an array`, param);
    return tools.map((tool, at) => this.declared(tool, `${param}[${at}]`, namespace));
  }

  private declared(tool: unknown, param: string, namespace?: string): JsonObject {
    if (!isJsonObject(tool) || typeof tool.type !== 'string') {
      throw refusal(`${param} must be an object with a type`, param);
    }
    const { type } = tool;
    if (type === 'function' || type === 'custom') return this.add(type, tool, param, namespace);
    if (namespace === undefined && type === 'namespace') {
      const name = nameOf(tool, param);
      return { type, name, ...aboutOf(tool), tools: this.declare(tool.tools, `${param}.tools`, name) };
    }
    if (namespace === undefined && SEARCH_TOOL.test(type)) {
      const search = { ...tool, type: SEARCH };
      this.searches.push(search);
      return search;
    }
    throw refusal(`Tools of the type "${type}" are not supported`, `${param}.type`);
  }

  private add(type: OwnTool['type'], tool: JsonObject, param: string, namespace?: string): JsonObject {
    const nested = tool[type];
    const fields = isJsonObject(nested) ? nested : tool;
    const name = nameOf(fields, param);
    const declared = type === 'function' ? functionOf(fields) : customOf(fields, param);
    const own = namespace === undefined ? { name } : { name, namespace };
    const called = this.calledBy(own);
    const known = this.own.get(called)?.own;
    if (known && (known.name !== name || known.namespace !== namespace)) {
      throw refusal(`${param} has the name of another tool: "${called}"`, `${param}.name`);
    }
    this.own.set(called, { type, called, own, declared });
    return { type, name, ...declared };
  }

  private chosen(choice: unknown): Choice {
    if (choice === undefined || choice === null) return 'auto';
    if (MODES.includes(choice)) return choice as string;
    if (isJsonObject(choice) && choice.type === 'allowed_tools') return this.allowedTools(choice);
    return this.named(choice, 'tool_choice');
  }

  /** The choice of certain tools, from which the model then chooses: https://platform.openai.com/docs/guides/function-calling */
  private allowedTools(choice: JsonObject): AllowedTools {
    const { mode = 'auto', tools } = isJsonObject(choice.allowed_tools) ? choice.allowed_tools : choice;
    if (mode !== 'auto' && mode !== 'required') {
      throw refusal('tool_choice.mode must be "auto" or "required"', 'tool_choice.mode');
    }
    if (!Array.isArray(tools) || tools.length === 0) {
      throw refusal('tool_choice.tools must name at least one tool', 'tool_choice.tools');
    }
    const named = tools.map((tool, at) => {
      const allowed = this.named(tool, `tool_choice.tools[${at}]`);
      if (this.has(allowed)) return allowed;
      throw refusal(`tool_choice.tools[${at}] is not one of the tools`, `tool_choice.tools[${at}]`);
    });
    return { type: 'allowed_tools', mode, tools: named };
  }

  private named(choice: unknown, param: string): Chosen {
    const kinds = 'the type and name of a function or a custom tool';
    if (isJsonObject(choice) && typeof choice.type === 'string') {
      const { type } = choice;
      if (SEARCH_TOOL.test(type)) return { type: SEARCH };
      const { name, namespace } = isJsonObject(choice[type]) ? choice[type] : choice;
      if ((type === 'function' || type === 'custom') && typeof name === 'string')
        return { type, ...this.resolved(name, namespace) };
    }
    const modes = param === 'tool_choice' ? '"auto", "none", "required", or ' : '';
    throw refusal(`${param} must be ${modes}an object with ${kinds}`, param);
  }

  /** A tool in a namespace may be named without it, where no other has its name. */
  private resolved(name: string, namespace: unknown): ToolName {
    if (typeof namespace === 'string') return { name, namespace };
    if (this.own.has(name)) return { name };
    const [only, ...others] = [...this.own.values()].filter(({ own }) => own.name === name);
    return only && others.length === 0 ? only.own : { name };
  }

  private has(tool: Chosen): boolean {
    return tool.type === SEARCH ? this.searches.length > 0 : this.own.get(this.keyOf(tool))?.type === tool.type;
  }

  private keyOf(tool: Chosen): string {
    return tool.type === SEARCH ? SEARCH : this.calledBy(tool);
  }
}

function isAllowed(choice: Choice): choice is AllowedTools {
  return typeof choice === 'object' && choice.type === 'allowed_tools';
}

/** A call of a tool with plain text, as the arguments of the function that stands for it. */
export function toFunctionArguments(input: string): string {
  return JSON.stringify({ [ARGUMENT]: input });
}

/** The plain text in such arguments; a model that has not kept to them has written the text itself. */
export function parseToolInput(args: string): string {
  try {
    const given = (JSON.parse(args) as JsonObject | null)?.[ARGUMENT];
    if (typeof given === 'string') return given;
  } catch {} // it is the text
  return args;
}

/** The same for the same tool, always: names of earlier calls must not change. A long one keeps its end, and has a mark. */
function flatName(namespace: string, name: string): string {
  const joined = `${namespace}${namespace.endsWith(SEPARATOR) ? '' : SEPARATOR}${name}`;
  const flat = joined.replace(UNNAMEABLE, '_');
  if (flat === joined && flat.length <= MOST_CHARACTERS) return flat;
  const mark = markOf(joined);
  return `${mark}${SEPARATOR}${flat.slice(-(MOST_CHARACTERS - mark.length - SEPARATOR.length))}`;
}

/** A short fingerprint (FNV-1a): two names of one request are not meant to have the same one, and are refused then. */
function markOf(text: string): string {
  let mark = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) mark = Math.imul(mark ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return `n${mark.toString(36)}`;
}

function nameOf({ name }: JsonObject, param: string): string {
  if (typeof name === 'string' && name !== '') return name;
  throw refusal(`${param}.name must be a string`, `${param}.name`);
}

function aboutOf({ description }: JsonObject): JsonObject {
  return typeof description === 'string' ? { description } : {};
}

function functionOf(tool: JsonObject): JsonObject {
  return { ...aboutOf(tool), parameters: readableIn(tool.parameters ?? null), strict: tool.strict ?? null };
}

/** OpenAI would encrypt arguments that a schema marks so, and could alone read them; to other vendors the mark is a mistake. */
function readableIn(schema: unknown): unknown {
  if (!isJsonObject(schema) || !isJsonObject(schema.properties)) return schema;
  const properties = Object.entries(schema.properties);
  if (!properties.some(([, each]) => isJsonObject(each) && each.encrypted === true)) return schema;
  const plain = properties.map(([name, each]) => {
    const { encrypted: _, ...rest } = isJsonObject(each) ? each : {};
    return [name, isJsonObject(each) ? rest : each];
  });
  return { ...schema, properties: Object.fromEntries(plain) };
}

function customOf(tool: JsonObject, param: string): JsonObject {
  const { format } = tool;
  if (format === undefined || format === null) return aboutOf(tool);
  // Chats nest a grammar, Responses do not.
  if (isJsonObject(format) && typeof format.type === 'string') {
    const { type, grammar } = format;
    return { ...aboutOf(tool), format: isJsonObject(grammar) ? { type, ...grammar } : format };
  }
  throw refusal(`${param}.format must be an object with a type`, `${param}.format`);
}

function chatFunction({ type, called: name, declared }: OwnTool): JsonObject {
  const about = type === 'function' ? declared : textFunction(declared);
  const given = Object.entries(about).filter(([, value]) => value !== null);
  return { type: 'function', function: { name, ...Object.fromEntries(given) } };
}

/** What a grammar would enforce can only be said. */
function textFunction({ description, format }: JsonObject): JsonObject {
  const { syntax, definition } = (format ?? {}) as JsonObject;
  const rules = definition ? [`The text keeps to this grammar (${syntax}):\n${definition}`] : [];
  const about = [...(description ? [description] : []), ...rules].join('\n\n');
  const text = { type: 'string', description: 'The input of the tool: plain text, word for word as it takes it' };
  const properties = { [ARGUMENT]: text };
  return {
    description: about === '' ? null : about,
    parameters: { type: 'object', properties, required: [ARGUMENT], additionalProperties: false },
  };
}

function refusal(message: string, param: string): InvalidRequestError {
  return new InvalidRequestError(400, message, param);
}
