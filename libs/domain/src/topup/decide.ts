/**
 * A top-up: a request for payment, and the payments that came for it. A payment is recorded once by its back end and
 * the id that it has there, credited to the account (which accepts a credit once by its id), and then marked as credited
 * here. Each step can be repeated.
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

/** How long after the expiry a payment on a chain may become final and still have the rate of its invoice. */
const MAX_CONFIRMATION_DELAY_MS = 2 * 3_600_000;

// state -------------------------------------------------------------------------------------------------------------

export interface TopupState {
  readonly invoice: InvoiceIssued['data'] | undefined;
  /** Payments that are not final yet, by `toPaymentKey`, and their units. */
  readonly pendingPayments: PersistentMap<string>;
  readonly payments: PersistentMap<ReceivedPayment>;
  /** By their ids. */
  readonly reversals: PersistentMap<PaymentReversed['data']>;
  /** By payment and their ids: the units of fees. */
  readonly fees: PersistentMap<string>;
}

/** A payment that is worth its amount. */
interface ReceivedPayment {
  readonly data: PaymentReceived['data'];
  /** The part that has not been reversed; below zero where more was taken back than was paid. */
  readonly remainingUnits: bigint;
  readonly isCredited: boolean;
  /** How often it was lost and found again, and what was taken back when it was lost last; 0 while it is not lost. */
  readonly lossCount: number;
  readonly lostUnits: bigint;
}

/** The name of a payment outside its top-up: the id of its credit. */
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

/** The reversal of a payment that its network has undone, and that of one that is there again after all. */
function toLossId({ data: { payment }, lossCount }: ReceivedPayment): string {
  return `${payment.id}:lost:${lossCount + 1}`;
}

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

/** A payment as its back end tells of it now. */
export interface ReportedPayment {
  readonly payment: PaymentId;
  readonly units: bigint;
  /** How often the network has confirmed it; that it may fail or not; that nothing can undo it any more; or that it was undone. */
  readonly confirmations: number | 'pending' | 'final' | 'lost';
  /** When the back end saw it first. */
  readonly receivedAt: Instant;
  /** What it is worth now. A payment that came after the invoice expired is credited at that, and cannot do without. */
  readonly market?: { readonly rate: RateUsed; readonly amount: PicoUsd };
  readonly fees?: readonly PaymentAdjustment[];
  readonly reversals?: readonly PaymentAdjustment[];
  readonly at: Instant;
}

/** What became of a payment later, once by its id: units are signed. */
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
    return isSameInvoice ? [] : reject('topup_exists', 'The top-up has an invoice');
  }
  if (!topup.invoice) return reject('topup_not_found', 'There is no such top-up');
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

/** What is new in what the back end says now. */
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

/** In time it is worth what was asked for, whatever the market says by then; late it is worth what the market says. */
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
 * Whether a payment is worth what the market says, and not what was asked for: it came after the expiry, or it was left
 * unconfirmed for so long behind it that whoever sent it could choose, by its fee or by replacing it, whether it comes.
 */
export function isCreditedAtMarketRate(
  { expiresAt, kind }: { readonly expiresAt: Instant; readonly kind: Destination['kind'] },
  { receivedAt, at }: Pick<ReportedPayment, 'receivedAt' | 'at'>,
): boolean {
  if (receivedAt > expiresAt) return true;
  return kind === 'address' && Date.parse(at) > Date.parse(expiresAt) + MAX_CONFIRMATION_DELAY_MS;
}

/** An exact payment is worth exactly the requested amount; more or less is worth its share of that. */
function calculateInvoicedValue(units: bigint, invoice: InvoiceIssued['data']): PicoUsd {
  return ((money.parseJsonAmount(invoice.usd) * units) / BigInt(invoice.units)) as PicoUsd;
}

/** What has become of a payment since it was received. */
function listChanges(
  payment: ReportedPayment,
  received: ReceivedPayment,
  topup: TopupState,
  isFinal: boolean,
): readonly TopupEvent[] {
  const { fees = [], reversals = [], units, confirmations, at } = payment;
  // Of a payment that is lost there may be nothing left to tell how much it was.
  if (received.data.units !== units.toString() && confirmations !== 'lost')
    reject('payment_conflict', `Payment ${toPaymentKey(payment.payment)} came with another amount`);
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
    return [{ id: toLossId(received), units: -remainingUnits, why: 'undone by its network' }];
  return isFinal && lostUnits > 0n
    ? [{ id: toRecoveryId(received), units: lostUnits, why: 'confirmed after all' }]
    : [];
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
  if (existingUnits !== undefined) reject('payment_conflict', `Fee ${feeId} came with another amount`);
  const amount = calculateShare(data.market?.amount ?? data.amount, units, data.units).toString();
  const fee: PaymentFeeCharged['data'] = { method, coin, payment, feeId, units: units.toString(), amount, why, at };
  return [{ type: 'PaymentFeeCharged', data: fee }];
}

/** Negative units: what is taken back. Positive: what comes again, such as after a dispute that was won. */
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
    return reject('payment_conflict', `Reversal ${id} came with another amount`);
  }
  const after = remainingUnits + units;
  // A payment can be refunded and disputed as well: then the customer owes it once more.
  if (after < -BigInt(data.units) || after > BigInt(data.units)) {
    return reject('payment_conflict', `Reversal ${id} is of more than payment ${toPaymentKey(data.payment)} was`);
  }
  // Each part is what is left after it less what was left before it, so that parts sum to exactly the whole.
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
