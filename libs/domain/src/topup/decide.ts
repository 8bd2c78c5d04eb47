/**
 * The decisions of a top-up: an invoice and the payments for it. A payment is recorded once, by its payment backend and
 * the backend's id. It is then credited to the account, which accepts each credit id once, and marked as credited here.
 * Each step can be repeated.
 */
import { type Decider, money, type PicoUsd } from '#kernel';
import { reject } from '../rejections.ts';
import type { Instant } from '../value-types.ts';
import type {
  InvoiceIssued,
  PaymentFeeCharged,
  PaymentId,
  PaymentPart,
  PaymentReceived,
  PaymentReversed,
  PaymentSeen,
  TopupEvent,
} from './events.ts';
import {
  evolveTopup,
  getEarlierPayments,
  INITIAL_TOPUP,
  type ReceivedPayment,
  type TopupState,
  toFeeKey,
  toLossId,
  toPaymentKey,
  toRecoveryId,
} from './state.ts';
import { calculatePartAmounts, type PartAmounts, type ValuablePayment, valuePayment } from './valuation.ts';

// commands ----------------------------------------------------------------------------------------------------------

export type TopupCommand =
  | { readonly type: 'IssueInvoice'; readonly data: InvoiceIssued['data'] }
  | { readonly type: 'RecordPayment'; readonly data: ReportedPayment }
  | { readonly type: 'MarkCredited'; readonly data: { readonly payment: PaymentId; readonly at: Instant } }
  /** Credits the excess of a payment. */
  | { readonly type: 'CreditExcess'; readonly data: { readonly payment: PaymentId; readonly at: Instant } }
  /** Records that a person has sent the excess of a payment back to the customer. @param why names the transfer */
  | {
      readonly type: 'RefundExcess';
      readonly data: { readonly payment: PaymentId; readonly why: string; readonly at: Instant };
    };

/** The current state of a payment, as its payment backend reports it. */
export interface ReportedPayment extends ValuablePayment {
  readonly payment: PaymentId;
  /**
   * The number of confirmations by the network. `pending`: the payment can still fail. `final`: the payment backend
   * guarantees it. `lost`: the network or the payment backend has dropped or reversed it.
   */
  readonly confirmations: number | 'pending' | 'final' | 'lost';
  /** Whether the payment is final and its own stream names this top-up. Nothing is credited for another payment. */
  readonly isClaimed: boolean;
  readonly fees?: readonly PaymentAdjustment[];
  readonly reversals?: readonly PaymentAdjustment[];
}

/** A fee or a reversal of a payment, recorded once by its id. A refunded fee and a reversed amount are negative. */
export interface PaymentAdjustment {
  readonly id: string;
  readonly units: bigint;
  readonly why: string;
}

// decide ------------------------------------------------------------------------------------------------------------

function decide(command: TopupCommand, topup: TopupState): readonly TopupEvent[] {
  if (command.type === 'IssueInvoice') {
    if (!topup.invoice) return [{ type: 'InvoiceIssued', data: command.data }];
    const { backend, reference } = command.data;
    const isSameInvoice = topup.invoice.backend === backend && topup.invoice.reference === reference;
    return isSameInvoice ? [] : reject('topup_exists', 'The top-up already has another invoice');
  }
  if (!topup.invoice) return reject('topup_not_found', 'Top-up not found');
  switch (command.type) {
    case 'RecordPayment':
      return recordPayment(command.data, topup, topup.invoice);
    case 'MarkCredited':
      return getReceivedPayment(command.data.payment, topup).isCredited
        ? []
        : [{ type: 'TopupCredited', data: command.data }];
    case 'CreditExcess':
      return creditRemainingExcess(getReceivedPayment(command.data.payment, topup), command.data.at);
    case 'RefundExcess':
      return refundRemainingExcess(getReceivedPayment(command.data.payment, topup), topup, command.data);
    default:
      return command satisfies never;
  }
}

function getReceivedPayment(payment: PaymentId, topup: TopupState): ReceivedPayment {
  const key = toPaymentKey(payment);
  return topup.payments.get(key) ?? reject('payment_conflict', `Payment ${key} was never received`);
}

/**
 * Returns the events for what is new in the report of the payment backend. A higher number of confirmations is nothing
 * new until it suffices. A final payment that this top-up has not claimed belongs to another one: here it is no longer
 * pending.
 */
