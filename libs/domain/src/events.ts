/**
 * Every fact the system can state: the table of contents of the books.
 *
 * Amounts are decimal strings of pico-USD, instants are ISO 8601 in UTC. What was appended stays as it is; a new
 * shape is a new version of its type, with an upcaster (`upcasters`) and a golden file (`golden`).
 */
import type { Message, StoredEvent } from '#kernel';
import type { AutoTopupEvent } from './autotopup/events.ts';
import type { ChallengeLifecycleEvent } from './challenge/events.ts';
import type { Attempt, Charge, PriceListLine } from './charge.ts';
import type { Query } from './query.ts';
import type { InvoiceAllowed, PaymentFeeCharged, TopupEvent } from './topup/events.ts';
import type { Amount, Instant, SealedSecret } from './value-types.ts';
import type { VideoEvent } from './video/events.ts';

export * from './autotopup/events.ts';
export * from './challenge/events.ts';
export type { Query, QueryType } from './query.ts';
export * from './topup/events.ts';
export type { Amount, Instant, SealedSecret } from './value-types.ts';
export * from './video/events.ts';

export type ResetPeriod = 'daily' | 'weekly' | 'monthly';

export type AccountOpened = Message<'AccountOpened', { readonly at: Instant }>;

export type KeyCreated = Message<
  'KeyCreated',
  {
    readonly keyId: string;
    readonly name: string;
    /** Keyed hash of the secret: how a key is found without being stored. */
    readonly hash: string;
    readonly secret: SealedSecret;
    readonly limit: Amount | null;
    readonly resetPeriod: ResetPeriod | null;
    readonly expireAt: Instant | null;
    readonly at: Instant;
  }
>;

export type KeyUpdated = Message<
  'KeyUpdated',
  {
    readonly keyId: string;
    readonly name?: string;
    readonly limit?: Amount | null;
    readonly resetPeriod?: ResetPeriod | null;
    readonly expireAt?: Instant | null;
    readonly at: Instant;
  }
>;

export type KeyRevoked = Message<'KeyRevoked', { readonly keyId: string; readonly at: Instant }>;

export type CreditAdded = Message<
  'CreditAdded',
  {
    /** The payment that paid for it, by its back end and its id there: `lnd/5b0e…`. */
    readonly creditId: string;
    readonly method: string;
    readonly amount: Amount;
    readonly bonus: Amount;
    readonly at: Instant;
  }
>;

/** A credit was taken back, or given again: amounts are negative where the customer loses them. */
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

export type FundsHeld = Message<
  'FundsHeld',
  {
    readonly holdId: string;
    /** The key that asked; null when the account itself did. */
    readonly keyId: string | null;
    readonly amount: Amount;
    /** The process that serves the request. Once it has died the hold ends; without one it ends by its time alone. */
    readonly owner?: string;
    readonly expiresAt: Instant;
    readonly query: Query;
    readonly at: Instant;
  }
>;

/** More is held for a running request: its answer may use more than it had. */
export type HoldExtended = Message<
  'HoldExtended',
  {
    readonly holdId: string;
    readonly keyId: string | null;
    /** All that is held from now on, and the part of it that is new. */
    readonly amount: Amount;
    readonly by: Amount;
    readonly at: Instant;
  }
>;

/** A hold is handed from the process that took it to a job that goes on without it: it ends with the job, and not by itself. */
export type HoldKept = Message<
  'HoldKept',
  {
    readonly holdId: string;
    /** The stream of the job, from now on. */
    readonly owner: string;
    readonly expiresAt: Instant;
    readonly at: Instant;
  }
>;

/** What every end of a hold says about it. */
interface ResolvedHold {
  readonly holdId: string;
  readonly keyId: string | null;
  /** Altogether, also what was added later. */
  readonly held: Amount;
  readonly heldAt: Instant;
  /** When it was counted for its key's cap, where that is later: it was extended in another reset window. */
  readonly countedAt?: Instant;
  readonly query: Query;
  readonly at: Instant;
}

export type HoldSettled = Message<
  'HoldSettled',
  ResolvedHold & {
    /** What the customer pays: the price, at most what was held. The rest of the price is an overrun. */
    readonly charged: Amount;
    readonly charge: Charge;
  }
>;

export type HoldReleased = Message<
  'HoldReleased',
  ResolvedHold & { readonly errorCode: string; readonly reason: string; readonly attempts: readonly Attempt[] }
>;

/** Its time was over, or its owner had died. */
export type HoldExpired = Message<'HoldExpired', ResolvedHold>;

/**
 * A charge whose hold ended unpaid: it came after the hold had expired, or its answer broke off before the customer
 * had anything of it. The customer owes nothing, the house bears it.
 */
export type ChargeAbsorbed = Message<
  'ChargeAbsorbed',
  { readonly holdId: string; readonly charge: Charge; readonly at: Instant }
>;

/** What becomes of money that is held, in the stream of its payer. */
export type HoldEvent = FundsHeld | HoldKept | HoldSettled | HoldReleased | HoldExpired | ChargeAbsorbed;

export type AccountEvent =
  | AccountOpened
  | KeyCreated
  | KeyUpdated
  | KeyRevoked
  | CreditAdded
  | CreditReversed
  | HoldExtended
  | HoldEvent;

/** Of the stream of a payment challenge, which pays for one request. */
export type ChallengeEvent = ChallengeLifecycleEvent | PaymentFeeCharged | HoldEvent;

export type PriceListPublished = Message<
  'PriceListPublished',
  {
    readonly version: string;
    /** One for each model or service of each provider. */
    readonly lines: readonly PriceListLine[];
    readonly at: Instant;
  }
>;

/** A request was refused because there was no money for it. Nothing was held, and nothing is booked. */
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
  | ChallengeLifecycleEvent
  | TopupEvent
  | AutoTopupEvent
  | VideoEvent
  | InvoiceAllowed
  | PriceListPublished
  | RequestRefused;

/** Categories of streams; the part of a stream's name before the first dash. */
export const ACCOUNT = 'account';
export const CHALLENGE = 'challenge';
export const TOPUP = 'topup';
export const AUTO_TOPUP = 'autotopup';
export const VIDEO = 'video';
export const INVOICES = 'invoices';
export const PRICE_LIST = 'pricelist';
export const REFUSED_REQUESTS = 'refusals';
export const CATEGORIES = [
  ACCOUNT,
  CHALLENGE,
  TOPUP,
  AUTO_TOPUP,
  VIDEO,
  INVOICES,
  PRICE_LIST,
  REFUSED_REQUESTS,
] as const;

/** The id behind the category in a stream's name. */
export function getStreamId(event: Pick<StoredEvent, 'stream'>): string {
  return event.stream.slice(event.stream.indexOf('-') + 1);
}
