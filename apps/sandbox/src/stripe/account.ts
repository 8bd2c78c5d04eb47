/**
 * A Stripe account: Checkout Sessions, the payments behind them, and what becomes of these. Objects are kept as its API
 * prints them, with others by their ids. Facts: the API reference (Checkout Sessions, Charges, Refunds, Disputes, Balance
 * Transactions, Events) and its guides on fulfilment and disputes. In card payments of the USA 2.9 % and 30 cents are kept,
 * and 15 dollars for a dispute.
 */
import { randomBytes } from 'node:crypto';
import { Refusal } from '../router.ts';
import { countIn, invalid, listIn, missing, type Params, partIn, textIn } from './form.ts';

const MIN_EXPIRY_SECONDS = 30 * 60;
const MAX_EXPIRY_SECONDS = 24 * 3600;
const DISPUTE_FEE = 1_500;
/** Of an account that is not settled in the currency of the charge. */
const EXCHANGE_RATE = 0.9;

// biome-ignore lint/suspicious/noExplicitAny: objects of Stripe's API, printed and never relied on
export type StripeObject = { id: string; object: string; created: number; [field: string]: any };

/** How an act differs from the usual. */
export interface Options {
  /** Cents. */
  readonly amount?: number;
  /** Another total than what was asked for, as after a discount or a tax. */
  readonly total?: number;
  /** The account's own currency, where that is another. */
  readonly settledIn?: string;
  readonly refund?: string;
  /** What Stripe keeps is known a while after the payment, as it is where it captures asynchronously. */
  readonly feeLater?: boolean;
}

type Act = (session: StripeObject, options: Options) => readonly StripeObject[];

export class FakeStripeAccount {
  private readonly objects = new Map<string, StripeObject>();

  constructor(private readonly now: () => number = Date.now) {}

  find(id: string): StripeObject | undefined {
    return this.objects.get(id);
  }

  session(id: string): StripeObject {
    const found = this.objects.get(id);
    if (found?.object !== 'checkout.session') throw missing('checkout.session', id);
    return found;
  }

  /** Newest first, as every list. */
  all(object: string): readonly StripeObject[] {
    return [...this.objects.values()].filter((each) => each.object === object).reverse();
  }

  /** @param pages where the hosted pages are */
  createSession(params: Params, pages: string): StripeObject {
    const { amount, currency } = priceIn(params);
    const created = this.seconds();
    const expires_at = params.expires_at === undefined ? created + MAX_EXPIRY_SECONDS : countIn(params, 'expires_at');
    if (expires_at < created + MIN_EXPIRY_SECONDS || expires_at > created + MAX_EXPIRY_SECONDS)
      throw invalid('The `expires_at` timestamp must be 30 minutes to 24 hours from now.', 'expires_at');
    if (textIn(params, 'mode') !== 'payment') throw invalid('the sandbox takes payments only', 'mode');
    for (const name of ['success_url', 'cancel_url'])
      if (!URL.canParse(textIn(params, name) ?? '')) throw invalid('Not a valid URL', name);
    const id = newId('cs_test');
    return this.keep({
      ...{ id, object: 'checkout.session', created, livemode: false, mode: 'payment' },
      ...{ status: 'open', payment_status: 'unpaid', payment_intent: null, url: `${pages}/${id}`, expires_at },
      ...{ amount_subtotal: amount, amount_total: amount, currency, currency_conversion: null },
      total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
      adaptive_pricing: { enabled: textIn(partIn(params, 'adaptive_pricing'), 'enabled') === 'true' },
      allow_promotion_codes: textIn(params, 'allow_promotion_codes') === 'true',
      client_reference_id: textIn(params, 'client_reference_id') ?? null,
      metadata: { ...partIn(params, 'metadata') },
      intent_metadata: { ...partIn(partIn(params, 'payment_intent_data'), 'metadata') },
      allowed_payment_method_types: listIn(params.allowed_payment_method_types),
      success_url: textIn(params, 'success_url'),
      cancel_url: textIn(params, 'cancel_url'),
    });
  }

