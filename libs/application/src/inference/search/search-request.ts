/** What a request says about searching the web: by plugin, by tool, by OpenAI's option, or by `:online` behind the model's name. */
import type { TokenPricedModel } from '#catalogue';
import { InvalidRequestError } from '../../errors.ts';
import type { SearchLocation } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { calculateMaxCallPrice } from '../chat/chat-quote.ts';

export type SearchEngine = 'exa' | 'native' | 'auto';

export interface SearchRequest {
  /** Whether the model decides; otherwise the web is searched before it answers. */
  readonly isModelDecided: boolean;
  /** The model must search before anything else. */
  readonly isRequired: boolean;
  readonly engine: SearchEngine;
  readonly maxResults: number;
  /** Searches for one answer at most. */
  readonly maxUses: number;
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly location: SearchLocation | undefined;
  /** Only what the vendor has stored may be searched: no page is fetched. */
  readonly isOffline: boolean;
  /** The caller's own text above the results. */
  readonly prompt: string | undefined;
}

const DEFAULT_RESULTS = 5;
const MAX_RESULTS = 20;
/** Each search is followed by another call of the model, with all that was said and found before. */
const MAX_USES = 3;

/** How much is read, in OpenAI's words, as results of ours. */
const RESULTS_BY_SIZE = { low: 3, medium: DEFAULT_RESULTS, high: 10 } as const;
const MAX_LOCATION_LENGTH = 256;

/** What asks for a search: OpenAI's and OpenRouter's names, old and new, for one tool. */
export const SEARCH_TOOL = /^(openrouter:)?web_search(_preview)?(_\d{4}_\d{2}_\d{2})?$/;
const ENGINES: ReadonlySet<unknown> = new Set<SearchEngine>(['exa', 'native', 'auto']);

/** Tools that the caller runs itself. */
const CLIENT_TOOL_TYPES: ReadonlySet<string> = new Set(['function', 'custom']);

type SearchOptions = Readonly<Record<string, unknown>>;

/**
 * The search that a request asks for. Free models never search, whatever the request says. A plugin
 * that is switched off also switches `:online` off.
 * @throws InvalidRequestError 400 that names what is wrong
 */
export function parseSearchRequest(
  body: ChatBody,
  model: TokenPricedModel,
  online: boolean,
): SearchRequest | undefined {
  const { plugins, tools, web_search_options } = body;
  const plugin = parsePlugin(plugins);
  const tool = tools?.find(isSearchTool) as SearchOptions | undefined;
  const option = parseOption(web_search_options);
  if (!online && !tool && !plugin && !option) return undefined;
  if (isFreeModel(model)) return undefined;
  if (plugin ? plugin.enabled !== false : online && !tool) return parseOptions(plugin ?? {}, 'plugins', false, false);
  if (!plugin && option) return parseOptions(option, OPTION, false, false);
  if (!tool || body.tool_choice === 'none') return undefined;
  const { parameters, ...toolOptions } = tool;
  const options = {
    ...toolOptions,
    ...(toolOptions.filters as SearchOptions | undefined),
    ...(parameters as SearchOptions | undefined),
  };
  return parseOptions(options, 'tools', true, isSearchRequired(body));
}

/**
 * The request without what is done for it, which no upstream knows. A choice of tools goes with the last of them, and
 * with the tool that it names; where no endpoint of the model knows tools, so do all others.
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

/** Whether an answer is free: then no paid service may come with it. */
export function isFreeModel({ endpoints }: TokenPricedModel): boolean {
  return endpoints.every(({ tariff }) => calculateMaxCallPrice(1, 1, tariff) === 0n);
}

/**
 * Vendors run tools of their own and bill for them: there are prices for the caller's own tools and for searches alone.
 * Connectors send no others either; here they are refused before money is held.
 * @throws InvalidRequestError 400 that names the tool
 */
export function assertSupportedTools({ tools }: ChatBody): void {
  for (const [i, tool] of (tools ?? []).entries()) {
    const type = getToolType((tool ?? {}) as SearchOptions);
    if (CLIENT_TOOL_TYPES.has(type) || isSearchTool(tool)) continue;
    const message = type === '' ? `tools[${i}].type must be a string` : `Tools of the type "${type}" are not supported`;
    throw new InvalidRequestError(400, message, `tools[${i}].type`);
  }
}

/** The type of a tool; without one, its first field says what it is. */
function getToolType({ type, ...tool }: SearchOptions): string {
  if (typeof type === 'string') return type;
  return 'function' in tool ? 'function' : (Object.keys(tool)[0] ?? '');
}

function isSearchTool(tool: unknown): boolean {
  const type = (tool as { type?: unknown } | null)?.type;
  return typeof type === 'string' && SEARCH_TOOL.test(type);
}

/** https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat: it searches before every answer. */
const OPTION = 'web_search_options';

function parseOption(option: unknown): SearchOptions | undefined {
  if (option === undefined || option === null) return undefined;
  if (typeof option === 'object' && !Array.isArray(option)) return option as SearchOptions;
  throw new InvalidRequestError(400, `${OPTION} must be an object`, OPTION);
}

/** By naming the tool, or by requiring any where there is no other. */
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

function parseOptions(
  options: SearchOptions,
  source: OptionSource,
  isModelDecided: boolean,
  isRequired: boolean,
): SearchRequest {
  const invalidOption = (field: string, requirement: string) =>
    new InvalidRequestError(400, `${field} of the web search must be ${requirement}`, `${source}.${field}`);
  const parseCount = (field: string, byDefault: number, max: number) => {
    const value = options[field] ?? byDefault;
    if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max) return value as number;
    throw invalidOption(field, `a whole number from 1 to ${max}`);
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
    // OpenRouter's names for the plugin, and its and OpenAI's for the tool.
    includeDomains: parseDomains('include_domains', 'allowed_domains'),
    excludeDomains: parseDomains('exclude_domains', 'excluded_domains', 'blocked_domains'),
    location: parseLocation(options.user_location, (requirement) => invalidOption('user_location', requirement)),
    isOffline: options.external_web_access === false,
    prompt: typeof options.search_prompt === 'string' ? options.search_prompt : undefined,
  };
}

/** In the words of the tool, or of the option, which has them one level deeper. */
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
      throw invalidLocation(`one whose ${field} is a short text`);
    location[field] = value;
  }
  if (location.country !== undefined && !/^[A-Za-z]{2}$/.test(location.country))
    throw invalidLocation('one whose country has two letters');
  return location;
}
