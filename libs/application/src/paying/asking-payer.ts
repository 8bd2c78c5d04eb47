import type { Query } from '#domain';
import { type PicoUsd, ZERO } from '#kernel';
import type { Hold, HoldRequest, Payer } from './payer.ts';

/** What a request costs whose payer is to be asked for it: thrown where others hold money, so that nothing is done before. */
export class PaymentWanted extends Error {
  override readonly name = 'PaymentWanted';

  constructor(
    readonly query: Query,
    readonly price: PicoUsd,
    readonly priceList: string,
  ) {
    super('Payment is wanted');
  }
}

/** A stranger, who has not paid yet: what he asks for is checked and quoted as everybody's, and then he is told its price. */
export class AskingPayer implements Payer {
  readonly id = 'stranger';

  async take({ query, priceList, atMost }: HoldRequest): Promise<Hold> {
    throw new PaymentWanted(query, atMost, priceList);
  }

  async grow(): Promise<'no more'> {
    return 'no more';
  }

  async settle(): Promise<PicoUsd> {
    return ZERO;
  }

  async release(): Promise<void> {}
}
