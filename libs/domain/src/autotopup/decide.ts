/**
 * The decisions of an account's automatic top-up, with one attempt at a time. The payment of an attempt is credited
 * through its invoice, like that of any other top-up. So the response of a wallet decides only about further requests
 * and attempts.
 */
import { assertFencingToken, type Decider, type EffectOutcome, money, type PicoUsd } from '#kernel';
import type { Instant } from '../value-types.ts';
import { addMilliseconds, PAUSE_MS, requiresPause } from './backoff.ts';
import type {
  AutoTopupBegun,
  AutoTopupEnded,
  AutoTopupEvent,
  AutoTopupInvoiced,
  AutoTopupPaused,
  WalletAnswered,
  WalletAsked,
  WalletConnected,
  WalletDisconnected,
  WalletRequestEnded,
} from './events.ts';
import { type AutoTopupState, evolveAutoTopup, getDailyUsage, INITIAL_AUTO_TOPUP } from './state.ts';

/** A wallet gets no request to pay an invoice that expires within this time. */
const MIN_TIME_TO_EXPIRY_MS = 30_000;

// commands ----------------------------------------------------------------------------------------------------------

interface Command<Type extends string, Data> {
  readonly type: Type;
  readonly data: Readonly<Data> & { readonly at: Instant };
}

export type AutoTopupCommand =
  | Command<'ConnectWallet', WalletConnected['data']>
  | Command<'DisconnectWallet', WalletDisconnected['data']>
  | Command<'BeginAutoTopup', NewAttempt>
  | Command<'RecordInvoice', AutoTopupInvoiced['data']>
  | Command<'BeginRequest', { attempt: number; request: number; token: number }>
  | Command<'EndRequest', { attempt: number; request: number; outcome: EffectOutcome }>
  | Command<'RecordAnswer', WalletAnswered['data']>
  | Command<'EndAutoTopup', AutoTopupEnded['data']>;

interface NewAttempt {
  /** The value of `attempts` when the balance was read, plus one. */
  readonly attempt: number;
  readonly topupId: string;
  /** The sum of available and held. */
  readonly balance: PicoUsd;
  readonly limits: DailyLimits;
}

/** Maximum number and total amount of attempts that start on one UTC day. */
export interface DailyLimits {
  readonly attempts: number;
  readonly amount: PicoUsd;
}

/** Whether a request was sent. A request is unneeded, and not sent, if the balance is no longer below the threshold. */
export type WalletRequestOutcome =
  | { readonly isSent: true }
  | { readonly isSent: false; readonly reason: string; readonly isUnneeded: boolean };

// decide ------------------------------------------------------------------------------------------------------------

function decide(command: AutoTopupCommand, state: AutoTopupState): readonly AutoTopupEvent[] {
  switch (command.type) {
    case 'ConnectWallet':
      return [{ type: 'WalletConnected', data: command.data }];
    case 'DisconnectWallet':
      return state.wallet ? [{ type: 'WalletDisconnected', data: command.data }] : [];
    case 'BeginAutoTopup':
      return beginAutoTopup(command.data, state);
    case 'RecordInvoice': {
      const { attempt } = state;
      const fits = attempt?.number === command.data.attempt && !attempt.invoice;
      return fits ? [{ type: 'AutoTopupInvoiced', data: command.data }] : [];
    }
    case 'BeginRequest':
      return beginRequest(command.data, state);
    case 'EndRequest':
      return endRequest(command.data, state);
    case 'RecordAnswer':
      return recordResponse(command.data, state);
    case 'EndAutoTopup':
      return endAutoTopup(command.data, state);
    default:
      return command satisfies never;
  }
}

type DataOf<Type extends AutoTopupCommand['type']> = Extract<AutoTopupCommand, { type: Type }>['data'];

/** The balance was read before the command, so the attempt starts only if no other attempt has started since then. */
function beginAutoTopup(
  data: DataOf<'BeginAutoTopup'>,
  state: AutoTopupState,
): readonly (AutoTopupBegun | AutoTopupPaused)[] {
  const { attempt, topupId, balance, limits, at } = data;
  const { wallet } = state;
  if (!wallet || state.attempt || attempt !== state.attempts + 1 || getBlockedUntil(state, at)) return [];
  if (balance >= money.parseJsonAmount(wallet.threshold)) return [];
  const limitReason = getDailyLimitReason(money.parseJsonAmount(wallet.amount), state, limits, at);
  if (limitReason) {
    const until = addMilliseconds(`${getDailyUsage(state, at).date}T00:00:00.000Z`, PAUSE_MS);
    return [{ type: 'AutoTopupPaused', data: { code: 'DAILY_LIMIT', why: limitReason, until, at } }];
  }
  return [
    {
      type: 'AutoTopupBegun',
      data: { attempt, topupId, amount: wallet.amount, balance: money.toJsonAmount(balance), at },
    },
  ];
}