  /** Does something to a session or its payment. @returns the events that report it */
  act(sessionId: string, name: string, options: Options): readonly StripeObject[] {
    const act = Object.hasOwn(this.acts, name) ? this.acts[name] : undefined;
    if (!act) throw failure(`"do" must be one of ${Object.keys(this.acts).join(', ')}`);
    return act(this.session(sessionId), options);
  }

  private readonly acts: Readonly<Record<string, Act>> = {
    pay: (session, options) => {
      this.confirm(session, options);
      this.collect(session, options);
      return [this.event('charge.succeeded', this.chargeOf(session)), this.completed(session)];
    },
    pay_later: (session, options) => {
      this.confirm(session, options);
      return [this.completed(session)];
    },
    succeed: (session, options) => {
      this.collect(session, options);
      return [this.event('checkout.session.async_payment_succeeded', session)];
    },
    fail: (session) => {
      Object.assign(this.intentOf(session), { status: 'requires_payment_method' });
      return [this.event('checkout.session.async_payment_failed', session)];
    },
    expire: (session) => {
      if (session.status !== 'open') throw failure('that session is not open');
      Object.assign(session, { status: 'expired', url: null });
      return [this.event('checkout.session.expired', session)];
    },
    book: (session) => [this.event('charge.updated', this.book(this.chargeOf(session)))],
    refund: (session, { amount }) => this.refund(session, amount),
    fail_refund: (session, { refund = '' }) => this.failRefund(session, refund),
    dispute: (session, { amount }) => this.dispute(session, amount),
    win: (session) => this.close(session, 'won'),
    lose: (session) => this.close(session, 'lost'),
  };

  private confirm(session: StripeObject, { total = session.amount_subtotal }: Options): void {
    if (session.status !== 'open' || session.expires_at <= this.seconds()) throw failure('that session is not open');
    const intent = this.add('pi', 'payment_intent', {
      ...{ amount: total, amount_received: 0, currency: session.currency, status: 'processing', latest_charge: null },
      metadata: session.intent_metadata,
    });
    Object.assign(session, { status: 'complete', url: null, amount_total: total, payment_intent: intent.id });
    session.total_details.amount_discount = Math.max(0, session.amount_subtotal - total);
    session.total_details.amount_tax = Math.max(0, total - session.amount_subtotal);
  }

  private collect(session: StripeObject, { settledIn = 'usd', feeLater = false }: Options): void {
    const intent = this.intentOf(session);
    if (session.payment_status === 'paid') throw failure('that session is paid');
    const { amount, currency } = intent;
    const charge = this.add('ch', 'charge', {
      ...{ amount, amount_captured: amount, amount_refunded: 0, currency, captured: true, paid: true },
      ...{ status: 'succeeded', disputed: false, refunded: false, balance_transaction: null, settled_in: settledIn },
      ...{ payment_intent: intent.id, metadata: intent.metadata },
    });
    if (!feeLater) this.book(charge);
    Object.assign(intent, { status: 'succeeded', amount_received: amount, latest_charge: charge.id });
    session.payment_status = 'paid';
  }

  private book(charge: StripeObject): StripeObject {
    charge.balance_transaction ??= this.booked(charge, charge.amount, Math.round(charge.amount * 0.029) + 30).id;
    return charge;
  }

  private refund(session: StripeObject, part?: number): readonly StripeObject[] {
    const charge = this.chargeOf(session);
    const left = charge.amount - charge.amount_refunded;
    const amount = part ?? left;
    if (amount > left || amount <= 0) throw failure(`a refund can be of at most ${left}`);
    const refund = this.add('re', 'refund', {
      ...{ amount, currency: charge.currency, status: 'succeeded', reason: null, charge: charge.id },
      ...{ payment_intent: charge.payment_intent, balance_transaction: this.booked(charge, -amount, 0).id },
    });
    charge.amount_refunded += amount;
    charge.refunded = charge.amount_refunded === charge.amount;
    return [this.event('refund.created', refund), this.event('charge.refunded', charge)];
  }

