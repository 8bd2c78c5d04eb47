/** What is made of a call that has failed: whether it is made again, or to another endpoint, and what is recorded of it. */
import { type Attempt, toProviderRequestIdFields } from '#domain';
import type { FailureCode, UpstreamError } from '../errors.ts';

/** Failures that a retry may fix. A timeout is not among them: the caller has waited long enough. */
const RETRYABLE_CODES: ReadonlySet<FailureCode> = new Set(['upstream_error', 'upstream_unavailable', 'rate_limited']);
/** The statuses below 500 that may be others a moment later: too early, too many. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([425, 429]);

/** What was delivered is used, and what was refused, such as our key, is refused again; so is what we cannot ask. */
export function isRetryable({ code, status = 0, deliveredText, isInternal }: UpstreamError): boolean {
  const isRejected = status >= 300 && status < 500 && !TRANSIENT_STATUSES.has(status);
  return RETRYABLE_CODES.has(code) && deliveredText === undefined && !isRejected && !isInternal;
}

/**
 * Another endpoint may do what this one could not, as long as nothing of an answer is there; also where the request is
 * at fault, if that is because this endpoint does not have what it names.
 */
export function canFallBack({ code, status, deliveredText }: UpstreamError, signal: AbortSignal): boolean {
  if (signal.aborted || deliveredText !== undefined || code === 'content_policy_violation') return false;
  return code !== 'invalid_request' || status === 404;
}

export function toAttemptOutcome({
  code,
  status,
  vendorId,
}: UpstreamError): Pick<Attempt, 'vendorId' | 'outcome' | 'status'> {
  return {
    ...toProviderRequestIdFields(vendorId),
    outcome: code,
    ...(status === undefined ? {} : { status }),
  };
}
