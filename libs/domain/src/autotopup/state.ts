/** The state of an account's automatic top-up: its wallet, its open attempt, and what prevents another attempt. */
import { money, type PicoUsd, throwUnknownEvent, ZERO_USD } from '#kernel';
import type { Instant } from '../value-types.ts';
import {
  addMilliseconds,
  canStillPay,
  getFailureRetryDelayMs,
  getRequestRetryDelayMs,
  getResponseRetryDelayMs,
} from './backoff.ts';
import type { AutoTopupEvent, AutoTopupPaused, WalletConnected } from './events.ts';

export interface AutoTopupState {
  readonly wallet: WalletConnected['data'] | undefined;
  readonly attempt: OpenAttempt | undefined;
  /** Number of attempts that have started. */
  readonly attempts: number;
  /** Number of successive attempts that expired or failed. Dropped attempts do not count. */
  readonly failures: number;
  /** No attempt starts before this time. */
  readonly notBefore: Instant | undefined;
  readonly paused: AutoTopupPaused['data'] | undefined;
  readonly dailyUsage: DailyUsage;
  /** The highest fencing token under which a request to a wallet was started. */
  readonly token: number;
}

/** The attempts that have started on one UTC day. */
export interface DailyUsage {
  readonly date: string;
  readonly attempts: number;
  readonly amount: PicoUsd;
}

export interface OpenAttempt {
  readonly number: number;
  readonly topupId: string;
  readonly amount: PicoUsd;
  readonly invoice: { readonly bolt11: string; readonly expiresAt: Instant } | undefined;
  /** Number of requests to the wallet so far. */
  readonly requests: number;
  /** The request that is being sent. */
  readonly pendingRequest: { readonly token: number } | undefined;
  /** Numbers of the requests that were sent, or may have been sent, without a response so far. */
  readonly unanswered: readonly number[];
  /** Public key of the wallet that can still pay the invoice. No other wallet gets a request. */
  readonly payer: string | undefined;
  /** Number of requests that can still make `payer` pay. */
  readonly unresolvedRequests: number;
  /** No further request is sent before this time. */
  readonly nextRequestAt: Instant;
}

export const INITIAL_AUTO_TOPUP: AutoTopupState = {
  wallet: undefined,
  attempt: undefined,
  attempts: 0,
  failures: 0,
  notBefore: undefined,
  paused: undefined,
  dailyUsage: { date: '', attempts: 0, amount: ZERO_USD },
  token: 0,
};

export function evolveAutoTopup(state: AutoTopupState, event: AutoTopupEvent): AutoTopupState {
  switch (event.type) {
    case 'WalletConnected':
      return connectWallet(state, event.data);
    case 'WalletDisconnected':
      return { ...state, wallet: undefined, paused: undefined, notBefore: undefined, failures: 0 };
    case 'AutoTopupBegun':
      return startAttempt(state, event.data);
    case 'AutoTopupEnded':
      return endAttempt(state, event.data);
    case 'AutoTopupPaused':
      return { ...state, paused: event.data };
    case 'WalletAsked':
      return { ...updateAttempt(state, (attempt) => startRequest(attempt, event.data)), token: event.data.token };
    case 'AutoTopupInvoiced': {
      const { invoice: bolt11, expiresAt } = event.data;
      return updateAttempt(state, (attempt) => ({ ...attempt, invoice: { bolt11, expiresAt } }));
    }
    case 'WalletRequestEnded':
      return updateAttempt(state, (attempt) => endRequest(attempt, event.data));
    case 'WalletAnswered':
      return updateAttempt(state, (attempt) => recordResponse(attempt, event.data));
    default:
      return throwUnknownEvent(event);
  }
}

/**
 * Returns the attempts of the day that contains `at`, or of the last day with an attempt if that is later: a clock that
 * steps back over midnight must not restart the limits of the day.
 */
export function getDailyUsage({ dailyUsage }: AutoTopupState, at: Instant): DailyUsage {
  const date = at.slice(0, 10);
  return date > dailyUsage.date ? { date, attempts: 0, amount: ZERO_USD } : dailyUsage;
}

