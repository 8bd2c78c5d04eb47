/**
 * A Stripe account: Checkout Sessions with their payments, refunds and disputes. Objects are stored in the format of
 * the API, with references as ids; only events and disputes contain other objects. Sources: Stripe's API reference
 * (Checkout Sessions, Charges, Refunds, Disputes, Balance Transactions, Events) and guides on fulfilment and disputes.
 * Fees are those of card payments in the USA: 2.9 % and 30 cents, and 15 dollars for a dispute.
 */
import { randomBytes } from 'node:crypto';
import { HttpError } from '../router.ts';
import {
  findParams,
  findText,
  invalidRequestError,
  missingResourceError,
  type Params,
  parseCount,
  toList,
} from './form.ts';

const MIN_EXPIRY_SECONDS = 30 * 60;
const MAX_EXPIRY_SECONDS = 24 * 3600;
const DISPUTE_FEE = 1_500;
/** For an account whose currency is not USD. */
const EXCHANGE_RATE = 0.9;

// biome-ignore lint/suspicious/noExplicitAny: objects of Stripe's API, which are only serialised
export type StripeObject = { id: string; object: string; created: number; [field: string]: any };

/** Deviations of an action from its defaults. */
export interface ActionOptions {
  /** Cents of a refund or a dispute, if it is partial. */
  readonly amount?: number;
  /** A total in cents that differs from the requested one, as after a discount or a tax. */
  readonly total?: number;
  /** The currency of the account, if it is not `usd`. */
  readonly settledIn?: string;
  readonly refund?: string;
  /** The fee is unknown until the action `book`, as when Stripe captures asynchronously. */
  readonly feeLater?: boolean;
}

type SessionAction = (session: StripeObject, options: ActionOptions) => readonly StripeObject[];

export class FakeStripeAccount {
  private readonly objects = new Map<string, StripeObject>();

  constructor(private readonly now: () => number = Date.now) {}

  find(id: string): StripeObject | undefined {
    return this.objects.get(id);
  }

  getSession(id: string): StripeObject {
    const session = this.objects.get(id);
    if (session?.object !== 'checkout.session') throw missingResourceError('checkout.session', id);
    return session;
  }

  /** Newest first, like all of Stripe's lists. */
  listObjects(object: string): readonly StripeObject[] {
    return [...this.objects.values()].filter((item) => item.object === object).reverse();
  }

  /** @param pages base URL of the hosted pages */
  createSession(params: Params, pages: string): StripeObject {
    const { amount, currency } = parsePrice(params);
    const created = this.getUnixTime();
    const expires_at =
      params.expires_at === undefined ? created + MAX_EXPIRY_SECONDS : parseCount(params, 'expires_at');
    if (expires_at < created + MIN_EXPIRY_SECONDS || expires_at > created + MAX_EXPIRY_SECONDS)
      throw invalidRequestError('The `expires_at` timestamp must be 30 minutes to 24 hours from now.', 'expires_at');
    if (findText(params, 'mode') !== 'payment') throw invalidRequestError('mode must be payment', 'mode');
    for (const name of ['success_url', 'cancel_url'])
      if (!URL.canParse(findText(params, name) ?? '')) throw invalidRequestError('Not a valid URL', name);
    const id = newId('cs_test');
    return this.store({
      id,
      object: 'checkout.session',
      created,
      livemode: false,
      mode: 'payment',
      status: 'open',
      payment_status: 'unpaid',
      payment_intent: null,
      url: `${pages}/${id}`,
      expires_at,
      amount_subtotal: amount,
      amount_total: amount,
      currency,
      currency_conversion: null,
      total_details: { amount_discount: 0, amount_shipping: 0, amount_tax: 0 },
      adaptive_pricing: { enabled: findText(findParams(params, 'adaptive_pricing'), 'enabled') === 'true' },
      allow_promotion_codes: findText(params, 'allow_promotion_codes') === 'true',
      client_reference_id: findText(params, 'client_reference_id') ?? null,
      metadata: { ...findParams(params, 'metadata') },
      intent_metadata: { ...findParams(findParams(params, 'payment_intent_data'), 'metadata') },
      allowed_payment_method_types: toList(params.allowed_payment_method_types),
      success_url: findText(params, 'success_url'),
      cancel_url: findText(params, 'cancel_url'),
    });
  }

