import { idOf, type PaymentReceived, type PaymentReversed } from '#domain';
import type { Saga } from './saga.ts';

/** A payment that changes the balance of its account. */
export interface Crediting {
  readonly topupId: string;
  readonly payment: PaymentReceived | PaymentReversed;
}

/** Every payment that was received is credited to its account, and every one that was reversed is taken back. */
export const topupCrediting: Saga<Crediting> = {
  name: 'topup-crediting',
  react: (fact) =>
    fact.type === 'PaymentReceived' || fact.type === 'PaymentReversed' ? [{ topupId: idOf(fact), payment: fact }] : [],
};
