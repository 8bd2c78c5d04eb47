/**
 * What Stripe says of a session: what was paid, what Stripe kept, what was taken back. Amounts are in cents. What was paid
 * otherwise than was asked for (a discount, a tax, another currency) is refused: somebody changed the account's settings
 * or the session, and a person must look.
 */
import type { Stripe } from 'stripe';
import type { BackendPayment } from '#application';
import type { PaymentAdjustment } from '#domain';

const CURRENCY = 'usd';

/** An answer that cannot be true. The message goes on: what Stripe answered … */
export class ImplausibleStripeResponseError extends Error {}

/** What a session was made with. */
export interface RequestedSession {
  readonly topupId: string;
  readonly units: bigint;
}

/** A session that is paid. */
export interface PaidSession {
  /** The payment intent. */
  readonly intent: string;
  readonly hasRefunds: boolean;
  readonly isDisputed: boolean;
  withChanges(refunds: readonly Stripe.Refund[], disputes: readonly Stripe.Dispute[]): BackendPayment;
}

/** @throws ImplausibleStripeResponseError unless the session is for exactly what was asked for */
export function assertSessionMatches(session: Stripe.Checkout.Session, { topupId, units }: RequestedSession): void {
  const { client_reference_id, metadata, mode } = session;
  requireExactAmount(session);
  const isForTopup = client_reference_id === topupId && metadata?.topup === topupId && mode === 'payment';
  if (!isForTopup || metadata?.cents !== units.toString())
    throw new ImplausibleStripeResponseError('is a session for something else than was asked');
}

/** The customer has done what there is to do, and the money has not come: it takes days with some ways to pay. */
export function isProcessing({ status, payment_status, payment_intent }: Stripe.Checkout.Session): boolean {
  const intent = getExpanded(payment_intent);
  return status === 'complete' && payment_status === 'unpaid' && intent?.status === 'processing';
}

/**
 * @returns undefined while it is not paid
 * @throws ImplausibleStripeResponseError when it was paid otherwise than was asked for
 */
export function parseSessionPayment(session: Stripe.Checkout.Session, reference: string): PaidSession | undefined {
  if (session.id !== reference) throw new ImplausibleStripeResponseError('is another session than was asked for');
  if (session.payment_status === 'unpaid') return undefined;
  const intent = getExpanded(session.payment_intent);
  const charge = getExpanded(intent?.latest_charge);
  if (charge?.refunded && !isExact(session)) return undefined; // a person has looked, and given it back
  const cents = requireExactAmount(session);
  const isPaidInFull =
    session.payment_status === 'paid' &&
    intent?.amount_received === cents &&
    charge?.amount_captured === cents &&
    charge.currency === CURRENCY &&
    charge.paid;
  if (!isPaidInFull)
    throw new ImplausibleStripeResponseError(`says of ${reference} that it is paid, and not with what was asked for`);
  const payment: BackendPayment = {
    ...{ reference, id: reference, units: BigInt(cents), confirmations: 'final' },
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
      // Lists are newest first, and a time is in whole seconds.
      const dated = [
        ...refunds.toReversed().map(toRefundChanges),
        ...disputes.toReversed().map(toDisputeChanges),
      ].flat();
      const reversals = dated.toSorted(compareByTime);
      return { ...payment, fees, reversals: reversals.map(({ change }) => change) };
    },
  };
}

/** @returns what is to be paid for the session, which nothing was added to and nothing taken from @throws ImplausibleStripeResponseError */
function requireExactAmount(session: Stripe.Checkout.Session): number {
  const { amount_total, currency, id } = session;
  if (amount_total !== null && isExact(session)) return amount_total;
  throw new ImplausibleStripeResponseError(
    `says of ${id} that it is for ${amount_total} ${currency}, which nobody asked for`,
  );
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

/** What a person refunds may fail later: then the customer has the credit again. */
function toRefundChanges({ id, amount, status, currency, created: at }: Stripe.Refund): readonly DatedChange[] {
  if (status === 'requires_action') return []; // nothing has moved
  if (currency !== CURRENCY) throw new ImplausibleStripeResponseError(`says of ${id} that it is in another currency`);
  const reversal: DatedChange = { at, change: { id, units: BigInt(-amount), why: 'refunded' } };
  if (status !== 'failed' && status !== 'canceled') return [reversal];
  return [reversal, { at, change: { id: `${id}:${status}`, units: BigInt(amount), why: `refund ${status}` } }];
}

/** Money moves when a dispute begins, and again when it is won; while it is only an inquiry, none does. */
function toDisputeChanges({ id, balance_transactions, currency, amount }: Stripe.Dispute): readonly DatedChange[] {
  if (currency !== CURRENCY) throw new ImplausibleStripeResponseError(`says of ${id} that it is in another currency`);
  return balance_transactions
    .filter((transaction) => transaction.amount !== 0)
    .map((transaction) => {
      const signedAmount = transaction.amount < 0 ? -amount : amount;
      const units = BigInt(transaction.currency === CURRENCY ? transaction.amount : signedAmount);
      const reason = units < 0n ? 'disputed' : 'dispute won';
      return { at: transaction.created, change: { id: transaction.id, units, why: reason } };
    });
}

/** In an account that is kept in another currency, at the rate that Stripe booked it with; a part of a cent is one. */
function toFees({ id, fee, currency, exchange_rate, type }: Stripe.BalanceTransaction): readonly PaymentAdjustment[] {
  const cents = currency === CURRENCY ? fee : exchange_rate ? Math.ceil(fee / exchange_rate) : 0;
  return cents === 0 ? [] : [{ id, units: BigInt(cents), why: `Stripe, ${type ?? 'fee'}` }];
}

function getExpanded<T extends object>(value: string | T | null | undefined): T | undefined {
  return typeof value === 'object' && value !== null ? value : undefined;
}