  /** Performs an action on a session or its payment. @returns the events that report it */
  performAction(sessionId: string, name: string, options: ActionOptions): readonly StripeObject[] {
    const action = Object.hasOwn(this.actions, name) ? this.actions[name] : undefined;
    if (!action) throw badRequestError(`"do" must be one of ${Object.keys(this.actions).join(', ')}`);
    return action(this.getSession(sessionId), options);
  }

  private readonly actions: Readonly<Record<string, SessionAction>> = {
    pay: (session, options) => {
      this.confirm(session, options);
      this.collect(session, options);
      return [this.addEvent('charge.succeeded', this.getCharge(session)), this.createCompletedEvent(session)];
    },
    pay_later: (session, options) => {
      this.confirm(session, options);
      return [this.createCompletedEvent(session)];
    },
    succeed: (session, options) => {
      this.collect(session, options);
      return [this.addEvent('checkout.session.async_payment_succeeded', session)];
    },
    fail: (session) => {
      Object.assign(this.getIntent(session), { status: 'requires_payment_method' });
      return [this.addEvent('checkout.session.async_payment_failed', session)];
    },
    expire: (session) => {
      if (session.status !== 'open') throw badRequestError('the session is not open');
      Object.assign(session, { status: 'expired', url: null });
      return [this.addEvent('checkout.session.expired', session)];
    },
    book: (session) => [this.addEvent('charge.updated', this.bookCharge(this.getCharge(session)))],
    refund: (session, { amount }) => this.createRefund(session, amount),
    fail_refund: (session, { refund = '' }) => this.failRefund(session, refund),
    dispute: (session, { amount }) => this.openDispute(session, amount),
    win: (session) => this.closeDispute(session, 'won'),
    lose: (session) => this.closeDispute(session, 'lost'),
  };

  private confirm(session: StripeObject, { total = session.amount_subtotal }: ActionOptions): void {
    if (session.status !== 'open' || session.expires_at <= this.getUnixTime())
      throw badRequestError('the session is not open');
    const intent = this.addObject('pi', 'payment_intent', {
      amount: total,
      amount_received: 0,
      currency: session.currency,
      status: 'processing',
      latest_charge: null,
      metadata: session.intent_metadata,
    });
    Object.assign(session, { status: 'complete', url: null, amount_total: total, payment_intent: intent.id });
    session.total_details.amount_discount = Math.max(0, session.amount_subtotal - total);
    session.total_details.amount_tax = Math.max(0, total - session.amount_subtotal);
  }

  private collect(session: StripeObject, { settledIn = 'usd', feeLater = false }: ActionOptions): void {
    const intent = this.getIntent(session);
    if (session.payment_status === 'paid') throw badRequestError('the session is already paid');
    const { amount, currency } = intent;
    const charge = this.addObject('ch', 'charge', {
      amount,
      amount_captured: amount,
      amount_refunded: 0,
      currency,
      captured: true,
      paid: true,
      status: 'succeeded',
      disputed: false,
      refunded: false,
      balance_transaction: null,
      settled_in: settledIn,
      payment_intent: intent.id,
      metadata: intent.metadata,
    });
    if (!feeLater) this.bookCharge(charge);
    Object.assign(intent, { status: 'succeeded', amount_received: amount, latest_charge: charge.id });
    session.payment_status = 'paid';
  }

  private bookCharge(charge: StripeObject): StripeObject {
    charge.balance_transaction ??= this.createBalanceTransaction(
      charge,
      charge.amount,
      Math.round(charge.amount * 0.029) + 30,
    ).id;
    return charge;
  }

  private createRefund(session: StripeObject, part?: number): readonly StripeObject[] {
    const charge = this.getCharge(session);
    const refundable = charge.amount - charge.amount_refunded;
    const amount = part ?? refundable;
    if (amount > refundable || amount <= 0)
      throw badRequestError(`a refund must be above 0 and at most ${refundable} cents`);
    const refund = this.addObject('re', 'refund', {
      amount,
      currency: charge.currency,
      status: 'succeeded',
      reason: null,
      charge: charge.id,
      payment_intent: charge.payment_intent,
      balance_transaction: this.createBalanceTransaction(charge, -amount, 0).id,
    });
    charge.amount_refunded += amount;
    charge.refunded = charge.amount_refunded === charge.amount;
    return [this.addEvent('refund.created', refund), this.addEvent('charge.refunded', charge)];
  }

