/**
 * The web search of a model's own provider as OpenRouter offers it: a plugin, which always searches, and a server tool,
 * with which the model decides. https://openrouter.ai/docs/guides/features/plugins/web-search
 */
import { isJsonObject, type JsonObject } from '#kernel';
import { type Tool, type Toolbox, UNLIMITED_SEARCH } from '../provider/tools.ts';
import { invalidRequestError } from './errors.ts';
import type { OpenAiModel } from './models.ts';
import type { SandboxBody } from './parameters.ts';

/** Name of the only provider with this search. */
export const ROUTER = 'openrouter';

const PLUGIN = 'web';
const SERVER_TOOL = 'openrouter:web_search';
/** The models whose provider searches. */
const SEARCHING_MODELS = /^x-ai\//;
/** Maximum domains of xAI. */
const MAX_DOMAINS = 5;

/** @throws HttpError 400 for a search with another engine, of another model, of X, or with invalid domains */
export function assertRouterSearch(body: SandboxBody, { id }: OpenAiModel): void {
  for (const { path, settings } of [...listPlugins(body), ...listServerTools(body)]) {
    if (settings.engine !== 'native') throw invalidSearchError(path, 'engine must be native in the sandbox');
    if (!SEARCHING_MODELS.test(id)) throw invalidSearchError(path, `${id} has no native search`);
    if (settings.x_search !== undefined) throw invalidSearchError(path, 'x_search is not supported by the sandbox');
    const lists = ['include_domains', 'exclude_domains', 'allowed_domains', 'excluded_domains'].flatMap((name) =>
      name in settings ? [settings[name]] : [],
    );
    if (lists.length > 1) throw invalidSearchError(path, 'the lists of domains are mutually exclusive');
    if (lists.some((list) => !Array.isArray(list) || list.length > MAX_DOMAINS))
      throw invalidSearchError(path, `a list of domains must have at most ${MAX_DOMAINS}`);
  }
}

/** Returns the toolbox with the search of the plugin, which is then always made. */
export function withPluginSearch(toolbox: Toolbox, body: SandboxBody): Toolbox {
  if (listPlugins(body).length === 0) return toolbox;
  return { ...toolbox, tools: [...toolbox.tools, UNLIMITED_SEARCH], choice: { name: UNLIMITED_SEARCH.name } };
}

/** Returns the search if the tool is OpenRouter's server tool. xAI's models ignore its `max_uses`. */
export function parseServerTool({ type }: JsonObject): Tool | undefined {
  return type === SERVER_TOOL ? UNLIMITED_SEARCH : undefined;
}

interface RequestedSearch {
  /** Path of the search in the request. */
  readonly path: string;
  readonly settings: JsonObject;
}

function listPlugins({ plugins }: SandboxBody): readonly RequestedSearch[] {
  return toObjects(plugins).flatMap((plugin, at) =>
    plugin.id === PLUGIN && plugin.enabled !== false ? [{ path: `plugins[${at}]`, settings: plugin }] : [],
  );
}

function listServerTools({ tools }: SandboxBody): readonly RequestedSearch[] {
  return toObjects(tools).flatMap(({ type, parameters }, at) =>
    type === SERVER_TOOL ? [{ path: `tools[${at}]`, settings: isJsonObject(parameters) ? parameters : {} }] : [],
  );
}

function toObjects(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function invalidSearchError(path: string, problem: string) {
  return invalidRequestError(400, `Invalid web search in ${path}: ${problem}`, path);
}
