/**
 * A top-up: a request for payment, and the payments that came for it. A payment is recorded once by its back end and
 * the id that it has there, credited to the account (which accepts a credit once by its id), and then marked as credited
 * here. Each step can be repeated.
 */
import { type Decider, money, PersistentMap, type PicoUsd, unknownFact } from '#kernel';
import { reject } from '../rejections.ts';
import type { Instant } from '../values.ts';
import { worth } from './coins.ts';
import type {
  InvoiceIssued,
  PaymentId,
  PaymentReceived,
  PaymentReversed,
  PaymentSeen,
  RateUsed,
  TopupEvent,
} from './events.ts';

// state -------------------------------------------------------------------------------------------------------------

export interface Topup {
  readonly invoice: InvoiceIssued['data'] | undefined;
  /** Payments that are not final yet, by `paymentKey`, and their units. */
  readonly seen: PersistentMap<string>;
  readonly payments: PersistentMap<Received>;
  /** By their ids. */
  readonly reversals: PersistentMap<PaymentReversed['data']>;
}

/** A payment that is worth its amount. */
interface Received {
  readonly data: PaymentReceived['data'];
  /** The part that has not been reversed. */
  readonly unitsLeft: bigint;
  readonly credited: boolean;
}

/** The name of a payment outside its top-up: the id of its credit. */
export function paymentKey({ backend, id }: PaymentId): string {
  return `${backend}/${id}`;
}

function evolve(topup: Topup, event: TopupEvent): Topup {
  switch (event.type) {
    case 'InvoiceIssued':
      return { ...topup, invoice: event.data };
    case 'PaymentSeen':
      return { ...topup, seen: topup.seen.with(paymentKey(event.data.payment), event.data.units) };
    case 'PaymentReceived': {
      const { data } = event;
      const received: Received = { data, unitsLeft: BigInt(data.units), credited: false };
      return { ...topup, payments: topup.payments.with(paymentKey(data.payment), received) };
    }
    case 'TopupCredited':
      return withPayment(topup, event.data.payment, (received) => ({ ...received, credited: true }));
    case 'PaymentReversed': {
      const { payment, reversalId, units } = event.data;
      const reversals = topup.reversals.with(reversalId, event.data);
      return withPayment({ ...topup, reversals }, payment, (received) => ({
        ...received,
        unitsLeft: received.unitsLeft + BigInt(units),
      }));
    }
    default:
      return unknownFact(event);
  }
}

function withPayment(topup: Topup, payment: PaymentId, change: (received: Received) => Received): Topup {
  const key = paymentKey(payment);
  const known = topup.payments.get(key);
  return known ? { ...topup, payments: topup.payments.with(key, change(known)) } : topup;
}

// commands ----------------------------------------------------------------------------------------------------------

export type TopupCommand =
  | { readonly type: 'IssueInvoice'; readonly data: InvoiceIssued['data'] }
  | { readonly type: 'RecordPayment'; readonly data: Payment }
  | { readonly type: 'MarkCredited'; readonly data: { readonly payment: PaymentId; readonly at: Instant } }
  | { readonly type: 'ReversePayment'; readonly data: Reversal };

export interface Payment {
  readonly payment: PaymentId;
  readonly units: bigint;
  /** The back end's fee, where there was one. */
  readonly fee?: bigint;
  /** How often the network has confirmed it, or that nothing can undo it any more. */
  readonly confirmations: number | 'final';
  /** When the back end saw it first. */
  readonly receivedAt: Instant;
  /** The rate at the time of payment, for a payment that came after the invoice expired; else the invoice's counts. */
  readonly lateRate?: RateUsed;
  readonly at: Instant;
}

/** A payment is taken back: refunded, disputed, or undone by its network. */
export interface Reversal {
  /** The back end's id of this event; it counts once. */
  readonly reversalId: string;
  readonly payment: PaymentId;
  /** Negative: what is taken back. Positive: what comes again, such as after a dispute that was won. */
  readonly units: bigint;
  readonly why: string;
  readonly at: Instant;
}

// decide ------------------------------------------------------------------------------------------------------------

