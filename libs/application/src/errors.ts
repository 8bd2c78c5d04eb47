/** Failures of the outside world: expected, each with a status at the edge. */
import type { Usage } from '#domain';
import { sanitizeThirdPartyText, truncateText } from './third-party-text.ts';

/** Failures that are about the request: what is said to them, the caller can mend. All else is the house's own business. */
const REQUEST_FAILURE_CODES: ReadonlySet<FailureCode> = new Set(['invalid_request', 'content_policy_violation']);

export type FailureCode =
  /** The upstream refused the request itself, because of what the caller sent. */
  | 'invalid_request'
  /** It refused to make what was asked for, because of what that is. */
  | 'content_policy_violation'
  | 'rate_limited'
  | 'timeout'
  | 'upstream_error'
  /** It was made, and is longer than we read. */
  | 'answer_too_long'
  /** It could not be reached, or closed the connection before its answer. */
  | 'upstream_unavailable'
  /** The client went away, and the answer took too long to be read to its end. */
  | 'client_disconnected'
  /** This process was asked to stop before the answer was complete. */
  | 'shutdown'
  /** All that is held for the answer was used, and there is no more. */
  | 'hold_used_up'
  /** The money is not held any more: the hold has expired. */
  | 'hold_ended'
  /** Money was held, and nothing was made that costs anything: the same request may be served elsewhere, or later. */
  | 'not_served';

type FailureDetails = Partial<
  Pick<
    UpstreamError,
    | 'status'
    | 'retryAfterSeconds'
    | 'vendorId'
    | 'deliveredText'
    | 'usage'
    | 'param'
    | 'upstreamCode'
    | 'upstreamMessage'
    | 'isUnsent'
    | 'isInternal'
    | 'cause'
  >
>;

/**
 * An upstream or a payment back end failed. The message is always ours, with at most 500 characters: facts and logs have it. What
 * the upstream said in its own words is in `upstreamMessage` alone, which is for who asked.
 */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly code: FailureCode;
  /** HTTP status of the upstream, where it answered. */
  readonly status: number | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** The vendor's own id of what it answered, by which a line of its invoice can be found. */
  readonly vendorId: string | undefined;
  /** What had arrived of an answer that broke off, or is lost: the upstream may invoice it. It is not asked for again. */
  readonly deliveredText: string | undefined;
  /** What the upstream counts, and invoices, though there is no answer. */
  readonly usage: Usage | undefined;
  /** The field of the request that is at fault, where that is known. */
  readonly param: string | undefined;
  /** OpenAI's word for what is wrong with the request, such as `context_length_exceeded`, where the upstream says one. */
  readonly upstreamCode: string | undefined;
  /** What it said of the request, scrubbed and cut: for the caller, who may mend it, and for nobody else. */
  readonly upstreamMessage: string | undefined;
  /** It surely never got there: there was no connection. */
  readonly isUnsent: boolean;
  /** It is an exception of this program, and says nothing of the upstream, whatever the request was that led to it. */
  readonly isInternal: boolean;

  /** @param message in our words */
  constructor(code: FailureCode, message: string, details: FailureDetails = {}) {
    super(truncateText(message), { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.vendorId = details.vendorId;
    this.deliveredText = details.deliveredText;
    this.usage = details.usage;
    this.param = details.param;
    this.upstreamCode = details.upstreamCode;
    this.upstreamMessage =
      REQUEST_FAILURE_CODES.has(code) && details.upstreamMessage !== undefined
        ? sanitizeThirdPartyText(details.upstreamMessage) || undefined
        : undefined;
    this.isUnsent = details.isUnsent ?? false;
    this.isInternal = details.isInternal ?? false;
  }

  /** What the caller is told. */
  get publicMessage(): string {
    return this.upstreamMessage ?? this.message;
  }

  /** The same failure, of which more is known. */
  withDetails(details: FailureDetails): UpstreamError {
    return new UpstreamError(this.code, this.message, { ...this, cause: this.cause, ...details });
  }
}

/** Any error, as what became of a call. What connectors find wrong with an upstream they say themselves; the rest is ours. */
export function toUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error;
  return new UpstreamError('upstream_error', 'The upstream could not be asked, or its answer could not be understood', {
    cause: error,
    isInternal: true,
  });
}

/**
 * What is asked for does not exist, or cannot be had: said before anything was held or called, or by the vendor of a lookup,
 * which has looked.
 */
export class InvalidRequestError extends Error {
  override readonly name = 'InvalidRequestError';
  readonly status: 400 | 404 | 422;
  readonly param: string | null;
  /** It is more than the model reads at once. */
  readonly isTooLong: boolean;

  constructor(
    status: 400 | 404 | 422,
    message: string,
    param: string | null = null,
    { tooLong: isTooLong = false } = {},
  ) {
    super(message);
    this.status = status;
    this.param = param;
    this.isTooLong = isTooLong;
  }
}
