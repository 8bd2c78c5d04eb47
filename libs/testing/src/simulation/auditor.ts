/**
 * An independent auditor of stored events. It has a ledger of its own and knows the rules of the product only from their
 * specification: it imports nothing of the product, so it does not share its mistakes.
 */
import type { StoredEvent } from '#kernel';
import { AuditedAccountStream } from './auditor/accounts.ts';
import { type AuditedAttempt, AuditedAutoTopupStream, type DailyAttemptLimits } from './auditor/auto-topups.ts';
import { AuditedChallengeStream } from './auditor/challenges.ts';
import { type AuditedEvent, getOrCreate, toMs } from './auditor/event-data.ts';
import { type Finding, FindingRecorder } from './auditor/findings.ts';
import type { AuditedKey } from './auditor/key-limits.ts';
import { Ledger } from './auditor/ledger.ts';
import type { AuditedHold, AuditedHoldEnd, AuditedPayer } from './auditor/payer.ts';
import { type AuditedTopup, type PaymentOptions, Payments } from './auditor/payments.ts';
import { StreamRules } from './auditor/streams.ts';
import { AuditedVideoStream } from './auditor/videos.ts';

export type { Finding } from './auditor/findings.ts';
export { RULES, type Rule } from './auditor/rules.ts';

const DEFAULT_MAX_ISSUES = 100;
/** How long after its expiry a hold may be open. */
const HOLD_GRACE_MS = 60_000;
/** How long after the expiry of its invoice an attempt of an automatic top-up may be open. */
const ATTEMPT_GRACE_MS = 5 * 60_000;
/** How long after its deadline a video job may be open. */
const VIDEO_GRACE_MS = 20 * 60_000;

export interface AuditorOptions extends PaymentOptions {
  readonly maxFindings?: number | undefined;
  /** Not in the events. Undefined: not checked. */
  readonly autoTopupLimits?: DailyAttemptLimits | undefined;
}

/** What still runs at the end. Without it nothing does: every open hold, attempt and job is a finding. */
export interface EndOfRun {
  /** Processes that are still serving requests. */
  readonly aliveOwners?: ReadonlySet<string> | undefined;
  /** ISO 8601. Holds, attempts and jobs that have not expired by then may be open. */
  readonly now?: string | undefined;
  /** Payments that the network has dropped, as the payment backend and its id. A claim may have preceded the loss. */
  readonly lostPayments?: ReadonlySet<string> | undefined;
}

/** Amounts in pico-USD. */
export interface AuditedBalance {
  readonly available: bigint;
  readonly held: bigint;
  readonly holds: ReadonlyMap<string, AuditedHold>;
  /** Holds that have ended. */
  readonly ends: ReadonlyMap<string, AuditedHoldEnd>;
}

export interface AuditedAccount extends AuditedBalance {
  readonly keys: ReadonlyMap<string, AuditedKey>;
}

export interface AuditedVideo {
  readonly isEnded: boolean;
  /** `VideoStored` or `VideoFailed`. */
  readonly result: string | undefined;
}

export class Auditor {
  private readonly recorder: FindingRecorder;
  private readonly streams: StreamRules;
  private readonly ledger = new Ledger();
  private readonly payments: Payments;
  private readonly accounts = new Map<string, AuditedAccountStream>();
  private readonly challenges = new Map<string, AuditedChallengeStream>();
  private readonly autoTopups = new Map<string, AuditedAutoTopupStream>();
  private readonly videos = new Map<string, AuditedVideoStream>();
  /** Accounts and challenges by stream. */
  private readonly payers = new Map<string, AuditedPayer>();

  constructor(private readonly options: AuditorOptions = {}) {
    this.recorder = new FindingRecorder(options.maxFindings ?? DEFAULT_MAX_ISSUES);
    this.streams = new StreamRules(this.recorder);
    this.payments = new Payments(this.recorder, options);
  }

  get findings(): readonly Finding[] {
    return this.recorder.issues;
  }

  /** Checks the next event in global order. Its data must be in the latest version. */
  apply(event: StoredEvent): void {
    const audited = event as AuditedEvent;
    this.recorder.event = audited;
    try {
      this.streams.apply(audited);
      const sum = this.ledger.book(audited);
      this.recorder.checkSame(sum, 0n, 'the postings of an event sum to zero', 'the sum');
      this.payments.apply(audited);
      this.applyToStream(audited);
    } catch (error) {
      this.recorder.check(false, 'the data of an event can be read', () => String(error));
    }
    this.recorder.event = undefined;
  }

