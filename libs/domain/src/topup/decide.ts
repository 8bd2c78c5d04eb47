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
const CONFIRMED_WITHIN_MS = 2 * 3_600_000;

// state -------------------------------------------------------------------------------------------------------------

export interface TopupState {
  readonly invoice: InvoiceIssued['data'] | undefined;
  /** Payments that are not final yet, by `toPaymentKey`, and their units. */
  readonly seen: PersistentMap<string>;
  readonly payments: PersistentMap<Received>;
  /** By their ids. */
  readonly reversals: PersistentMap<PaymentReversed['data']>;
  /** By payment and their ids: the units of fees. */
  readonly fees: PersistentMap<string>;
}

/** A payment that is worth its amount. */
interface Received {
  readonly data: PaymentReceived['data'];
  /** The part that has not been reversed; below zero where more was taken back than was paid. */
  readonly unitsLeft: bigint;
  readonly credited: boolean;
  /** How often it was lost and found again, and what was taken back when it was lost last; 0 while it is not lost. */
  readonly losses: number;
  readonly unitsLost: bigint;
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
      return { ...topup, seen: topup.seen.with(toPaymentKey(event.data.payment), event.data.units) };
    case 'PaymentLost':
      return { ...topup, seen: topup.seen.without(toPaymentKey(event.data.payment)) };
    case 'PaymentReceived':
      return received(topup, event.data);
    case 'TopupCredited':
      return withPayment(topup, event.data.payment, (received) => ({ ...received, credited: true }));
    case 'PaymentReversed':
      return reversed(topup, event.data);
    case 'PaymentFeeCharged': {
      const { payment, feeId, units } = event.data;
      return { ...topup, fees: topup.fees.with(feeKey(payment, feeId), units) };
    }
    default:
      return throwUnknownEvent(event);
  }
}

function received(topup: TopupState, data: PaymentReceived['data']): TopupState {
  const key = toPaymentKey(data.payment);
  const payment: Received = { data, unitsLeft: BigInt(data.units), credited: false, losses: 0, unitsLost: 0n };
  return { ...topup, seen: topup.seen.without(key), payments: topup.payments.with(key, payment) };
}

function reversed(topup: TopupState, data: PaymentReversed['data']): TopupState {
  const { payment, reversalId } = data;
  const units = BigInt(data.units);
  const reversals = topup.reversals.with(reversalId, data);
  return withPayment({ ...topup, reversals }, payment, (known) => {
    const left = { ...known, unitsLeft: known.unitsLeft + units };
    if (reversalId === lossId(known)) return { ...left, unitsLost: -units };
    if (reversalId === findId(known)) return { ...left, unitsLost: 0n, losses: known.losses + 1 };
    return left;
  });
}

/** The reversal of a payment that its network has undone, and that of one that is there again after all. */
function lossId({ data: { payment }, losses }: Received): string {
  return `${payment.id}:lost:${losses + 1}`;
}

function findId({ data: { payment }, losses }: Received): string {
  return `${payment.id}:found:${losses + 1}`;
}

function feeKey(payment: PaymentId, feeId: string): string {
  return `${toPaymentKey(payment)} ${feeId}`;
}

function withPayment(topup: TopupState, payment: PaymentId, change: (received: Received) => Received): TopupState {
  const key = toPaymentKey(payment);
  const known = topup.payments.get(key);
  return known ? { ...topup, payments: topup.payments.with(key, change(known)) } : topup;
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
    const same = topup.invoice.backend === backend && topup.invoice.reference === reference;
    return same ? [] : reject('topup_exists', 'The top-up has an invoice');
  }
  if (!topup.invoice) return reject('topup_not_found', 'There is no such top-up');
  switch (command.type) {
    case 'RecordPayment':
      return recordPayment(command.data, topup, topup.invoice);
    case 'MarkCredited':
      return found(command.data.payment, topup).credited ? [] : [{ type: 'TopupCredited', data: command.data }];
    default:
      return command satisfies never;
  }
}

function found(payment: PaymentId, topup: TopupState): Received {
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
  const known = topup.payments.get(key);
  const isEnough = typeof confirmations === 'number' && confirmations >= invoice.confirmations;
  const final = confirmations === 'final' || isEnough;
  if (known) return changesOf(payment, known, topup, final);
  if (final) {
    const first: TopupEvent = { type: 'PaymentReceived', data: paymentReceived(payment, invoice) };
    const after = evolve(topup, first);
    return [first, ...changesOf(payment, found(payment.payment, after), after, true)];
  }
  const seen = topup.seen.get(key);
  if (confirmations === 'lost') {
    const { payment: id, at } = payment;
    return seen === undefined ? [] : [{ type: 'PaymentLost', data: { payment: id, at } }];
  }
  return seen === payment.units.toString()
    ? []
    : [paymentSeen(payment, confirmations === 'pending' ? 0 : confirmations)];
}

function paymentSeen({ payment, units, receivedAt, at }: ReportedPayment, confirmations: number): PaymentSeen {
  const data = { payment, units: units.toString(), confirmations, seenAt: receivedAt, at };
  return { type: 'PaymentSeen', data };
}

