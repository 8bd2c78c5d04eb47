/** How the web is searched for an answer: by which side, when, and for how much. */
import type { Catalogue, Endpoint, TokenPricedModel } from '#catalogue';
import type { Tariff } from '#domain';
import { InvalidRequestError } from '../../errors.ts';
import type { NativeSearch, SearchLocation } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import type { SearchRequest } from './search-request.ts';

/** The fee's name in price lists and books. */
export const WEB_SEARCH = 'web_search';
/** Longer queries find nothing better. */
const MAX_QUERY_LENGTH = 2_000;

/** What all searches of one answer have in common. */
export interface SearchTerms {
  readonly maxResults: number;
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly location?: SearchLocation | undefined;
  readonly fee: Tariff;
}

/** The web is searched once, for the last question, before the model is asked. */
export interface PreSearchPlan extends SearchTerms {
  readonly kind: 'pre_search';
  readonly query: string;
  /** The caller's own text above the results; ours where it is omitted. */
  readonly prompt: string | undefined;
}

/** The model is offered a tool, and its calls of it are answered. */
export interface ToolSearchPlan extends SearchTerms {
  readonly kind: 'tool';
  readonly maxUses: number;
  readonly isRequired: boolean;
}

/** The upstream searches while it answers, and invoices each search. */
export interface NativeSearchPlan {
  readonly kind: 'upstream';
  readonly isModelDecided: boolean;
  readonly native: NativeSearch;
  readonly fee: Tariff;
}

/** The model searches for every answer, and that is in its price. */
export interface BuiltInSearchPlan {
  readonly kind: 'built_in';
}

export type SearchPlan = PreSearchPlan | ToolSearchPlan | NativeSearchPlan | BuiltInSearchPlan;

/** What is asked, and who may serve it, in their order. */
export interface SearchPlanParams {
  /** Without the tool that asks for the search. */
  readonly body: ChatBody;
  readonly model: TokenPricedModel;
  readonly endpoints: readonly Endpoint[];
  /** Nobody who is asked may keep anything of the question. */
  readonly zdr: boolean;
}

/** The plan and the endpoints that serve a request. */
export interface PlannedSearch {
  readonly plan: SearchPlan | undefined;
  readonly endpoints: readonly Endpoint[];
}

/**
 * Where no engine is named, the endpoint that would be asked first searches if it can. Models that cannot call tools, and
 * answers with several choices, are searched for in advance.
 * @throws InvalidRequestError 400 for a search that is not available, 404 where each would keep the question
 */
export function planSearch(
  request: SearchRequest,
  { body, model, endpoints, zdr }: SearchPlanParams,
  catalogue: Pick<Catalogue, 'findService' | 'hasZeroDataRetention'>,
): PlannedSearch {
  const allowsService = (service: string) => !zdr || catalogue.hasZeroDataRetention(service);
  if (request.engine !== 'exa') {
    if (model.searchesWeb) return { plan: { kind: 'built_in' }, endpoints };
    const searches = hasFunction(body, WEB_SEARCH) ? [] : endpoints.filter((endpoint) => canSearch(endpoint, body));
    const capable = searches.filter(({ searchFee }) => allowsService(String(searchFee)));
    const [first] = request.engine === 'native' ? capable : endpoints;
    const fee = first?.searchFee && capable.includes(first) ? catalogue.findService(first.searchFee) : undefined;
    if (fee) {
      const alike = capable.filter(({ searchFee }) => searchFee === fee.of);
      return {
        plan: { kind: 'upstream', isModelDecided: request.isModelDecided, native: toNativeSearch(request), fee },
        endpoints: alike,
      };
    }
    if (request.engine === 'native')
      throw searches.length > 0 ? createRetentionError(model) : createNoNativeSearchError(model, request);
  }
  if (!allowsService(WEB_SEARCH)) throw createRetentionError(model);
  const fee = catalogue.findService(WEB_SEARCH);
  return { plan: fee && createPlan(request, body, endpoints, fee), endpoints };
}

function createPlan(
  { isModelDecided, isRequired, maxUses, maxResults, includeDomains, excludeDomains, location, prompt }: SearchRequest,
  body: ChatBody,
  endpoints: readonly Endpoint[],
  fee: Tariff,
): SearchPlan | undefined {
  const terms = { maxResults, includeDomains, excludeDomains, location, fee };
  const callsTools = endpoints.every(({ parameters }) => parameters.includes('tools'));
  if (isModelDecided && callsTools && (body.n ?? 1) === 1) return { kind: 'tool', ...terms, maxUses, isRequired };
  const query = getLastUserText(body).slice(0, MAX_QUERY_LENGTH);
  return query.trim() === '' ? undefined : { kind: 'pre_search', ...terms, query, prompt };
}

function toNativeSearch({ isModelDecided, isRequired, ...search }: SearchRequest): NativeSearch {
  const { maxUses, includeDomains, excludeDomains, location, isOffline } = search;
  if (includeDomains.length > 0 && excludeDomains.length > 0) {
    const message = 'A search of the model’s own takes domains to include or domains to exclude, not both';
    throw new InvalidRequestError(400, message, isModelDecided ? 'tools' : 'plugins');
  }
  return { maxUses, isRequired: isRequired || !isModelDecided, includeDomains, excludeDomains, location, isOffline };
}

/** Whether an endpoint searches by itself: for one answer only, also where it gives several without a search. */
function canSearch({ searchFee }: Endpoint, { n }: ChatBody): boolean {
  return searchFee !== undefined && (n ?? 1) === 1;
}

export function hasFunction({ tools }: ChatBody, name: string): boolean {
  return (tools ?? []).some((tool) => (tool as { function?: { name?: unknown } } | null)?.function?.name === name);
}

/** The words of the last user message. */
function getLastUserText({ messages }: ChatBody): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content;
  if (typeof content === 'string') return content;
  const parts = Array.isArray(content) ? (content as readonly { text?: unknown }[]) : [];
  return parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])).join('\n');
}

function createRetentionError({ id }: TokenPricedModel): InvalidRequestError {
  const message = `No endpoints found for ${id} with a web search: provider.zdr is set, and the search keeps data`;
  return new InvalidRequestError(404, message, 'provider');
}

function createNoNativeSearchError({ id }: TokenPricedModel, { isModelDecided }: SearchRequest): InvalidRequestError {
  const message = `engine of the web search must be exa: ${id} has no search of its own`;
  return new InvalidRequestError(400, message, `${isModelDecided ? 'tools' : 'plugins'}.engine`);
}
