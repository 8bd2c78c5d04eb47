/** Expected failures of external systems and of requests. The gateway maps each to an HTTP status. */
import {
  type ErrorRuleFile,
  isOperatorProblem,
  type OperatorProblemReason,
  type OperatorProblemScope,
} from '#catalogue';
import type { Usage } from '#domain';
import { sanitizeThirdPartyText, truncateText } from './third-party-text.ts';

export { type ErrorRuleFile, isOperatorProblem, type OperatorProblemReason, type OperatorProblemScope };

/**
 * Failures that concern the request. The caller gets the provider's message about them, because the caller can fix the
 * request. All other messages of providers are internal.
 */
const REQUEST_FAILURE_CODES: ReadonlySet<FailureCode> = new Set(['invalid_request', 'content_policy_violation']);

export type FailureCode =
  /** The provider rejected the request because of what the caller sent. */
  | 'invalid_request'
  /** The provider refused to generate the requested content. */
  | 'content_policy_violation'
  | 'rate_limited'
  | 'timeout'
  | 'upstream_error'
  /** The response was generated, but it is longer than the gateway reads. */
  | 'answer_too_long'
  /** The provider could not be reached, did not respond, or is overloaded. */
  | 'upstream_unavailable'
  /** The client disconnected, and the response was not read to its end. */
  | 'client_disconnected'
  /** This process was stopped before the response was complete. */
  | 'shutdown'
  /** The hold was used up, and it could not be extended. */
  | 'hold_used_up'
  /** The hold has ended, so nothing pays for the rest of the response. */
  | 'hold_ended'
  /**
   * Money was held, but nothing was generated that costs anything. The same request may be served elsewhere, or later.
   */
  | 'not_served';

/** A problem of the operator's account at an external system, which no customer causes or can fix. */
export interface OperatorProblem {
  readonly reason: OperatorProblemReason;
  readonly scope: OperatorProblemScope;
}

/** What a caller gets about a provider that cannot serve the request at present. */
export const MESSAGE_PROVIDER_UNAVAILABLE = 'The provider is currently unavailable';

export type FailureDetails = Partial<
  Pick<
    UpstreamError,
    | 'status'
    | 'retryAfterSeconds'
    | 'vendorId'
    | 'deliveredText'
    | 'idleMs'
    | 'maxReasoningTokens'
    | 'usage'
    | 'unpaidUsage'
    | 'param'
    | 'upstreamCode'
    | 'upstreamMessage'
    | 'hasOpenCost'
    | 'isUnsent'
    | 'operatorProblem'
    | 'isInternal'
    | 'cause'
  >
>;

