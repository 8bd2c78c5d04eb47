import { idOf, type PaymentReceived } from '#domain';
import type { Saga } from './saga.ts';

export interface CreditPayment {
  readonly topupId: string;
  readonly payment: PaymentReceived['data'];
}

/** Every payment that was received is credited to its account. */
export const topupCrediting: Saga<CreditPayment> = {
  name: 'topup-crediting',
  react: (fact) => (fact.type === 'PaymentReceived' ? [{ topupId: idOf(fact), payment: fact.data }] : []),
};
