/**
 * What a fact books in coins: double entry beside the books in USD, so that what each back end should hold can be compared
 * with what it says. A positive number of units is a debit; lines sum to zero for each coin.
 */
import type { DomainEvent } from '../events.ts';
import type { Coin } from './coins.ts';
import { toPaymentKey } from './decide.ts';
import type { PaymentId } from './events.ts';

/** The wallet of a back end, and what it holds by payment method: from customers, less what went back, less fees. */
export type CoinAccount = `wallet:${string}` | `payments:${string}` | `reversals:${string}` | `fees:${string}`;

export interface CoinPosting {
  readonly account: CoinAccount;
  readonly coin: Coin;
  /** Of the coin's smallest unit. */
  readonly units: bigint;
}

/**
 * The lines that a fact books; lines of zero are left out.
 * @param findCoin the coin of a payment, for old facts that do not name it
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
      if (coin === undefined) throw new Error(`payment ${toPaymentKey(payment)} was reversed, and never received`);
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

/** Into the wallet, or out of it where units are below zero. */
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
