/** Validates and quotes a chat request before money is held: its model, endpoints, search plan and price bounds. */
import { type Catalogue, type Endpoint, isFreeTier, type PriceList, type TokenPricedModel } from '#catalogue';
import type { PartialHold, QueryType } from '#domain';
import type { PicoUsd } from '#kernel';
import { MAX_UNCOVERED_MS } from '../../billing/extend-until-covered.ts';
import { InvalidRequestError, invalidRequest } from '../../errors.ts';
import type { NativeSearch } from '../../providers/web-search.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import {
  enforceRouting,
  parseRoutingPreferences,
  type ResolvedModel,
  resolveModel,
} from '../../routing/preferences.ts';
import { listSetFields, type SelectedRoute, selectRoute } from '../../routing/route.ts';
import { calculateStickyChance } from '../../routing/sticky-chance.ts';
import {
  type ChatBody,
  endsWithAssistant,
  getRequestedEffort,
  getRequestedMaxTokens,
  parseReasoning,
  type Reasoning,
  requiresToolCall,
} from '../chat/chat-body.ts';
import {
  type ChatQuote,
  calculateStopPrice,
  type OutputLengths,
  quoteChatRequest,
  toExtraInput,
  toPartialQuote,
} from '../chat/chat-quote.ts';
import { assertSupportedContent } from '../chat/content-parts.ts';
import type { ChatParams } from '../responses/chat-service.ts';
import type { NativeRequest } from '../responses/native-request.ts';
import { type NativeSearchPlan, type PreSearchPlan, planSearch, type SearchPlan } from '../search/search-plan.ts';
import { quoteNativeSearch, quoteSearch } from '../search/search-quote.ts';
import {
  assertSupportedTools,
  findRequestedSearch,
  namesEngine,
  parseSearchRequest,
  removeSearchOptions,
  type SearchRequest,
} from '../search/search-request.ts';
import type { OutputLengthStats } from './output-length-stats.ts';

export interface QuotedChat {
  readonly resolved: ResolvedModel;
  readonly priceList: PriceList;
  /** The request without the web search tool, and with the enforced routing in its `provider` object. */
  readonly body: ChatBody;
  readonly plan: SearchPlan | undefined;
  /** The request contains a web search without an engine, which a model of the free tier does not make. */
  readonly ignoresSearch: boolean;
  readonly reasoning: Reasoning | undefined;
  /**
   * Whether the web is searched in any case. False if the model gets a search tool; the charge then shows whether the
   * web was searched.
   */
  readonly online: boolean;
  readonly quote: ChatQuote;
  /** Maximum input tokens that the Responses API gets in addition to the messages, such as encrypted reasoning. */
  readonly extraInputTokens: number;
}

/** A quoted chat with everything that its execution requires. */
export interface ChatOrder extends QuotedChat {
  readonly requestId: string;
  /** The origin of the request, as displayed in the query history. */
  readonly source: string;
  readonly type: QueryType;
  readonly stream: boolean;
  /** Unix seconds. */
  readonly created: number;
  readonly lengths: OutputLengthStats;
  /** Returns the typical output speed of an endpoint; undefined if it is unknown. */
  getTokensPerSecond(endpoint: Endpoint): number | undefined;
  /** Returns the partial hold by the current measurements. */
  readonly updatePartialHold: () => PartialHold | undefined;
  /** The original request, for endpoints with the Responses API. Without it, every endpoint gets `body`. */
  readonly responses?: NativeRequest | undefined;
}

/** Fields that the catalogue lists under another parameter name. */
const PARAMETER_BY_FIELD: ReadonlyMap<string, string> = new Map([
  ['max_completion_tokens', 'max_tokens'],
  ['reasoning_effort', 'reasoning'],
  ['include_reasoning', 'reasoning'],
]);
/** Fields that are not model parameters, so no endpoint needs to support them. */
const NON_PARAMETER_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'models',
  'messages',
  'stream',
  'stream_options',
  'service_tier',
  'provider',
  'plugins',
  'usage',
  'web_search_options',
]);

