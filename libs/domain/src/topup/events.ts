/** The events of a top-up. */
import type { Message } from '#kernel';
import type { Amount, Instant } from '../value-types.ts';
import type { Coin } from './coins.ts';

/** The identity of a payment: its payment backend and the backend's id. Each payment is credited once. */
export interface PaymentId {
  readonly backend: string;
  readonly id: string;
}

/** An exchange rate in USD for one coin. The source is null in some events of older versions. */
export interface RateUsed {
  readonly value: string;
  readonly source: string | null;
  readonly at: Instant;
}

/** Where to pay: a Lightning invoice, an address in the coin's network, or a page of the payment backend. */
export interface Destination {
  readonly kind: 'bolt11' | 'address' | 'page';
  readonly value: string;
}

/** An account is allowed to create an invoice. Appended to the account's stream of open invoices, not to the top-up. */
export type InvoiceAllowed = Message<
  'InvoiceAllowed',
  {
    readonly accountId: string;
    readonly topupId: string;
    /** Upper bound of the expiry. The invoice may never have been created. */
    readonly expiresAt: Instant;
    readonly at: Instant;
  }
>;

/** The payment backend certainly created no invoice, so it does not count as open. Appended to the same stream. */
export type InvoiceDropped = Message<'InvoiceDropped', { readonly topupId: string; readonly at: Instant }>;

export type OpenInvoiceEvent = InvoiceAllowed | InvoiceDropped;

export type InvoiceIssued = Message<
  'InvoiceIssued',
  {
    readonly accountId: string;
    readonly method: string;
    readonly coin: Coin;
    /** The amount that the customer requested. */
    readonly requested: { readonly amount: string; readonly currency: string };
    readonly usd: Amount;
    /** In the coin's smallest unit. */
    readonly units: string;
    /** The exchange rate at creation. */
    readonly rate: RateUsed;
    readonly backend: string;
    /** The payment backend's reference of the invoice. */
    readonly reference: string;
    readonly destination: Destination;
    /** The bonus on each payment. Like `confirmations`, it applies even if the payment method changes later. */
    readonly bonusPercent: number;
    /** The number of confirmations after which a payment is credited. */
    readonly confirmations: number;
    readonly expiresAt: Instant;
    readonly at: Instant;
  }
>;

/** A payment was observed but is not final. The customer can see it; it is not credited yet. */
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

/** An observed payment will not arrive: it was replaced, dropped by its network, or belongs to another top-up. */
export type PaymentLost = Message<
  'PaymentLost',
  {
    readonly payment: PaymentId;
    readonly at: Instant;
    /** The payment belongs to another top-up or challenge, so no payment of this invoice was lost. */
    readonly isContested?: true;
  }
>;

/** Units of a payment that are credited alike. A reversal takes the last units first. */
export interface PaymentPart {
  readonly units: string;
  readonly amount: Amount;
  readonly bonus: Amount;
  readonly rate: RateUsed;
  /** The part exceeds the maximum of the method: it is not credited, but owed to the customer. */
  readonly isExcess?: true;
}

export type PaymentReceived = Message<
  'PaymentReceived',
  {
    readonly accountId: string;
    readonly method: string;
    readonly coin: Coin;
    readonly payment: PaymentId;
    /** What the customer paid, in the coin's smallest unit. */
    readonly units: string;
    /** What is credited, without the bonus and the excess. */
    readonly amount: Amount;
    readonly bonus: Amount;
    /** The exchange rate at which it, or its first part, is credited. */
    readonly rate: RateUsed;
    /** The value of what exceeds the maximum of the method. It is owed until a person credits or refunds it. */
    readonly excess?: Amount;
    /** Absent if all units are credited alike. */
    readonly parts?: readonly PaymentPart[];
    /** The market value when the payment was recorded, if it differs from the amount and the excess. */
    readonly market?: { readonly rate: RateUsed; readonly amount: Amount };
    readonly receivedAt: Instant;
    readonly at: Instant;
  }
>;

export type TopupCredited = Message<'TopupCredited', { readonly payment: PaymentId; readonly at: Instant }>;

/** A person has decided to credit the excess of a payment that was not reversed. */
export type ExcessCredited = Message<
  'ExcessCredited',
  {
    readonly accountId: string;
    readonly method: string;
    readonly payment: PaymentId;
    readonly amount: Amount;
    readonly at: Instant;
  }
>;

/** A payment was reversed, or restored after a reversal. Amounts are negative if the customer loses them. */
export type PaymentReversed = Message<
  'PaymentReversed',
  {
    readonly accountId: string;
    readonly method: string;
    /**
     * The payment backend's id of this reversal, or a derived id if the network rolled the payment back or confirmed it
     * again. Recorded once.
     */
    readonly reversalId: string;
    readonly payment: PaymentId;
    readonly coin?: Coin;
    readonly units: string;
    readonly amount: Amount;
    readonly bonus: Amount;
    /** The reversed part of the excess. */
    readonly excess?: Amount;
    /** The reversed part of the market value that the payment had when the payment was recorded. */
    readonly market?: Amount;
    readonly why: string;
    readonly at: Instant;
  }
>;

/** The payment backend has charged the operator a fee for a payment. A refunded fee is negative. */
export type PaymentFeeCharged = Message<
  'PaymentFeeCharged',
  {
    readonly method: string;
    readonly coin: Coin;
    readonly payment: PaymentId;
    /** The payment backend's id of the fee, unique for the payment. Each fee is recorded once. */
    readonly feeId: string;
    readonly units: string;
    readonly amount: Amount;
    readonly why: string;
    readonly at: Instant;
  }
>;

/** A payment belongs to a top-up or a challenge. Appended to the payment's own stream, before anything is credited. */
export type PaymentClaimed = Message<
  'PaymentClaimed',
  {
    readonly payment: PaymentId;
    /** Name of the stream of the top-up or challenge. */
    readonly claimant: string;
    readonly at: Instant;
  }
>;

/** A payment that belongs to `owner` was reported for another top-up or challenge, which gets nothing for it. */
export type PaymentContested = Message<
  'PaymentContested',
  { readonly payment: PaymentId; readonly claimant: string; readonly at: Instant; readonly owner: string }
>;

/** A person has dealt with a contested payment. */
export type ContestClosed = Message<
  'ContestClosed',
  { readonly claimant: string; readonly why: string; readonly at: Instant }
>;

export type PaymentClaimEvent = PaymentClaimed | PaymentContested | ContestClosed;

export type TopupEvent =
  | InvoiceIssued
  | PaymentSeen
  | PaymentLost
  | PaymentReceived
  | TopupCredited
  | ExcessCredited
  | PaymentReversed
  | PaymentFeeCharged;
