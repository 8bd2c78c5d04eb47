/** What a chat request asks for, the endpoints that may serve it, and what it may cost: all that is known before money is held. */
import type { Catalogue, Endpoint, PriceList } from '#catalogue';
import type { QueryType } from '#domain';
import type { PicoUsd } from '#kernel';
import type { Order } from '../../billing/order.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { NativeSearch } from '../../providers/web-search.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import {
  enforceRouting,
  parseRoutingPreferences,
  type ResolvedModel,
  resolveModel,
} from '../../routing/preferences.ts';
import { listSetFields, type SelectedRoute, selectRoute } from '../../routing/route.ts';
import { type ChatBody, parseReasoning, type Reasoning } from '../chat/chat-body.ts';
import { type ChatQuote, quoteChatRequest, toExtraInput, toPartialQuote } from '../chat/chat-quote.ts';
import { assertSupportedContent } from '../chat/content-parts.ts';
import type { ChatParams } from '../responses/chat-service.ts';
import type { NativeRequest } from '../responses/native-request.ts';
import { type NativeSearchPlan, planSearch, type SearchPlan } from '../search/search-plan.ts';
import { quoteNativeSearch, quoteSearch } from '../search/search-quote.ts';
import {
  assertSupportedTools,
  isFreeModel,
  parseSearchRequest,
  removeSearchOptions,
  type SearchRequest,
} from '../search/search-request.ts';
import type { OutputLengthStats } from './output-length-stats.ts';

export interface QuotedChat {
  readonly resolved: ResolvedModel;
  readonly priceList: PriceList;
  /** The request without the tool that asks for a search. */
  readonly body: ChatBody;
  readonly plan: SearchPlan | undefined;
  readonly reasoning: Reasoning | undefined;
  /** The web is searched in any case. Whether a model that may search did so is in its charge. */
  readonly online: boolean;
  readonly quote: ChatQuote;
  /** Maximum tokens of input beside the messages. */
  readonly extraInputTokens: number;
}

/** The same with what else the request says: all that answering it needs. */
export interface ChatOrder extends QuotedChat {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  readonly type: QueryType;
  readonly stream: boolean;
  /** Unix seconds. */
  readonly created: number;
  readonly lengths: OutputLengthStats;
  /** How fast an endpoint usually is; undefined where that is not known. */
  getTokensPerSecond(endpoint: Endpoint): number | undefined;
  /** The same request for endpoints that speak Responses; their protocol is used only with it. */
  readonly responses?: NativeRequest | undefined;
}

/** The names of fields in lists of parameters. */
const PARAMETER_BY_FIELD: ReadonlyMap<string, string> = new Map([
  ['max_completion_tokens', 'max_tokens'],
  ['reasoning_effort', 'reasoning'],
  ['include_reasoning', 'reasoning'],
]);
/** Fields of the request itself, which no model needs to support. */
const NON_PARAMETER_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'stream',
  'stream_options',
  'provider',
  'plugins',
  'usage',
  'web_search_options',
]);

/**
 * @param extraInputTokens maximum tokens of input beside the messages
 * @throws InvalidRequestError for what does not exist or is not available
 */
export function quoteChat(
  { body: requestBody, source }: Pick<ChatParams, 'body' | 'source'>,
  catalogue: Catalogue,
  health: EndpointHealth,
  extraInputTokens = 0,
): QuotedChat {
  const resolved = resolveChatModel(requestBody.model, catalogue);
  assertSupportedTools(requestBody);
  const { priceList } = catalogue;
  const { model } = resolved;
  assertSupportedContent(requestBody, model);
  const reasoning = parseReasoning(requestBody);
  const search = parseSearchRequest(requestBody, model, resolved.online);
  const body = enforceRouting(removeSearchOptions(requestBody, model), resolved, {
    source,
    searchesWeb: search !== undefined,
  });
  const { endpoints: routed, zdr } = selectChatRoute(
    { body, provider: requestBody.provider, source },
    resolved,
    search,
    health,
  );
  const isAlwaysOnline = model.searchesWeb === true && !isFreeModel(model);
  const quoteWithoutSearch = (endpoints: readonly Endpoint[]) =>
    quoteChatRequest(body, model, endpoints, toExtraInput(extraInputTokens));
  if (search === undefined) {
    return {
      resolved,
      priceList,
      body,
      reasoning,
      plan: undefined,
      extraInputTokens,
      online: isAlwaysOnline,
      quote: quoteWithoutSearch(routed),
    };
  }
  const { plan, endpoints } = planSearch(search, { body, model, endpoints: routed, zdr }, catalogue);
  const quote = plan ? quoteSearch(plan, { body, model, endpoints, extraInputTokens }) : quoteWithoutSearch(endpoints);
  return {
    resolved,
    priceList,
    body,
    reasoning,
    plan,
    extraInputTokens,
    online: isAlwaysOnline || (plan !== undefined && !isSearchOptional(plan)),
    quote,
  };
}

