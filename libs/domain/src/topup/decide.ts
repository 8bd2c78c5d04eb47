/**
 * The decisions of a top-up: an invoice and the payments for it. A payment is recorded once, by its payment backend and
 * the backend's id. It is then credited to the account, which accepts each credit id once, and marked as credited here.
 * Each step can be repeated.
 */
import { type Decider, money, PersistentMap, type PicoUsd, throwUnknownEvent } from '#kernel';
import { reject } from '../rejections.ts';
import type { Instant } from '../value-types.ts';
import type {
  Destination,
  InvoiceIssued,
  PaymentFeeCharged,
  PaymentId,
  PaymentReceived,
  PaymentReversed,
  PaymentSeen,
  RateUsed,
  TopupEvent,
} from './events.ts';

/** A timely payment to an address gets the rate of its invoice if it is final at most this long after the expiry. */
const MAX_CONFIRMATION_DELAY_MS = 2 * 3_600_000;

// state -------------------------------------------------------------------------------------------------------------

export interface TopupState {
  readonly invoice: InvoiceIssued['data'] | undefined;
  /** Units of the payments that are not final yet, by `toPaymentKey`. */
  readonly pendingPayments: PersistentMap<string>;
  /** By `toPaymentKey`. */
  readonly payments: PersistentMap<ReceivedPayment>;
  /** By reversal id. */
  readonly reversals: PersistentMap<PaymentReversed['data']>;
  /** Units of fees by `toFeeKey`. */
  readonly fees: PersistentMap<string>;
}

