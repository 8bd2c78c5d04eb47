/** The orders of a chat that several models may serve: one hold for all of them, and one charge. */
import { isFreeTier } from '#catalogue';
import type { HoldExtensionTerms, PartialHold } from '#domain';
import { money, type PicoUsd } from '#kernel';
import type { Order } from '../../billing/order.ts';
import type { Purchase } from '../../billing/purchase.ts';
import { toUpstreamError } from '../../errors.ts';
import { EXTENSIBLE_HOLD_DIVISOR } from '../chat/chat-quote.ts';
import type { ChatOrder } from './quote-chat.ts';

/** An order for each model that may serve a chat, in the order in which they are called. */
export type ChatOrders = readonly [ChatOrder, ...ChatOrder[]];

/**
 * Returns the part of the orders that billing requires: the prices of the most expensive model, and the query of the
 * first.
 */
export function combineOrders(orders: ChatOrders): Order {
  const [first] = orders;
  const { requestId, priceList } = first;
  const [orderedModel, ...fallbacks] = orders.map(toOrderedModel) as [OrderedChat, ...OrderedChat[]];
  const quotes = orders.map(({ quote }) => quote);
  return {
    id: requestId,
    ...orderedModel,
    fallbacks,
    priceList,
    requestsHourCache: first.quote.inputUnit === 'cacheWriteHour',
    minPrice: money.max(...quotes.map(({ minPrice }) => minPrice)),
    maxPrice: money.max(...quotes.map(({ maxPrice }) => maxPrice)),
    partialHold: combinePartialHolds(quotes),
    updatePartialHold: () =>
      combinePartialHolds(
        orders.map(({ quote, updatePartialHold }) => ({ ...quote, partialHold: updatePartialHold() })),
      ),
  };
}

/** Returns the order with the highest minimum price. */
export function findHighest(orders: ChatOrders): ChatOrder {
  return orders.reduce((highest, order) => (order.quote.minPrice > highest.quote.minPrice ? order : highest));
}

type OrderedChat = ReturnType<typeof toOrderedModel>;

function toOrderedModel({ resolved: { model }, type, source, online, quote }: ChatOrder) {
  return {
    query: { model: model.id, type, source, online, free: isFreeTier(model) },
    model,
    endpoints: quote.endpoints,
  };
}

/** The prices that determine what is held for one model. */
export interface HeldPrices {
  readonly maxPrice: PicoUsd;
  readonly partialHold?: PartialHold | undefined;
}

/**
 * Returns a hold that is sufficient for each model. It can be extended during the response only if that is possible for
 * every model of which a part is held.
 */
export function combinePartialHolds(prices: readonly HeldPrices[]): PartialHold | undefined {
  const partialHolds = prices.flatMap(({ partialHold }) => partialHold ?? []);
  if (partialHolds.length === 0) return undefined;
  const heldInFull = prices.filter(({ partialHold }) => partialHold === undefined).map(({ maxPrice }) => maxPrice);
  const extensions = partialHolds.flatMap(({ extension }) => extension ?? []);
  return {
    minAmount: money.max(...heldInFull, ...partialHolds.map(({ minAmount }) => minAmount)),
    divisor: partialHolds.reduce(
      (lowest, { divisor }) => (divisor < lowest ? divisor : lowest),
      EXTENSIBLE_HOLD_DIVISOR,
    ),
    extension: extensions.length === partialHolds.length ? combineExtensions(extensions, heldInFull) : undefined,
  };
}

function combineExtensions(
  extensions: readonly HoldExtensionTerms[],
  heldInFull: readonly PicoUsd[],
): HoldExtensionTerms {
  const stopPrices = extensions.flatMap(({ stopPrice }) => stopPrice ?? []);
  return {
    minLimitPrice: money.max(...heldInFull, ...extensions.map(({ minLimitPrice }) => minLimitPrice)),
    longPrice: money.max(...heldInFull, ...extensions.map(({ longPrice }) => longPrice)),
    stopPrice: stopPrices.length === extensions.length ? money.max(...stopPrices) : undefined,
  };
}

/**
 * Serves a chat with the first model that can: the next one is called if a model fails before any model has responded.
 * @param canServe whether a model may still be called, after what was done for the ones before it
 * @throws UpstreamError of the last model that was called
 */
export async function serveWithFallbacks<T>(
  orders: ChatOrders,
  purchase: Purchase,
  { serve, canServe }: { serve(order: ChatOrder): Promise<T>; canServe(order: ChatOrder): boolean },
): Promise<T> {
  const [first, ...fallbacks] = orders;
  for (let order = first; ; ) {
    try {
      return await serve(order);
    } catch (error) {
      const next = fallbacks.shift();
      if (!next || !canServe(next) || !purchase.changeModel(toUpstreamError(error))) throw error;
      order = next;
    }
  }
}
