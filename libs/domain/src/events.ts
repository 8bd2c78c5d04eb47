/**
 * All domain events.
 *
 * Amounts are decimal strings of pico-USD, instants are ISO 8601 in UTC. Stored events never change. Changed data is a
 * new version of the event type, with an upcaster (`upcasters`) and a golden file (`golden`).
 */
import type { Message, StoredEvent } from '#kernel';
import type { AutoTopupEvent } from './autotopup/events.ts';
import type { ChallengeLifecycleEvent } from './challenge/events.ts';
import type { Attempt, Charge, PriceListLine } from './charge.ts';
import type { Query } from './query.ts';
import type { OpenInvoiceEvent, PaymentClaimEvent, PaymentFeeCharged, TopupEvent } from './topup/events.ts';
import type { Amount, Instant, SealedSecret } from './value-types.ts';
import type { VideoEvent } from './video/events.ts';

export * from './autotopup/events.ts';
export * from './challenge/events.ts';
export type { Query, QueryType } from './query.ts';
export * from './topup/events.ts';
export type { Amount, Instant, SealedSecret } from './value-types.ts';
export * from './video/events.ts';

export const RESET_PERIODS = ['daily', 'weekly', 'monthly'] as const;
export type ResetPeriod = (typeof RESET_PERIODS)[number];

export type AccountOpened = Message<'AccountOpened', { readonly at: Instant }>;

export type KeyCreated = Message<
  'KeyCreated',
  {
    readonly keyId: string;
    readonly name: string;
    /** Keyed hash of the secret, by which a key is looked up. */
    readonly hash: string;
    readonly secret: SealedSecret;
    readonly limit: Amount | null;
    readonly resetPeriod: ResetPeriod | null;
    readonly expireAt: Instant | null;
    readonly at: Instant;
  } & KeyAccess
>;

/** What an API key permits, apart from money and time. Version 1 of its events has none of these fields. */
export interface KeyAccess {
  /** Ids of models and patterns of ids, see `matchesModelPattern`; null: all models. */
  readonly models: readonly string[] | null;
  /** No request is served until the owner lifts the block. */
  readonly blocked: boolean;
  /** Tags of the owner, such as a cost centre. */
  readonly metadata: Readonly<Record<string, string>>;
  /**
   * For so many seconds, a request that is identical to one whose response is running or unread is the same request.
   * Null or missing: every request is a request of its own. Release 1.2.0 ignores the field.
   */
  readonly dedupeSeconds?: number | null;
}

/** All models, not blocked, no tags. */
export const UNRESTRICTED_ACCESS: KeyAccess = { models: null, blocked: false, metadata: {} };

export type KeyUpdated = Message<
  'KeyUpdated',
  {
    readonly keyId: string;
    readonly name?: string;
    readonly limit?: Amount | null;
    readonly resetPeriod?: ResetPeriod | null;
    readonly expireAt?: Instant | null;
    readonly at: Instant;
  } & Partial<KeyAccess>
>;

export type KeyRevoked = Message<'KeyRevoked', { readonly keyId: string; readonly at: Instant }>;

export type CreditAdded = Message<
  'CreditAdded',
  {
    /** The payment for this credit: the payment backend and its id of the payment, such as `lnd/5b0e…`. */
    readonly creditId: string;
    readonly method: string;
    readonly amount: Amount;
    readonly bonus: Amount;
    readonly at: Instant;
  }
>;

/** A credit was reversed, or restored after a reversal. Amounts are negative if the customer loses them. */
export type CreditReversed = Message<
  'CreditReversed',
  {
    readonly reversalId: string;
    readonly creditId: string;
    readonly method: string;
    readonly amount: Amount;
    readonly bonus: Amount;
    readonly why: string;
    readonly at: Instant;
  }
>;

/**
 * The operator credited or debited an account without a payment, or reversed an earlier adjustment. The amount is
 * negative if the customer loses it.
 */
export type BalanceAdjusted = Message<
  'BalanceAdjusted',
  {
    /** Unique in the account: a repeated command with this id adjusts nothing. */
    readonly adjustmentId: string;
    readonly amount: Amount;
    readonly reason: string;
    readonly actor: Actor;
    /** The adjustment that this one reverses. */
    readonly reverses?: string;
    readonly at: Instant;
  }
>;

/** A person who acted for the operator. */
export interface Actor {
  readonly name: string;
  /** False if the name is only what the command line stated. */
  readonly isVerified: boolean;
}

/** A name was given to an account. It is the first event of the stream of that name, so the name is unique. */
export type AccountNamed = Message<
  'AccountNamed',
  { readonly name: string; readonly accountId: string; readonly actor: Actor; readonly at: Instant }
>;

export type FundsHeld = Message<
  'FundsHeld',
  {
    readonly holdId: string;
    /** The API key of the request; null if the request was sent without one. */
    readonly keyId: string | null;
    readonly amount: Amount;
    /**
     * The process that serves the request. The hold ends if this process dies. Without an owner, an abandoned hold ends
     * only by its expiry.
     */
    readonly owner?: string;
    readonly expiresAt: Instant;
    readonly query: Query;
    /**
     * Price of the output limit that the provider gets: the most that it may bill. Omitted if no more than the hold may
     * be billed.
     */
    readonly limitPrice?: Amount;
    /**
     * Price of what may be generated after the last count of the usage and before the provider has stopped. Omitted if
     * the speed is unknown.
     */
    readonly stopPrice?: Amount;
    /** Price of a long response of the model, up to which other requests leave money. Only with a `limitPrice`. */
    readonly longPrice?: Amount;
    readonly at: Instant;
  }
