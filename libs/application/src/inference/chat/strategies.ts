/** How a chat is answered: one strategy for each way in which the web is searched for it, and one for none. */
import { type Purchase } from '../../paying/purchase.ts';
import { withResults } from '../search/results.ts';
import type { SearchBefore, SearchByTool } from '../search/search-plan.ts';
import { SearchingChat } from '../search/searching-chat.ts';
import type { WebSearch } from '../search/web-search.ts';
import type { Answering } from '../vocabulary/answers.ts';
import type { ChatUpstreams } from '../vocabulary/chat-upstream.ts';
import { type ChatOrder, counted, identityOf } from './chat-order.ts';
import { OneCall } from './one-call.ts';
import { affordedSearches } from './quoted-chat.ts';
import { upstreamCall } from './upstream-call.ts';

/** What reaches the world. */
export interface ChatPorts {
  readonly upstreams: ChatUpstreams;
  readonly web: WebSearch;
}

/** @throws UpstreamFailure when a search that comes before the answer fails */
export async function answering(order: ChatOrder, purchase: Purchase, ports: ChatPorts): Promise<Answering> {
  const { plan } = order;
  switch (plan?.kind) {
    case 'before':
      return searchedBefore(plan, order, purchase, ports);
    case 'tool':
      return searchedInRounds(plan, order, purchase, ports);
    case 'upstream': {
      const afforded = affordedSearches(order, plan, purchase.hold.amount);
      return new OneCall({ ...order, ...afforded, searchFee: plan.fee }, purchase, ports.upstreams);
    }
    case 'anyway':
    case undefined:
      return new OneCall(order, purchase, ports.upstreams);
    default:
      return plan satisfies never;
  }
}

/** The search runs before the model answers. One that fails costs nothing. */
async function searchedBefore(
  plan: SearchBefore,
  order: ChatOrder,
  purchase: Purchase,
  { upstreams, web }: ChatPorts,
): Promise<Answering> {
  const { hold, signal } = purchase;
  const found = await web.search(hold, { ...plan, signal });
  purchase.billFee(plan.fee);
  const searches = [{ at: 0, query: plan.query, state: 'completed' }] as const;
  const body = withResults(order.body, plan, { results: found, day: new Date().toISOString().slice(0, 10) });
  return new OneCall({ ...order, body, found, searches }, purchase, upstreams);
}

function searchedInRounds(
  plan: SearchByTool,
  order: ChatOrder,
  purchase: Purchase,
  { upstreams, web }: ChatPorts,
): Answering {
  const { body, quote, named } = order;
  const request = {
    plan,
    body,
    model: named.model,
    wanted: quote.wanted,
    identityOf: identityOf(order, purchase.hold),
    ask: upstreamCall(order, purchase, upstreams),
    counted,
  };
  return new SearchingChat(request, web, purchase);
}
