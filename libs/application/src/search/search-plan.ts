/** Whether the web is searched for a chat, by whom, and what the model gets to see of it. */
import type { Catalogue, Model } from '#catalogue';
import type { Fee } from '#domain';
import type { ChatBody } from '../chat/body.ts';
import type { AnswerIdentity } from '../chat/upstream.ts';
import { UnservableRequest } from '../failures.ts';
import { MAX_RESULT_CHARACTERS, type SearchResult } from './web-search.ts';

/** The fee's name in price lists and books. */
export const WEB_SEARCH = 'web_search';

const DEFAULT_RESULTS = 5;
const MOST_RESULTS = 20;
/** Title and address of a result, in tokens at most. */
const RESULT_HEAD = 300;
/** Longer questions find nothing better. */
const MAX_QUERY = 2_000;

/** What asks for a search; the second is the name that OpenRouter gave it. */
const TOOL_TYPES: ReadonlySet<unknown> = new Set(['web_search', 'openrouter:web_search']);
const ENGINES: ReadonlySet<unknown> = new Set(['exa', 'native', 'auto']);

export interface SearchPlan {
  readonly query: string;
  readonly maxResults: number;
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  /** What stands above the results; the caller's own words, if there are any. */
  readonly prompt: string;
  readonly fee: Fee;
}

type Options = Readonly<Record<string, unknown>>;

/**
 * The search that a request asks for by plugin, tool or `:online`, where it is ours to make. Models that cost nothing
 * search nothing; those that search by themselves do so without us, unless another engine is named.
 * @throws UnservableRequest 400 that names what is wrong
 */
export function searchPlan(
  body: ChatBody,
  model: Model,
  online: boolean,
  catalogue: Catalogue,
): SearchPlan | undefined {
  const asked = pluginIn(body.plugins) ?? toolIn(body.tools) ?? (online ? {} : undefined);
  if (asked === undefined || asked.enabled === false) return undefined;
  const engine = asked.engine ?? 'auto';
  if (!ENGINES.has(engine)) throw wrong('engine', 'exa, native or auto');
  const searchesByItself = model.searchesWeb === true;
  if (engine === 'native' && !searchesByItself) throw wrong('engine', `exa: ${model.id} has no search of its own`);
  if (engine !== 'exa' && searchesByItself) return undefined;
  const fee = catalogue.feeFor(WEB_SEARCH);
  const query = questionOf(body).slice(0, MAX_QUERY);
  if (fee === undefined || query.trim() === '' || isFree(model)) return undefined;
  return {
    query,
    maxResults: resultsIn(asked.max_results),
    includeDomains: domainsIn(asked, 'include_domains'),
    excludeDomains: domainsIn(asked, 'exclude_domains'),
    prompt: typeof asked.search_prompt === 'string' ? asked.search_prompt : promptOf(new Date()),
    fee,
  };
}

/** The request without what has been done for it: no upstream knows our tool. */
export function withoutSearchTool(body: ChatBody): ChatBody {
  if (!body.tools?.some(isSearchTool)) return body;
  const { tools, tool_choice, ...rest } = body;
  const others = tools.filter((tool) => !isSearchTool(tool));
  const choice = others.length > 0 && !isSearchTool(tool_choice) ? { tool_choice } : {};
  return { ...rest, ...(others.length > 0 ? { tools: others } : {}), ...choice } as ChatBody;
}

/** Tokens that the results of a search add to the input at most. */
export function boundResultTokens({ maxResults, prompt }: SearchPlan): number {
  return maxResults * (MAX_RESULT_CHARACTERS + RESULT_HEAD) + prompt.length + RESULT_HEAD;
}

/** The conversation with the results in front of its last question. */
export function withResults(body: ChatBody, { prompt }: SearchPlan, results: readonly SearchResult[]): ChatBody {
  const found = results.map(({ title, url, text }, i) => `[${i + 1}] ${title}\n${url}\n${text}`).join('\n\n');
  const content = `${prompt}\n\n${found === '' ? 'The search found nothing.' : found}`;
  const last = body.messages.findLastIndex(({ role }) => role === 'user');
  return { ...body, messages: body.messages.toSpliced(last, 0, { role: 'system', content }) };
}

/** Sources as OpenAI's clients know them; `content` is OpenRouter's addition. */
function citationsOf(results: readonly SearchResult[]): readonly object[] {
  return results.map(({ url, title, text }) => ({
    type: 'url_citation',
    url_citation: { url, title, content: text, start_index: 0, end_index: 0 },
  }));
}

/** The event that tells a stream's client of the sources, in front of the answer. */
export function citationEvent({ id, model, provider }: AnswerIdentity, results: readonly SearchResult[]): Uint8Array {
  const delta = { role: 'assistant', content: '', annotations: citationsOf(results) };
  const choices = [{ index: 0, delta, finish_reason: null }];
  const chunk = {
    id,
    object: 'chat.completion.chunk',
    created: Math.floor(Date.now() / 1000),
    model,
    provider,
    choices,
  };
  return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
}

/** An answer in one piece with its sources. */
export function withCitations(body: Readonly<Record<string, unknown>>, results: readonly SearchResult[]) {
  const choices = body.choices as readonly { readonly message?: Readonly<Record<string, unknown>> }[];
  const annotations = citationsOf(results);
  const cited = choices.map(({ message, ...choice }) => ({ ...choice, message: { ...message, annotations } }));
  return { ...body, choices: cited };
}

function pluginIn(plugins: unknown): Options | undefined {
  if (plugins === undefined || plugins === null) return undefined;
  const well = Array.isArray(plugins) && plugins.every((each) => typeof each === 'object' && each !== null);
  if (!well) throw new UnservableRequest(400, 'plugins must be an array of objects with an id', 'plugins');
  return plugins.find(({ id }) => id === 'web');
}

function toolIn(tools: ChatBody['tools']): Options | undefined {
  const tool = tools?.find(isSearchTool) as { parameters?: Options } | undefined;
  return tool && (tool.parameters ?? {});
}

function isSearchTool(tool: unknown): boolean {
  return TOOL_TYPES.has((tool as { type?: unknown } | null)?.type);
}

function isFree({ endpoints }: Model): boolean {
  return endpoints.every(({ rates }) => rates.input + rates.output + rates.request === 0n);
}

function resultsIn(value: unknown): number {
  if (value === undefined || value === null) return DEFAULT_RESULTS;
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MOST_RESULTS) return value as number;
  throw wrong('max_results', `a whole number from 1 to ${MOST_RESULTS}`);
}

function domainsIn(asked: Options, field: string): readonly string[] {
  const value = asked[field] ?? [];
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
  throw wrong(field, 'a list of domains');
}

function wrong(field: string, must: string): UnservableRequest {
  return new UnservableRequest(400, `${field} of the web search must be ${must}`, `plugins.${field}`);
}

/** The words of the last user message. */
function questionOf({ messages }: ChatBody): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content;
  if (typeof content === 'string') return content;
  const parts = Array.isArray(content) ? (content as readonly { text?: unknown }[]) : [];
  return parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])).join('\n');
}

function promptOf(now: Date): string {
  const day = now.toISOString().slice(0, 10);
  return `The web was searched on ${day}. Use these results where they help, and name the sources you use as [title](address).`;
}
