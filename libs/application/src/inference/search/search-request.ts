/** What a request says about searching the web: by plugin, by tool, by OpenAI's option, or by `:online` behind the model's name. */
import type { TokenPricedModel } from '#catalogue';
import { InvalidRequestError } from '../../errors.ts';
import type { SearchLocation } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { calculateMaxCallPrice } from '../chat/chat-quote.ts';

export type Engine = 'exa' | 'native' | 'auto';

export interface SearchRequest {
  /** Whether the model decides; otherwise the web is searched before it answers. */
  readonly byModel: boolean;
  /** The model must search before anything else. */
  readonly first: boolean;
  readonly engine: Engine;
  readonly maxResults: number;
  /** Searches for one answer at most. */
  readonly maxUses: number;
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly location: SearchLocation | undefined;
  /** Only what the vendor has stored may be searched: no page is fetched. */
  readonly offline: boolean;
  /** The caller's own text above the results. */
  readonly prompt: string | undefined;
}

const DEFAULT_RESULTS = 5;
const MOST_RESULTS = 20;
/** Each search is followed by another call of the model, with all that was said and found before. */
const MOST_USES = 3;

/** How much is read, in OpenAI's words, as results of ours. */
const RESULTS_OF_SIZE = { low: 3, medium: DEFAULT_RESULTS, high: 10 } as const;
const LONGEST_PLACE = 256;

/** What asks for a search: OpenAI's and OpenRouter's names, old and new, for one tool. */
export const SEARCH_TOOL = /^(openrouter:)?web_search(_preview)?(_\d{4}_\d{2}_\d{2})?$/;
const ENGINES: ReadonlySet<unknown> = new Set<Engine>(['exa', 'native', 'auto']);

/** Tools that the caller runs itself. */
const OWN_TOOLS: ReadonlySet<string> = new Set(['function', 'custom']);

type Options = Readonly<Record<string, unknown>>;

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
  const plugin = pluginIn(plugins);
  const tool = tools?.find(isSearchTool) as Options | undefined;
  const option = optionIn(web_search_options);
  if (!online && !tool && !plugin && !option) return undefined;
  if (isFree(model)) return undefined;
  if (plugin ? plugin.enabled !== false : online && !tool) return read(plugin ?? {}, 'plugins', false, false);
  if (!plugin && option) return read(option, OPTION, false, false);
  if (!tool || body.tool_choice === 'none') return undefined;
  const { parameters, ...own } = tool;
  const options = { ...own, ...(own.filters as Options | undefined), ...(parameters as Options | undefined) };
  return read(options, 'tools', true, mustSearch(body));
}

/**
 * The request without what is done for it, which no upstream knows. A choice of tools goes with the last of them, and
 * with the tool that it names; where no endpoint of the model knows tools, so do all others.
 */
export function removeSearchOptions(body: ChatBody, model: TokenPricedModel): ChatBody {
  if (body.tools === undefined || body.tools === null) return body;
  const knowsTools = model.endpoints.some(({ parameters }) => parameters.includes('tools'));
  const others = knowsTools ? body.tools.filter((tool) => !isSearchTool(tool)) : [];
  if (others.length === body.tools.length && others.length > 0) return body;
  const left: Record<string, unknown> = { ...body, tools: others };
  if (others.length === 0) for (const field of ['tools', 'tool_choice', 'parallel_tool_calls']) delete left[field];
  else if (isSearchTool(body.tool_choice)) delete left.tool_choice;
  return left as ChatBody;
}

/** Whether an answer is free: then no paid service may come with it. */
export function isFree({ endpoints }: TokenPricedModel): boolean {
  return endpoints.every(({ tariff }) => calculateMaxCallPrice(1, 1, tariff) === 0n);
}

/**
 * Vendors run tools of their own and bill for them: there are prices for the caller's own tools and for searches alone.
 * Connectors send no others either; here they are refused before money is held.
 * @throws InvalidRequestError 400 that names the tool
 */
export function assertPriced({ tools }: ChatBody): void {
  for (const [i, tool] of (tools ?? []).entries()) {
    const type = typeOf((tool ?? {}) as Options);
    if (OWN_TOOLS.has(type) || isSearchTool(tool)) continue;
    const message = type === '' ? `tools[${i}].type must be a string` : `Tools of the type "${type}" are not supported`;
    throw new InvalidRequestError(400, message, `tools[${i}].type`);
  }
}