function recordPayment(
  payment: ReportedPayment,
  topup: TopupState,
  invoice: InvoiceIssued['data'],
): readonly TopupEvent[] {
  const { confirmations } = payment;
  const key = toPaymentKey(payment.payment);
  const existing = topup.payments.get(key);
  const isFinal = isFinalPayment(confirmations, invoice.confirmations);
  if (existing) return listChanges(payment, existing, topup, isFinal);
  if (isFinal && payment.isClaimed) {
    const first: TopupEvent = { type: 'PaymentReceived', data: toPaymentReceivedData(payment, invoice, topup) };
    const after = evolveTopup(topup, first);
    return [first, ...listChanges(payment, getReceivedPayment(payment.payment, after), after, true)];
  }
  const pendingUnits = topup.pendingPayments.get(key)?.units;
  if (confirmations === 'lost' || isFinal) {
    const { payment: id, at } = payment;
    const data = { payment: id, at, ...(isFinal ? { isContested: true as const } : {}) };
    return pendingUnits === undefined ? [] : [{ type: 'PaymentLost', data }];
  }
  return pendingUnits === payment.units.toString()
    ? []
    : [createPaymentSeen(payment, typeof confirmations === 'number' ? confirmations : 0)];
}

/** Whether a payment is final. @param required the number of confirmations after which it is */
export function isFinalPayment(confirmations: ReportedPayment['confirmations'], required: number): boolean {
  return confirmations === 'final' || (typeof confirmations === 'number' && confirmations >= required);
}

function createPaymentSeen({ payment, units, receivedAt, at }: ReportedPayment, confirmations: number): PaymentSeen {
  const data = { payment, units: units.toString(), confirmations, seenAt: receivedAt, at };
  return { type: 'PaymentSeen', data };
}

function toPaymentReceivedData(
  payment: ReportedPayment,
  invoice: InvoiceIssued['data'],
  topup: TopupState,
): PaymentReceived['data'] {
  const { accountId, method, coin } = invoice;
  const { payment: id, units, receivedAt, at } = payment;
  const { amount, bonus, ...value } = valuePayment(payment, invoice, getEarlierPayments(id, topup));
  return { accountId, method, coin, payment: id, units: units.toString(), amount, bonus, ...value, receivedAt, at };
}

/** Returns events for the fees, reversals, losses and recoveries of a received payment that are not recorded yet. */
function listChanges(
  payment: ReportedPayment,
  received: ReceivedPayment,
  topup: TopupState,
  isFinal: boolean,
): readonly TopupEvent[] {
  const { fees = [], reversals = [], units, confirmations, at } = payment;
  // The payment backend may no longer know the amount of a lost payment.
  if (received.data.units !== units.toString() && confirmations !== 'lost')
    reject('payment_conflict', `Payment ${toPaymentKey(payment.payment)} was reported with a different amount`);
  const feeEvents = listFeeEvents(fees, received, topup, at);
  const reversalEvents = listReversalEvents(reversals, payment.payment, topup, at);
  const current = reversalEvents.reduce(evolveTopup, topup);
  // What was refunded before cannot also be lost.
  const losses = listLossAdjustments(payment, getReceivedPayment(payment.payment, current), isFinal);
  return [...feeEvents, ...reversalEvents, ...listReversalEvents(losses, payment.payment, current, at)];
}

/** Returns the events of several reversals, each of which changes what the next ones can reverse. */
function listReversalEvents(
  reversals: readonly PaymentAdjustment[],
  payment: PaymentId,
  topup: TopupState,
  at: Instant,
): readonly TopupEvent[] {
  const events: TopupEvent[] = [];
  let current = topup;
  for (const reversal of reversals) {
    const newEvents = createReversalEvents(reversal, getReceivedPayment(payment, current), current, at);
    current = newEvents.reduce(evolveTopup, current);
    events.push(...newEvents);
  }
  return events;
}

function listLossAdjustments(
  { confirmations }: ReportedPayment,
  received: ReceivedPayment,
  isFinal: boolean,
): readonly PaymentAdjustment[] {
  const { remainingUnits, lostUnits } = received;
  if (confirmations === 'lost' && lostUnits === 0n && remainingUnits > 0n)
    return [{ id: toLossId(received), units: -remainingUnits, why: 'reversed by its network' }];
  return isFinal && lostUnits > 0n ? [{ id: toRecoveryId(received), units: lostUnits, why: 'confirmed again' }] : [];
}

/** Returns the events of several fees. A fee that is listed twice is one fee. */
function listFeeEvents(
  fees: readonly PaymentAdjustment[],
  received: ReceivedPayment,
  topup: TopupState,
  at: Instant,
): readonly TopupEvent[] {
  const events: TopupEvent[] = [];
  let current = topup;
  for (const fee of fees) {
    const newEvents = createFeeEvents(fee, received, current, at);
    current = newEvents.reduce(evolveTopup, current);
    events.push(...newEvents);
  }
  return events;
}

