/** Parses the web search of a request: a plugin, a tool, OpenAI's option, or the suffix `:online` of the model name. */
import type { TokenPricedModel } from '#catalogue';
import { InvalidRequestError } from '../../errors.ts';
import type { SearchLocation } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';

export type SearchEngine = 'exa' | 'native' | 'auto';

export interface SearchRequest {
  /** Whether the model decides if the web is searched; otherwise it is always searched. */
  readonly isModelDecided: boolean;
  /** The model must search before it generates a response. */
  readonly isRequired: boolean;
  readonly engine: SearchEngine;
  readonly maxResults: number;
  /** Maximum number of searches for one request. */
  readonly maxUses: number;
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly location: SearchLocation | undefined;
  /** Only pages that the provider has stored may be searched; none is fetched. */
  readonly isOffline: boolean;
  /** The caller's text above the results; undefined for the default text. */
  readonly prompt: string | undefined;
}

const DEFAULT_RESULTS = 5;
const MAX_RESULTS = 20;
/** Limits the cost of a request: after each search the model reads the conversation and all results again. */
const MAX_USES = 3;

/** Number of results for OpenAI's `search_context_size`. */
const RESULTS_BY_SIZE = { low: 3, medium: DEFAULT_RESULTS, high: 10 } as const;
const MAX_LOCATION_LENGTH = 256;

/** Types of the web search tool: OpenAI's and OpenRouter's names, old and new. */
export const SEARCH_TOOL = /^(openrouter:)?web_search(_preview)?(_\d{4}_\d{2}_\d{2})?$/;
const ENGINES: ReadonlySet<unknown> = new Set<SearchEngine>(['exa', 'native', 'auto']);

/** Types of tools that the caller runs itself. */
const CLIENT_TOOL_TYPES: ReadonlySet<string> = new Set(['function', 'custom']);

type SearchOptions = Readonly<Record<string, unknown>>;

/** The search that a request contains, before its options are validated. */
export interface RequestedSearch extends Pick<SearchRequest, 'isModelDecided' | 'isRequired'> {
  readonly options: SearchOptions;
  readonly source: OptionSource;
}

/**
 * Finds the search that a request contains. A plugin takes precedence over the option, and the option over the tool.
 * Without a plugin and a tool, `:online` counts as a plugin. A disabled plugin also disables `:online` and the option.
 * @returns undefined if no search is requested
 * @throws InvalidRequestError (400) naming the invalid field
 */
export function findRequestedSearch(body: ChatBody, online: boolean): RequestedSearch | undefined {
  const { plugins, tools, web_search_options } = body;
  const plugin = parsePlugin(plugins);
  const tool = tools?.find(isSearchTool) as SearchOptions | undefined;
  const option = parseOption(web_search_options);
  const always = { isModelDecided: false, isRequired: false };
  if (plugin ? plugin.enabled !== false : online && !tool)
    return { options: plugin ?? {}, source: 'plugins', ...always };
  if (!plugin && option) return { options: option, source: OPTION, ...always };
  if (!tool || body.tool_choice === 'none') return undefined;
  const { parameters, ...toolOptions } = tool;
  const options = {
    ...toolOptions,
    ...(toolOptions.filters as SearchOptions | undefined),
    ...(parameters as SearchOptions | undefined),
  };
  return { options, source: 'tools', isModelDecided: true, isRequired: isSearchRequired(body) };
}

/** Whether the caller has chosen who searches. Models of the free tier search only then. */
export function namesEngine({ options }: RequestedSearch): boolean {
  return options.engine !== undefined && options.engine !== null;
}

/**
 * Removes the web search tool, which no provider supports in this form, and a `tool_choice` that names it. Removes all
 * tools if no endpoint of the model supports tools. If no tool remains, also removes the fields that apply to tools.
 */
export function removeSearchOptions(body: ChatBody, model: TokenPricedModel): ChatBody {
  if (body.tools === undefined || body.tools === null) return body;
  const knowsTools = model.endpoints.some(({ parameters }) => parameters.includes('tools'));
  const otherTools = knowsTools ? body.tools.filter((tool) => !isSearchTool(tool)) : [];
  if (otherTools.length === body.tools.length && otherTools.length > 0) return body;
  const remainingBody: Record<string, unknown> = { ...body, tools: otherTools };
  if (otherTools.length === 0)
    for (const field of ['tools', 'tool_choice', 'parallel_tool_calls']) delete remainingBody[field];
  else if (isSearchTool(body.tool_choice)) delete remainingBody.tool_choice;
  return remainingBody as ChatBody;
}

/**
 * Rejects tools that the provider would run and bill, because no such tool except a web search has a price.
 * Connectors do not send such tools either, but here the request is rejected before money is held.
 * @throws InvalidRequestError (400) naming the tool
 */
