/** What a chat request asks for, the endpoints that may serve it, and what it may cost: all that is known before money is held. */
import type { Catalogue, Endpoint, PriceList } from '#catalogue';
import type { QueryType } from '#domain';
import type { PicoUsd } from '#kernel';
import type { Order } from '../../billing/purchase.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { NativeSearch } from '../../providers/web-search.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import {
  enforceRouting,
  parseRoutingPreferences,
  type ResolvedModel,
  resolveModel,
} from '../../routing/preferences.ts';
import { listSetFields, type Route, selectRoute } from '../../routing/route.ts';
import { type ChatBody, parseReasoning, type Reasoning } from '../chat/chat-body.ts';
import { type ChatQuote, quoteChatRequest, toExtraInput, toPartialQuote } from '../chat/chat-quote.ts';
import { assertSupportedContent } from '../chat/content-parts.ts';
import type { ChatParams } from '../responses/chat-service.ts';
import type { NativeRequest } from '../responses/native-request.ts';
import { type NativeSearchPlan, planSearch, type SearchPlan } from '../search/search-plan.ts';
import { quoteNativeSearch, quoteSearch } from '../search/search-quote.ts';
import {
  assertPriced,
  isFree,
  parseSearchRequest,
  removeSearchOptions,
  type SearchRequest,
} from '../search/search-request.ts';
import type { OutputLengthStats } from './output-length-stats.ts';

export interface QuotedChat {
  readonly named: ResolvedModel;
  readonly priceList: PriceList;
  /** The request without the tool that asks for a search. */
  readonly body: ChatBody;
  readonly plan: SearchPlan | undefined;
  readonly reasoning: Reasoning | undefined;
  /** The web is searched in any case. Whether a model that may search did so is in its charge. */
  readonly online: boolean;
  readonly quote: ChatQuote;
  /** Maximum tokens of input beside the messages. */
  readonly carried: number;
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
  tokensPerSecond(endpoint: Endpoint): number | undefined;
  /** The same request for endpoints that speak Responses; their protocol is used only with it. */
  readonly responses?: NativeRequest | undefined;
}

