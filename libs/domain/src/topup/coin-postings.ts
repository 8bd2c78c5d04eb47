/**
 * The double-entry postings of each event in coins, in addition to those in USD. With them, the expected balance of
 * each payment backend can be compared with its real balance. Positive units are a debit; postings sum to zero for each
 * coin.
 */
import type { DomainEvent } from '../events.ts';
import type { Coin } from './coins.ts';
import type { PaymentId } from './events.ts';
import { toPaymentKey } from './state.ts';

/** The wallet of a payment backend, and its sources by payment method: payments, reversals and fees. */
export type CoinAccount = `wallet:${string}` | `payments:${string}` | `reversals:${string}` | `fees:${string}`;

export interface CoinPosting {
  readonly account: CoinAccount;
  readonly coin: Coin;
  /** In the coin's smallest unit. */
  readonly units: bigint;
}

/**
 * Returns the coin postings of an event, without postings of 0 units.
 * @param findCoin returns the coin of a payment; called for old reversal events, which have no coin
 * @throws Error if a reversal has no coin and `findCoin` does not know its payment
 */
export function toCoinPostings(
  event: DomainEvent,
  findCoin: (payment: PaymentId) => Coin | undefined,
): readonly CoinPosting[] {
  switch (event.type) {
    case 'PaymentReceived':
      return toWalletPostings(event.data.payment, 'payments', event.data, BigInt(event.data.units));
    case 'PaymentReversed': {
      const { payment, coin = findCoin(payment) } = event.data;
      if (coin === undefined) throw new Error(`payment ${toPaymentKey(payment)} was reversed but never received`);
      return toWalletPostings(payment, 'reversals', { ...event.data, coin }, BigInt(event.data.units));
    }
    case 'ChallengePaid':
    case 'ChallengeOverpaid':
      return toWalletPostings(event.data, 'payments', event.data, BigInt(event.data.units));
    case 'PaymentFeeCharged':
      return toWalletPostings(event.data.payment, 'fees', event.data, -BigInt(event.data.units));
    default:
      return [];
  }
}

/** Posts units into the wallet, or out of it if they are negative. */
function toWalletPostings(
  { backend }: Pick<PaymentId, 'backend'>,
  from: 'payments' | 'reversals' | 'fees',
  { method, coin }: { readonly method: string; readonly coin: Coin },
  units: bigint,
): readonly CoinPosting[] {
  if (units === 0n) return [];
  return [
    { account: `wallet:${backend}`, coin, units },
    { account: `${from}:${method}`, coin, units: -units },
  ];
}
