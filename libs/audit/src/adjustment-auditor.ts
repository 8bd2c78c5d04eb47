import type { EventReading } from './event-readings.ts';

type AdjustmentReading = Extract<EventReading, { readonly kind: 'adjustment' }>;

/** Audits the credits and debits by the operator. */
export class AdjustmentAuditor {
  /** Amounts by stream and id. */
  private readonly amounts = new Map<string, bigint>();
  private readonly reversed = new Set<string>();

  constructor(private readonly report: (difference: string) => void) {}

  /** An adjustment is booked once. It reverses at most one other adjustment of the account, completely and once. */
  check(stream: string, { id, amount, reverses }: AdjustmentReading): void {
    const key = `${stream} ${id}`;
    if (this.amounts.has(key)) this.report(`adjustment ${id} was booked twice`);
    this.amounts.set(key, amount);
    if (reverses === undefined) return;
    const reversedKey = `${stream} ${reverses}`;
    if (this.amounts.get(reversedKey) !== -amount)
      this.report(`adjustment ${id} does not reverse the amount of ${reverses}`);
    if (this.reversed.has(reversedKey)) this.report(`adjustment ${reverses} was reversed twice`);
    this.reversed.add(reversedKey);
  }
}
