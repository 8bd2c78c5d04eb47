/**
 * Rules for the stream of an automatic top-up. An attempt is one invoice, and only one wallet at a time may be able to
 * pay it. A request to this wallet may be repeated after a delay, because an invoice can be paid only once.
 */
import { type AuditedEvent, parseAmount, toMs } from './event-data.ts';
import type { FindingRecorder } from './findings.ts';

const SECOND_MS = 1_000;
const MIN_TIME_TO_EXPIRY_MS = 30 * SECOND_MS;
const MAX_FAILURE_DELAY_MS = 6 * 3_600 * SECOND_MS;
/** The shortest delays before the next request, after a request by its outcome, and after a response. */
const REQUEST_DELAYS_MS: Readonly<Record<string, number>> = {
  sent: 5 * SECOND_MS,
  unsent: 2 * SECOND_MS,
  unknown: 2 * SECOND_MS,
};
const RESPONSE_DELAY_MS = 3 * SECOND_MS;
const UNPAID_RESPONSE_DELAY_MS = 30 * SECOND_MS;
/** A wallet that responded with one of these codes has not paid and will not pay because of this request. */
const UNPAID_CODES: readonly string[] = [
  'QUOTA_EXCEEDED',
  'RESTRICTED',
  'UNAUTHORIZED',
  'NOT_IMPLEMENTED',
  'UNSUPPORTED_ENCRYPTION',
  'INSUFFICIENT_BALANCE',
  'RATE_LIMITED',
];

/** Limits per UTC day. */
export interface DailyAttemptLimits {
  readonly attempts: number;
  /** Pico-USD. */
  readonly amount: bigint;
}

interface Attempt {
  readonly number: number;
  readonly topupId: string;
  /** When the invoice expires; undefined without an invoice. */
  expiresAt: string | undefined;
  requests: number;
  /** Whether the last request has not ended. */
  isRequesting: boolean;
  /** The wallet that was requested to pay. */
  payer: string | undefined;
  /** Requests that may still make the wallet pay. */
  readonly payable: Set<number>;
  readonly responded: Set<number>;
  /** No request before this time, in milliseconds since the epoch. */
  notBeforeMs: number;
}

/** An attempt that has ended or is open. */
export interface AuditedAttempt {
  readonly topupId: string;
  /** Undefined while the attempt is open. */
  readonly outcome: string | undefined;
  readonly requests: number;
}

export interface AutoTopupContext {
  readonly limits: DailyAttemptLimits | undefined;
  /** Whether all payments of a top-up, at least one, are credited. */
  isCredited(topupId: string): boolean;
}

export class AuditedAutoTopupStream {
  readonly attempts: AuditedAttempt[] = [];
  attempt: Attempt | undefined;
  private wallet: AuditedEvent['data'] | undefined;
  private token = 0;
  private failures = 0;
  /** No attempt before this time, in milliseconds since the epoch. */
  private notBeforeMs = 0;
  private pausedUntil = '';
  private day = { date: '', attempts: 0, amount: 0n };
  private readonly topupIds = new Set<string>();

  constructor(private readonly recorder: FindingRecorder) {}

  apply({ type, stream, data }: AuditedEvent, context: AutoTopupContext): void {
    switch (type) {
      case 'WalletConnected':
        this.resume();
        this.wallet = data;
        if (this.attempt) this.attempt.notBeforeMs = toMs(data.at);
        return;
      case 'WalletDisconnected':
        this.recorder.check(this.wallet !== undefined, 'only a connected wallet is disconnected', () => stream);
        this.resume();
        this.wallet = undefined;
        return;
      case 'AutoTopupPaused':
        this.pausedUntil = data.until;
        return;
      case 'AutoTopupBegun':
        this.begin(data, context.limits);
        return;
      default: {
        const isOpen = this.attempt?.number === data.attempt;
        const describe = () => `${data.attempt}, open is ${this.attempt?.number}`;
        this.recorder.check(isOpen, 'only an open attempt continues or ends', describe);
        if (this.attempt && isOpen) this.advance(type, data, this.attempt, context);
      }
    }
  }

  private resume(): void {
    this.failures = 0;
    this.notBeforeMs = 0;
    this.pausedUntil = '';
  }

  private begin(data: AuditedEvent['data'], limits: DailyAttemptLimits | undefined): void {
    const { recorder, wallet } = this;
    const { attempt: number, topupId, at } = data;
    const describe = () => `attempt ${number} at ${at}`;
    recorder.check(!this.attempt, 'an account has one open attempt', describe);
    recorder.checkSame(number, this.attempts.length + 1, 'attempts are counted', 'the attempt');
    const isNeeded = wallet !== undefined && parseAmount(data.balance) < parseAmount(wallet.threshold);
    recorder.check(isNeeded, 'an attempt needs a wallet and a low balance', describe);
    recorder.check(data.amount === wallet?.amount, 'an attempt has the amount of the wallet', () => data.amount);
    const isAllowed = toMs(at) >= this.notBeforeMs && at >= this.pausedUntil;
    recorder.check(isAllowed, 'no attempt begins during a delay or a pause', describe);
    recorder.check(!this.topupIds.has(topupId), 'attempts have different top-ups', () => topupId);
    this.topupIds.add(topupId);
    this.countDay(at, parseAmount(data.amount), limits);
    this.pausedUntil = '';
    const requests = { requests: 0, isRequesting: false, payer: undefined, payable: new Set<number>() };
    const start = { expiresAt: undefined, responded: new Set<number>(), notBeforeMs: toMs(at) };
    this.attempt = { number, topupId, ...requests, ...start };
    this.attempts.push({ topupId, outcome: undefined, requests: 0 });
  }