>;

/** The hold of a running request was increased, because its response may cost more than was held. */
export type HoldExtended = Message<
  'HoldExtended',
  {
    readonly holdId: string;
    readonly keyId: string | null;
    /** The total after the extension. */
    readonly amount: Amount;
    /** The increase. */
    readonly by: Amount;
    /** As in `FundsHeld`, if the speed has become known during the response. */
    readonly stopPrice?: Amount;
    readonly at: Instant;
  }
>;

/**
 * A hold was transferred from the process that placed it to a job that outlives the process. The hold then ends with
 * the job.
 */
export type HoldKept = Message<
  'HoldKept',
  {
    readonly holdId: string;
    /** The stream of the job. */
    readonly owner: string;
    readonly expiresAt: Instant;
    readonly at: Instant;
  }
>;

/** The data of a hold that every event about its end has. */
interface ResolvedHold {
  readonly holdId: string;
  readonly keyId: string | null;
  /** The total, including extensions. */
  readonly held: Amount;
  readonly heldAt: Instant;
  /** When the hold was counted for the limit of its key, if later than `heldAt`: it was extended in a later window. */
  readonly countedAt?: Instant;
  readonly query: Query;
  readonly at: Instant;
}

export type HoldSettled = Message<
  'HoldSettled',
  /** `query` has the model that responded, which may be another one than that of the hold. */
  ResolvedHold & {
    /** What the customer pays: the price, at most the held amount. The rest of the price is an overrun. */
    readonly charged: Amount;
    /**
     * Id of the reset window of the key's limit in which the charge counts; null if it counts in none, because the
     * reset period was changed after the hold. Stated if the reset period was ever changed, or if the times of hold and
     * key suggest another window: decisions can follow each other in another order than the times of their commands.
     */
    readonly countedIn?: string | null;
    readonly charge: Charge;
  }
>;

export type HoldReleased = Message<
  'HoldReleased',
  ResolvedHold & { readonly errorCode: string; readonly reason: string; readonly attempts: readonly Attempt[] }
>;

/** The expiry of the hold has passed, or its owner has died. */
export type HoldExpired = Message<'HoldExpired', ResolvedHold>;

/**
 * A charge whose hold ended unpaid: the hold had expired, or the request failed before the customer received anything.
 * The customer owes nothing; the operator absorbs the cost.
 */
export type ChargeAbsorbed = Message<
  'ChargeAbsorbed',
  { readonly holdId: string; readonly charge: Charge; readonly at: Instant }
>;

/**
 * A charge was reversed, because the customer got no response: the store had recorded the charge, but confirmed it too
 * late. The operator absorbs the cost.
 */
export type ChargeReversed = Message<
  'ChargeReversed',
  Pick<HoldSettled['data'], 'holdId' | 'keyId' | 'heldAt' | 'countedAt' | 'countedIn' | 'query' | 'at'> & {
    /** The amount of the charge, all of which the customer gets back. */
    readonly charged: Amount;
  }
>;

/** Events of a hold for payers of every kind. Only accounts also have `HoldExtended`. */
export type HoldEvent =
  | FundsHeld
  | HoldKept
  | HoldSettled
  | HoldReleased
  | HoldExpired
  | ChargeAbsorbed
  | ChargeReversed;

export type AccountEvent =
  | AccountOpened
  | KeyCreated
  | KeyUpdated
  | KeyRevoked
  | CreditAdded
  | CreditReversed
  | BalanceAdjusted
  | HoldExtended
  | HoldEvent;

/** Events in the stream of a payment challenge, which pays for one request. */
export type ChallengeEvent = ChallengeLifecycleEvent | PaymentFeeCharged | HoldEvent;

export type PriceListPublished = Message<
  'PriceListPublished',
  {
    readonly version: string;
    /** One line for each combination of a model or service, a provider and a creditor. */
    readonly lines: readonly PriceListLine[];
    readonly at: Instant;
  }
>;

/** A request was rejected for lack of money. Nothing was held, and the ledger has no entry for it. */
export type RequestRefused = Message<
  'RequestRefused',
  {
    readonly accountId: string;
    readonly keyId: string | null;
    readonly requestId: string;
    readonly query: Query;
    readonly errorCode: string;
    readonly at: Instant;
  }
>;

export type DomainEvent =
  | AccountEvent
  | AccountNamed
  | ChallengeLifecycleEvent
  | TopupEvent
  | PaymentClaimEvent
  | AutoTopupEvent
  | VideoEvent
  | OpenInvoiceEvent
  | PriceListPublished
  | RequestRefused;

/** Categories of streams: the part of a stream's name before the first dash. */
export const ACCOUNT = 'account';
export const ACCOUNT_NAME = 'name';
export const CHALLENGE = 'challenge';
export const TOPUP = 'topup';
export const PAYMENT = 'payment';
export const AUTO_TOPUP = 'autotopup';
export const VIDEO = 'video';
export const INVOICES = 'invoices';
export const PRICE_LIST = 'pricelist';
export const REFUSED_REQUESTS = 'refusals';
export const CATEGORIES = [
  ACCOUNT,
  ACCOUNT_NAME,
  CHALLENGE,
  TOPUP,
  PAYMENT,
  AUTO_TOPUP,
  VIDEO,
  INVOICES,
  PRICE_LIST,
  REFUSED_REQUESTS,
] as const;

/** Returns the part of a stream's name after the category and the first dash. */
export function getStreamId(event: Pick<StoredEvent, 'stream'>): string {
  return event.stream.slice(event.stream.indexOf('-') + 1);
}
