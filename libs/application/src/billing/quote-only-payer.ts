import type { Query } from '#domain';
import { type PicoUsd, ZERO_USD } from '#kernel';
import type { Hold, HoldRequest, Payer } from './payer.ts';

/** Thrown instead of holding money, before any provider is called. `price` is the maximum price of the request. */
export class PaymentRequiredError extends Error {
  override readonly name = 'PaymentRequiredError';

  constructor(
    readonly query: Query,
    readonly price: PicoUsd,
    readonly priceList: string,
  ) {
    super('payment required');
  }
}

/**
 * The payer of an anonymous caller who has not paid yet. The request is validated and quoted like any other, and ends
 * with its price.
 */
export class QuoteOnlyPayer implements Payer {
  readonly id = 'stranger';

  async assertAffordable(): Promise<void> {}

  async hold({ query, priceList, maxAmount }: HoldRequest): Promise<Hold> {
    throw new PaymentRequiredError(query, maxAmount, priceList);
  }

  async extend(): Promise<'exhausted'> {
    return 'exhausted';
  }

  async settle(): Promise<PicoUsd> {
    return ZERO_USD;
  }

  async release(): Promise<void> {}
}
