/**
 * What the responses of a wallet mean for an automatic top-up, and how long to wait before the next request to the
 * wallet or the next attempt.
 */
import type { Instant } from '../value-types.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** NIP-47 error codes: the wallet will not pay until its owner changes a setting or its budget is renewed. */
const PAUSING_CODES: ReadonlySet<string> = new Set([
  'QUOTA_EXCEEDED',
  'RESTRICTED',
  'UNAUTHORIZED',
  'NOT_IMPLEMENTED',
  'UNSUPPORTED_ENCRYPTION',
]);
/**
 * NIP-47 error codes: the wallet has not paid, and the same request cannot make it pay later. With any other error
 * code, the payment can still be in progress: perhaps the wallet has merely stopped waiting for it.
 */
const DEFINITELY_UNPAID_CODES: ReadonlySet<string> = new Set([
  ...PAUSING_CODES,
  'INSUFFICIENT_BALANCE',
  'RATE_LIMITED',
]);
/** Recorded in place of an error code if the wallet responds that it has paid. */
export const PAID_CODE = 'PAID';
/** Budgets of wallets are renewed at most once a day. */
export const PAUSE_MS = 24 * HOUR_MS;

const MIN_REQUEST_BACKOFF_MS = { sent: 5 * SECOND_MS, unsent: 2 * SECOND_MS, unknown: 2 * SECOND_MS } as const;
const MAX_REQUEST_BACKOFF_MS = 2 * MINUTE_MS;
const MIN_ERROR_BACKOFF_MS = 3 * SECOND_MS;
const MIN_NO_MONEY_BACKOFF_MS = 30 * SECOND_MS;
const MAX_RESPONSE_BACKOFF_MS = 5 * MINUTE_MS;
const MIN_FAILURE_BACKOFF_MS = MINUTE_MS;
const MAX_FAILURE_BACKOFF_MS = 6 * HOUR_MS;

export function requiresPause(code: string): boolean {
  return PAUSING_CODES.has(code);
}

/** Whether a wallet that responded with this code may have paid, or can still pay later. */
export function canStillPay(code: string): boolean {
  return !DEFINITELY_UNPAID_CODES.has(code);
}

/**
 * How long to wait after a request without a response before the next request.
 * @param request number of the request, from 1
 */
export function getRequestRetryDelayMs(outcome: keyof typeof MIN_REQUEST_BACKOFF_MS, request: number): number {
  return calculateBackoffMs(MIN_REQUEST_BACKOFF_MS[outcome], getBackoffStep(request), MAX_REQUEST_BACKOFF_MS);
}

export function getResponseRetryDelayMs(code: string, request: number): number {
  return calculateBackoffMs(
    canStillPay(code) ? MIN_ERROR_BACKOFF_MS : MIN_NO_MONEY_BACKOFF_MS,
    getBackoffStep(request),
    MAX_RESPONSE_BACKOFF_MS,
  );
}

/**
 * The delay after the second request is the same as after the first, and doubles from then on: two requests can fail by
 * chance while a relay or a process of this installation is down.
 */
function getBackoffStep(request: number): number {
  return Math.max(request - 1, 1);
}

/** How long to wait before the next attempt. @param failures successive attempts that expired or failed, from 1 */
export function getFailureRetryDelayMs(failures: number): number {
  return calculateBackoffMs(MIN_FAILURE_BACKOFF_MS, failures, MAX_FAILURE_BACKOFF_MS);
}

function calculateBackoffMs(first: number, step: number, max: number): number {
  return Math.min(first * 2 ** (step - 1), max);
}

export function addMilliseconds(at: Instant, milliseconds: number): Instant {
  return new Date(Date.parse(at) + milliseconds).toISOString();
}
