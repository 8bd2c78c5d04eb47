/**
 * The events of a payment challenge (HTTP 402): an offer to serve one request for one payment over Lightning, without
 * an account. Its holds and charges have the same events as those of an account.
 */
import type { Message } from '#kernel';
import type { Query } from '../query.ts';
import type { Coin } from '../topup/coins.ts';
import type { RateUsed } from '../topup/events.ts';
import type { Amount, Instant } from '../value-types.ts';

/** The only event of issuing a challenge. It has no postings, because the challenge may never be paid. */
export type ChallengeIssued = Message<
  'ChallengeIssued',
  {
    /** The id that clients use. The name of the stream has only half of it. */
    readonly id: string;
    readonly query: Query;
    /** The price of the request by `priceList`. It applies even if prices change before the payment. */
    readonly price: Amount;
    readonly priceList: string;
    /** Digest of the request that the challenge pays for: method, path and content. */
    readonly request: string;
    readonly method: string;
    readonly coin: Coin;
    /** The requested amount in the coin's smallest unit: the price, rounded up to an amount that can be paid. */
    readonly units: string;
    /** The value of `units` in USD. */
    readonly worth: Amount;
    readonly rate: RateUsed;
    readonly backend: string;
    /** The payment backend's reference of the invoice. */
    readonly reference: string;
    /** Lower-case hexadecimal. */
    readonly paymentHash: string;
    /** The invoice can be paid until then. */
    readonly expiresAt: Instant;
    /** The proof can be used until then. */
    readonly usableUntil: Instant;
    readonly at: Instant;
  }
>;

/** How a payment was received, and its amount in the coin's smallest unit. */
interface ReceivedPayment {
  readonly method: string;
  readonly coin: Coin;
  readonly backend: string;
  readonly units: string;
}

/**
 * The challenge is paid: a client presented the preimage, which only a payment reveals, or the payment backend reported
 * the payment.
 */
export type ChallengePaid = Message<
  'ChallengePaid',
  ReceivedPayment & {
    /** The value of the units at the rate of the challenge. */
    readonly amount: Amount;
    /** The part of `amount` that the payer can use. The rest is rounding. */
    readonly price: Amount;
    readonly by: 'preimage' | 'backend';
    readonly at: Instant;
  }
>;

/** More was received than requested. The operator owes the excess to the payer. */
export type ChallengeOverpaid = Message<
  'ChallengeOverpaid',
  ReceivedPayment & { readonly amount: Amount; readonly at: Instant }
>;

/** The rest of the payment can no longer be used and becomes income of the operator. */
export type ChallengeForfeited = Message<'ChallengeForfeited', { readonly amount: Amount; readonly at: Instant }>;

export type ChallengeLifecycleEvent = ChallengeIssued | ChallengePaid | ChallengeOverpaid | ChallengeForfeited;
