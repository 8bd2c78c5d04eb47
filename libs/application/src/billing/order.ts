import type { AnyModel, Endpoint, PriceList } from '#catalogue';
import { NO_USAGE, type PartialHold, type Query, type Usage } from '#domain';
import { type PicoUsd, type Runtime, ZERO_USD } from '#kernel';
import type { UpstreamError } from '../errors.ts';
import type { EndpointHealth } from '../routing/endpoint-health.ts';
import { breakDownCharge, type ChargeBreakdown } from './charge-breakdown.ts';
import type { CostMonitor } from './cost-monitor.ts';
import type { Hold, Payer } from './payer.ts';

/** A model that may serve a request. */
export interface OrderedModel {
  readonly query: Query;
  readonly model: Pick<AnyModel, 'id'>;
  /** In the order in which they are called; never empty. */
  readonly endpoints: readonly Endpoint[];
}

/** A quoted request that is ready to be sold: the endpoints that may serve it, and its price bounds. */
export interface Order extends OrderedModel {
  /** Id of the request, of its hold and of its charge. */
  readonly id: string;
  /** Models that serve the request if those before them cannot. The price bounds include theirs. */
  readonly fallbacks?: readonly OrderedModel[] | undefined;
  readonly priceList: PriceList;
  /** Caches that last an hour are requested, and the prices include these. */
  readonly requestsHourCache?: boolean;
  readonly minPrice: PicoUsd;
  readonly maxPrice: PicoUsd;
  /** How much of `maxPrice` is held at first; all of it if undefined. */
  readonly partialHold?: PartialHold | undefined;
  /** Returns the partial hold by the current measurements, for a request that has waited. */
  readonly updatePartialHold?: (() => PartialHold | undefined) | undefined;
}

/** Ends a request that takes too long or must end early. */
export interface Deadline {
  /** Aborts when the request must end. The reason is an `UpstreamError`. */
  readonly signal: AbortSignal;
  abort(failure: UpstreamError): void;
}

export interface Funds {
  readonly payer: Payer;
  readonly hold: Hold;
}

/** Receives the performance of endpoints, the costs that providers report, and errors. */
export interface PurchaseObserver {
  readonly health: EndpointHealth;
  readonly costMonitor?: CostMonitor;
  readonly runtime: Runtime;
}

/** What a request cost its payer. */
export interface Receipt {
  readonly usage: Usage;
  readonly charged: PicoUsd;
  readonly parts: ChargeBreakdown;
}

/** The receipt of a request that cost its payer nothing. */
export const EMPTY_RECEIPT: Receipt = {
  usage: NO_USAGE,
  charged: ZERO_USD,
  parts: breakDownCharge(ZERO_USD, [], ZERO_USD),
};
