/** What an account's automatic top-up is at: its wallet, the attempt that is open, and what keeps it from another one. */
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
  /** Attempts that have begun. */
  readonly attempts: number;
  /** Attempts in a row that ended unpaid. */
  readonly failures: number;
  /** No attempt begins before. */
  readonly notBefore: Instant | undefined;
  readonly paused: AutoTopupPaused['data'] | undefined;
  readonly today: DailyUsage;
  /** The highest that asked a wallet. */
  readonly token: number;
}

/** What has begun on a day in UTC. */
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
  /** Requests to the wallet so far. */
  readonly requests: number;
  /** Of the request whose end is not known yet. */
  readonly begun: { readonly token: number } | undefined;
  /** Requests that have left, or may have, without an answer so far. */
  readonly unanswered: readonly number[];
  /** The wallet that may yet pay the invoice, and for how many requests that is so: no other wallet is asked to. */
  readonly payer: string | undefined;
  readonly inDoubt: number;
  /** No further request before. */
  readonly askAfter: Instant;
}

export const INITIAL_AUTO_TOPUP: AutoTopupState = {
  ...{ wallet: undefined, attempt: undefined, attempts: 0, failures: 0, notBefore: undefined, paused: undefined },
  ...{ today: { date: '', attempts: 0, amount: ZERO_USD }, token: 0 },
};

export function evolveAutoTopup(state: AutoTopupState, event: AutoTopupEvent): AutoTopupState {
  switch (event.type) {
    case 'WalletConnected':
      return connected(state, event.data);
    case 'WalletDisconnected':
      return { ...state, wallet: undefined, paused: undefined, notBefore: undefined, failures: 0 };
    case 'AutoTopupBegun':
      return begun(state, event.data);
    case 'AutoTopupEnded':
      return ended(state, event.data);
    case 'AutoTopupPaused':
      return { ...state, paused: event.data };
    case 'WalletAsked':
      return { ...inAttempt(state, (attempt) => asked(attempt, event.data)), token: event.data.token };
    case 'AutoTopupInvoiced': {
      const { invoice: bolt11, expiresAt } = event.data;
      return inAttempt(state, (attempt) => ({ ...attempt, invoice: { bolt11, expiresAt } }));
    }
    case 'WalletRequestEnded':
      return inAttempt(state, (attempt) => requestEnded(attempt, event.data));
    case 'WalletAnswered':
      return inAttempt(state, (attempt) => answered(attempt, event.data));
    default:
      return throwUnknownEvent(event);
  }
}

/** What was in the way of the wallet before is over. */
function connected(state: AutoTopupState, wallet: WalletConnected['data']): AutoTopupState {
  const cleared = { ...state, wallet, paused: undefined, notBefore: undefined, failures: 0 };
  return inAttempt(cleared, (attempt) => ({ ...attempt, askAfter: wallet.at }));
}

function begun(
  state: AutoTopupState,
  data: Extract<AutoTopupEvent, { type: 'AutoTopupBegun' }>['data'],
): AutoTopupState {
  const { attempt: number, topupId, at } = data;
  const amount = money.parseJsonAmount(data.amount);
  const date = at.slice(0, 10);
  const before = state.today.date === date ? state.today : { attempts: 0, amount: ZERO_USD };
  const attempt: OpenAttempt = {
    ...{ number, topupId, amount, invoice: undefined, requests: 0, begun: undefined },
    ...{ unanswered: [], payer: undefined, inDoubt: 0, askAfter: at },
  };
  const today = { date, attempts: before.attempts + 1, amount: money.add(before.amount, amount) };
  return { ...state, attempt, attempts: number, paused: undefined, notBefore: undefined, today };
}

function ended(
  state: AutoTopupState,
  data: Extract<AutoTopupEvent, { type: 'AutoTopupEnded' }>['data'],
): AutoTopupState {
  const after = { ...state, attempt: undefined };
  if (data.outcome === 'dropped') return after;
  if (data.outcome === 'paid') return { ...after, failures: 0, paused: undefined };
  const failures = state.failures + 1;
  return { ...after, failures, notBefore: addMilliseconds(data.at, getFailureRetryDelayMs(failures)) };
}

function asked(
  attempt: OpenAttempt,
  { request, token, wallet }: Extract<AutoTopupEvent, { type: 'WalletAsked' }>['data'],
): OpenAttempt {
  const unanswered = [...attempt.unanswered, request];
  const payer = attempt.payer ?? wallet;
  return { ...attempt, requests: request, begun: { token }, unanswered, payer, inDoubt: attempt.inDoubt + 1 };
}

/** An answer may have come before it was noted that the request has left. */
function requestEnded(attempt: OpenAttempt, { request, outcome, at }: EndOfRequest): OpenAttempt {
  const over = { ...attempt, begun: undefined };
  if (!attempt.unanswered.includes(request)) return over;
  const later = { ...over, askAfter: addMilliseconds(at, getRequestRetryDelayMs(outcome, request)) };
  return outcome === 'unsent' ? surelyUnpaid(withoutAnswer(later, request)) : later;
}

function answered(attempt: OpenAttempt, { request, code, at }: Answer): OpenAttempt {
  const noted = withoutAnswer(attempt, request);
  const isLast = request === attempt.requests;
  const later = isLast ? { ...noted, askAfter: addMilliseconds(at, getResponseRetryDelayMs(code, request)) } : noted;
  return canStillPay(code) ? later : surelyUnpaid(later);
}

type EndOfRequest = Extract<AutoTopupEvent, { type: 'WalletRequestEnded' }>['data'];
type Answer = Extract<AutoTopupEvent, { type: 'WalletAnswered' }>['data'];

function withoutAnswer(attempt: OpenAttempt, request: number): OpenAttempt {
  return { ...attempt, unanswered: attempt.unanswered.filter((each) => each !== request) };
}

function surelyUnpaid(attempt: OpenAttempt): OpenAttempt {
  const inDoubt = attempt.inDoubt - 1;
  return { ...attempt, inDoubt, payer: inDoubt > 0 ? attempt.payer : undefined };
}

function inAttempt(state: AutoTopupState, change: (attempt: OpenAttempt) => OpenAttempt): AutoTopupState {
  return state.attempt ? { ...state, attempt: change(state.attempt) } : state;
}
