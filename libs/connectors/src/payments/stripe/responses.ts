/**
 * Parses Stripe's sessions: payments, fees, refunds and disputes. Amounts are in cents. A session that was paid with
 * other terms than requested (a discount, a tax, another currency) is rejected unless it was refunded completely. The
 * operator must check a rejected session: someone has changed it or the settings of the Stripe account.
 */
import type { Stripe } from 'stripe';
import type { BackendPayment } from '#application';
import type { PaymentAdjustment } from '#domain';

const CURRENCY = 'usd';

/** An implausible response. The message continues "Stripe's response …". */
export class ImplausibleStripeResponseError extends Error {}

export interface RequestedSession {
  readonly topupId: string;
  readonly units: bigint;
}

export interface PaidSession {
  /** Id of the payment intent. */
  readonly intent: string;
  readonly hasRefunds: boolean;
  readonly isDisputed: boolean;
  withChanges(refunds: readonly Stripe.Refund[], disputes: readonly Stripe.Dispute[]): BackendPayment;
}

/** @throws ImplausibleStripeResponseError unless the session has exactly the requested terms */
export function assertSessionMatches(session: Stripe.Checkout.Session, { topupId, units }: RequestedSession): void {
  const { client_reference_id, metadata, mode } = session;
  requireExactAmount(session);
  const isForTopup = client_reference_id === topupId && metadata?.topup === topupId && mode === 'payment';
  if (!isForTopup || metadata?.cents !== units.toString())
    throw new ImplausibleStripeResponseError('is a session with other terms than requested');
}

/**
 * Whether the customer has finished but the money has not arrived. The money takes days to arrive with some payment
 * methods.
 */
export function isProcessing({ status, payment_status, payment_intent }: Stripe.Checkout.Session): boolean {
  const intent = getExpanded(payment_intent);
  return status === 'complete' && payment_status === 'unpaid' && intent?.status === 'processing';
}

/**
 * @returns undefined while the session is not paid, and if its payment with other terms was refunded completely
 * @throws ImplausibleStripeResponseError if it was paid with other terms than requested, or is another session
 */
export function parseSessionPayment(session: Stripe.Checkout.Session, reference: string): PaidSession | undefined {
  if (session.id !== reference) throw new ImplausibleStripeResponseError('is a different session than requested');
  if (session.payment_status === 'unpaid') return undefined;
  const intent = getExpanded(session.payment_intent);
  const charge = getExpanded(intent?.latest_charge);
  if (charge?.refunded && !isExact(session)) return undefined; // an operator has checked and refunded it
  const cents = requireExactAmount(session);
  const isPaidInFull =
    session.payment_status === 'paid' &&
    intent?.amount_received === cents &&
    charge?.amount_captured === cents &&
    charge.currency === CURRENCY &&
    charge.paid;
  if (!isPaidInFull)
    throw new ImplausibleStripeResponseError(`reports ${reference} as paid, but not with the requested amount`);
  const payment: BackendPayment = {
    reference,
    id: reference,
    sourceId: intent.id,
    units: BigInt(cents),
    confirmations: 'final',
    receivedAt: new Date(charge.created * 1000).toISOString(),
  };
  return {
    intent: intent.id,
    hasRefunds: (charge.refunds?.data.length ?? 0) > 0,
    isDisputed: charge.disputed,
    withChanges: (refunds, disputes) => {
      const booked = [
        getExpanded(charge.balance_transaction),
        ...refunds.map((refund) => getExpanded(refund.balance_transaction)),
        ...disputes.flatMap((dispute) => dispute.balance_transactions),
      ];
      const fees = booked.flatMap((transaction) => (transaction ? toFees(transaction) : []));
      // Lists are newest first. Times are in seconds, so the order of equal times must come from the reversed lists.
      const dated = [
        ...refunds.toReversed().map(toRefundChanges),
        ...disputes.toReversed().map(toDisputeChanges),
      ].flat();
      const reversals = dated.toSorted(compareByTime);
      return { ...payment, fees, reversals: reversals.map(({ change }) => change) };
    },
  };
}

/** Returns the total in cents. @throws ImplausibleStripeResponseError if it is not exactly the requested amount */
function requireExactAmount(session: Stripe.Checkout.Session): number {
  const { amount_total, currency, id } = session;
  if (amount_total !== null && isExact(session)) return amount_total;
  throw new ImplausibleStripeResponseError(`reports ${id} with ${amount_total} ${currency}, which was not requested`);
}

function isExact(session: Stripe.Checkout.Session): boolean {
  const { amount_total, amount_subtotal, currency, currency_conversion, metadata } = session;
  const isSame = amount_total === amount_subtotal && metadata?.cents === String(amount_total);
  return isSame && currency === CURRENCY && !currency_conversion;
}

interface DatedChange {
  readonly at: number;
  readonly change: PaymentAdjustment;
}

const compareByTime = (one: DatedChange, other: DatedChange) => one.at - other.at;

/** A refund can fail or be cancelled later: then the reversed credit is restored. */
function toRefundChanges({ id, amount, status, currency, created: at }: Stripe.Refund): readonly DatedChange[] {
  if (status === 'requires_action') return []; // no money has moved
  if (currency !== CURRENCY) throw new ImplausibleStripeResponseError(`reports ${id} in another currency`);
  const reversal: DatedChange = { at, change: { id, units: BigInt(-amount), why: 'refunded' } };
  if (status !== 'failed' && status !== 'canceled') return [reversal];
  return [reversal, { at, change: { id: `${id}:${status}`, units: BigInt(amount), why: `refund ${status}` } }];
}

/** Money moves when a dispute starts and when it is won. An inquiry moves no money. */
function toDisputeChanges({ id, balance_transactions, currency, amount }: Stripe.Dispute): readonly DatedChange[] {
  if (currency !== CURRENCY) throw new ImplausibleStripeResponseError(`reports ${id} in another currency`);
  return balance_transactions
    .filter((transaction) => transaction.amount !== 0)
    .map((transaction) => {
      const signedAmount = transaction.amount < 0 ? -amount : amount;
      const units = BigInt(transaction.currency === CURRENCY ? transaction.amount : signedAmount);
      const reason = units < 0n ? 'disputed' : 'dispute won';
      return { at: transaction.created, change: { id: transaction.id, units, why: reason } };
    });
}

/**
 * Fees in another currency are converted at the exchange rate of the transaction and rounded up to a cent; without a
 * rate they are ignored.
 */
function toFees({ id, fee, currency, exchange_rate, type }: Stripe.BalanceTransaction): readonly PaymentAdjustment[] {
  const cents = currency === CURRENCY ? fee : exchange_rate ? Math.ceil(fee / exchange_rate) : 0;
  return cents === 0 ? [] : [{ id, units: BigInt(cents), why: `Stripe, ${type ?? 'fee'}` }];
}

function getExpanded<T extends object>(value: string | T | null | undefined): T | undefined {
  return typeof value === 'object' && value !== null ? value : undefined;
}
