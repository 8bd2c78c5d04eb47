/** How long an automatic top-up waits before it asks again, by what a wallet has answered. */
import type { Instant } from '../value-types.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** The wallet will not pay until its owner changes something, or its budget begins again. */
const PAUSING_CODES: ReadonlySet<string> = new Set([
  'QUOTA_EXCEEDED',
  'RESTRICTED',
  'UNAUTHORIZED',
  'NOT_IMPLEMENTED',
  'UNSUPPORTED_ENCRYPTION',
]);
/** It has not paid, and is not trying to. Any other error may only mean that it has stopped waiting. */
const DEFINITELY_UNPAID_CODES: ReadonlySet<string> = new Set([
  ...PAUSING_CODES,
  'INSUFFICIENT_BALANCE',
  'RATE_LIMITED',
]);
/** What a wallet says that has paid. */
export const PAID_CODE = 'PAID';
/** A budget that begins again does so daily at the soonest. */
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

/** Whether a wallet that has answered this may pay later all the same. */
export function canStillPay(code: string): boolean {
  return !DEFINITELY_UNPAID_CODES.has(code);
}

/** How long a request waits for its effect before it is made again. @param request from 1 */
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

/** Two in a row may be lost by chance, where a relay or a process of ours was away. */
function getBackoffStep(request: number): number {
  return Math.max(request - 1, 1);
}

/** How long the next attempt waits. @param failures attempts in a row that ended unpaid, from 1 */
export function getFailureRetryDelayMs(failures: number): number {
  return calculateBackoffMs(MIN_FAILURE_BACKOFF_MS, failures, MAX_FAILURE_BACKOFF_MS);
}

function calculateBackoffMs(first: number, step: number, max: number): number {
  return Math.min(first * 2 ** (step - 1), max);
}

export function addMilliseconds(at: Instant, milliseconds: number): Instant {
  return new Date(Date.parse(at) + milliseconds).toISOString();
}
