/** The facts of a top-up. */
import type { Message } from '#kernel';
import type { Amount, Instant } from '../value-types.ts';
import type { Coin } from './coins.ts';

/** The identity of a payment: its back end, and the back end's id. One payment is credited once. */
export interface PaymentId {
  readonly backend: string;
  readonly id: string;
}

/** An exchange rate, USD for one coin, with its source and time; old facts do not name every source. */
export interface RateUsed {
  readonly value: string;
  readonly source: string | null;
  readonly at: Instant;
}

/** Where to pay: a Lightning invoice, an address of the coin's network, or a page of the back end. */
export interface Destination {
  readonly kind: 'bolt11' | 'address' | 'page';
  readonly value: string;
}

/** An account may have an invoice made. Of the account's stream of invoices, not of the top-up's. */
export type InvoiceAllowed = Message<
  'InvoiceAllowed',
  {
    readonly accountId: string;
    readonly topupId: string;
    /** At the latest: it has expired by then, if it was made at all. */
    readonly expiresAt: Instant;
    readonly at: Instant;
  }
>;

export type InvoiceIssued = Message<
  'InvoiceIssued',
  {
    readonly accountId: string;
    readonly method: string;
    readonly coin: Coin;
    /** As requested by the customer. */
    readonly requested: { readonly amount: string; readonly currency: string };
    readonly usd: Amount;
    /** In the coin's smallest unit. */
    readonly units: string;
    /** The exchange rate at creation. */
    readonly rate: RateUsed;
    readonly backend: string;
    /** The back end's reference for it. */
    readonly reference: string;
    readonly destination: Destination;
    /** Terms of the method as they were promised: the gift on a payment, and how often one must be confirmed. */
    readonly bonusPercent: number;
    readonly confirmations: number;
    readonly expiresAt: Instant;
    readonly at: Instant;
  }
>;

/** A payment is on its way: shown to the customer, worth nothing yet. */
export type PaymentSeen = Message<
  'PaymentSeen',
  {
    readonly payment: PaymentId;
    readonly units: string;
    readonly confirmations: number;
    readonly seenAt: Instant;
    readonly at: Instant;
  }
>;

/** A payment that was seen is not on its way any more: it was replaced, or dropped by its network. */
export type PaymentLost = Message<'PaymentLost', { readonly payment: PaymentId; readonly at: Instant }>;

export type PaymentReceived = Message<
  'PaymentReceived',
  {
    readonly accountId: string;
    readonly method: string;
    readonly coin: Coin;
    readonly payment: PaymentId;
    /** What the customer paid, in the coin's smallest unit. */
    readonly units: string;
    readonly amount: Amount;
    readonly bonus: Amount;
    /** The exchange rate it is credited at. */
    readonly rate: RateUsed;
    /** What it was worth when it was recorded, where it is credited at the rate of its invoice. */
    readonly market?: { readonly rate: RateUsed; readonly amount: Amount };
    readonly receivedAt: Instant;
    readonly at: Instant;
  }
>;

export type TopupCredited = Message<'TopupCredited', { readonly payment: PaymentId; readonly at: Instant }>;

/** A payment was taken back, or given again. Amounts are negative where the customer loses them. */
export type PaymentReversed = Message<
  'PaymentReversed',
  {
    readonly accountId: string;
    readonly method: string;
    /** The back end's id of this event; it counts once. */
    readonly reversalId: string;
    readonly payment: PaymentId;
    readonly coin?: Coin;
    readonly units: string;
    readonly amount: Amount;
    readonly bonus: Amount;
    /** Its share of what the payment was worth when it was recorded. */
    readonly market?: Amount;
    readonly why: string;
    readonly at: Instant;
  }
>;

/** The back end has kept something of a payment, or charges for it: a fee of the house. Negative: it was given back. */
export type PaymentFeeCharged = Message<
  'PaymentFeeCharged',
  {
    readonly method: string;
    readonly coin: Coin;
    readonly payment: PaymentId;
    /** The back end's id of the fee, among those of the payment; it counts once. */
    readonly feeId: string;
    readonly units: string;
    readonly amount: Amount;
    readonly why: string;
    readonly at: Instant;
  }
>;

export type TopupEvent =
  | InvoiceIssued
  | PaymentSeen
  | PaymentLost
  | PaymentReceived
  | TopupCredited
  | PaymentReversed
  | PaymentFeeCharged;