export function assertSupportedTools({ tools }: ChatBody): void {
  for (const [i, tool] of (tools ?? []).entries()) {
    const { type } = (tool ?? {}) as SearchOptions;
    if (typeof type === 'string' && (CLIENT_TOOL_TYPES.has(type) || isSearchTool(tool))) continue;
    const message =
      typeof type === 'string'
        ? `Tools of the type "${type}" are not supported`
        : `tools[${i}].type must be a string, such as "function"`;
    throw new InvalidRequestError(400, message, `tools[${i}].type`);
  }
}

function isSearchTool(tool: unknown): boolean {
  const type = (tool as { type?: unknown } | null)?.type;
  return typeof type === 'string' && SEARCH_TOOL.test(type);
}

/** OpenAI's option; always searches: https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat */
const OPTION = 'web_search_options';

function parseOption(option: unknown): SearchOptions | undefined {
  if (option === undefined || option === null) return undefined;
  if (typeof option === 'object' && !Array.isArray(option)) return option as SearchOptions;
  throw new InvalidRequestError(400, `${OPTION} must be an object`, OPTION);
}

/** Whether `tool_choice` names the search tool, or requires a tool call and there is no other tool. */
function isSearchRequired({ tool_choice, tools }: ChatBody): boolean {
  return isSearchTool(tool_choice) || (tool_choice === 'required' && tools?.every(isSearchTool) === true);
}

function parsePlugin(plugins: unknown): SearchOptions | undefined {
  if (plugins === undefined || plugins === null) return undefined;
  if (!Array.isArray(plugins)) throw new InvalidRequestError(400, 'plugins must be an array of objects', 'plugins');
  for (const [i, plugin] of plugins.entries()) {
    if ((plugin as SearchOptions | null)?.id === 'web') continue;
    throw new InvalidRequestError(400, `plugins[${i}].id must be "web": there is no other plugin`, `plugins[${i}].id`);
  }
  return plugins[0];
}

type OptionSource = 'plugins' | 'tools' | typeof OPTION;

/** @throws InvalidRequestError (400) naming the invalid option */
export function parseSearchRequest({ options, source, isModelDecided, isRequired }: RequestedSearch): SearchRequest {
  const invalidOption = (field: string, requirement: string) =>
    new InvalidRequestError(400, `${field} of the web search must be ${requirement}`, `${source}.${field}`);
  const parseCount = (field: string, byDefault: number, max: number) => {
    const value = options[field] ?? byDefault;
    if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max) return value as number;
    throw invalidOption(field, `an integer from 1 to ${max}`);
  };
  const parseDomains = (...fields: readonly [string, ...string[]]) => {
    const field = fields.find((name) => (options[name] ?? null) !== null) ?? fields[0];
    const value = options[field] ?? [];
    if (Array.isArray(value) && value.every((domain) => typeof domain === 'string')) return value as readonly string[];
    throw invalidOption(field, 'a list of domains');
  };
  const size = options.search_context_size ?? 'medium';
  if (!Object.hasOwn(RESULTS_BY_SIZE, String(size))) throw invalidOption('search_context_size', 'low, medium or high');
  const engine = options.engine ?? 'auto';
  if (!ENGINES.has(engine)) throw invalidOption('engine', 'exa, native or auto');
  return {
    isModelDecided,
    isRequired,
    engine: engine as SearchEngine,
    maxResults: parseCount('max_results', RESULTS_BY_SIZE[size as keyof typeof RESULTS_BY_SIZE], MAX_RESULTS),
    maxUses: Math.min(parseCount('max_uses', MAX_USES, Number.MAX_SAFE_INTEGER), MAX_USES),
    // OpenRouter's names for the plugin, then those of OpenRouter and OpenAI for the tool.
    includeDomains: parseDomains('include_domains', 'allowed_domains'),
    excludeDomains: parseDomains('exclude_domains', 'excluded_domains', 'blocked_domains'),
    location: parseLocation(options.user_location, (requirement) => invalidOption('user_location', requirement)),
    isOffline: options.external_web_access === false,
    prompt: typeof options.search_prompt === 'string' ? options.search_prompt : undefined,
  };
}

/** Parses a location in the format of the tool, or of the option, whose fields are nested in `approximate`. */
function parseLocation(
  rawLocation: unknown,
  invalidLocation: (requirement: string) => InvalidRequestError,
): SearchLocation | undefined {
  if (rawLocation === undefined || rawLocation === null) return undefined;
  const { type, approximate, ...flat } = rawLocation as SearchOptions;
  const locationFields = (approximate ?? flat) as SearchOptions | null;
  if (type !== 'approximate' || typeof locationFields !== 'object' || locationFields === null)
    throw invalidLocation('an object of the type "approximate"');
  const location: Partial<Record<keyof SearchLocation, string>> = {};
  for (const field of ['city', 'region', 'country', 'timezone'] as const) {
    const value = locationFields[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'string' || value.length > MAX_LOCATION_LENGTH)
      throw invalidLocation(`an object whose ${field} is a short string`);
    location[field] = value;
  }
  if (location.country !== undefined && !/^[A-Za-z]{2}$/.test(location.country))
    throw invalidLocation('an object whose country is a two-letter code');
  return location;
}