function createFeeEvents(
  { id: feeId, units, why }: PaymentAdjustment,
  { data }: ReceivedPayment,
  topup: TopupState,
  at: Instant,
): TopupEvent[] {
  const { payment, method, coin } = data;
  const existingUnits = topup.fees.get(toFeeKey(payment, feeId));
  if (existingUnits === units.toString() || (existingUnits === undefined && units === 0n)) return [];
  if (existingUnits !== undefined) reject('payment_conflict', `Fee ${feeId} was reported with a different amount`);
  const value = data.market?.amount ?? (BigInt(data.amount) + BigInt(data.excess ?? 0)).toString();
  const amount = calculateShare(value, units, data.units).toString();
  const fee: PaymentFeeCharged['data'] = { method, coin, payment, feeId, units: units.toString(), amount, why, at };
  return [{ type: 'PaymentFeeCharged', data: fee }];
}

/** Negative units are reversed. Positive units are restored, for example after a dispute was won. */
function createReversalEvents(
  { id, units, why }: PaymentAdjustment,
  payment: ReceivedPayment,
  topup: TopupState,
  at: Instant,
): readonly TopupEvent[] {
  const { data, remainingUnits } = payment;
  const existing = topup.reversals.get(id);
  if (existing !== undefined) {
    if (existing.units === units.toString()) return [];
    return reject('payment_conflict', `Reversal ${id} was reported with a different amount`);
  }
  const after = remainingUnits + units;
  // A payment can be both refunded and disputed: then it is reversed twice, and the customer owes its amount.
  if (after < -BigInt(data.units) || after > BigInt(data.units)) {
    return reject('payment_conflict', `Reversal ${id} is too large for payment ${toPaymentKey(data.payment)}`);
  }
  const amounts = subtractAmounts(
    calculatePartAmounts(payment.parts, after),
    calculatePartAmounts(payment.parts, remainingUnits),
  );
  const { accountId, method, coin, payment: paymentId, market } = data;
  const reversal: PaymentReversed['data'] = {
    accountId,
    method,
    reversalId: id,
    payment: paymentId,
    coin,
    units: units.toString(),
    amount: money.toJsonAmount(amounts.amount),
    bonus: money.toJsonAmount(amounts.bonus),
    ...(amounts.excess === 0n ? {} : { excess: money.toJsonAmount(amounts.excess) }),
    // Rounded remainders are subtracted, so that the parts of a full reversal sum to exactly the total.
    ...(market
      ? {
          market: (
            calculateShare(market.amount, after, data.units) - calculateShare(market.amount, remainingUnits, data.units)
          ).toString(),
        }
      : {}),
    why,
    at,
  };
  return [{ type: 'PaymentReversed', data: reversal }];
}

function subtractAmounts(a: PartAmounts, b: PartAmounts): PartAmounts {
  return {
    amount: money.subtract(a.amount, b.amount),
    bonus: money.subtract(a.bonus, b.bonus),
    excess: money.subtract(a.excess, b.excess),
  };
}

/** Credits the excess that was not reversed. Nothing is left to credit after it was credited or refunded. */
function creditRemainingExcess(received: ReceivedPayment, at: Instant): readonly TopupEvent[] {
  const { data, creditedExcess } = received;
  const excess = getOpenExcess(received);
  if (excess <= 0n) {
    const problem = `Payment ${toPaymentKey(data.payment)} has no excess that is owed`;
    return creditedExcess ? [] : reject('payment_conflict', problem);
  }
  const { accountId, method, payment } = data;
  return [{ type: 'ExcessCredited', data: { accountId, method, payment, amount: money.toJsonAmount(excess), at } }];
}

/** Records the refund of the excess as a reversal of its units, which are the last ones of the payment. */
function refundRemainingExcess(
  received: ReceivedPayment,
  topup: TopupState,
  { why, at }: Extract<TopupCommand, { readonly type: 'RefundExcess' }>['data'],
): readonly TopupEvent[] {
  const { data, parts, remainingUnits } = received;
  const id = `${data.payment.id}:excess`;
  const units = countCreditedUnits(parts) - remainingUnits;
  if (topup.reversals.has(id)) return [];
  if (units >= 0n) reject('payment_conflict', `Payment ${toPaymentKey(data.payment)} has no excess that is owed`);
  return createReversalEvents({ id, units, why }, received, topup, at);
}

function countCreditedUnits(parts: readonly PaymentPart[]): bigint {
  return parts.reduce((sum, { units, isExcess }) => (isExcess ? sum : sum + BigInt(units)), 0n);
}

/** Returns the excess of a payment that is neither credited nor reversed. */
function getOpenExcess({ parts, remainingUnits }: ReceivedPayment): PicoUsd {
  return calculatePartAmounts(parts, remainingUnits).excess;
}

function calculateShare(total: string, part: bigint, denominatorUnits: string): bigint {
  return (BigInt(total) * part) / BigInt(denominatorUnits);
}

export const topupDecider: Decider<TopupCommand, TopupState, TopupEvent> = {
  getInitialState: () => INITIAL_TOPUP,
  evolve: evolveTopup,
  decide,
};