  private failRefund(session: StripeObject, id: string): readonly StripeObject[] {
    const charge = this.getCharge(session);
    const refund = this.objects.get(id);
    if (refund?.charge !== charge.id || refund.status !== 'succeeded')
      throw badRequestError('"refund" must be the id of a succeeded refund of this charge');
    const failure_balance_transaction = this.createBalanceTransaction(charge, refund.amount, 0).id;
    Object.assign(refund, {
      status: 'failed',
      failure_reason: 'expired_or_canceled_card',
      failure_balance_transaction,
    });
    charge.amount_refunded -= refund.amount;
    charge.refunded = false;
    return [this.addEvent('charge.refund.updated', refund), this.addEvent('refund.failed', refund)];
  }

  private openDispute(session: StripeObject, part?: number): readonly StripeObject[] {
    const charge = this.getCharge(session);
    const amount = part ?? charge.amount;
    const dispute = this.addObject('du', 'dispute', {
      amount,
      currency: charge.currency,
      status: 'needs_response',
      reason: 'fraudulent',
      charge: charge.id,
      payment_intent: charge.payment_intent,
      balance_transactions: [this.createBalanceTransaction(charge, -amount, DISPUTE_FEE)],
    });
    charge.disputed = true;
    return ['charge.dispute.created', 'charge.dispute.funds_withdrawn'].map((type) => this.addEvent(type, dispute));
  }

  private closeDispute(session: StripeObject, status: 'won' | 'lost'): readonly StripeObject[] {
    const charge = this.getCharge(session);
    const dispute = this.listObjects('dispute').find(
      (candidate) => candidate.charge === charge.id && candidate.status === 'needs_response',
    );
    if (!dispute) throw badRequestError('the charge has no open dispute');
    dispute.status = status;
    const types = ['charge.dispute.closed'];
    if (status === 'won') {
      dispute.balance_transactions.push(this.createBalanceTransaction(charge, dispute.amount, 0));
      types.unshift('charge.dispute.funds_reinstated');
    }
    return types.map((type) => this.addEvent(type, dispute));
  }

  /** Creates an entry in the account's balance, in the currency of the account. */
  private createBalanceTransaction({ id: source, settled_in }: StripeObject, cents: number, fee: number): StripeObject {
    const rate = settled_in === 'usd' ? null : EXCHANGE_RATE;
    const amount = Math.round(cents * (rate ?? 1));
    const convertedFee = Math.round(fee * (rate ?? 1));
    const details = { net: amount - convertedFee, exchange_rate: rate, source, status: 'pending' };
    return this.addObject('txn', 'balance_transaction', {
      amount,
      fee: convertedFee,
      currency: settled_in,
      ...details,
    });
  }

  private createCompletedEvent(session: StripeObject): StripeObject {
    return this.addEvent('checkout.session.completed', session);
  }

  /** The event contains a copy of the object as it is now. */
  private addEvent(type: string, subject: StripeObject): StripeObject {
    const data = { object: structuredClone(subject) };
    return this.addObject('evt', 'event', { type, data, livemode: false, pending_webhooks: 1, api_version: null });
  }

  private getIntent({ payment_intent }: StripeObject): StripeObject {
    return this.objects.get(payment_intent) ?? fail('the session has no payment');
  }

  private getCharge(session: StripeObject): StripeObject {
    return this.objects.get(this.getIntent(session).latest_charge) ?? fail('the session is not paid');
  }

  private addObject(prefix: string, object: string, fields: object): StripeObject {
    return this.store({ id: newId(prefix), object, created: this.getUnixTime(), livemode: false, ...fields });
  }

  private store(stripeObject: StripeObject): StripeObject {
    this.objects.set(stripeObject.id, stripeObject);
    return stripeObject;
  }

  private getUnixTime(): number {
    return Math.floor(this.now() / 1000);
  }
}

function parsePrice(params: Params): { readonly amount: number; readonly currency: string } {
  const [item, ...otherItems] = toList(params.line_items);
  if (typeof item !== 'object' || otherItems.length > 0)
    throw invalidRequestError('the sandbox supports exactly one line item', 'line_items');
  const price = findParams(item, 'price_data');
  const currency = findText(price, 'currency') ?? '';
  if (!/^[a-z]{3}$/.test(currency))
    throw invalidRequestError(`Invalid currency: ${currency}`, 'line_items[0][price_data][currency]');
  return { amount: parseCount(price, 'unit_amount') * parseCount(item, 'quantity'), currency };
}

function newId(prefix: string): string {
  return `${prefix}_${randomBytes(12).toString('hex')}`;
}

function badRequestError(error: string): HttpError {
  return new HttpError(400, { error });
}

function fail(error: string): never {
  throw badRequestError(error);
}
