/**
 * A top-up: an invoice, and the payments that settle it. A payment is recorded once by its own id, credited to the
 * account (which accepts a credit once by its id), and then marked as credited here. Each step can be repeated.
 */
import { type Decider, money, PersistentMap, type PicoUsd, unknownFact } from '#kernel';
import type { Instant, InvoiceIssued, TopupEvent } from './events.ts';
import { reject } from './rejections.ts';

/** The gift on a Lightning payment, in hundredths: 5 %. */
const LIGHTNING_BONUS_PERCENT = 5n;
const MSAT_PER_BTC = 100_000_000_000n;
/** Decimals of an exchange rate, USD for one coin. */
export const RATE_DECIMALS = 8;

export interface Topup {
  readonly invoice: InvoiceIssued['data'] | undefined;
  /** Payment ids, and whether each was credited. */
  readonly payments: PersistentMap<{ readonly msat: string; readonly credited: boolean }>;
}

function evolve(topup: Topup, event: TopupEvent): Topup {
  switch (event.type) {
    case 'InvoiceIssued':
      return { ...topup, invoice: event.data };
    case 'PaymentReceived': {
      const { paymentId, msat } = event.data;
      return { ...topup, payments: topup.payments.with(paymentId, { msat, credited: false }) };
    }
    case 'TopupCredited': {
      const payment = topup.payments.get(event.data.paymentId);
      if (!payment) return topup;
      return { ...topup, payments: topup.payments.with(event.data.paymentId, { ...payment, credited: true }) };
    }
    default:
      return unknownFact(event);
  }
}

export type TopupCommand =
  | { readonly type: 'IssueInvoice'; readonly data: InvoiceIssued['data'] }
  | { readonly type: 'RecordPayment'; readonly data: Payment }
  | { readonly type: 'MarkCredited'; readonly data: { readonly paymentId: string; readonly at: Instant } };

export interface Payment {
  readonly paymentId: string;
  readonly msat: bigint;
  readonly paidAt: Instant;
  /** The rate at the time of payment, for a payment that came after the invoice expired; else the invoice's counts. */
  readonly lateRate?: string;
  readonly at: Instant;
}

function decide(command: TopupCommand, topup: Topup): readonly TopupEvent[] {
  if (command.type === 'IssueInvoice') {
    if (!topup.invoice) return [{ type: 'InvoiceIssued', data: command.data }];
    return topup.invoice.invoice === command.data.invoice ? [] : reject('topup_exists', 'The top-up has an invoice');
  }
  if (!topup.invoice) return reject('topup_not_found', 'There is no such top-up');
  switch (command.type) {
    case 'RecordPayment':
      return recordPayment(command.data, topup, topup.invoice);
    case 'MarkCredited': {
      const payment = topup.payments.get(command.data.paymentId);
      if (!payment) return reject('payment_conflict', `Payment ${command.data.paymentId} was never received`);
      return payment.credited ? [] : [{ type: 'TopupCredited', data: command.data }];
    }
    default:
      return command satisfies never;
  }
}

function recordPayment(payment: Payment, topup: Topup, invoice: InvoiceIssued['data']): readonly TopupEvent[] {
  const { paymentId, paidAt, lateRate, at } = payment;
  const msat = payment.msat.toString();
  const known = topup.payments.get(paymentId);
  if (known) {
    return known.msat === msat ? [] : reject('payment_conflict', `Payment ${paymentId} came with another amount`);
  }
  const { accountId, method } = invoice;
  const rate = lateRate ?? invoice.rate;
  const amount = lateRate === undefined ? worthAsInvoiced(payment.msat, invoice) : worth(payment.msat, lateRate);
  const bonus = ((amount * LIGHTNING_BONUS_PERCENT) / 100n) as PicoUsd;
  const booked = { amount: money.toJson(amount), bonus: money.toJson(bonus) };
  return [{ type: 'PaymentReceived', data: { accountId, method, paymentId, msat, ...booked, rate, paidAt, at } }];
}

/** Paid exactly is worth exactly what was asked for; more or less is worth its share of that. */
function worthAsInvoiced(msat: bigint, invoice: InvoiceIssued['data']): PicoUsd {
  return ((money.fromJson(invoice.usd) * msat) / BigInt(invoice.msat)) as PicoUsd;
}

/** What an amount of bitcoin is worth at a rate of USD for one bitcoin, rounded down to a pico-USD. */
export function worth(msat: bigint, rate: string): PicoUsd {
  return ((msat * money.usd(rate)) / MSAT_PER_BTC) as PicoUsd;
}

/** What an amount costs in whole satoshis at a rate, rounded up; returned in millisatoshis. */
export function msatFor(amount: PicoUsd, rate: string): bigint {
  return money.divideUp(amount * (MSAT_PER_BTC / 1000n), money.usd(rate)) * 1000n;
}

export const topupDecider: Decider<TopupCommand, Topup, TopupEvent> = {
  initial: () => ({ invoice: undefined, payments: PersistentMap.empty() }),
  evolve,
  decide,
};
