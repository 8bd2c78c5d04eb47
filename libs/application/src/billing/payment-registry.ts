import { type PaymentId, toPaymentKey } from '#domain';
import type { Cause } from '#kernel';
import type { Clock } from '../clock.ts';
import type { PaymentClaims } from '../streams.ts';

/** Decides which top-up or challenge a payment belongs to, so that no payment is credited twice. */
export class PaymentRegistry {
  constructor(
    private readonly claims: PaymentClaims,
    private readonly clock: Clock,
  ) {}

  /**
   * Claims a payment; may be repeated. Must precede everything that is credited for the payment. A second claimant is
   * recorded: the workflow of top-ups reports it to the operator.
   * @param claimant name of the stream of a top-up or challenge
   * @returns false if the payment belongs to another top-up or challenge
   */
  async claim(payment: PaymentId, claimant: string, cause: Cause): Promise<boolean> {
    const data = { payment, claimant, at: this.clock.now() };
    const { state } = await this.claims.run(toPaymentKey(payment), { type: 'ClaimPayment', data }, cause);
    return state.owner === claimant;
  }
}
