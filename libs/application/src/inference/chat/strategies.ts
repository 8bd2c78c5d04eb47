/** How a chat is answered: one strategy for each way in which the web is searched for it, and one for none. */
import { type Purchase } from '../../paying/purchase.ts';
import { withResults } from '../search/results.ts';
import type { SearchBefore, SearchByTool } from '../search/search-plan.ts';
import { SearchingChat } from '../search/searching-chat.ts';
import type { Answering } from '../vocabulary/answers.ts';
import type { Providers } from '../vocabulary/providers.ts';
import type { SearchQuery } from '../vocabulary/web-search.ts';
import { type ChatOrder, counted, identityOf } from './chat-order.ts';
import { OneCall } from './one-call.ts';
import { affordedSearches } from './quoted-chat.ts';
import { upstreamCall } from './upstream-call.ts';

/** @throws UpstreamFailure when a search that comes before the answer fails */
export async function answering(order: ChatOrder, purchase: Purchase, providers: Providers): Promise<Answering> {
  const { plan } = order;
  switch (plan?.kind) {
    case 'before':
      return searchedBefore(plan, order, purchase, providers);
    case 'tool':
      return searchedInRounds(plan, order, purchase, providers);
    case 'upstream': {
      const afforded = affordedSearches(order, plan, purchase.hold.amount);
      return new OneCall({ ...order, ...afforded, searchFee: plan.fee }, purchase, providers);
    }
    case 'anyway':
    case undefined:
      return new OneCall(order, purchase, providers);
    default:
      return plan satisfies never;
  }
}

/** The search runs before the model answers. One that fails costs nothing. */
async function searchedBefore(
  plan: SearchBefore,
  order: ChatOrder,
  purchase: Purchase,
  providers: Providers,
): Promise<Answering> {
  const { hold, signal } = purchase;
  const { results: found, vendorId } = await providers.of(hold, plan.fee.provider, 'search')({ ...plan, signal });
  purchase.billSearches(plan.fee, 1, vendorId);
  const searches = [{ at: 0, query: plan.query, state: 'completed' }] as const;
  const body = withResults(order.body, plan, { results: found, day: new Date().toISOString().slice(0, 10) });
  return new OneCall({ ...order, body, found, searches }, purchase, providers);
}

function searchedInRounds(plan: SearchByTool, order: ChatOrder, purchase: Purchase, providers: Providers): Answering {
  const { body, quote, named } = order;
  const { hold } = purchase;
  const request = {
    plan,
    body,
    model: named.model,
    wanted: quote.wanted,
    identityOf: identityOf(order, hold),
    ask: upstreamCall(order, purchase, providers),
    search: (query: SearchQuery) => providers.of(hold, plan.fee.provider, 'search')(query),
    counted,
  };
  return new SearchingChat(request, purchase);
}
