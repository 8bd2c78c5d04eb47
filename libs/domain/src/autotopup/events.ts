/**
 * The events of an account's automatic top-up. An attempt has at most one invoice, whose payment is requested from the
 * customer's wallet. The request may be repeated, because an invoice can be paid only once.
 */
import type { Message } from '#kernel';
import type { Amount, Instant, SealedSecret } from '../value-types.ts';

/** The address of a wallet: its public key and its relays (NIP-47). */
export interface WalletAddress {
  /** 64 hexadecimal digits. */
  readonly pubkey: string;
  readonly relays: readonly string[];
  readonly encryption: 'nip44_v2' | 'nip04';
}

export type WalletConnected = Message<
  'WalletConnected',
  {
    readonly wallet: WalletAddress;
    /** The secret key that authorises payment requests to the wallet. */
    readonly secret: SealedSecret;
    /** The account is topped up if the sum of available and held is below this amount. */
    readonly threshold: Amount;
    readonly amount: Amount;
    readonly at: Instant;
  }
>;

export type WalletDisconnected = Message<'WalletDisconnected', { readonly at: Instant }>;

export type AutoTopupBegun = Message<
  'AutoTopupBegun',
  {
    /** From 1. */
    readonly attempt: number;
    readonly topupId: string;
    readonly amount: Amount;
    /** The sum of available and held, which was below the threshold. */
    readonly balance: Amount;
    readonly at: Instant;
  }
>;

/** The invoice for the top-up of the attempt was issued. */
export type AutoTopupInvoiced = Message<
  'AutoTopupInvoiced',
  { readonly attempt: number; readonly invoice: string; readonly expiresAt: Instant; readonly at: Instant }
>;

/** A request to pay the invoice is about to be sent to the wallet. */
export type WalletAsked = Message<
  'WalletAsked',
  {
    readonly attempt: number;
    /** From 1 in each attempt. */
    readonly request: number;
    /** The public key of the wallet. */
    readonly wallet: string;
    /** Fencing token of the lease under which the request is sent. */
    readonly token: number;
    readonly at: Instant;
  }
>;

/** Whether the request was sent. With `unknown` it may have been sent. */
export type WalletRequestEnded = Message<
  'WalletRequestEnded',
  {
    readonly attempt: number;
    readonly request: number;
    readonly outcome: 'sent' | 'unsent' | 'unknown';
    /** The reason if it was not sent, or if that is unknown. */
    readonly why?: string;
    readonly at: Instant;
  }
>;

/** The response of the wallet to a request. Only the payment backend can confirm that the invoice is paid. */
export type WalletAnswered = Message<
  'WalletAnswered',
  {
    readonly attempt: number;
    readonly request: number;
    /** `PAID`, or an error code of NIP-47, such as `QUOTA_EXCEEDED`. */
    readonly code: string;
    readonly why?: string;
    readonly at: Instant;
  }
>;

export type AutoTopupEnded = Message<
  'AutoTopupEnded',
  {
    readonly attempt: number;
    /**
     * `paid`: the top-up is credited. `expired`: the invoice can no longer be paid. `failed`: no invoice could be
     * created. `dropped`: the top-up is no longer needed or the wallet was disconnected, and no wallet can still pay
     * it.
     */
    readonly outcome: 'paid' | 'expired' | 'failed' | 'dropped';
    readonly why?: string;
    readonly at: Instant;
  }
>;

/**
 * No attempt starts and no payment is requested before `until`. The pause ends earlier if the customer connects a
 * wallet, or if the open attempt is paid.
 */
export type AutoTopupPaused = Message<
  'AutoTopupPaused',
  { readonly code: string; readonly why: string; readonly until: Instant; readonly at: Instant }
>;

export type AutoTopupEvent =
  | WalletConnected
  | WalletDisconnected
  | AutoTopupBegun
  | AutoTopupInvoiced
  | WalletAsked
  | WalletRequestEnded
  | WalletAnswered
  | AutoTopupEnded
  | AutoTopupPaused;
