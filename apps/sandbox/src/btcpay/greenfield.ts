/**
 * The Greenfield API of a simulated BTCPay Server with one store. Sources: BTCPay Server's controllers,
 * `swagger.template.invoices.json` and `swagger.template.webhooks.json`. Amounts are decimal strings and times are Unix
 * seconds. Invalid payments appear only in the payment methods of an invoice, with `onlyAccountedPayments=false`.
 */
import { money } from '#kernel';
import type { Chains } from '../chains/chain.ts';
import type { LightningNode } from '../lightning/node.ts';
import { type Call, type Handler, parseObject, type Routes } from '../router.ts';
import { createError, invalidFieldError } from './greenfield-errors.ts';
import { parseTerms } from './invoice-terms.ts';
import {
  type BtcPayInvoice,
  type BtcPayInvoiceEvent,
  type BtcPayPayment,
  calculateTotals,
  Invoices,
} from './invoices.ts';
import { type BtcPayWebhook, BtcPayWebhooks, type WebhookDelivery } from './webhooks.ts';

const STORE = 'sandbox';
const ROOT = '/btcpay/api/v1/';
const DEFAULT_PAGE_SIZE = 10_000;

export class FakeBtcPayServer {
  private readonly invoices: Invoices;
  private readonly webhooks = new BtcPayWebhooks();

  constructor(chains: Chains, node: LightningNode) {
    this.invoices = new Invoices(chains, node);
    this.invoices.subscribe((invoice, events, report) =>
      this.webhooks.report(
        invoice.id,
        events.map((event) => toWebhookEvent(invoice, event)),
        report,
      ),
    );
  }

  routes(): Routes {
    const serve: Handler = (call) => this.serve(call);
    return {
      [`GET ${ROOT}*`]: serve,
      [`POST ${ROOT}*`]: serve,
      [`DELETE ${ROOT}*`]: serve,
    };
  }

  close(): void {
    this.webhooks.close();
  }

  private async serve(call: Call): Promise<void> {
    assertKey(call);
    const [stores, store, what = '', id, subresource, deliveryId, action] = call.parameter
      .split('/')
      .map(decodeURIComponent);
    if (stores !== 'stores') throw createError(404, 'not-found', 'There is nothing here');
    if (store !== STORE) throw createError(403, 'missing-permission', 'Insufficient API Permissions');
    const path = [what, id && ':id', subresource, deliveryId && ':id', action].filter(Boolean).join('/');
    const route = `${call.request.method} ${path}`;
    const query = call.query;
    if (route === 'POST invoices') return this.create(call);
    if (route === 'GET invoices') return call.sendJson(200, this.list(query));
    if (route === 'GET invoices/:id') return call.sendJson(200, toInvoiceJson(this.find(id), query, 'alone'));
    if (route === 'GET invoices/:id/payment-methods')
      return call.sendJson(200, [toPaymentMethodJson(this.find(id), includesUnaccountedPayments(query))]);
    if (route === 'POST webhooks') return this.addWebhook(call);
    if (route === 'GET webhooks') return call.sendJson(200, this.webhooks.list().map(toWebhookJson));
    if (route === 'DELETE webhooks/:id' && this.webhooks.remove(id ?? ''))
      return call.sendBytes(200, 'text/plain', EMPTY);
    if (route === 'GET webhooks/:id/deliveries')
      return call.sendJson(200, this.webhooks.listDeliveries(id ?? '').map(toDeliveryJson));
    if (route === 'POST webhooks/:id/deliveries/:id/redeliver') return this.redeliver(call, deliveryId ?? '');
    throw createError(404, 'not-found', 'There is nothing here');
  }

  private async create(call: Call): Promise<void> {
    const invoice = this.invoices.create(parseTerms(await readBody(call)));
    call.sendJson(200, toInvoiceJson(invoice, new URLSearchParams(), 'alone'));
  }

  private list(query: URLSearchParams): readonly object[] {
    const orderIds = new Set(query.getAll('orderId'));
    if (orderIds.size === 0) throw createError(400, 'generic-error', 'the sandbox lists invoices by orderId only');
    const pageSize = Number(query.get('take') ?? DEFAULT_PAGE_SIZE);
    return this.invoices
      .listByOrderIds(orderIds)
      .slice(0, pageSize)
      .map((invoice) => toInvoiceJson(invoice, query, 'listed'));
  }

  private find(id = ''): BtcPayInvoice {
    const invoice = this.invoices.find(id);
    if (!invoice) throw createError(404, 'invoice-not-found', 'The invoice was not found');
    return invoice;
  }

  private async addWebhook(call: Call): Promise<void> {
    const { url, secret, enabled = true, automaticRedelivery = true } = await readBody(call);
    if (typeof url !== 'string' || !URL.canParse(url)) throw invalidFieldError('Url', 'Invalid Url');
    if (typeof secret !== 'string' || secret === '')
      throw invalidFieldError('Secret', 'the sandbox does not generate secrets');
    const webhook = { url, secret, enabled: enabled === true, automaticRedelivery: automaticRedelivery === true };
    call.sendJson(200, { ...this.webhooks.add(webhook), authorizedEvents: EVERYTHING });
  }

