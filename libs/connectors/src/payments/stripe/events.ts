/** Finds the subject of Stripe events. No other content of an event is trusted. */
import type { Stripe } from 'stripe';

/** The types of events after which a session, its payment or its fee may have changed. */
export const EVENT_TYPES: readonly string[] = [
  'checkout.session.completed',
  'checkout.session.async_payment_succeeded',
  'checkout.session.async_payment_failed',
  'checkout.session.expired',
  'charge.updated', // the fee has become known
  'charge.refunded',
  'charge.refund.updated',
  'refund.created',
  'refund.updated',
  'refund.failed',
  'charge.dispute.created',
  'charge.dispute.updated',
  'charge.dispute.closed',
  'charge.dispute.funds_withdrawn',
  'charge.dispute.funds_reinstated',
];

/** The id of a session, or of its payment intent. Empty for other events. */
export interface StripeEventSubject {
  readonly session?: string;
  readonly intent?: string;
}

export function parseStripeEvent({ type, data }: Stripe.Event): StripeEventSubject {
  const object: Readonly<Record<string, unknown>> = { ...data?.object };
  if (!EVENT_TYPES.includes(type)) return {};
  if (type.startsWith('checkout.session.')) return typeof object.id === 'string' ? { session: object.id } : {};
  return typeof object.payment_intent === 'string' ? { intent: object.payment_intent } : {};
}
