/** Decides after a failed call whether to retry it or to fall back, and what its attempt records. */
import type { Endpoint } from '#catalogue';
import { type Attempt, type CallUsage, calculateCost, toProviderRequestIdFields, UnpricedUnitError } from '#domain';
import { calculateBackoffMs, money, type PicoUsd, type Randomness } from '#kernel';
import type { FailureCode, UpstreamError } from '../errors.ts';
import type { UpstreamCall } from './upstream-call.ts';

/** A provider that requests a longer pause than `maxMs` is not retried. */
const BACKOFF = { minMs: 100, maxMs: 2_000 };
/** Failures that a retry may fix. A timeout is not among them: the caller has waited long enough. */
const RETRYABLE_CODES: ReadonlySet<FailureCode> = new Set(['upstream_error', 'upstream_unavailable', 'rate_limited']);
/** Statuses below 500 that may change after a moment: too early, too many requests. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([425, 429]);

/**
 * Whether a retry of the same endpoint may succeed. A partial response is not retried, because the provider may invoice
 * it. A rejection, a problem of the operator's account or an error in the gateway itself would repeat.
 */
function isRetryable({ code, status = 0, deliveredText, isInternal, operatorProblem }: UpstreamError): boolean {
  const isRejected = operatorProblem || (status >= 300 && status < 500 && !TRANSIENT_STATUSES.has(status));
  return RETRYABLE_CODES.has(code) && deliveredText === undefined && !isRejected && !isInternal;
}

/**
 * Returns how long to wait before the same endpoint is called again; undefined if a retry is not worthwhile.
 * @param earlierFailures number of failures in a row before this one
 */
export function getBackoffMs(
  failure: UpstreamError,
  earlierFailures: number,
  { chance }: Pick<Randomness, 'chance'>,
): number | undefined {
  const requestedMs = (failure.retryAfterSeconds ?? 0) * 1_000;
  if (!isRetryable(failure) || requestedMs > BACKOFF.maxMs) return undefined;
  return Math.max(calculateBackoffMs({ ...BACKOFF, chance }, earlierFailures), requestedMs);
}

/**
 * Whether another endpoint may serve the request: only while no part of a response has arrived, and not after an abort
 * or a violation of the content policy. An invalid request is sent to another endpoint only if the status is 404: the
 * endpoint that failed then lacks what the request names.
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

/** Returns what a failed attempt of a call records, apart from its endpoint and its duration. */
export function toFailedAttempt(
  failure: UpstreamError,
  call: Pick<UpstreamCall<unknown>, 'getLostUsage'>,
  endpoint: Endpoint,
  maxPrice: PicoUsd,
): Pick<Attempt, 'vendorId' | 'outcome' | 'status' | 'openCost'> {
  const { code, hasOpenCost } = failure;
  // A lost response may contain more than what the provider counted before.
  const unpaidUsage = hasOpenCost ? undefined : failure.unpaidUsage;
  // After `hold_used_up` the usage is billed by an estimate.
  const isOpen = (hasOpenCost || unpaidUsage !== undefined) && code !== 'hold_used_up';
  if (!isOpen) return toAttemptOutcome(failure);
  const lost = call.getLostUsage?.(endpoint, unpaidUsage) ?? (unpaidUsage && { usage: unpaidUsage });
  const openCost = money.toJsonAmount(lost ? calculateLostCost(lost, endpoint, maxPrice) : maxPrice);
  return { ...toAttemptOutcome(failure), openCost };
}

/** Returns the cost of a usage that nobody pays for; of a usage without a price, the maximum price of the order. */
function calculateLostCost(
  { usage, terms }: Pick<CallUsage, 'usage' | 'terms'>,
  { tariff }: Endpoint,
  maxPrice: PicoUsd,
): PicoUsd {
  try {
    return calculateCost(usage, tariff.prices, terms);
  } catch (error) {
    if (error instanceof UnpricedUnitError) return maxPrice;
    throw error;
  }
}