function decide(command: TopupCommand, topup: Topup): readonly TopupEvent[] {
  if (command.type === 'IssueInvoice') {
    if (!topup.invoice) return [{ type: 'InvoiceIssued', data: command.data }];
    const { backend, reference } = command.data;
    const same = topup.invoice.backend === backend && topup.invoice.reference === reference;
    return same ? [] : reject('topup_exists', 'The top-up has an invoice');
  }
  if (!topup.invoice) return reject('topup_not_found', 'There is no such top-up');
  switch (command.type) {
    case 'RecordPayment':
      return recordPayment(command.data, topup, topup.invoice);
    case 'MarkCredited':
      return received(command.data.payment, topup).credited ? [] : [{ type: 'TopupCredited', data: command.data }];
    case 'ReversePayment':
      return reversePayment(command.data, topup);
    default:
      return command satisfies never;
  }
}

function received(payment: PaymentId, topup: Topup): Received {
  const key = paymentKey(payment);
  return topup.payments.get(key) ?? reject('payment_conflict', `Payment ${key} was never received`);
}

function recordPayment(payment: Payment, topup: Topup, invoice: InvoiceIssued['data']): readonly TopupEvent[] {
  const { confirmations } = payment;
  const key = paymentKey(payment.payment);
  const units = payment.units.toString();
  const known = topup.payments.get(key);
  if (known) {
    return known.data.units === units ? [] : reject('payment_conflict', `Payment ${key} came with another amount`);
  }
  if (confirmations !== 'final' && confirmations < invoice.confirmations) {
    return topup.seen.get(key) === units ? [] : [paymentSeen(payment, confirmations)];
  }
  return [paymentReceived(payment, invoice)];
}

function paymentSeen({ payment, units, receivedAt, at }: Payment, confirmations: number): PaymentSeen {
  const data = { payment, units: units.toString(), confirmations, seenAt: receivedAt, at };
  return { type: 'PaymentSeen', data };
}

function paymentReceived(
  { payment, units, fee, lateRate, receivedAt, at }: Payment,
  invoice: InvoiceIssued['data'],
): PaymentReceived {
  const { accountId, method, coin } = invoice;
  const amount = lateRate ? worth(units, coin, lateRate.value) : worthAsInvoiced(units, invoice);
  const bonus = ((amount * BigInt(invoice.bonusPercent)) / 100n) as PicoUsd;
  const data: PaymentReceived['data'] = {
    ...{ accountId, method, coin, payment, units: units.toString() },
    ...{ amount: money.toJson(amount), bonus: money.toJson(bonus) },
    ...(fee === undefined ? {} : { fee: fee.toString() }),
    ...{ rate: lateRate ?? invoice.rate, receivedAt, at },
  };
  return { type: 'PaymentReceived', data };
}

/** An exact payment is worth exactly the requested amount; more or less is worth its share of that. */
function worthAsInvoiced(units: bigint, invoice: InvoiceIssued['data']): PicoUsd {
  return ((money.fromJson(invoice.usd) * units) / BigInt(invoice.units)) as PicoUsd;
}

function reversePayment({ reversalId, payment, units, why, at }: Reversal, topup: Topup): readonly TopupEvent[] {
  const known = topup.reversals.get(reversalId);
  if (known !== undefined) {
    if (known.units === units.toString()) return [];
    return reject('payment_conflict', `Reversal ${reversalId} came with another amount`);
  }
  const { data, unitsLeft } = received(payment, topup);
  const after = unitsLeft + units;
  if (after < 0n || after > BigInt(data.units)) {
    return reject('payment_conflict', `Reversal ${reversalId} is of more than payment ${paymentKey(payment)} was`);
  }
  // Each part is what is left after it less what was left before it, so that parts sum to exactly the whole.
  const moved = (whole: string) => (share(whole, after, data.units) - share(whole, unitsLeft, data.units)).toString();
  const { accountId, method, amount, bonus } = data;
  const amounts = { units: units.toString(), amount: moved(amount), bonus: moved(bonus) };
  return [{ type: 'PaymentReversed', data: { accountId, method, reversalId, payment, ...amounts, why, at } }];
}

function share(whole: string, part: bigint, of: string): bigint {
  return (BigInt(whole) * part) / BigInt(of);
}

export const topupDecider: Decider<TopupCommand, Topup, TopupEvent> = {
  initial: () => ({
    invoice: undefined,
    seen: PersistentMap.empty(),
    payments: PersistentMap.empty(),
    reversals: PersistentMap.empty(),
  }),
  evolve,
  decide,
};
