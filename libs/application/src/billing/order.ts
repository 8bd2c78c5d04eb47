/** What is about to be sold, what it is served with, and what it came to in money. */
import type { AnyModel, Endpoint, PriceList } from '#catalogue';
import { NO_USAGE, type PartialHold, type Query, type Usage } from '#domain';
import { type PicoUsd, ZERO_USD } from '#kernel';
import type { UpstreamError } from '../errors.ts';
import type { EndpointHealth } from '../routing/endpoint-health.ts';
import { breakDownCharge, type ChargeBreakdown } from './charge-breakdown.ts';
import type { Hold, Payer } from './payer.ts';

/** What is about to be sold: the endpoints that may serve it, and what it may cost. */
export interface Order {
  /** One request, one charge: the id of the request, and of its hold. */
  readonly id: string;
  readonly query: Query;
  readonly model: Pick<AnyModel, 'id'>;
  /** In the order in which they are asked; at least one. */
  readonly endpoints: readonly Endpoint[];
  readonly priceList: PriceList;
  readonly minPrice: PicoUsd;
  readonly maxPrice: PicoUsd;
  /** How much of it is held at first; all of it where this is left out. */
  readonly partialHold?: PartialHold | undefined;
}

/** The time that a request has. */
export interface Deadline {
  /** Aborts when it has taken too long, or must be cut short; its reason is an `UpstreamError`. */
  readonly signal: AbortSignal;
  abort(failure: UpstreamError): void;
}

/** Who pays, and what is held of it. */
export interface Funds {
  readonly payer: Payer;
  readonly hold: Hold;
}

/** Receives how endpoints perform, and what should not happen. */
export interface PurchaseObserver {
  readonly health: EndpointHealth;
  readonly reportError: (problem: string, error: unknown) => void;
}

/** The result of a request in money. */
export interface Receipt {
  readonly usage: Usage;
  readonly charged: PicoUsd;
  readonly parts: ChargeBreakdown;
}

/** Of a request that cost its payer nothing. */
export const EMPTY_RECEIPT: Receipt = {
  usage: NO_USAGE,
  charged: ZERO_USD,
  parts: breakDownCharge(ZERO_USD, [], ZERO_USD),
};
