/**
 * The events of a video job. The provider works on it for minutes, and any process can continue it. The hold is in the
 * payer's stream, but only the job's stream decides how the hold ends.
 */
import type { Message } from '#kernel';
import type { Charge, Seller } from '../charge.ts';
import type { Query } from '../query.ts';
import type { PriceJson, PriceTerms, Usage } from '../tariff.ts';
import type { Amount, Instant } from '../value-types.ts';

/**
 * An endpoint that can generate the video, with the usage and prices of the quote. Later catalogue changes do not
 * matter.
 */
export interface VideoEndpoint extends Seller {
  /** The catalogue's name of the model. */
  readonly of: string;
  /** The name of the model at the creditor, which is the provider that is called. */
  readonly model: string;
  readonly usage: Usage;
  readonly prices: readonly PriceJson[];
}

/** Money is held, and the request is stored. */
export type VideoRequested = Message<
  'VideoRequested',
  {
    /** Null if the video is paid without an account. In either case `hold.payer` names the payer. */
    readonly accountId: string | null;
    readonly keyId: string | null;
    readonly query: Query;
    readonly hold: { readonly holdId: string; readonly payer: string; readonly amount: Amount };
    /** In the order in which the job is submitted to them. */
    readonly endpoints: readonly VideoEndpoint[];
    /** The properties on which the prices depend. */
    readonly terms: PriceTerms;
    readonly priceList: string;
    /** The encrypted request in the file store: texts and images are too large and too private for events. */
    readonly request: { readonly file: string; readonly sha256: string };
    /** The id under which the video is stored. */
    readonly result: string;
    readonly deadline: Instant;
    readonly at: Instant;
  }
>;

/** The hold was transferred to the job: it ends with the job, not with the process that placed it. */
export type VideoHeld = Message<'VideoHeld', { readonly at: Instant }>;

/** The job is about to be submitted to a provider. */
export type VideoSubmissionBegun = Message<
  'VideoSubmissionBegun',
  {
    /** From 1. */
    readonly submission: number;
    /** Index in `endpoints`, from 0. */
    readonly endpoint: number;
    /** Fencing token of the lease under which it is submitted. */
    readonly token: number;
    readonly at: Instant;
  }
>;

export type VideoSubmitted = Message<
  'VideoSubmitted',
  {
    readonly submission: number;
    /** The reference with which the provider is polled. */
    readonly reference: string;
    /** The provider's id of the job, for finding the line of its invoice. */
    readonly vendorId: string;
    /** The provider was given a webhook URL. */
    readonly hooked: boolean;
    readonly at: Instant;
  }
>;

/**
 * `refused`: no provider can accept the request. `unavailable`: the provider did not accept the job for another reason.
 * In both cases the job was definitely not accepted. `unknown`: the provider may have accepted it.
 */
export type SubmissionOutcome = 'refused' | 'unavailable' | 'unknown';

export type VideoSubmissionFailed = Message<
  'VideoSubmissionFailed',
  {
    readonly submission: number;
    readonly outcome: SubmissionOutcome;
    readonly code: string;
    readonly why: string;
    /** HTTP status of the provider, if it responded. */
    readonly status?: number;
    readonly at: Instant;
  }
>;

/** The provider reports that the video is ready. From then on, the provider invoices it. */
export type VideoMade = Message<'VideoMade', { readonly at: Instant }>;

/** The provider's result could not be fetched, or is not a video. */
export type VideoFetchFailed = Message<
  'VideoFetchFailed',
  {
    /** From 1. */
    readonly fetch: number;
    /** A retry is unlikely to succeed: the result no longer exists, has another type, or is too large. */
    readonly final: boolean;
    readonly why: string;
    readonly at: Instant;
  }
>;

export type VideoStored = Message<
  'VideoStored',
  {
    /** Detected from the content, such as `video/mp4`. */
    readonly mediaType: string;
    readonly size: number;
    readonly charge: Charge;
    readonly at: Instant;
  }
>;

export type VideoSettled = Message<'VideoSettled', { readonly charged: Amount; readonly at: Instant }>;

/** Whether a provider invoices a failed job. `perhaps`: the provider does not specify it. */
export type ProviderInvoiceExpectation = 'no' | 'yes' | 'perhaps';

/** What a provider may invoice for a failed job. It is unknown whether the provider will do so. */
export interface OpenCost extends Seller {
  readonly of: string;
  /** The provider's id of the job, if known. */
  readonly vendorId?: string;
  /** The maximum cost. */
  readonly most: Amount;
}

/** The customer owes nothing. */
export type VideoFailed = Message<
  'VideoFailed',
  {
    readonly errorCode: string;
    /** A sentence for the customer. */
    readonly message: string;
    /** What the provider invoices anyway; the operator absorbs it. */
    readonly absorbed?: Charge;
    /** What the provider may invoice. The cost is unknown until an operator has checked the invoice. */
    readonly open?: OpenCost;
    readonly at: Instant;
  }
>;

export type VideoReleased = Message<'VideoReleased', { readonly at: Instant }>;

/** An operator has checked the provider's invoice. The operator absorbs the cost that was found there. */
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