/** The request of a payer. */
interface QuotedRequest extends Pick<ChatParams, 'body' | 'source' | 'responses'> {
  readonly payerId: string;
}

interface ChatQuoteOptions {
  /** Maximum input tokens that the Responses API gets in addition to the messages. */
  readonly extraInputTokens?: number | undefined;
  /** The search that was made for another model of the request if this one is called. It is made only once. */
  readonly preSearch?: PreSearchPlan | undefined;
}

/**
 * Validates a chat request, selects its endpoints and plans its search. Changes no state.
 * @throws InvalidRequestError if the model or an option does not exist, is unavailable or is invalid
 */
export function quoteChat(
  { body: requestBody, source, responses, payerId }: QuotedRequest,
  catalogue: Catalogue,
  health: EndpointHealth,
  { extraInputTokens = 0, preSearch }: ChatQuoteOptions = {},
): QuotedChat {
  const resolved = resolveChatModel(requestBody.model, catalogue);
  assertSupportedTools(requestBody);
  const { priceList } = catalogue;
  const { model } = resolved;
  assertSupportedContent(requestBody, model);
  assertOutputWithinContext(requestBody, model, responses !== undefined);
  const reasoning = parseReasoning(requestBody);
  const requested = findRequestedSearch(requestBody, resolved.online);
  const ignoresSearch = requested !== undefined && isFreeTier(model) && !namesEngine(requested);
  const search = requested && !ignoresSearch ? parseSearchRequest(requested) : undefined;
  const body = enforceRouting(removeSearchOptions(requestBody, model), resolved, {
    source,
    searchesWeb: search !== undefined,
  });
  const { endpoints: routed, zdr } = selectChatRoute(
    { body, provider: requestBody.provider, source, payerId, reasoning },
    resolved,
    search,
    health,
  );
  const isAlwaysOnline = model.searchesWeb === true && !isFreeTier(model);
  const quoteWithoutSearch = (endpoints: readonly Endpoint[]) =>
    quoteChatRequest(body, model, endpoints, toExtraInput(extraInputTokens));
  if (search === undefined) {
    return {
      resolved,
      priceList,
      body,
      reasoning,
      plan: undefined,
      ignoresSearch,
      extraInputTokens,
      online: isAlwaysOnline,
      quote: quoteWithoutSearch(routed),
    };
  }
  const { plan, endpoints } =
    preSearch && !zdr
      ? { plan: preSearch, endpoints: routed }
      : planSearch(search, { body, model, endpoints: routed, zdr }, catalogue);
  const quote = plan ? quoteSearch(plan, { body, model, endpoints, extraInputTokens }) : quoteWithoutSearch(endpoints);
  return {
    resolved,
    priceList,
    body,
    reasoning,
    plan,
    ignoresSearch,
    extraInputTokens,
    online: isAlwaysOnline || (plan !== undefined && !isSearchOptional(plan)),
    quote,
  };
}

/** What determines a partial hold besides the quote. */
export interface PartialHoldParams {
  getLengths(): OutputLengths;
  /** Returns the maximum output speed of an endpoint; undefined if it is unknown. */
  getMaxTokensPerSecond(endpoint: Endpoint): number | undefined;
  /** Output limits up to this value are held in full; agents set higher limits by default. */
  readonly maxFullHoldTokens: number;
}

/**
 * Reduces the quote to a partial hold, unless the caller's output limit is low enough to be held in full. With such a
 * limit, the hold is partial only if the model may or must search: it covers the complete output limit, and as many
 * searches as the payer's money allows.
 */
export function withPartialHold(
  quoted: QuotedChat,
  { getLengths, getMaxTokensPerSecond, maxFullHoldTokens }: PartialHoldParams,
): QuotedChat {
  const { quote, plan } = quoted;
  const { requestedMaxTokens: limit } = quote;
  const isHeldInFull = limit !== undefined && limit <= maxFullHoldTokens;
  if (isHeldInFull && quote.search === undefined) return quoted;
  const extension =
    quote.endpoints[0]?.onDisconnect === 'stops' && canExtendHold(plan)
      ? { stopPrice: calculateStopPrice(quote, MAX_UNCOVERED_MS, getMaxTokensPerSecond) }
      : undefined;
  if (!isHeldInFull) return { ...quoted, quote: toPartialQuote(quote, getLengths(), extension) };
  const lengths = { initial: limit, long: limit, reserved: limit };
  return { ...quoted, quote: { ...toPartialQuote(quote, lengths, extension), minPrice: quote.minPrice } };
}