  /** Clocks that step back over midnight do not start an earlier day. */
  private countDay(at: string, amount: bigint, limits: DailyAttemptLimits | undefined): void {
    const date = at.slice(0, 10);
    if (date > this.day.date) this.day = { date, attempts: 0, amount: 0n };
    this.day.attempts++;
    this.day.amount += amount;
    const { attempts, amount: total } = this.day;
    const isWithin = !limits || (attempts <= limits.attempts && total <= limits.amount);
    const describe = () => `${attempts} attempts of ${total} on ${this.day.date}`;
    this.recorder.check(isWithin, 'the attempts of a day are limited', describe);
  }

  private advance(type: string, data: AuditedEvent['data'], attempt: Attempt, context: AutoTopupContext): void {
    switch (type) {
      case 'AutoTopupInvoiced':
        this.recorder.check(!attempt.expiresAt, 'an attempt has one invoice', () => attempt.topupId);
        attempt.expiresAt = data.expiresAt;
        return;
      case 'WalletAsked':
        this.request(data, attempt);
        return;
      case 'WalletRequestEnded':
        this.endRequest(data, attempt);
        return;
      case 'WalletAnswered':
        this.recordResponse(data, attempt);
        return;
      case 'AutoTopupEnded':
        this.end(data, attempt, context);
        return;
      default:
    }
  }

  private request(data: AuditedEvent['data'], attempt: Attempt): void {
    const { recorder, wallet } = this;
    const { request, token, at } = data;
    const pubkey = typeof wallet?.wallet === 'object' ? wallet.wallet.pubkey : undefined;
    const describe = () => `request ${request} of attempt ${attempt.number} at ${at}`;
    recorder.checkSame(request, attempt.requests + 1, 'requests to a wallet are counted', 'the request');
    recorder.check(!attempt.isRequesting, 'no request starts while another one is being sent', describe);
    recorder.check(token >= this.token, 'fencing tokens never decrease', () => `${token} after ${this.token}`);
    recorder.checkSame(data.wallet, pubkey, 'only the connected wallet is requested to pay', 'the wallet');
    const isPayer = attempt.payable.size === 0 || attempt.payer === data.wallet;
    recorder.check(isPayer, 'only one wallet can pay an invoice', () => `${data.wallet}, not ${attempt.payer}`);
    const canPay = attempt.expiresAt !== undefined && toMs(at) < toMs(attempt.expiresAt) - MIN_TIME_TO_EXPIRY_MS;
    recorder.check(canPay, 'an invoice is sent to a wallet in time', () => `${describe()}, until ${attempt.expiresAt}`);
    const isAllowed = toMs(at) >= attempt.notBeforeMs && at >= this.pausedUntil;
    recorder.check(isAllowed, 'a request is repeated only after a delay', describe);
    this.token = token;
    attempt.requests = request;
    attempt.isRequesting = true;
    attempt.payer = String(data.wallet);
    attempt.payable.add(request);
    this.attempts[attempt.number - 1] = { topupId: attempt.topupId, outcome: undefined, requests: request };
  }

  private endRequest({ request, outcome, at }: AuditedEvent['data'], attempt: Attempt): void {
    const isRequesting = attempt.isRequesting && request === attempt.requests;
    this.recorder.check(isRequesting, 'a request ends once', () => `request ${request} of attempt ${attempt.number}`);
    attempt.isRequesting = false;
    if (attempt.responded.has(request)) return;
    attempt.notBeforeMs = toMs(at) + (REQUEST_DELAYS_MS[outcome] ?? 0);
    if (outcome === 'unsent') {
      attempt.payable.delete(request);
      attempt.responded.add(request);
    }
  }

  private recordResponse({ request, code, at }: AuditedEvent['data'], attempt: Attempt): void {
    const isNew = request >= 1 && request <= attempt.requests && !attempt.responded.has(request);
    const describe = () => `request ${request} of attempt ${attempt.number}`;
    this.recorder.check(isNew, 'a sent request has one response', describe);
    const isUnpaid = UNPAID_CODES.includes(code);
    attempt.responded.add(request);
    if (isUnpaid) attempt.payable.delete(request);
    if (request === attempt.requests)
      attempt.notBeforeMs = toMs(at) + (isUnpaid ? UNPAID_RESPONSE_DELAY_MS : RESPONSE_DELAY_MS);
  }

  private end({ outcome, at }: AuditedEvent['data'], attempt: Attempt, { isCredited }: AutoTopupContext): void {
    const { recorder } = this;
    const { topupId, payable, expiresAt, isRequesting, requests } = attempt;
    const describe = () => `${outcome} at ${at}, expires at ${expiresAt}, ${payable.size} requests may be paid`;
    if (outcome === 'paid') recorder.check(isCredited(topupId), 'a paid attempt is credited', () => topupId);
    else recorder.check(!isRequesting, 'an unpaid attempt does not end while a request is being sent', describe);
    const canBePaid = payable.size > 0;
    if (outcome === 'dropped') recorder.check(!canBePaid, 'no attempt is dropped that a wallet may pay', describe);
    if (outcome === 'failed') recorder.check(!expiresAt, 'an attempt fails only without an invoice', describe);
    const hasExpired = expiresAt !== undefined && at >= expiresAt;
    if (outcome === 'expired') recorder.check(hasExpired, 'an attempt expires after its invoice', describe);
    this.attempt = undefined;
    this.attempts[attempt.number - 1] = { topupId, outcome, requests };
    if (outcome === 'paid') {
      this.failures = 0;
      this.pausedUntil = '';
    }
    if (outcome !== 'expired' && outcome !== 'failed') return;
    this.failures++;
    const delayMs = Math.min(30 * SECOND_MS * 2 ** this.failures, MAX_FAILURE_DELAY_MS);
    this.notBeforeMs = toMs(at) + delayMs;
  }
}