/** Connecting a wallet ends all pauses and delays. */
function connectWallet(state: AutoTopupState, wallet: WalletConnected['data']): AutoTopupState {
  const cleared = { ...state, wallet, paused: undefined, notBefore: undefined, failures: 0 };
  return updateAttempt(cleared, (attempt) => ({ ...attempt, nextRequestAt: wallet.at }));
}

function startAttempt(
  state: AutoTopupState,
  data: Extract<AutoTopupEvent, { type: 'AutoTopupBegun' }>['data'],
): AutoTopupState {
  const { attempt: number, topupId, at } = data;
  const amount = money.parseJsonAmount(data.amount);
  const before = getDailyUsage(state, at);
  const attempt: OpenAttempt = {
    number,
    topupId,
    amount,
    invoice: undefined,
    requests: 0,
    pendingRequest: undefined,
    unanswered: [],
    payer: undefined,
    unresolvedRequests: 0,
    nextRequestAt: at,
  };
  const dailyUsage = { date: before.date, attempts: before.attempts + 1, amount: money.add(before.amount, amount) };
  return { ...state, attempt, attempts: number, paused: undefined, notBefore: undefined, dailyUsage };
}

function endAttempt(
  state: AutoTopupState,
  data: Extract<AutoTopupEvent, { type: 'AutoTopupEnded' }>['data'],
): AutoTopupState {
  const after = { ...state, attempt: undefined };
  if (data.outcome === 'dropped') return after;
  if (data.outcome === 'paid') return { ...after, failures: 0, paused: undefined };
  const failures = state.failures + 1;
  return { ...after, failures, notBefore: addMilliseconds(data.at, getFailureRetryDelayMs(failures)) };
}

function startRequest(
  attempt: OpenAttempt,
  { request, token, wallet }: Extract<AutoTopupEvent, { type: 'WalletAsked' }>['data'],
): OpenAttempt {
  const unanswered = [...attempt.unanswered, request];
  const payer = attempt.payer ?? wallet;
  return {
    ...attempt,
    requests: request,
    pendingRequest: { token },
    unanswered,
    payer,
    unresolvedRequests: attempt.unresolvedRequests + 1,
  };
}

/** The response can be recorded before the end of its request. The response has then already set `nextRequestAt`. */
function endRequest(attempt: OpenAttempt, { request, outcome, at }: RequestEnd): OpenAttempt {
  const ended = { ...attempt, pendingRequest: undefined };
  if (!attempt.unanswered.includes(request)) return ended;
  const later = { ...ended, nextRequestAt: addMilliseconds(at, getRequestRetryDelayMs(outcome, request)) };
  return outcome === 'unsent' ? markUnpaid(removeUnanswered(later, request)) : later;
}

function recordResponse(attempt: OpenAttempt, { request, code, at }: WalletResponse): OpenAttempt {
  const recorded = removeUnanswered(attempt, request);
  const isLast = request === attempt.requests;
  const later = isLast
    ? { ...recorded, nextRequestAt: addMilliseconds(at, getResponseRetryDelayMs(code, request)) }
    : recorded;
  return canStillPay(code) ? later : markUnpaid(later);
}

type RequestEnd = Extract<AutoTopupEvent, { type: 'WalletRequestEnded' }>['data'];
type WalletResponse = Extract<AutoTopupEvent, { type: 'WalletAnswered' }>['data'];

function removeUnanswered(attempt: OpenAttempt, request: number): OpenAttempt {
  return { ...attempt, unanswered: attempt.unanswered.filter((unanswered) => unanswered !== request) };
}

function markUnpaid(attempt: OpenAttempt): OpenAttempt {
  const unresolvedRequests = attempt.unresolvedRequests - 1;
  return { ...attempt, unresolvedRequests, payer: unresolvedRequests > 0 ? attempt.payer : undefined };
}

function updateAttempt(state: AutoTopupState, change: (attempt: OpenAttempt) => OpenAttempt): AutoTopupState {
  return state.attempt ? { ...state, attempt: change(state.attempt) } : state;
}
