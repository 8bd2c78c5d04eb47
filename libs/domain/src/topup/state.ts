/** The state of a top-up: its invoice, and the payments, fees and reversals that were recorded. */
import { Map as ImmutableMap, OrderedMap } from 'immutable';
import { money, throwUnknownEvent } from '#kernel';
import type {
  ExcessCredited,
  InvoiceIssued,
  PaymentId,
  PaymentPart,
  PaymentReceived,
  PaymentReversed,
  PaymentSeen,
  TopupEvent,
} from './events.ts';
import { calculatePartAmounts, creditExcess, type EarlierPayments, listParts } from './valuation.ts';

export interface TopupState {
  readonly invoice: InvoiceIssued['data'] | undefined;
  /** The payments that are not final yet, by `toPaymentKey`. */
  readonly pendingPayments: OrderedMap<string, PendingPayment>;
  /** Whether a payment was lost, not to another top-up: pending, or after it was received. */
  readonly hasLostPayment: boolean;
  /** By `toPaymentKey`. */
  readonly payments: OrderedMap<string, ReceivedPayment>;
  /** By reversal id. */
  readonly reversals: OrderedMap<string, PaymentReversed['data']>;
  /** Units of fees by `toFeeKey`. */
  readonly fees: ImmutableMap<string, string>;
}

/** A payment that is not final yet. */
interface PendingPayment {
  readonly units: string;
  /** Whether it was first seen after another payment was lost, which it may replace. */
  readonly hasReplaced: boolean;
}

/** A final payment, which is to be credited. */
export interface ReceivedPayment {
  readonly data: PaymentReceived['data'];
  readonly parts: readonly PaymentPart[];
  /** What a person has credited of the excess. */
  readonly creditedExcess: ExcessCredited['data'] | undefined;
  /** The units that were not reversed; negative if more was reversed than paid. */
  readonly remainingUnits: bigint;
  readonly isCredited: boolean;
  /** Number of times that the payment was lost and then restored. */
  readonly lossCount: number;
  /** The units that were reversed when the payment was lost; 0 while it is not lost. */
  readonly lostUnits: bigint;
}

/** Returns the id of a payment that is unique across all top-ups. It is also the id of the credit. */
export function toPaymentKey({ backend, id }: PaymentId): string {
  return `${backend}/${id}`;
}

export function evolveTopup(topup: TopupState, event: TopupEvent): TopupState {
  switch (event.type) {
    case 'InvoiceIssued':
      return { ...topup, invoice: event.data };
    case 'PaymentSeen':
      return addPending(topup, event.data);
    case 'PaymentLost': {
      const pendingPayments = topup.pendingPayments.delete(toPaymentKey(event.data.payment));
      return { ...topup, pendingPayments, hasLostPayment: topup.hasLostPayment || !event.data.isContested };
    }
    case 'PaymentReceived':
      return addPayment(topup, event.data);
    case 'TopupCredited':
      return withPayment(topup, event.data.payment, (received) => ({ ...received, isCredited: true }));
    case 'ExcessCredited':
      return withPayment(topup, event.data.payment, (received) => ({
        ...received,
        parts: creditExcess(received.parts, received.remainingUnits),
        creditedExcess: event.data,
      }));
    case 'PaymentReversed':
      return addReversal(topup, event.data);
    case 'PaymentFeeCharged': {
      const { payment, feeId, units } = event.data;
      return { ...topup, fees: topup.fees.set(toFeeKey(payment, feeId), units) };
    }
    default:
      return throwUnknownEvent(event);
  }
}

function addPending(topup: TopupState, { payment, units }: PaymentSeen['data']): TopupState {
  const key = toPaymentKey(payment);
  const hasReplaced = topup.pendingPayments.get(key)?.hasReplaced ?? topup.hasLostPayment;
  return { ...topup, pendingPayments: topup.pendingPayments.set(key, { units, hasReplaced }) };
}

function addPayment(topup: TopupState, data: PaymentReceived['data']): TopupState {
  const key = toPaymentKey(data.payment);
  const payment: ReceivedPayment = {
    data,
    parts: listParts(data),
    creditedExcess: undefined,
    remainingUnits: BigInt(data.units),
    isCredited: false,
    lossCount: 0,
    lostUnits: 0n,
  };
  return { ...topup, pendingPayments: topup.pendingPayments.delete(key), payments: topup.payments.set(key, payment) };
}

function addReversal(topup: TopupState, data: PaymentReversed['data']): TopupState {
  const { payment, reversalId } = data;
  const units = BigInt(data.units);
  const reversals = topup.reversals.set(reversalId, data);
  const existing = topup.payments.get(toPaymentKey(payment));
  const hasLostPayment = topup.hasLostPayment || (existing !== undefined && reversalId === toLossId(existing));
  return withPayment({ ...topup, reversals, hasLostPayment }, payment, (received) => {
    const updated = { ...received, remainingUnits: received.remainingUnits + units };
    if (reversalId === toLossId(received)) return { ...updated, lostUnits: -units };
    if (reversalId === toRecoveryId(received)) return { ...updated, lostUnits: 0n, lossCount: received.lossCount + 1 };
    return updated;
  });
}

/** The id of the reversal of a payment that its network has rolled back. */
export function toLossId({ data: { payment }, lossCount }: ReceivedPayment): string {
  return `${payment.id}:lost:${lossCount + 1}`;
}

/** The id of the reversal that restores a lost payment when it is final again. */
export function toRecoveryId({ data: { payment }, lossCount }: ReceivedPayment): string {
  return `${payment.id}:found:${lossCount + 1}`;
}

export function toFeeKey(payment: PaymentId, feeId: string): string {
  return `${toPaymentKey(payment)} ${feeId}`;
}

function withPayment(
  topup: TopupState,
  payment: PaymentId,
  change: (received: ReceivedPayment) => ReceivedPayment,
): TopupState {
  const key = toPaymentKey(payment);
  const existing = topup.payments.get(key);
  return existing ? { ...topup, payments: topup.payments.set(key, change(existing)) } : topup;
}

export const INITIAL_TOPUP: TopupState = {
  invoice: undefined,
  pendingPayments: OrderedMap(),
  hasLostPayment: false,
  payments: OrderedMap(),
  reversals: OrderedMap(),
  fees: ImmutableMap(),
};

/** Returns what preceded a payment of the invoice that was not received yet. */
export function getEarlierPayments(payment: PaymentId, topup: TopupState): EarlierPayments {
  const received = [...topup.payments.values()].filter(({ lostUnits }) => lostUnits === 0n);
  return {
    units: received.reduce((sum, { data }) => sum + BigInt(data.units), 0n),
    credited: money.sum(received.map(({ data, parts }) => calculatePartAmounts(parts, BigInt(data.units)).amount)),
    hasReplaced: topup.pendingPayments.get(toPaymentKey(payment))?.hasReplaced ?? topup.hasLostPayment,
  };
}
