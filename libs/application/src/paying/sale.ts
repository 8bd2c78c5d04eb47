import type { Endpoint, Model, PriceList } from '#catalogue';
import type { Query } from '#domain';
import type { PicoUsd } from '#kernel';

/** What is about to be sold: the endpoints that may serve it, and what it may cost. */
export interface Sale {
  /** One request, one charge: the id of the request, and of its hold. */
  readonly id: string;
  readonly query: Query;
  readonly model: Model;
  /** In the order in which they are asked; at least one. */
  readonly endpoints: readonly Endpoint[];
  readonly priceList: PriceList;
  readonly atLeast: PicoUsd;
  readonly atMost: PicoUsd;
}
