/** Plans the web search of a request: who searches, when, and for which fee. */
import type { Catalogue, Endpoint, HeldSearches, TokenPricedModel } from '#catalogue';
import type { Tariff } from '#domain';
import { InvalidRequestError } from '../../errors.ts';
import { assertOffered } from '../../missing-settings.ts';
import type { NativeSearch, SearchLocation } from '../../providers/web-search.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import type { SearchRequest } from './search-request.ts';

/** Name of the search fee in price lists and in the ledger. */
export const WEB_SEARCH = 'web_search';
/** Longer queries are truncated, because more text does not improve the results. */
const MAX_QUERY_LENGTH = 2_000;

/** Parameters of all searches by the gateway for one request. */
export interface SearchTerms {
  readonly maxResults: number;
  readonly includeDomains: readonly string[];
  readonly excludeDomains: readonly string[];
  readonly location?: SearchLocation | undefined;
  readonly fee: Tariff;
}

/** The gateway searches once, for the last user message, before the model is called. */
export interface PreSearchPlan extends SearchTerms {
  readonly kind: 'pre_search';
  readonly query: string;
  /** The caller's text above the results; undefined for the default text. */
  readonly prompt: string | undefined;
}

/** The model gets a search tool, and the gateway makes a search for each call of the tool. */
export interface ToolSearchPlan extends SearchTerms {
  readonly kind: 'tool';
  readonly maxUses: number;
  readonly isRequired: boolean;
}

/** The provider searches while the model generates, and invoices each search. */
export interface NativeSearchPlan {
  readonly kind: 'upstream';
  readonly isModelDecided: boolean;
  readonly native: NativeSearch;
  /** The hold pays for at least this number of searches, or the provider may not search. */
  readonly minUses: number;
  /** Whether the provider invoices the results as input, and the input again after each search. */
  readonly billsInput: boolean;
  readonly fee: Tariff;
}

/** The model always searches, and its price includes the searches. */
export interface BuiltInSearchPlan {
  readonly kind: 'built_in';
}

export type SearchPlan = PreSearchPlan | ToolSearchPlan | NativeSearchPlan | BuiltInSearchPlan;

/** The request, and the endpoints that may serve it, in order of preference. */
export interface SearchPlanParams {
  /** The request without the web search tool. */
  readonly body: ChatBody;
  readonly model: TokenPricedModel;
  readonly endpoints: readonly Endpoint[];
  /** Zero data retention: no provider may retain the query. */
  readonly zdr: boolean;
}

/** What the plan depends on besides the request. */
type SearchCatalogue = Pick<
  Catalogue,
  'findService' | 'hasZeroDataRetention' | 'canFilterDomains' | 'findHeldSearches' | 'listMissingSettings'
>;

/** The search plan, and the endpoints that can serve the request with it. */
export interface PlannedSearch {
  readonly plan: SearchPlan | undefined;
  readonly endpoints: readonly Endpoint[];
}

/**
 * Plans the search of a request. With the engine `exa` the gateway searches. Otherwise a model that always searches
 * does so itself. For other models, with the engine `auto`, the provider searches if the first endpoint supports this
 * by default for the request, with its excluded domains, else the gateway. The gateway gives the model a search tool if
 * the request lets the model decide, all endpoints support tools and `n` is 1. Otherwise the gateway searches before
 * the call.
 * @returns an undefined `plan` if the catalogue has no fee for the search, or there is no text to search for
 * @throws InvalidRequestError 400 if a native search is not available for the request or its domains conflict; 404 if
 *   the search would retain the query, which the request forbids, or if no provider here searches
 */
