/**
 * The facts of an account's automatic top-up. An attempt is one invoice of our own, which the customer's wallet is asked
 * to pay, perhaps more than once: an invoice can be paid only once.
 */
import type { Message } from '#kernel';
import type { Amount, Instant, SealedSecret } from '../value-types.ts';

/** How a wallet is reached: by its public key on its relays (NIP-47). */
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
    /** The secret key with which the wallet may be asked to pay. */
    readonly secret: SealedSecret;
    /** Below this balance, available and held together, the account is topped up. */
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
    /** What was available and held, which is less than the threshold. */
    readonly balance: Amount;
    readonly at: Instant;
  }
>;

/** The top-up of the attempt has its invoice. */
export type AutoTopupInvoiced = Message<
  'AutoTopupInvoiced',
  { readonly attempt: number; readonly invoice: string; readonly expiresAt: Instant; readonly at: Instant }
>;

/** The wallet is about to be asked to pay the invoice. */
export type WalletAsked = Message<
  'WalletAsked',
  {
    readonly attempt: number;
    /** From 1 in each attempt. */
    readonly request: number;
    /** The public key of the wallet. */
    readonly wallet: string;
    /** Of the turn in which it is asked. */
    readonly token: number;
    readonly at: Instant;
  }
>;

/** Whether the request has left: `unknown` may have left. */
export type WalletRequestEnded = Message<
  'WalletRequestEnded',
  {
    readonly attempt: number;
    readonly request: number;
    readonly outcome: 'sent' | 'unsent' | 'unknown';
    /** Where it was not sent. */
    readonly why?: string;
    readonly at: Instant;
  }
>;

/** What the wallet says about a request. Whether the invoice is paid, its own node says. */
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
     * `paid`: it is credited. `expired`: the invoice can not be paid any more. `failed`: none could be made. `dropped`: it
     * is not needed any more, and no wallet may pay it.
     */
    readonly outcome: 'paid' | 'expired' | 'failed' | 'dropped';
    readonly why?: string;
    readonly at: Instant;
  }
>;

/** Nothing is asked for until then, unless a wallet is connected before. */
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