/**
 * An external system failed, or a response ended early. `message` is our own text of at most 500 characters; events and
 * logs contain it. The provider's own text is only in `upstreamMessage`, which is for the caller.
 */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly code: FailureCode;
  /** HTTP status of the provider; undefined without a response. */
  readonly status: number | undefined;
  readonly retryAfterSeconds: number | undefined;
  /** The provider's id of its response, which identifies the line of its invoice. */
  readonly vendorId: string | undefined;
  /**
   * What had arrived of a response that was interrupted or lost. The provider may invoice it, so the call is not
   * retried.
   */
  readonly deliveredText: string | undefined;
  /** Time from sending the request to aborting it, if no output arrived: the model may have reasoned. */
  readonly idleMs: number | undefined;
  /** Reasoning tokens that the sent request permits at most; undefined if only its output limit limits them. */
  readonly maxReasoningTokens: number | undefined;
  /** What the provider counted, and invoices, although there is no response. The call is billed by it. */
  readonly usage: Usage | undefined;
  /**
   * What the provider counted before it failed, and may invoice. No customer pays for it, because the call is repeated
   * or fails. Undefined if `deliveredText` is set, by which the call is billed.
   */
  readonly unpaidUsage: Usage | undefined;
  /** The field of the request that caused the failure, if known. */
  readonly param: string | undefined;
  /** OpenAI's code for the problem of the request, such as `context_length_exceeded`, if the provider reports one. */
  readonly upstreamCode: string | undefined;
  /**
   * The provider's message about the request, sanitised and truncated. Only for the caller, who may fix the request.
   */
  readonly upstreamMessage: string | undefined;
  /**
   * The request was sent, and no response arrived: the provider may invoice it, or may have stopped in time. False if
   * `deliveredText` is set, by which the call is billed.
   */
  readonly hasOpenCost: boolean;
  /** The request certainly never reached the provider: there was no connection, or it was aborted before. */
  readonly isUnsent: boolean;
  /**
   * The external system has done nothing because of a problem of the operator's account there. The same endpoint is not
   * retried.
   */
  readonly operatorProblem: OperatorProblem | undefined;
  /** The failure is an exception in our code, whatever request caused it. It does not count against the provider. */
  readonly isInternal: boolean;

  /** @param message our own text */
  constructor(code: FailureCode, message: string, details: FailureDetails = {}) {
    super(truncateText(message), { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.vendorId = details.vendorId;
    this.deliveredText = details.deliveredText;
    this.idleMs = details.idleMs;
    this.maxReasoningTokens = details.maxReasoningTokens;
    this.usage = details.usage;
    this.unpaidUsage = this.deliveredText === undefined ? details.unpaidUsage : undefined;
    this.param = details.param;
    this.upstreamCode = details.upstreamCode;
    this.upstreamMessage =
      REQUEST_FAILURE_CODES.has(code) && details.upstreamMessage !== undefined
        ? sanitizeThirdPartyText(details.upstreamMessage) || undefined
        : undefined;
    this.hasOpenCost = this.deliveredText === undefined && (details.hasOpenCost ?? false);
    this.isUnsent = details.isUnsent ?? false;
    this.operatorProblem = details.operatorProblem;
    this.isInternal = details.isInternal ?? false;
  }

  /** The external system does not accept the operator's credential. */
  get isCredentialRejected(): boolean {
    return this.operatorProblem?.reason === 'credential';
  }

  /** The external system was not called, because it rests after a problem of the operator. */
  get isResting(): boolean {
    return this.isUnsent && this.operatorProblem !== undefined;
  }

  /** The message for the caller. */
  get publicMessage(): string {
    return this.upstreamMessage ?? this.message;
  }

  /** Returns the same failure with these details. */
  withDetails(details: FailureDetails): UpstreamError {
    return new UpstreamError(this.code, this.message, { ...this, cause: this.cause, ...details });
  }
}

/** When a caller should retry a request that failed because of a problem of the operator, if nothing else is known. */
const OPERATOR_RETRY_SECONDS = 30;

/**
 * Creates the failure of a call because of a problem of the operator's account. The caller cannot fix it, so the caller
 * does not get the status or the text of the response.
 * @param message our own text
 * @param status of the response
 */
export function createOperatorError(
  message: string,
  operatorProblem: OperatorProblem,
  { status, retryAfterSeconds = OPERATOR_RETRY_SECONDS }: Pick<FailureDetails, 'status' | 'retryAfterSeconds'>,
): UpstreamError {
  return new UpstreamError('upstream_unavailable', message, { status, retryAfterSeconds, operatorProblem });
}

/**
 * Creates the failure of a call whose credential was rejected. Only 401 certainly concerns all calls: with other
 * statuses a system in front of the service may have rejected the content of the request.
 * @param message our own text
 * @param status of the response
 */
export function createCredentialError(message: string, status: number): UpstreamError {
  const scope = status === 401 ? 'service' : 'request';
  return createOperatorError(message, { reason: 'credential', scope }, { status });
}

/** Statuses that a proxy in front of an external system may return after it has forwarded the request. */
const POSSIBLY_FORWARDED_STATUSES: ReadonlySet<number> = new Set([408, 502, 504]);

/** Whether the external system has certainly not done what was requested. */
export function isCertainRejection({ status, isUnsent }: UpstreamError): boolean {
  return isUnsent || (status !== undefined && status >= 300 && !POSSIBLY_FORWARDED_STATUSES.has(status));
}

/**
 * Converts any error into the failure of a call. Connectors throw UpstreamError for failures of a provider; any other
 * error is an exception in our code.
 */
export function toUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error;
  return new UpstreamError(
    'upstream_error',
    'The provider could not be called, or its response could not be processed',
    {
      cause: error,
      isInternal: true,
    },
  );
}

/**
 * The request is invalid, or what it requests does not exist or is not available. Thrown before money is held or a
 * provider is called, or after the provider of a data lookup responded with 404 or 422.
 */
export class InvalidRequestError extends Error {
  override readonly name = 'InvalidRequestError';
  /** 410: the requested model has retired. */
  readonly status: 400 | 404 | 410 | 422;
  readonly param: string | null;
  /** The input is longer than the model reads at once. */
  readonly isTooLong: boolean;
  /** A code by which clients of one protocol recognise the error, instead of the gateway's. */
  readonly code: string | undefined;

  constructor(
    status: 400 | 404 | 410 | 422,
    message: string,
    param: string | null = null,
    { tooLong: isTooLong = false, code }: { readonly tooLong?: boolean; readonly code?: string } = {},
  ) {
    super(message);
    this.status = status;
    this.param = param;
    this.isTooLong = isTooLong;
    this.code = code;
  }
}

/** Creates the error for an invalid field. @param param path of the field in the request */
export function invalidRequest(message: string, param: string): InvalidRequestError {
  return new InvalidRequestError(400, message, param);
}

export function createDisconnectError(): UpstreamError {
  return new UpstreamError('client_disconnected', 'The client disconnected before the end of the response');
}