export function planSearch(
  request: SearchRequest,
  { body, model, endpoints, zdr }: SearchPlanParams,
  catalogue: SearchCatalogue,
): PlannedSearch {
  const allowsService = (service: string) => !zdr || catalogue.hasZeroDataRetention(service);
  if (request.engine !== 'exa') {
    if (model.searchesWeb) return { plan: { kind: 'built_in' }, endpoints };
    const searches = hasFunction(body, WEB_SEARCH) ? [] : endpoints.filter((endpoint) => canSearch(endpoint, body));
    const filtering = searches.filter(({ searchFee }) => catalogue.canFilterDomains(String(searchFee), request));
    const capable = filtering.filter(({ searchFee }) => allowsService(String(searchFee)));
    const isNative = request.engine === 'native';
    const [first] = isNative ? capable : endpoints;
    const canUseFirst = first !== undefined && capable.includes(first) && (isNative || !first.searchOnRequest);
    const fee = canUseFirst ? catalogue.findService(String(first.searchFee)) : undefined;
    if (fee) {
      const alike = capable.filter(({ searchFee }) => searchFee === fee.of);
      return { plan: createNativePlan(request, fee, catalogue.findHeldSearches(fee.of)), endpoints: alike };
    }
    if (isNative) {
      if (filtering.length > 0) throw createRetentionError(model);
      throw searches.length > 0 ? createDomainsError(model, request) : createNoNativeSearchError(model, request);
    }
  }
  if (!allowsService(WEB_SEARCH)) throw createRetentionError(model);
  assertOffered(catalogue, WEB_SEARCH, 'The web search', request.isModelDecided ? 'tools' : 'plugins');
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

function createNativePlan(request: SearchRequest, fee: Tariff, heldSearches: HeldSearches | undefined): SearchPlan {
  const { isModelDecided, maxUses } = request;
  const native = { ...toNativeSearch(request), maxUses: heldSearches?.max ?? maxUses };
  const { min = 1, billsInput = true } = heldSearches ?? {};
  return { kind: 'upstream', isModelDecided, native, minUses: min, billsInput, fee };
}

function toNativeSearch({ isModelDecided, isRequired, ...search }: SearchRequest): NativeSearch {
  const { maxUses, includeDomains, excludeDomains, location, isOffline } = search;
  if (includeDomains.length > 0 && excludeDomains.length > 0) {
    const message = 'A native web search accepts domains to include or domains to exclude, not both';
    throw new InvalidRequestError(400, message, isModelDecided ? 'tools' : 'plugins');
  }
  return { maxUses, isRequired: isRequired || !isModelDecided, includeDomains, excludeDomains, location, isOffline };
}

/** Whether the provider of an endpoint can search for this request. Providers search for one choice only. */
function canSearch({ searchFee }: Endpoint, { n }: ChatBody): boolean {
  return searchFee !== undefined && (n ?? 1) === 1;
}

export function hasFunction({ tools }: ChatBody, name: string): boolean {
  return (tools ?? []).some((tool) => (tool as { function?: { name?: unknown } } | null)?.function?.name === name);
}

function getLastUserText({ messages }: ChatBody): string {
  const content = messages.findLast(({ role }) => role === 'user')?.content;
  if (typeof content === 'string') return content;
  const parts = Array.isArray(content) ? (content as readonly { text?: unknown }[]) : [];
  return parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])).join('\n');
}

function createRetentionError({ id }: TokenPricedModel): InvalidRequestError {
  const message = `No endpoints found for ${id}: zero data retention is required, but the web search retains data`;
  return new InvalidRequestError(404, message, 'provider');
}

function createDomainsError(
  { id }: TokenPricedModel,
  { isModelDecided, excludeDomains }: SearchRequest,
): InvalidRequestError {
  const filter = excludeDomains.length > 0 ? 'exclude' : 'include';
  const message = `engine of the web search must be exa or auto: the native search of ${id} cannot ${filter} domains`;
  return new InvalidRequestError(400, message, `${isModelDecided ? 'tools' : 'plugins'}.engine`);
}

function createNoNativeSearchError({ id }: TokenPricedModel, { isModelDecided }: SearchRequest): InvalidRequestError {
  const message = `engine of the web search must be exa or auto: ${id} has no native search for this request`;
  return new InvalidRequestError(400, message, `${isModelDecided ? 'tools' : 'plugins'}.engine`);
}