/** The names of fields in lists of parameters. */
const PARAMETER_OF: ReadonlyMap<string, string> = new Map([
  ['max_completion_tokens', 'max_tokens'],
  ['reasoning_effort', 'reasoning'],
  ['include_reasoning', 'reasoning'],
]);
/** Fields of the request itself, which no model needs to support. */
const NO_PARAMETERS: ReadonlySet<string> = new Set([
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
 * @param carried maximum tokens of input beside the messages
 * @throws InvalidRequestError for what does not exist or is not available
 */
export function quoteChat(
  { body: asked, source }: Pick<ChatParams, 'body' | 'source'>,
  catalogue: Catalogue,
  health: EndpointHealth,
  carried = 0,
): QuotedChat {
  const named = resolveChatModel(asked.model, catalogue);
  assertPriced(asked);
  const { priceList } = catalogue;
  const { model } = named;
  assertSupportedContent(asked, model);
  const reasoning = parseReasoning(asked);
  const search = parseSearchRequest(asked, model, named.online);
  const body = enforceRouting(removeSearchOptions(asked, model), named, {
    source,
    searchesWeb: search !== undefined,
  });
  const { endpoints: routed, zdr } = routeOf({ body, provider: asked.provider, source }, named, search, health);
  const always = model.searchesWeb === true && !isFree(model);
  const plain = (endpoints: readonly Endpoint[]) => quoteChatRequest(body, model, endpoints, toExtraInput(carried));
  if (search === undefined) {
    return { named, priceList, body, reasoning, plan: undefined, carried, online: always, quote: plain(routed) };
  }
  const { plan, endpoints } = planSearch(search, { body, model, endpoints: routed, zdr }, catalogue);
  const quote = plan ? quoteSearch(plan, { body, model, endpoints, carried }) : plain(endpoints);
  return {
    named,
    priceList,
    body,
    reasoning,
    plan,
    carried,
    online: always || (plan !== undefined && !mayOnlySearch(plan)),
    quote,
  };
}

/** What is sold, as the money path sees it. */
export function toOrder({ requestId, named, type, source, online, quote, priceList }: ChatOrder): Order {
  const { atLeast, atMost, part, endpoints } = quote;
  const query = { model: named.model.id, type, source, online, free: atMost === 0n };
  return { id: requestId, query, model: named.model, endpoints, priceList, atLeast, atMost, part };
}

/**
 * How much of what the answer may cost is held at first.
 * @param first tokens of output that are held for then
 * @param upTo a limit of the caller's up to so many tokens is meant and held for in full; agents name larger ones as a habit
 */
export function withPartialHold(quoted: QuotedChat, first: () => number, upTo: number): QuotedChat {
  const { quote, plan } = quoted;
  const isMeant = quote.wanted !== undefined && quote.wanted <= upTo;
  if (isMeant && quote.searching === undefined) return quoted;
  const grows = quote.endpoints[0]?.onDisconnect === 'stops' && canExtendHold(plan);
  if (!isMeant) return { ...quoted, quote: toPartialQuote(quote, first(), grows) };
  return { ...quoted, quote: { ...toPartialQuote(quote, quote.wanted as number, grows), atLeast: quote.atLeast } };
}

/** Whether the output is all that decides how much is used: searches are held for before they are made. */
export function canExtendHold(plan: SearchPlan | undefined): boolean {
  return plan === undefined || plan.kind === 'before';
}

/** An upstream that searches by itself may make as many searches as the money that is held affords. */
export function limitSearchesToHold(
  { named, body, quote, carried }: QuotedChat,
  plan: NativeSearchPlan,
  held: PicoUsd,
): { readonly quote: ChatQuote; readonly native?: NativeSearch } {
  for (let maxUses = plan.native.maxUses; maxUses > 0; maxUses--) {
    const quoted = quoteNativeSearch(plan, maxUses, { body, model: named.model, endpoints: quote.endpoints, carried });
    if (quoted.atLeast <= held) return { quote: quoted, native: { ...plan.native, maxUses } };
  }
  return { quote: quoteChatRequest(body, named.model, quote.endpoints, toExtraInput(carried)) };
}

/** Whether the model or its upstream decides. */
function mayOnlySearch(plan: SearchPlan): boolean {
  return plan.kind === 'tool' || (plan.kind === 'upstream' && plan.byModel);
}

/** @param provider what the caller says of providers: the models' own rules are known to the route */
function routeOf(
  { body, provider, source }: Pick<ChatParams, 'body' | 'source'> & { readonly provider: unknown },
  { model, sort }: ResolvedModel,
  search: SearchRequest | undefined,
  health: EndpointHealth,
): Route {
  return selectRoute({
    model,
    preferences: parseRoutingPreferences(provider, sort),
    fields: listSetFields(body, NO_PARAMETERS).map((field) => PARAMETER_OF.get(field) ?? field),
    usesTools: (body.tools?.length ?? 0) > 0 || search?.byModel === true,
    choices: body.n ?? 1,
    searchesWeb: search !== undefined,
    source,
    chance: Math.random(),
    health: (endpoint) => health.of(model, endpoint),
  });
}

/** @throws InvalidRequestError when there is no such model, or it is not available here */
export function resolveChatModel(name: string, catalogue: Catalogue): ResolvedModel {
  const named = resolveModel(name, catalogue);
  if (named.model.type === 'chat') return named as ResolvedModel;
  throw new InvalidRequestError(400, `The model "${name}" does not chat; it is of type ${named.model.type}`, 'model');
}

/** Whether our own search puts its results into the messages. */
export function usesGatewaySearch(plan: SearchPlan | undefined): boolean {
  return plan?.kind === 'before' || plan?.kind === 'tool';
}