/** A final payment, which is to be credited. */
interface ReceivedPayment {
  readonly data: PaymentReceived['data'];
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

function evolve(topup: TopupState, event: TopupEvent): TopupState {
  switch (event.type) {
    case 'InvoiceIssued':
      return { ...topup, invoice: event.data };
    case 'PaymentSeen':
      return {
        ...topup,
        pendingPayments: topup.pendingPayments.with(toPaymentKey(event.data.payment), event.data.units),
      };
    case 'PaymentLost':
      return { ...topup, pendingPayments: topup.pendingPayments.without(toPaymentKey(event.data.payment)) };
    case 'PaymentReceived':
      return addPayment(topup, event.data);
    case 'TopupCredited':
      return withPayment(topup, event.data.payment, (received) => ({ ...received, isCredited: true }));
    case 'PaymentReversed':
      return addReversal(topup, event.data);
    case 'PaymentFeeCharged': {
      const { payment, feeId, units } = event.data;
      return { ...topup, fees: topup.fees.with(toFeeKey(payment, feeId), units) };
    }
    default:
      return throwUnknownEvent(event);
  }
}

function addPayment(topup: TopupState, data: PaymentReceived['data']): TopupState {
  const key = toPaymentKey(data.payment);
  const payment: ReceivedPayment = {
    data,
    remainingUnits: BigInt(data.units),
    isCredited: false,
    lossCount: 0,
    lostUnits: 0n,
  };
  return { ...topup, pendingPayments: topup.pendingPayments.without(key), payments: topup.payments.with(key, payment) };
}

function addReversal(topup: TopupState, data: PaymentReversed['data']): TopupState {
  const { payment, reversalId } = data;
  const units = BigInt(data.units);
  const reversals = topup.reversals.with(reversalId, data);
  return withPayment({ ...topup, reversals }, payment, (received) => {
    const updated = { ...received, remainingUnits: received.remainingUnits + units };
    if (reversalId === toLossId(received)) return { ...updated, lostUnits: -units };
    if (reversalId === toRecoveryId(received)) return { ...updated, lostUnits: 0n, lossCount: received.lossCount + 1 };
    return updated;
  });
}

/** The id of the reversal of a payment that its network has rolled back. */
function toLossId({ data: { payment }, lossCount }: ReceivedPayment): string {
  return `${payment.id}:lost:${lossCount + 1}`;
}

/** The id of the reversal that restores a lost payment when it is final again. */
function toRecoveryId({ data: { payment }, lossCount }: ReceivedPayment): string {
  return `${payment.id}:found:${lossCount + 1}`;
}

function toFeeKey(payment: PaymentId, feeId: string): string {
  return `${toPaymentKey(payment)} ${feeId}`;
}

function withPayment(
  topup: TopupState,
  payment: PaymentId,
  change: (received: ReceivedPayment) => ReceivedPayment,
): TopupState {
  const key = toPaymentKey(payment);
  const existing = topup.payments.get(key);
  return existing ? { ...topup, payments: topup.payments.with(key, change(existing)) } : topup;
}

// commands ----------------------------------------------------------------------------------------------------------

export type TopupCommand =
  | { readonly type: 'IssueInvoice'; readonly data: InvoiceIssued['data'] }
  | { readonly type: 'RecordPayment'; readonly data: ReportedPayment }
  | { readonly type: 'MarkCredited'; readonly data: { readonly payment: PaymentId; readonly at: Instant } };

/** The current state of a payment, as its payment backend reports it. */
export interface ReportedPayment {
  readonly payment: PaymentId;
  readonly units: bigint;
  /**
   * The number of confirmations by the network. `pending`: the payment can still fail. `final`: the payment backend
   * guarantees it. `lost`: the network or the payment backend has dropped or reversed it.
   */
  readonly confirmations: number | 'pending' | 'final' | 'lost';
  /** When the payment backend first observed it. */
  readonly receivedAt: Instant;
  /** The current market value of the payment. Required for a payment that is credited at the market rate. */
  readonly market?: { readonly rate: RateUsed; readonly amount: PicoUsd };
  readonly fees?: readonly PaymentAdjustment[];
  readonly reversals?: readonly PaymentAdjustment[];
  readonly at: Instant;
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
 * new until it suffices.
 */
function recordPayment(
  payment: ReportedPayment,
  topup: TopupState,
  invoice: InvoiceIssued['data'],
): readonly TopupEvent[] {
  const { confirmations } = payment;
  const key = toPaymentKey(payment.payment);
  const existing = topup.payments.get(key);
  const isEnough = typeof confirmations === 'number' && confirmations >= invoice.confirmations;
  const isFinal = confirmations === 'final' || isEnough;
  if (existing) return listChanges(payment, existing, topup, isFinal);
  if (isFinal) {
    const first: TopupEvent = { type: 'PaymentReceived', data: toPaymentReceivedData(payment, invoice) };
    const after = evolve(topup, first);
    return [first, ...listChanges(payment, getReceivedPayment(payment.payment, after), after, true)];
  }
  const pendingUnits = topup.pendingPayments.get(key);
  if (confirmations === 'lost') {
    const { payment: id, at } = payment;
    return pendingUnits === undefined ? [] : [{ type: 'PaymentLost', data: { payment: id, at } }];
  }
  return pendingUnits === payment.units.toString()
    ? []
    : [createPaymentSeen(payment, confirmations === 'pending' ? 0 : confirmations)];
}

function createPaymentSeen({ payment, units, receivedAt, at }: ReportedPayment, confirmations: number): PaymentSeen {
  const data = { payment, units: units.toString(), confirmations, seenAt: receivedAt, at };
  return { type: 'PaymentSeen', data };
}

/** Values a payment in time at the rate of its invoice, and a late one at the market rate. */
function toPaymentReceivedData(
  { payment, units, market, receivedAt, at }: ReportedPayment,
  invoice: InvoiceIssued['data'],
): PaymentReceived['data'] {
  const { accountId, method, coin, expiresAt, rate, destination } = invoice;
  const usesMarketRate = isCreditedAtMarketRate({ expiresAt, kind: destination.kind }, { receivedAt, at });
  if (usesMarketRate && !market) throw new Error(`the late payment ${payment.id} cannot be valued without a rate`);
  const amount = usesMarketRate && market ? market.amount : calculateInvoicedValue(units, invoice);
  const bonus = ((amount * BigInt(invoice.bonusPercent)) / 100n) as PicoUsd;
  return {
    ...{ accountId, method, coin, payment, units: units.toString() },
    ...{ amount: money.toJsonAmount(amount), bonus: money.toJsonAmount(bonus) },
    rate: usesMarketRate && market ? market.rate : rate,
    ...(market && !usesMarketRate ? { market: { ...market, amount: money.toJsonAmount(market.amount) } } : {}),
    ...{ receivedAt, at },
  };
}

/**
 * Whether a payment is credited at the market rate, not at the rate of its invoice. This applies to payments after the
 * expiry, and to payments to an address that become final too long after it. The sender of the latter could wait for
 * the market and then decide, by the fee or by a replacement, whether the payment is confirmed.
 */
export function isCreditedAtMarketRate(
  { expiresAt, kind }: { readonly expiresAt: Instant; readonly kind: Destination['kind'] },
  { receivedAt, at }: Pick<ReportedPayment, 'receivedAt' | 'at'>,
): boolean {
  if (receivedAt > expiresAt) return true;
  return kind === 'address' && Date.parse(at) > Date.parse(expiresAt) + MAX_CONFIRMATION_DELAY_MS;
}

/** An exact payment has exactly the invoiced value; another amount has a proportional value. */
function calculateInvoicedValue(units: bigint, invoice: InvoiceIssued['data']): PicoUsd {
  return ((money.parseJsonAmount(invoice.usd) * units) / BigInt(invoice.units)) as PicoUsd;
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
  const events: TopupEvent[] = fees.flatMap((fee) => createFeeEvents(fee, received, topup, at));
  let current = topup;
  for (const change of [...reversals, ...listLossAdjustments(payment, received, isFinal)]) {
    const newEvents = createReversalEvents(change, getReceivedPayment(payment.payment, current), current, at);
    current = newEvents.reduce(evolve, current);
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
  const amount = calculateShare(data.market?.amount ?? data.amount, units, data.units).toString();
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
  // Rounded remainders are subtracted, so that the parts of a full reversal sum to exactly the total.
  const calculatePart = (total: string) =>
    (calculateShare(total, after, data.units) - calculateShare(total, remainingUnits, data.units)).toString();
  const { accountId, method, coin, payment: paymentId, amount, bonus, market } = data;
  const amounts = { units: units.toString(), amount: calculatePart(amount), bonus: calculatePart(bonus) };
  const atMarket = market ? { market: calculatePart(market.amount) } : {};
  const reversal = { accountId, method, reversalId: id, payment: paymentId, coin, ...amounts, ...atMarket, why, at };
  return [{ type: 'PaymentReversed', data: reversal }];
}

function calculateShare(total: string, part: bigint, denominatorUnits: string): bigint {
  return (BigInt(total) * part) / BigInt(denominatorUnits);
}

export const topupDecider: Decider<TopupCommand, TopupState, TopupEvent> = {
  getInitialState: () => ({
    invoice: undefined,
    pendingPayments: PersistentMap.empty(),
    payments: PersistentMap.empty(),
    reversals: PersistentMap.empty(),
    fees: PersistentMap.empty(),
  }),
  evolve,
  decide,
};
