/** Rules for the stream of a payment challenge, whose payment pays for one response. */
import { type AuditedEvent, parseAmount } from './event-data.ts';
import type { FindingRecorder } from './findings.ts';
import { AuditedPayer } from './payer.ts';

/** A response is served again without a charge if it was lost. */
const MAX_RESPONSES = 3;
const MAX_ATTEMPTS = 100;
const MAX_REJECTED_ATTEMPTS = 3;
const REJECTIONS: readonly string[] = ['invalid_request', 'content_policy_violation'];

export class AuditedChallengeStream {
  readonly payer: AuditedPayer;
  isPaid = false;
  private issued: AuditedEvent['data'] | undefined;
  private isForfeited = false;
  private attempts = 0;
  private rejectedAttempts = 0;
  /** Settled holds whose charge was not reversed. */
  private responses = 0;
  /** What failed attempts have cost the operator, in pico-USD. */
  private lost = 0n;

  constructor(private readonly recorder: FindingRecorder) {
    this.payer = new AuditedPayer(recorder);
  }

  /** @param getOwner returns the stream to which a payment belongs, by the key of the payment */
  apply(event: AuditedEvent, getOwner: (key: string) => string | undefined): void {
    const { type, data, stream } = event;
    const { recorder, payer, issued } = this;
    const isIssue = type === 'ChallengeIssued';
    recorder.check(isIssue !== (issued !== undefined), 'a challenge is issued once, before all else', () => stream);
    if (isIssue) {
      this.issued ??= data;
      return;
    }
    if (!issued) return;
    if (type === 'ChallengePaid') this.pay(event, issued, getOwner);
    if (type === 'ChallengeOverpaid') {
      recorder.check(this.isPaid, 'only a paid challenge is overpaid', () => stream);
      const value = (parseAmount(issued.worth) * parseAmount(data.units)) / parseAmount(issued.units);
      recorder.checkSame(parseAmount(data.amount), value, 'an overpayment has the rate of the challenge', 'the amount');
      payer.income += parseAmount(data.amount);
    }
    if (type === 'ChallengeForfeited') this.forfeit(event, issued);
    if (type === 'FundsHeld') this.checkHold(event, issued);
    payer.applyHoldEvent(event);
    this.countAttempts(event);
  }

  private pay(
    { stream, data }: AuditedEvent,
    issued: AuditedEvent['data'],
    getOwner: (key: string) => string | undefined,
  ): void {
    const { recorder } = this;
    recorder.check(!this.isPaid, 'a challenge is paid once', () => stream);
    const isSame = data.units === issued.units && data.amount === issued.worth && data.price === issued.price;
    const describe = () => `${data.units} units worth ${data.amount} for ${data.price}`;
    recorder.check(isSame, 'a challenge is paid at its price', describe);
    const key = `${issued.backend}/${issued.paymentHash}`;
    const rule = 'the payment of a challenge is claimed before it counts';
    recorder.checkSame(getOwner(key), stream, rule, `the owner of ${key}`);
    this.isPaid = true;
    this.payer.income += parseAmount(data.price);
  }

  private forfeit({ data }: AuditedEvent, { usableUntil }: AuditedEvent['data']): void {
    const { recorder, payer } = this;
    const amount = parseAmount(data.amount);
    const isAll = amount > 0n && amount === payer.available && payer.holds.size === 0;
    recorder.check(isAll, 'all that is left of a challenge is forfeited', () => `${amount} of ${payer.available}`);
    const hasEnded = data.at > usableUntil;
    recorder.check(hasEnded, 'a usable challenge is not forfeited', () => `at ${data.at}, usable until ${usableUntil}`);
    payer.income -= amount;
    this.isForfeited = true;
  }

  private checkHold({ data: { holdId, amount, keyId, at } }: AuditedEvent, issued: AuditedEvent['data']): void {
    const { recorder, payer } = this;
    const describe = () => `${holdId} of ${amount}, ${payer.available} available`;
    recorder.check(this.isPaid && parseAmount(amount) <= payer.available, 'a hold is within what was paid', describe);
    recorder.check(keyId === null, 'a challenge has no keys', describe);
    recorder.check(payer.holds.size === 0, 'a challenge serves one request at a time', describe);
    const isUsable = at <= issued.usableUntil && !this.isForfeited;
    recorder.check(isUsable, 'a challenge is used before its end', () => `${holdId} at ${at}`);
    const isRetry = this.responses > 0;
    const isFree = !isRetry || parseAmount(amount) === 0n;
    recorder.check(isFree, 'the second response to a challenge is free', describe);
    recorder.check(this.responses < MAX_RESPONSES, 'a challenge serves at most three responses', describe);
    const isAllowed =
      this.attempts < MAX_ATTEMPTS &&
      this.rejectedAttempts < MAX_REJECTED_ATTEMPTS &&
      (this.lost === 0n || this.lost < parseAmount(issued.price));
    recorder.check(isAllowed, 'the failed attempts of a challenge are limited', () => {
      return `${this.attempts} attempts, ${this.rejectedAttempts} rejected, ${this.lost} lost`;
    });
  }

  private countAttempts({ type, data }: AuditedEvent): void {
    if (type === 'FundsHeld') this.attempts++;
    if (type === 'HoldReleased' && REJECTIONS.includes(data.errorCode)) this.rejectedAttempts++;
    if (type === 'HoldSettled') this.responses++;
    if (type === 'ChargeReversed') this.responses--;
    const wasReleased = this.payer.ends.get(data.holdId)?.resolution === 'released';
    if (type === 'ChargeAbsorbed' && wasReleased) this.lost += parseAmount(data.charge.cost);
  }
}
