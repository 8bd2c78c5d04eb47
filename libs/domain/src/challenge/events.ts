/**
 * The facts of a payment challenge (HTTP 402): an offer to serve one request for one payment over Lightning, without an
 * account. What is held of its money and charged are the same facts as in an account's stream.
 */
import type { Message } from '#kernel';
import type { Query } from '../query.ts';
import type { Coin } from '../topup/coins.ts';
import type { RateUsed } from '../topup/events.ts';
import type { Amount, Instant } from '../value-types.ts';

/** All that issuing one leaves behind. Nothing is booked: it may never be paid. */
export type ChallengeIssued = Message<
  'ChallengeIssued',
  {
    /** As clients know it; its stream has the half of it. */
    readonly id: string;
    /** What its request would be charged by, at these prices: they hold, whatever prices are when it is paid. */
    readonly query: Query;
    readonly price: Amount;
    readonly priceList: string;
    /** Digest of the request that it pays for: method, path and content. */
    readonly request: string;
    readonly method: string;
    readonly coin: Coin;
    /** What is asked for, in the coin's smallest unit, and what that is worth: the price, rounded up to what can be paid. */
    readonly units: string;
    readonly worth: Amount;
    readonly rate: RateUsed;
    readonly backend: string;
    /** The back end's reference for its invoice. */
    readonly reference: string;
    /** Lower-case hexadecimal. */
    readonly paymentHash: string;
    /** It can be paid until then, and its proof used until the later of the two. */
    readonly expiresAt: Instant;
    readonly usableUntil: Instant;
    readonly at: Instant;
  }
>;

/** What every payment of one says about where the money is. */
interface ReceivedPayment {
  readonly method: string;
  readonly coin: Coin;
  readonly backend: string;
  readonly units: string;
}

/** It is paid: its preimage was shown, which only the payment tells, or the back end says so. */
export type ChallengePaid = Message<
  'ChallengePaid',
  ReceivedPayment & {
    /** What the units are worth at the rate of the challenge, and the part of it that its payer may use. The rest is rounding. */
    readonly amount: Amount;
    readonly price: Amount;
    readonly by: 'preimage' | 'backend';
    readonly at: Instant;
  }
>;

/** More has come than was asked for: it is owed to the payer. */
export type ChallengeOverpaid = Message<
  'ChallengeOverpaid',
  ReceivedPayment & { readonly amount: Amount; readonly at: Instant }
>;

/** What was left of it could no longer be used, and is income by the operator's rule. */
export type ChallengeForfeited = Message<'ChallengeForfeited', { readonly amount: Amount; readonly at: Instant }>;

export type ChallengeLifecycleEvent = ChallengeIssued | ChallengePaid | ChallengeOverpaid | ChallengeForfeited;