  private failRefund(session: StripeObject, id: string): readonly StripeObject[] {
    const charge = this.chargeOf(session);
    const refund = this.objects.get(id);
    if (refund?.charge !== charge.id || refund.status !== 'succeeded') throw failure('there is no such refund');
    const failure_balance_transaction = this.booked(charge, refund.amount, 0).id;
    Object.assign(refund, {
      status: 'failed',
      failure_reason: 'expired_or_canceled_card',
      failure_balance_transaction,
    });
    charge.amount_refunded -= refund.amount;
    charge.refunded = false;
    return [this.event('charge.refund.updated', refund), this.event('refund.failed', refund)];
  }

  private dispute(session: StripeObject, part?: number): readonly StripeObject[] {
    const charge = this.chargeOf(session);
    const amount = part ?? charge.amount;
    const dispute = this.add('du', 'dispute', {
      ...{ amount, currency: charge.currency, status: 'needs_response', reason: 'fraudulent', charge: charge.id },
      ...{ payment_intent: charge.payment_intent, balance_transactions: [this.booked(charge, -amount, DISPUTE_FEE)] },
    });
    charge.disputed = true;
    return ['charge.dispute.created', 'charge.dispute.funds_withdrawn'].map((type) => this.event(type, dispute));
  }

  private close(session: StripeObject, status: 'won' | 'lost'): readonly StripeObject[] {
    const charge = this.chargeOf(session);
    const dispute = this.all('dispute').find((each) => each.charge === charge.id && each.status === 'needs_response');
    if (!dispute) throw failure('there is no open dispute');
    dispute.status = status;
    const types = ['charge.dispute.closed'];
    if (status === 'won') {
      dispute.balance_transactions.push(this.booked(charge, dispute.amount, 0));
      types.unshift('charge.dispute.funds_reinstated');
    }
    return types.map((type) => this.event(type, dispute));
  }

  /** What a movement is in the account's own balance. */
  private booked({ id: source, settled_in }: StripeObject, cents: number, fee: number): StripeObject {
    const rate = settled_in === 'usd' ? null : EXCHANGE_RATE;
    const amount = Math.round(cents * (rate ?? 1));
    const kept = Math.round(fee * (rate ?? 1));
    const more = { net: amount - kept, exchange_rate: rate, source, status: 'pending' };
    return this.add('txn', 'balance_transaction', { amount, fee: kept, currency: settled_in, ...more });
  }

  private completed(session: StripeObject): StripeObject {
    return this.event('checkout.session.completed', session);
  }

  /** With what the object is now. */
  private event(type: string, about: StripeObject): StripeObject {
    const data = { object: structuredClone(about) };
    return this.add('evt', 'event', { type, data, livemode: false, pending_webhooks: 1, api_version: null });
  }

  private intentOf({ payment_intent }: StripeObject): StripeObject {
    return this.objects.get(payment_intent) ?? fail('that session has no payment');
  }

  private chargeOf(session: StripeObject): StripeObject {
    return this.objects.get(this.intentOf(session).latest_charge) ?? fail('that session is not paid');
  }

  private add(prefix: string, object: string, fields: object): StripeObject {
    return this.keep({ id: newId(prefix), object, created: this.seconds(), livemode: false, ...fields });
  }

  private keep(made: StripeObject): StripeObject {
    this.objects.set(made.id, made);
    return made;
  }

  private seconds(): number {
    return Math.floor(this.now() / 1000);
  }
}

function priceIn(params: Params): { readonly amount: number; readonly currency: string } {
  const [item, ...others] = listIn(params.line_items);
  if (typeof item !== 'object' || others.length > 0) throw invalid('the sandbox takes one item', 'line_items');
  const price = partIn(item, 'price_data');
  const currency = textIn(price, 'currency') ?? '';
  if (!/^[a-z]{3}$/.test(currency))
    throw invalid(`Invalid currency: ${currency}`, 'line_items[0][price_data][currency]');
  return { amount: countIn(price, 'unit_amount') * countIn(item, 'quantity'), currency };
}

function newId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString('hex')}`;
}

function failure(error: string): Refusal {
  return new Refusal(400, { error });
}

function fail(error: string): never {
  throw failure(error);
}
