import type { Crediting } from '#application';
import { idOf } from '#domain';
import { followingFrom } from '#kernel';
import type { Saga } from './saga.ts';

const NAME = 'topup-crediting';

/** Every payment that was received is credited to its account, and every one that was reversed is taken back. */
export const topupCrediting: Saga<Crediting> = {
  name: NAME,
  react: (fact) =>
    fact.type === 'PaymentReceived' || fact.type === 'PaymentReversed'
      ? [{ topupId: idOf(fact), payment: fact, cause: followingFrom(fact, `saga:${NAME}`) }]
      : [],
};