/** What is sold, as the money path sees it. */
export function toOrder({ requestId, resolved, type, source, online, quote, priceList }: ChatOrder): Order {
  const { minPrice, maxPrice, partialHold, endpoints } = quote;
  const query = { model: resolved.model.id, type, source, online, free: maxPrice === 0n };
  return { id: requestId, query, model: resolved.model, endpoints, priceList, minPrice, maxPrice, partialHold };
}

/**
 * How much of what the answer may cost is held at first.
 * @param getInitialTokens tokens of output that are held for then
 * @param maxFullHoldTokens a limit of the caller's up to so many tokens is meant and held for in full; agents name larger ones as a habit
 */
export function withPartialHold(
  quoted: QuotedChat,
  getInitialTokens: () => number,
  maxFullHoldTokens: number,
): QuotedChat {
  const { quote, plan } = quoted;
  const isHeldInFull = quote.requestedMaxTokens !== undefined && quote.requestedMaxTokens <= maxFullHoldTokens;
  if (isHeldInFull && quote.search === undefined) return quoted;
  const isExtensible = quote.endpoints[0]?.onDisconnect === 'stops' && canExtendHold(plan);
  if (!isHeldInFull) return { ...quoted, quote: toPartialQuote(quote, getInitialTokens(), isExtensible) };
  return {
    ...quoted,
    quote: { ...toPartialQuote(quote, quote.requestedMaxTokens as number, isExtensible), minPrice: quote.minPrice },
  };
}

/** Whether the output is all that decides how much is used: searches are held for before they are made. */
export function canExtendHold(plan: SearchPlan | undefined): boolean {
  return plan === undefined || plan.kind === 'pre_search';
}

/** An upstream that searches by itself may make as many searches as the money that is held affords. */
export function limitSearchesToHold(
  { resolved, body, quote, extraInputTokens }: QuotedChat,
  plan: NativeSearchPlan,
  held: PicoUsd,
): { readonly quote: ChatQuote; readonly native?: NativeSearch } {
  for (let maxUses = plan.native.maxUses; maxUses > 0; maxUses--) {
    const quoted = quoteNativeSearch(plan, maxUses, {
      body,
      model: resolved.model,
      endpoints: quote.endpoints,
      extraInputTokens,
    });
    if (quoted.minPrice <= held) return { quote: quoted, native: { ...plan.native, maxUses } };
  }
  return { quote: quoteChatRequest(body, resolved.model, quote.endpoints, toExtraInput(extraInputTokens)) };
}

/** Whether the model or its upstream decides. */
function isSearchOptional(plan: SearchPlan): boolean {
  return plan.kind === 'tool' || (plan.kind === 'upstream' && plan.isModelDecided);
}

/** @param provider what the caller says of providers: the models' own rules are known to the route */
function selectChatRoute(
  { body, provider, source }: Pick<ChatParams, 'body' | 'source'> & { readonly provider: unknown },
  { model, sort }: ResolvedModel,
  search: SearchRequest | undefined,
  health: EndpointHealth,
): SelectedRoute {
  return selectRoute({
    model,
    preferences: parseRoutingPreferences(provider, sort),
    fields: listSetFields(body, NON_PARAMETER_FIELDS).map((field) => PARAMETER_BY_FIELD.get(field) ?? field),
    usesTools: (body.tools?.length ?? 0) > 0 || search?.isModelDecided === true,
    choices: body.n ?? 1,
    searchesWeb: search !== undefined,
    source,
    randomValue: Math.random(),
    getPerformance: (endpoint) => health.get(model, endpoint),
  });
}

/** @throws InvalidRequestError when there is no such model, or it is not available here */
export function resolveChatModel(name: string, catalogue: Catalogue): ResolvedModel {
  const resolved = resolveModel(name, catalogue);
  if (resolved.model.type === 'chat') return resolved as ResolvedModel;
  throw new InvalidRequestError(
    400,
    `The model "${name}" does not chat; it is of type ${resolved.model.type}`,
    'model',
  );
}

/** Whether our own search puts its results into the messages. */
export function usesGatewaySearch(plan: SearchPlan | undefined): boolean {
  return plan?.kind === 'pre_search' || plan?.kind === 'tool';
}
