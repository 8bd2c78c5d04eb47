import { type DomainEvent, toChallengePayment, toPaymentKey } from '#domain';
import type { StoredEvent } from '#kernel';
import { ContestedPayments } from './contested-payments.ts';

/** Maximum number of payments that are named in each of the two lists. */
const MAX_NAMED = 100;

/**
 * Finds payments that were reported for more than one top-up or challenge: those that were recorded more than once, which
 * only a version without claims did, and the contested ones.
 */
export class RepeatedPayments {
  /** Names of the streams that recorded a payment, by the key of the payment. */
  private readonly streams = new Map<string, string | readonly string[]>();
  /** The key of the payment of each issued challenge that is not paid. */
  private readonly challenges = new Map<string, string>();
  private readonly contests = new ContestedPayments();

  book(event: StoredEvent<DomainEvent>): void {
    const { stream } = event;
    this.contests.book(event);
    switch (event.type) {
      case 'PaymentReceived':
        this.add(toPaymentKey(event.data.payment), stream);
        return;
      case 'ChallengeIssued':
        this.challenges.set(stream, toPaymentKey(toChallengePayment(event.data)));
        return;
      case 'ChallengePaid': {
        const key = this.challenges.get(stream);
        if (key !== undefined) this.add(key, stream);
        this.challenges.delete(stream);
        return;
      }
      default:
    }
  }

  /** Returns for both lists the number of such payments, then one line for each of them, at most 100. */
  formatLines(): readonly string[] {
    const repeated = [...this.streams].flatMap(([payment, streams]) =>
      typeof streams === 'string' ? [] : [`${payment}: ${streams.join(', ')}`],
    );
    return [
      `${repeated.length} payments were recorded more than once`,
      ...repeated.slice(0, MAX_NAMED),
      ...this.contests.formatLines(MAX_NAMED),
    ];
  }

  private add(payment: string, stream: string): void {
    const streams = this.streams.get(payment);
    if (streams === undefined) this.streams.set(payment, stream);
    else this.streams.set(payment, [streams, stream].flat());
  }
}