/**
 * Whether the hold can be extended during the call: only if no search is made during the call, because money for a
 * search must be held before the search.
 */
export function canExtendHold(plan: SearchPlan | undefined): boolean {
  return plan === undefined || plan.kind === 'pre_search';
}

/** Limits a native search to as many searches as the hold pays for. If it pays for too few, `native` is omitted. */
export function limitSearchesToHold(
  { resolved, body, quote, extraInputTokens }: QuotedChat,
  plan: NativeSearchPlan,
  held: PicoUsd,
): { readonly quote: ChatQuote; readonly native?: NativeSearch } {
  const { model } = resolved;
  const { endpoints } = quote;
  let limited: { readonly quote: ChatQuote; readonly native: NativeSearch } | undefined;
  // Each quote reads the complete request. Its price grows with the number of searches, so the range is halved.
  let [low, high] = [plan.minUses, plan.native.maxUses];
  for (let maxUses = high; low <= high; maxUses = Math.floor((low + high) / 2)) {
    const quoted = quoteNativeSearch(plan, maxUses, { body, model, endpoints, extraInputTokens });
    if (quoted.minPrice > held) {
      high = maxUses - 1;
      continue;
    }
    limited = { quote: quoted, native: { ...plan.native, maxUses } };
    low = maxUses + 1;
  }
  return limited ?? { quote: quoteChatRequest(body, model, endpoints, toExtraInput(extraInputTokens)) };
}

/** Whether the web is searched only if the model calls a search tool. */
function isSearchOptional(plan: SearchPlan): boolean {
  return plan.kind === 'tool' || (plan.kind === 'upstream' && plan.isModelDecided);
}

/** @param provider the caller's own `provider` object; `selectRoute` applies the model's rules, which override it */
function selectChatRoute(
  {
    body,
    provider,
    source,
    payerId,
    reasoning,
  }: QuotedRequest & Pick<QuotedChat, 'reasoning'> & { readonly provider: unknown },
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
    effort: getRequestedEffort(reasoning),
    forcesTool: requiresToolCall(body),
    endsWithAssistant: endsWithAssistant(body),
    searchesWeb: search !== undefined,
    source,
    chance: model.endpoints.length > 1 ? calculateStickyChance(body, { payer: payerId, model: model.id }) : 0,
    getPerformance: (endpoint) => health.get(model, endpoint),
  });
}

/** @throws InvalidRequestError if the model does not exist, is unavailable, or is not a chat model */
export function resolveChatModel(name: string, catalogue: Catalogue): ResolvedModel {
  const resolved = resolveModel(name, catalogue);
  if (resolved.model.type === 'chat') return resolved as ResolvedModel;
  throw new InvalidRequestError(
    400,
    `The model "${name}" is not a chat model; its type is ${resolved.model.type}`,
    'model',
  );
}

/**
 * A limit above the model's maximum output is reduced to it, since some clients send a limit that suits all models. One
 * above its context is a mistake.
 */
function assertOutputWithinContext(body: ChatBody, { id, context }: TokenPricedModel, isResponse: boolean): void {
  const limit = getRequestedMaxTokens(body) ?? 0;
  if (limit <= context) return;
  const message = `The output limit is above the context of ${id}, which has ${context} tokens`;
  const chatParam = (body.max_completion_tokens ?? 0) > context ? 'max_completion_tokens' : 'max_tokens';
  throw invalidRequest(message, isResponse ? 'max_output_tokens' : chatParam);
}

/** Whether the gateway searches and adds the results to the messages. */
export function usesGatewaySearch(plan: SearchPlan | undefined): boolean {
  return plan?.kind === 'pre_search' || plan?.kind === 'tool';
}