  private redeliver(call: Call, deliveryId: string): void {
    const id = this.webhooks.redeliver(deliveryId);
    if (id === undefined) throw createError(404, 'webhookdelivery-not-found', 'The webhook delivery was not found');
    call.sendJson(200, id);
  }
}

const EMPTY = Buffer.alloc(0);
const EVERYTHING = { everything: true, specificEvents: [] };

/** Any key is accepted, but one is required. */
function assertKey({ request }: Call): void {
  if (/^token \S+$/i.test(request.headers.authorization ?? '')) return;
  throw createError(401, 'unauthenticated', 'Authentication is required for accessing this endpoint');
}

async function readBody(call: Call) {
  const body = parseObject(await call.readText());
  if (!body) throw createError(400, 'generic-error', 'The request body is not a JSON object');
  return body;
}

function includesUnaccountedPayments(query: URLSearchParams): boolean {
  return query.get('onlyAccountedPayments') === 'false';
}

function toInvoiceJson(invoice: BtcPayInvoice, query: URLSearchParams, view: 'alone' | 'listed'): object {
  const { id, terms, created, expires, monitoringEnds, status, additionalStatus } = invoice;
  const { coin, kind, units, decimals, metadata, speedPolicy, paymentTolerance } = terms;
  const withMethods = query.get('includePaymentMethods') === 'true';
  return {
    id,
    storeId: STORE,
    amount: money.formatScaled(units, decimals),
    paidAmount: money.formatScaled(calculateTotals(invoice).paid, decimals),
    checkoutLink: `/btcpay/i/${id}`,
    status,
    additionalStatus,
    monitoringExpiration: monitoringEnds,
    expirationTime: expires,
    createdTime: created,
    availableStatusesForManualMarking: ['Settled', 'Invalid'],
    archived: false,
    ...(withMethods
      ? { paymentMethods: [toPaymentMethodJson(invoice, false)] }
      : view === 'alone'
        ? { paymentMethods: [] }
        : {}),
    type: 'Standard',
    currency: coin,
    metadata,
    checkout: {
      speedPolicy,
      paymentMethods: [`${coin}-${kind}`],
      defaultPaymentMethod: `${coin}-${kind}`,
      expirationMinutes: Math.floor(terms.expirySeconds / 60),
      monitoringMinutes: Math.floor(terms.monitoringSeconds / 60),
      paymentTolerance,
      redirectURL: null,
      redirectAutomatically: false,
      defaultLanguage: null,
      lazyPaymentMethods: null,
    },
    receipt: { enabled: true, showQR: true, showPayments: true },
  };
}

/** @param includesInvalid whether to include payments that were replaced or reversed */
function toPaymentMethodJson(invoice: BtcPayInvoice, includesInvalid: boolean): object {
  const { terms, destination, payments } = invoice;
  const { coin, kind, units, decimals } = terms;
  const { paid } = calculateTotals(invoice);
  const visiblePayments = [...payments.values()].filter(({ status }) => includesInvalid || status !== 'Invalid');
  return {
    activated: true,
    destination,
    paymentLink: kind === 'LN' ? `lightning:${destination}` : destination,
    rate: '1',
    paymentMethodPaid: money.formatScaled(paid, decimals),
    totalPaid: money.formatScaled(paid, decimals),
    due: money.formatScaled(units - paid, decimals),
    amount: money.formatScaled(units, decimals),
    paymentMethodFee: '0',
    payments: visiblePayments.map((payment) => toPaymentJson(payment, decimals)),
    paymentMethodId: `${coin}-${kind}`,
    additionalData: {},
    currency: coin,
  };
}

function toPaymentJson({ id, receivedAt, units, status, destination }: BtcPayPayment, decimals: number): object {
  const value = money.formatScaled(units, decimals);
  return { id, receivedDate: receivedAt, value, fee: '0', status, destination };
}

function toWebhookEvent(invoice: BtcPayInvoice, { type, details, payment }: BtcPayInvoiceEvent) {
  const { id, terms } = invoice;
  const paid = payment && {
    paymentMethodId: `${terms.coin}-${terms.kind}`,
    payment: toPaymentJson(payment, terms.decimals),
  };
  const timestamp = Math.floor(Date.now() / 1000);
  return { type, timestamp, ...details, ...paid, storeId: STORE, invoiceId: id, metadata: terms.metadata };
}

function toWebhookJson({ secret: _, ...webhook }: BtcPayWebhook): object {
  return { ...webhook, secret: null, authorizedEvents: EVERYTHING };
}

function toDeliveryJson({ id, httpCode, body }: WebhookDelivery): object {
  const status = httpCode === null ? 'Failed' : httpCode < 300 ? 'HttpSuccess' : 'HttpError';
  return { id, timestamp: body.timestamp, httpCode, status };
}