/** In time it is worth what was asked for, whatever the market says by then; late it is worth what the market says. */
function paymentReceived(
  { payment, units, market, receivedAt, at }: ReportedPayment,
  invoice: InvoiceIssued['data'],
): PaymentReceived['data'] {
  const { accountId, method, coin, expiresAt, rate, destination } = invoice;
  const late = isCreditedAtMarketRate({ expiresAt, kind: destination.kind }, { receivedAt, at });
  if (late && !market) throw new Error(`the late payment ${payment.id} cannot be valued without a rate`);
  const amount = late && market ? market.amount : worthAsInvoiced(units, invoice);
  const bonus = ((amount * BigInt(invoice.bonusPercent)) / 100n) as PicoUsd;
  return {
    ...{ accountId, method, coin, payment, units: units.toString() },
    ...{ amount: money.toJsonAmount(amount), bonus: money.toJsonAmount(bonus) },
    rate: late && market ? market.rate : rate,
    ...(market && !late ? { market: { ...market, amount: money.toJsonAmount(market.amount) } } : {}),
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
  return kind === 'address' && Date.parse(at) > Date.parse(expiresAt) + CONFIRMED_WITHIN_MS;
}

/** An exact payment is worth exactly the requested amount; more or less is worth its share of that. */
function worthAsInvoiced(units: bigint, invoice: InvoiceIssued['data']): PicoUsd {
  return ((money.parseJsonAmount(invoice.usd) * units) / BigInt(invoice.units)) as PicoUsd;
}

/** What has become of a payment since it was received. */
function changesOf(
  payment: ReportedPayment,
  known: Received,
  topup: TopupState,
  final: boolean,
): readonly TopupEvent[] {
  const { fees = [], reversals = [], units, confirmations, at } = payment;
  // Of a payment that is lost there may be nothing left to tell how much it was.
  if (known.data.units !== units.toString() && confirmations !== 'lost')
    reject('payment_conflict', `Payment ${toPaymentKey(payment.payment)} came with another amount`);
  const events: TopupEvent[] = fees.flatMap((fee) => feeCharged(fee, known, topup, at));
  let now = topup;
  for (const change of [...reversals, ...lossOrFind(payment, known, final)]) {
    const next = reversedBy(change, found(payment.payment, now), now, at);
    now = next.reduce(evolve, now);
    events.push(...next);
  }
  return events;
}

function lossOrFind({ confirmations }: ReportedPayment, known: Received, final: boolean): readonly PaymentAdjustment[] {
  const { unitsLeft, unitsLost } = known;
  if (confirmations === 'lost' && unitsLost === 0n && unitsLeft > 0n)
    return [{ id: lossId(known), units: -unitsLeft, why: 'undone by its network' }];
  return final && unitsLost > 0n ? [{ id: findId(known), units: unitsLost, why: 'confirmed after all' }] : [];
}

function feeCharged(
  { id: feeId, units, why }: PaymentAdjustment,
  { data }: Received,
  topup: TopupState,
  at: Instant,
): TopupEvent[] {
  const { payment, method, coin } = data;
  const known = topup.fees.get(feeKey(payment, feeId));
  if (known === units.toString() || (known === undefined && units === 0n)) return [];
  if (known !== undefined) reject('payment_conflict', `Fee ${feeId} came with another amount`);
  const amount = share(data.market?.amount ?? data.amount, units, data.units).toString();
  const fee: PaymentFeeCharged['data'] = { method, coin, payment, feeId, units: units.toString(), amount, why, at };
  return [{ type: 'PaymentFeeCharged', data: fee }];
}

/** Negative units: what is taken back. Positive: what comes again, such as after a dispute that was won. */
function reversedBy(
  { id, units, why }: PaymentAdjustment,
  payment: Received,
  topup: TopupState,
  at: Instant,
): readonly TopupEvent[] {
  const { data, unitsLeft } = payment;
  const known = topup.reversals.get(id);
  if (known !== undefined) {
    if (known.units === units.toString()) return [];
    return reject('payment_conflict', `Reversal ${id} came with another amount`);
  }
  const after = unitsLeft + units;
  // A payment can be refunded and disputed as well: then the customer owes it once more.
  if (after < -BigInt(data.units) || after > BigInt(data.units)) {
    return reject('payment_conflict', `Reversal ${id} is of more than payment ${toPaymentKey(data.payment)} was`);
  }
  // Each part is what is left after it less what was left before it, so that parts sum to exactly the whole.
  const moved = (whole: string) => (share(whole, after, data.units) - share(whole, unitsLeft, data.units)).toString();
  const { accountId, method, coin, payment: paymentId, amount, bonus, market } = data;
  const amounts = { units: units.toString(), amount: moved(amount), bonus: moved(bonus) };
  const atMarket = market ? { market: moved(market.amount) } : {};
  const reversal = { accountId, method, reversalId: id, payment: paymentId, coin, ...amounts, ...atMarket, why, at };
  return [{ type: 'PaymentReversed', data: reversal }];
}

function share(whole: string, part: bigint, of: string): bigint {
  return (BigInt(whole) * part) / BigInt(of);
}

export const topupDecider: Decider<TopupCommand, TopupState, TopupEvent> = {
  getInitialState: () => ({
    invoice: undefined,
    seen: PersistentMap.empty(),
    payments: PersistentMap.empty(),
    reversals: PersistentMap.empty(),
    fees: PersistentMap.empty(),
  }),
  evolve,
  decide,
};
