/** How long an automatic top-up waits before it asks again, by what a wallet has answered. */
import type { Instant } from '../value-types.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** The wallet will not pay until its owner changes something, or its budget begins again. */
const PAUSING: ReadonlySet<string> = new Set([
  'QUOTA_EXCEEDED',
  'RESTRICTED',
  'UNAUTHORIZED',
  'NOT_IMPLEMENTED',
  'UNSUPPORTED_ENCRYPTION',
]);
/** It has not paid, and is not trying to. Any other error may only mean that it has stopped waiting. */
const SURELY_UNPAID: ReadonlySet<string> = new Set([...PAUSING, 'INSUFFICIENT_BALANCE', 'RATE_LIMITED']);
/** What a wallet says that has paid. */
export const PAID_CODE = 'PAID';
/** A budget that begins again does so daily at the soonest. */
export const PAUSE_MS = 24 * HOUR_MS;

const AFTER_REQUEST_MS = { sent: 5 * SECOND_MS, unsent: 2 * SECOND_MS, unknown: 2 * SECOND_MS } as const;
const LONGEST_AFTER_REQUEST_MS = 2 * MINUTE_MS;
const AFTER_ERROR_MS = 3 * SECOND_MS;
const AFTER_NO_MONEY_MS = 30 * SECOND_MS;
const LONGEST_AFTER_ANSWER_MS = 5 * MINUTE_MS;
const AFTER_FAILURE_MS = MINUTE_MS;
const LONGEST_AFTER_FAILURE_MS = 6 * HOUR_MS;

export function requiresPause(code: string): boolean {
  return PAUSING.has(code);
}

/** Whether a wallet that has answered this may pay later all the same. */
export function canStillPay(code: string): boolean {
  return !SURELY_UNPAID.has(code);
}

/** How long a request waits for its effect before it is made again. @param request from 1 */
export function getRequestRetryDelayMs(outcome: keyof typeof AFTER_REQUEST_MS, request: number): number {
  return doubled(AFTER_REQUEST_MS[outcome], again(request), LONGEST_AFTER_REQUEST_MS);
}

export function getResponseRetryDelayMs(code: string, request: number): number {
  return doubled(canStillPay(code) ? AFTER_ERROR_MS : AFTER_NO_MONEY_MS, again(request), LONGEST_AFTER_ANSWER_MS);
}

/** Two in a row may be lost by chance, where a relay or a process of ours was away. */
function again(request: number): number {
  return Math.max(request - 1, 1);
}

/** How long the next attempt waits. @param failures attempts in a row that ended unpaid, from 1 */
export function getFailureRetryDelayMs(failures: number): number {
  return doubled(AFTER_FAILURE_MS, failures, LONGEST_AFTER_FAILURE_MS);
}

function doubled(first: number, turn: number, most: number): number {
  return Math.min(first * 2 ** (turn - 1), most);
}

export function addMilliseconds(at: Instant, milliseconds: number): Instant {
  return new Date(Date.parse(at) + milliseconds).toISOString();
}