  /** Checks the rules that hold at the end of a run. */
  finish(end: EndOfRun = {}): void {
    this.streams.finish();
    this.payments.finish(
      this.ledger.balances,
      (stream) => this.challenges.get(stream)?.isPaid === true,
      end.lostPayments,
    );
    for (const [stream, payer] of this.payers) this.checkOpenHolds(stream, payer, end);
    for (const [stream, { attempt }] of this.autoTopups) {
      const isOver = attempt !== undefined && hasPassed(attempt.expiresAt, ATTEMPT_GRACE_MS, end);
      this.recorder.check(!isOver, 'an attempt has an end', () => `attempt ${attempt?.number} of ${stream}`);
    }
    for (const [stream, { request, isEnded }] of this.videos) {
      const isOver = !isEnded && hasPassed(request?.deadline, VIDEO_GRACE_MS, end);
      this.recorder.check(!isOver, 'a video job has an end', () => `${stream}, deadline ${request?.deadline}`);
    }
  }

  getAccount(id: string): AuditedAccount | undefined {
    const account = this.accounts.get(`account-${id}`);
    if (!account) return undefined;
    const keys = account.keys.listKeyIds().flatMap((keyId) => {
      const key = account.keys.getKey(keyId);
      return key ? [[keyId, key] as const] : [];
    });
    return { ...toBalance(account.payer), keys: new Map(keys) };
  }

  getChallenge(id: string): AuditedBalance | undefined {
    const challenge = this.challenges.get(`challenge-${id}`);
    return challenge && toBalance(challenge.payer);
  }

  getTopup(id: string): AuditedTopup | undefined {
    return this.payments.getTopup(id);
  }

  /** Returns the stream to which a payment belongs. @param key the payment backend and its id, such as `lnd/5b0e…` */
  getPaymentOwner(key: string): string | undefined {
    return this.payments.getOwner(key);
  }

  /** Returns the attempts of the automatic top-up of an account. */
  getAttempts(accountId: string): readonly AuditedAttempt[] {
    return this.autoTopups.get(`autotopup-${accountId}`)?.attempts ?? [];
  }

  getVideo(id: string): AuditedVideo | undefined {
    const video = this.videos.get(`video-${id}`);
    return video && { isEnded: video.isEnded, result: video.result?.type };
  }

  /** Returns the balance of each ledger account in pico-USD. Debits are positive. */
  getLedger(): ReadonlyMap<string, bigint> {
    return this.ledger.balances;
  }

  private applyToStream(event: AuditedEvent): void {
    const { recorder } = this;
    const { stream } = event;
    const [category] = stream.split('-', 1);
    if (category === 'account') {
      const account = getOrCreate(this.accounts, stream, () => new AuditedAccountStream(recorder));
      this.applyToPayer(event, account.payer, () => account.apply(event));
    } else if (category === 'challenge') {
      const challenge = getOrCreate(this.challenges, stream, () => new AuditedChallengeStream(recorder));
      const getOwner = (key: string) => this.payments.getOwner(key);
      this.applyToPayer(event, challenge.payer, () => challenge.apply(event, getOwner));
    } else if (category === 'autotopup') {
      const isCredited = (topupId: string) => this.payments.getTopup(topupId)?.isCredited === true;
      const autoTopup = getOrCreate(this.autoTopups, stream, () => new AuditedAutoTopupStream(recorder));
      autoTopup.apply(event, { limits: this.options.autoTopupLimits, isCredited });
    } else if (category === 'video') {
      getOrCreate(this.videos, stream, () => new AuditedVideoStream(recorder)).apply(event, this.payers);
    }
  }

  private applyToPayer(event: AuditedEvent, payer: AuditedPayer, apply: () => void): void {
    this.payers.set(event.stream, payer);
    const before = payer.available;
    apply();
    payer.checkBalance(event, before, this.ledger.getPayerBalance(event.stream));
  }

  private checkOpenHolds(stream: string, { holds }: AuditedPayer, end: EndOfRun): void {
    for (const [holdId, { owner, expiresAt, hasJob }] of holds) {
      const describe = () => `${holdId} of ${stream}, owner ${owner}, expires at ${expiresAt}`;
      if (hasJob) {
        const isOpen = this.videos.get(owner ?? '')?.isEnded === false;
        this.recorder.check(isOpen, 'the hold of a job ends with the job', describe);
        continue;
      }
      const isOverdue = hasPassed(expiresAt, HOLD_GRACE_MS, end);
      this.recorder.check(!isOverdue || isAlive(owner, end), 'a hold has an end', describe);
      const isAbandoned = end.aliveOwners !== undefined && owner !== undefined && !isAlive(owner, end);
      this.recorder.check(!isAbandoned, 'the hold of a dead process ends', describe);
    }
  }
}

function isAlive(owner: string | undefined, { aliveOwners }: EndOfRun): boolean {
  return owner !== undefined && aliveOwners?.has(owner) === true;
}

/** Whether an instant, or none, has passed for so long that nothing may wait for it any more. */
function hasPassed(instant: string | undefined, graceMs: number, { now }: EndOfRun): boolean {
  if (now === undefined) return true;
  return instant !== undefined && toMs(instant) + graceMs < toMs(now);
}

function toBalance({ available, held, holds, ends }: AuditedPayer): AuditedBalance {
  return { available, held, holds: new Map(holds), ends: new Map(ends) };
}
