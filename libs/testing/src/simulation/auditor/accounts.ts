/** Rules for the stream of an account. */
import { type AuditedEvent, parseAmount } from './event-data.ts';
import type { FindingRecorder } from './findings.ts';
import { KeyLimits } from './key-limits.ts';
import { AuditedPayer } from './payer.ts';

interface Adjustment {
  readonly amount: bigint;
  isReversed: boolean;
}

export class AuditedAccountStream {
  readonly payer: AuditedPayer;
  readonly keys: KeyLimits;
  private readonly credits = new Set<string>();
  private readonly reversals = new Set<string>();
  private readonly adjustments = new Map<string, Adjustment>();
  private isOpened = false;

  constructor(private readonly recorder: FindingRecorder) {
    this.payer = new AuditedPayer(recorder);
    this.keys = new KeyLimits(recorder);
  }

  apply(event: AuditedEvent): void {
    const { type, data, revision, stream } = event;
    const { recorder, payer } = this;
    const isOpening = type === 'AccountOpened';
    recorder.check(isOpening !== this.isOpened, 'an account is opened once, before all else', () => stream);
    if (isOpening) this.isOpened = revision === 0;
    this.keys.apply(event);
    if (payer.applyHoldEvent(event)) return;
    if (type === 'CreditAdded') this.credits.add(data.creditId);
    if (type === 'CreditReversed') {
      const { creditId, reversalId } = data;
      recorder.check(this.credits.has(creditId), 'only an existing credit is reversed', () => creditId);
      recorder.check(!this.reversals.has(reversalId), 'a reversal is applied once', () => reversalId);
      this.reversals.add(reversalId);
    }
    if (type === 'CreditAdded' || type === 'CreditReversed')
      payer.income += parseAmount(data.amount) + parseAmount(data.bonus);
    if (type === 'BalanceAdjusted') this.adjust(data);
  }

  private adjust({ adjustmentId, amount: text, reverses }: AuditedEvent['data']): void {
    const { recorder, adjustments } = this;
    const amount = parseAmount(text);
    recorder.check(!adjustments.has(adjustmentId), 'an adjustment is made once', () => adjustmentId);
    recorder.check(amount !== 0n, 'an adjustment has an amount', () => adjustmentId);
    const reversed = reverses === undefined ? undefined : adjustments.get(reverses);
    const isComplete = reversed?.isReversed === false && reversed.amount === -amount;
    const describe = () => `${reverses} of ${reversed?.amount} by ${adjustmentId} of ${amount}`;
    recorder.check(reverses === undefined || isComplete, 'an adjustment is reversed once and completely', describe);
    if (reversed) reversed.isReversed = true;
    adjustments.set(adjustmentId, { amount, isReversed: false });
    this.payer.income += amount;
  }
}
