import type { Query } from '#domain';
import { type PicoUsd, ZERO_USD } from '#kernel';
import type { Hold, HoldRequest, Payer } from './payer.ts';

/** What a request costs that nobody has paid for: thrown where money would be held, so that nothing was done before. */
export class PaymentRequiredError extends Error {
  override readonly name = 'PaymentRequiredError';

  constructor(
    readonly query: Query,
    readonly price: PicoUsd,
    readonly priceList: string,
  ) {
    super('Payment is wanted');
  }
}

/** A stranger, who has not paid yet: the request is checked and quoted like any other, and ends with its price. */
export class QuoteOnlyPayer implements Payer {
  readonly id = 'stranger';

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