/** The type of a tool; without one, its first field says what it is. */
function typeOf({ type, ...tool }: Options): string {
  if (typeof type === 'string') return type;
  return 'function' in tool ? 'function' : (Object.keys(tool)[0] ?? '');
}

function isSearchTool(tool: unknown): boolean {
  const type = (tool as { type?: unknown } | null)?.type;
  return typeof type === 'string' && SEARCH_TOOL.test(type);
}

/** https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat: it searches before every answer. */
const OPTION = 'web_search_options';

function optionIn(option: unknown): Options | undefined {
  if (option === undefined || option === null) return undefined;
  if (typeof option === 'object' && !Array.isArray(option)) return option as Options;
  throw new InvalidRequestError(400, `${OPTION} must be an object`, OPTION);
}

/** By naming the tool, or by requiring any where there is no other. */
function mustSearch({ tool_choice, tools }: ChatBody): boolean {
  return isSearchTool(tool_choice) || (tool_choice === 'required' && tools?.every(isSearchTool) === true);
}

function pluginIn(plugins: unknown): Options | undefined {
  if (plugins === undefined || plugins === null) return undefined;
  if (!Array.isArray(plugins)) throw new InvalidRequestError(400, 'plugins must be an array of objects', 'plugins');
  for (const [i, plugin] of plugins.entries()) {
    if ((plugin as Options | null)?.id === 'web') continue;
    throw new InvalidRequestError(400, `plugins[${i}].id must be "web": there is no other plugin`, `plugins[${i}].id`);
  }
  return plugins[0];
}

type Place = 'plugins' | 'tools' | typeof OPTION;

function read(options: Options, place: Place, byModel: boolean, first: boolean): SearchRequest {
  const wrong = (field: string, must: string) =>
    new InvalidRequestError(400, `${field} of the web search must be ${must}`, `${place}.${field}`);
  const count = (field: string, byDefault: number, most: number) => {
    const value = options[field] ?? byDefault;
    if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most) return value as number;
    throw wrong(field, `a whole number from 1 to ${most}`);
  };
  const domains = (...fields: readonly [string, ...string[]]) => {
    const field = fields.find((each) => (options[each] ?? null) !== null) ?? fields[0];
    const value = options[field] ?? [];
    if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value as readonly string[];
    throw wrong(field, 'a list of domains');
  };
  const size = options.search_context_size ?? 'medium';
  if (!Object.hasOwn(RESULTS_OF_SIZE, String(size))) throw wrong('search_context_size', 'low, medium or high');
  const engine = options.engine ?? 'auto';
  if (!ENGINES.has(engine)) throw wrong('engine', 'exa, native or auto');
  return {
    byModel,
    first,
    engine: engine as Engine,
    maxResults: count('max_results', RESULTS_OF_SIZE[size as keyof typeof RESULTS_OF_SIZE], MOST_RESULTS),
    maxUses: Math.min(count('max_uses', MOST_USES, Number.MAX_SAFE_INTEGER), MOST_USES),
    // OpenRouter's names for the plugin, and its and OpenAI's for the tool.
    includeDomains: domains('include_domains', 'allowed_domains'),
    excludeDomains: domains('exclude_domains', 'excluded_domains', 'blocked_domains'),
    location: locationIn(options.user_location, (must) => wrong('user_location', must)),
    offline: options.external_web_access === false,
    prompt: typeof options.search_prompt === 'string' ? options.search_prompt : undefined,
  };
}

/** In the words of the tool, or of the option, which has them one level deeper. */
function locationIn(given: unknown, wrong: (must: string) => InvalidRequestError): SearchLocation | undefined {
  if (given === undefined || given === null) return undefined;
  const { type, approximate, ...flat } = given as Options;
  const place = (approximate ?? flat) as Options | null;
  if (type !== 'approximate' || typeof place !== 'object' || place === null)
    throw wrong('an object of the type "approximate"');
  const known: Partial<Record<keyof SearchLocation, string>> = {};
  for (const field of ['city', 'region', 'country', 'timezone'] as const) {
    const value = place[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'string' || value.length > LONGEST_PLACE) throw wrong(`one whose ${field} is a short text`);
    known[field] = value;
  }
  if (known.country !== undefined && !/^[A-Za-z]{2}$/.test(known.country))
    throw wrong('one whose country has two letters');
  return known;
}
