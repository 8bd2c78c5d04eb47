/**
 * The facts of a video: a job that its vendor works on for minutes, and that any process goes on with. Its money is held by
 * the account; the job's stream alone decides how that hold ends.
 */
import type { Message } from '#kernel';
import type { Charge, Seller } from '../charge.ts';
import type { Query } from '../query.ts';
import type { PriceJson, PriceTerms, Usage } from '../tariff.ts';
import type { Amount, Instant } from '../value-types.ts';

/** Where a video can be made, and what it comes to there: as it was quoted, whatever the catalogue says later. */
export interface VideoEndpoint extends Seller {
  /** Our name of the model. */
  readonly of: string;
  /** The vendor's name of the model; the vendor is the creditor. */
  readonly model: string;
  readonly usage: Usage;
  readonly prices: readonly PriceJson[];
}

/** Money is held, and the request is kept. */
export type VideoRequested = Message<
  'VideoRequested',
  {
    /** Null where it is paid for without an account: the hold says by what. */
    readonly accountId: string | null;
    readonly keyId: string | null;
    readonly query: Query;
    readonly hold: { readonly holdId: string; readonly payer: string; readonly amount: Amount };
    /** In the order in which they are asked. */
    readonly endpoints: readonly VideoEndpoint[];
    /** What the prices depend on. */
    readonly terms: PriceTerms;
    readonly priceList: string;
    /** What was asked for, sealed in the file store: texts and pictures are too large and too private for facts. */
    readonly request: { readonly file: string; readonly sha256: string };
    /** The id under which the video is kept. */
    readonly result: string;
    readonly deadline: Instant;
    readonly at: Instant;
  }
>;

/** The hold is kept for the job: it ends with it, and not with the process that took it. */
export type VideoHeld = Message<'VideoHeld', { readonly at: Instant }>;

/** A vendor is about to be handed the job. */
export type VideoSubmissionBegun = Message<
  'VideoSubmissionBegun',
  {
    /** From 1. */
    readonly submission: number;
    /** Which of the endpoints, from 0. */
    readonly endpoint: number;
    /** Of the turn in which it is done. */
    readonly token: number;
    readonly at: Instant;
  }
>;

export type VideoSubmitted = Message<
  'VideoSubmitted',
  {
    readonly submission: number;
    /** By which the vendor is asked for it. */
    readonly reference: string;
    /** By which a line of its invoice can be found. */
    readonly vendorId: string;
    /** The vendor was told where to say that it is done. */
    readonly hooked: boolean;
    readonly at: Instant;
  }
>;

/** `refused`: the request is at fault. `unavailable`: the vendor is. In both cases it has surely not taken it. */
export type SubmissionOutcome = 'refused' | 'unavailable' | 'unknown';

export type VideoSubmissionFailed = Message<
  'VideoSubmissionFailed',
  {
    readonly submission: number;
    readonly outcome: SubmissionOutcome;
    readonly code: string;
    readonly why: string;
    /** HTTP status of the vendor, where it answered. */
    readonly status?: number;
    readonly at: Instant;
  }
>;

/** The vendor says that it is done: from here on it will send its invoice. */
export type VideoMade = Message<'VideoMade', { readonly at: Instant }>;

/** What the vendor has made could not be fetched, or is no video. */
export type VideoFetchFailed = Message<
  'VideoFetchFailed',
  {
    /** From 1. */
    readonly fetch: number;
    /** It would be the same again: it is gone, of another type, or too large. */
    readonly final: boolean;
    readonly why: string;
    readonly at: Instant;
  }
>;

export type VideoStored = Message<
  'VideoStored',
  {
    /** By its content, such as `video/mp4`. */
    readonly mediaType: string;
    readonly size: number;
    readonly charge: Charge;
    readonly at: Instant;
  }
>;

export type VideoSettled = Message<'VideoSettled', { readonly charged: Amount; readonly at: Instant }>;

/** Whether a vendor invoices what came to nothing; `perhaps`: it does not say. */
export type ProviderInvoiceExpectation = 'no' | 'yes' | 'perhaps';

/** What a vendor may invoice for a job that failed, of which it has not said whether it does. */
export interface OpenCost extends Seller {
  readonly of: string;
  /** The vendor's id of the job, where it is known. */
  readonly vendorId?: string;
  /** What it would come to. */
  readonly most: Amount;
}

/** The customer owes nothing. */
export type VideoFailed = Message<
  'VideoFailed',
  {
    readonly errorCode: string;
    /** A sentence for the customer. */
    readonly message: string;
    /** What the vendor invoices nevertheless: the house bears it. */
    readonly absorbed?: Charge;
    /** What it may invoice: nobody knows before somebody looks at its invoice. */
    readonly open?: OpenCost;
    readonly at: Instant;
  }
>;

export type VideoReleased = Message<'VideoReleased', { readonly at: Instant }>;

/** Somebody has looked at the vendor's invoice: the house bears what is there. */
export type VideoCostClosed = Message<
  'VideoCostClosed',
  Seller & { readonly vendorId?: string; readonly cost: Amount; readonly at: Instant }
>;

export type VideoEvent =
  | VideoRequested
  | VideoHeld
  | VideoSubmissionBegun
  | VideoSubmitted
  | VideoSubmissionFailed
  | VideoMade
  | VideoFetchFailed
  | VideoStored
  | VideoSettled
  | VideoFailed
  | VideoReleased
  | VideoCostClosed;