function getDailyLimitReason(
  amount: PicoUsd,
  state: AutoTopupState,
  limits: DailyLimits,
  at: Instant,
): string | undefined {
  const usage = getDailyUsage(state, at);
  if (usage.attempts >= limits.attempts) return `${limits.attempts} automatic top-ups were started today`;
  if (usage.amount + amount <= limits.amount) return undefined;
  return `today's automatic top-ups would exceed ${money.formatUsd(limits.amount)} USD`;
}

/** Returns the time until which a pause or a delay prevents a new attempt; undefined if neither does at `at`. */
export function getBlockedUntil({ paused, notBefore }: AutoTopupState, at: Instant): Instant | undefined {
  const until = [paused?.until, notBefore].filter((instant) => instant !== undefined && instant > at);
  return until.toSorted().at(-1);
}

function beginRequest({ attempt, request, token, at }: DataOf<'BeginRequest'>, state: AutoTopupState): WalletAsked[] {
  assertFencingToken(state.token, token);
  const { attempt: openAttempt, wallet } = state;
  if (
    !wallet ||
    openAttempt?.number !== attempt ||
    openAttempt.requests + 1 !== request ||
    !canRequestPayment(state, at)
  )
    return [];
  return [{ type: 'WalletAsked', data: { attempt, request, wallet: wallet.wallet.pubkey, token, at } }];
}

/** Whether the payment of the open attempt's invoice may be requested from the connected wallet now. */
export function canRequestPayment({ attempt, wallet, paused }: AutoTopupState, now: Instant): boolean {
  if (!attempt?.invoice || attempt.pendingRequest || !wallet) return false;
  if (attempt.payer !== undefined && attempt.payer !== wallet.wallet.pubkey) return false;
  if (now < attempt.nextRequestAt || (paused && now < paused.until)) return false;
  return now < addMilliseconds(attempt.invoice.expiresAt, -MIN_TIME_TO_EXPIRY_MS);
}

function endRequest(
  { attempt, request, outcome, at }: DataOf<'EndRequest'>,
  { attempt: openAttempt }: AutoTopupState,
): readonly (WalletRequestEnded | AutoTopupEnded)[] {
  if (openAttempt?.number !== attempt || openAttempt.requests !== request || !openAttempt.pendingRequest) return [];
  const toRequestEnded = (data: Pick<WalletRequestEnded['data'], 'outcome' | 'why'>): WalletRequestEnded => ({
    type: 'WalletRequestEnded',
    data: { attempt, request, ...data, at },
  });
  if (!outcome.isKnown) return [toRequestEnded({ outcome: 'unknown', why: outcome.reason })];
  const result = outcome.result as WalletRequestOutcome;
  if (result.isSent) return [toRequestEnded({ outcome: 'sent' })];
  const { reason, isUnneeded } = result;
  const unsent = toRequestEnded({ outcome: 'unsent', why: reason });
  const isOnly = openAttempt.unresolvedRequests === 1;
  return isUnneeded && isOnly
    ? [unsent, { type: 'AutoTopupEnded', data: { attempt, outcome: 'dropped', why: reason, at } }]
    : [unsent];
}

/** Records only the first response to a request. */
function recordResponse(
  data: DataOf<'RecordAnswer'>,
  { attempt }: AutoTopupState,
): readonly (WalletAnswered | AutoTopupPaused)[] {
  if (attempt?.number !== data.attempt || !attempt.unanswered.includes(data.request)) return [];
  const { code, at } = data;
  const response: WalletAnswered = { type: 'WalletAnswered', data };
  if (!requiresPause(code)) return [response];
  const paused = { code, why: data.why ?? code, until: addMilliseconds(at, PAUSE_MS), at };
  return [response, { type: 'AutoTopupPaused', data: paused }];
}

/**
 * A paid attempt ends at any time. An unpaid one cannot end while a request is being sent to the wallet, and is not
 * dropped while a wallet can still pay.
 */
function endAutoTopup(data: DataOf<'EndAutoTopup'>, { attempt }: AutoTopupState): readonly AutoTopupEnded[] {
  if (attempt?.number !== data.attempt) return [];
  if (data.outcome !== 'paid' && attempt.pendingRequest) return [];
  if (data.outcome === 'dropped' && attempt.payer !== undefined) return [];
  return [{ type: 'AutoTopupEnded', data }];
}

export const autoTopupDecider: Decider<AutoTopupCommand, AutoTopupState, AutoTopupEvent> = {
  getInitialState: () => INITIAL_AUTO_TOPUP,
  evolve: evolveAutoTopup,
  decide,
};
