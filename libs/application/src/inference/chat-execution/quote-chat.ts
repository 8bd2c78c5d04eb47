/** What a chat request asks for, the endpoints that may serve it, and what it may cost: all that is known before money is held. */
import type { Catalogue, Endpoint, PriceList } from '#catalogue';
import type { QueryType } from '#domain';
import type { PicoUsd } from '#kernel';
import type { Sale } from '../../billing/purchase.ts';
import { UnservableRequest } from '../../errors.ts';
import type { NativeSearch } from '../../providers/web-search.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import { modelNamed, type NamedModel, routingPreferences, withEnforcedRouting } from '../../routing/preferences.ts';
import { fieldsGiven, type Route, routeFor } from '../../routing/route.ts';
import { type ChatBody, type Reasoning, requestedReasoning } from '../chat/chat-body.ts';
import { beside, inParts, type Quote, quoteFor } from '../chat/chat-quote.ts';
import { assertBounded } from '../chat/content-parts.ts';
import type { ChatRequest } from '../responses/chat-service.ts';
import type { NativeRequest } from '../responses/native-request.ts';
import { type SearchByUpstream, type SearchPlan, searchPlan } from '../search/search-plan.ts';
import { quoteForUpstream, searchQuote } from '../search/search-quote.ts';
import { assertPriced, isFree, type SearchRequest, searchRequest, withoutSearch } from '../search/search-request.ts';
import type { AnswerLengths } from './output-length-stats.ts';

export interface QuotedChat {
  readonly named: NamedModel;
  readonly priceList: PriceList;
  /** The request without the tool that asks for a search. */
  readonly body: ChatBody;
  readonly plan: SearchPlan | undefined;
  readonly reasoning: Reasoning | undefined;
  /** The web is searched in any case. Whether a model that may search did so is in its charge. */
  readonly online: boolean;
  readonly quote: Quote;
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
  readonly lengths: AnswerLengths;
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
 * @throws UnservableRequest for what does not exist or is not available
 */
export function quotedChat(
  { body: asked, source }: Pick<ChatRequest, 'body' | 'source'>,
  catalogue: Catalogue,
  health: EndpointHealth,
  carried = 0,
): QuotedChat {
  const named = chatModel(asked.model, catalogue);
  assertPriced(asked);
  const { priceList } = catalogue;
  const { model } = named;
  assertBounded(asked, model);
  const reasoning = requestedReasoning(asked);
  const search = searchRequest(asked, model, named.online);
  const body = withEnforcedRouting(withoutSearch(asked, model), named, {
    source,
    searchesWeb: search !== undefined,
  });
  const { endpoints: routed, zdr } = routeOf({ body, provider: asked.provider, source }, named, search, health);
  const always = model.searchesWeb === true && !isFree(model);
  const plain = (endpoints: readonly Endpoint[]) => quoteFor(body, model, endpoints, beside(carried));
  if (search === undefined) {
    return { named, priceList, body, reasoning, plan: undefined, carried, online: always, quote: plain(routed) };
  }
  const { plan, endpoints } = searchPlan(search, { body, model, endpoints: routed, zdr }, catalogue);
  const quote = plan ? searchQuote(plan, { body, model, endpoints, carried }) : plain(endpoints);
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
export function saleOf({ requestId, named, type, source, online, quote, priceList }: ChatOrder): Sale {
  const { atLeast, atMost, part, endpoints } = quote;
  const query = { model: named.model.id, type, source, online, free: atMost === 0n };
  return { id: requestId, query, model: named.model, endpoints, priceList, atLeast, atMost, part };
}

/**
 * How much of what the answer may cost is held at first.
 * @param first tokens of output that are held for then
 * @param upTo a limit of the caller's up to so many tokens is meant and held for in full; agents name larger ones as a habit
 */
export function heldInParts(quoted: QuotedChat, first: () => number, upTo: number): QuotedChat {
  const { quote, plan } = quoted;
  const isMeant = quote.wanted !== undefined && quote.wanted <= upTo;
  if (isMeant && quote.searching === undefined) return quoted;
  const grows = quote.endpoints[0]?.onDisconnect === 'stops' && mayGrow(plan);
  if (!isMeant) return { ...quoted, quote: inParts(quote, first(), grows) };
  return { ...quoted, quote: { ...inParts(quote, quote.wanted as number, grows), atLeast: quote.atLeast } };
}

/** Whether the output is all that decides how much is used: searches are held for before they are made. */
export function mayGrow(plan: SearchPlan | undefined): boolean {
  return plan === undefined || plan.kind === 'before';
}

/** An upstream that searches by itself may make as many searches as the money that is held affords. */
export function affordedSearches(
  { named, body, quote, carried }: QuotedChat,
  plan: SearchByUpstream,
  held: PicoUsd,
): { readonly quote: Quote; readonly native?: NativeSearch } {
  for (let maxUses = plan.native.maxUses; maxUses > 0; maxUses--) {
    const quoted = quoteForUpstream(plan, maxUses, { body, model: named.model, endpoints: quote.endpoints, carried });
    if (quoted.atLeast <= held) return { quote: quoted, native: { ...plan.native, maxUses } };
  }
  return { quote: quoteFor(body, named.model, quote.endpoints, beside(carried)) };
}

/** Whether the model or its upstream decides. */
function mayOnlySearch(plan: SearchPlan): boolean {
  return plan.kind === 'tool' || (plan.kind === 'upstream' && plan.byModel);
}

/** @param provider what the caller says of providers: the models' own rules are known to the route */
function routeOf(
  { body, provider, source }: Pick<ChatRequest, 'body' | 'source'> & { readonly provider: unknown },
  { model, sort }: NamedModel,
  search: SearchRequest | undefined,
  health: EndpointHealth,
): Route {
  return routeFor({
    model,
    preferences: routingPreferences(provider, sort),
    fields: fieldsGiven(body, NO_PARAMETERS).map((field) => PARAMETER_OF.get(field) ?? field),
    usesTools: (body.tools?.length ?? 0) > 0 || search?.byModel === true,
    choices: body.n ?? 1,
    searchesWeb: search !== undefined,
    source,
    chance: Math.random(),
    health: (endpoint) => health.of(model, endpoint),
  });
}

/** @throws UnservableRequest when there is no such model, or it is not available here */
export function chatModel(name: string, catalogue: Catalogue): NamedModel {
  const named = modelNamed(name, catalogue);
  if (named.model.type === 'chat') return named as NamedModel;
  throw new UnservableRequest(400, `The model "${name}" does not chat; it is of type ${named.model.type}`, 'model');
}

/** Whether our own search puts its results into the messages. */
export function isOurs(plan: SearchPlan | undefined): boolean {
  return plan?.kind === 'before' || plan?.kind === 'tool';
}
