import { type DomainEvent, toPaymentKey } from '#domain';
import type { StoredEvent } from '#kernel';

/** Finds the contested payments that no person has closed: their backend reported them for a second claimant. */
export class ContestedPayments {
  /** A line for each contest, by the stream of the payment and the claimant. */
  private readonly contests = new Map<string, string>();

  book(event: StoredEvent<DomainEvent>): void {
    if (event.type === 'PaymentContested') {
      const { payment, claimant, owner, at } = event.data;
      const line = `${at}  ${toPaymentKey(payment)}  of ${owner}, also for ${claimant}`;
      this.contests.set(`${event.stream} ${claimant}`, line);
    }
    if (event.type === 'ContestClosed') this.contests.delete(`${event.stream} ${event.data.claimant}`);
  }

  /** Returns the number of contests, then one line for each of them, at most `maxNamed`. */
  formatLines(maxNamed = Number.POSITIVE_INFINITY): readonly string[] {
    return [
      `${this.contests.size} payments were reported for another top-up or challenge, which got nothing`,
      ...[...this.contests.values()].slice(0, maxNamed),
    ];
  }
}
