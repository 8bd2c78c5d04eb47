/**
 * A BTCPay Server with one store, through its Greenfield API. Facts: its description in `swagger.template.invoices.json`
 * and `swagger.template.webhooks.json`, and its controllers: decimals are strings, times are Unix seconds, a list of
 * invoices leaves out payments that do not count.
 */
import { money } from '#kernel';
import type { Chains } from '../chains/chain.ts';
import type { LightningNode } from '../lightning/node.ts';
import { type Call, type Handler, parseObject, type Routes } from '../router.ts';
import { invalid, refusal } from './greenfield-errors.ts';
import { termsIn } from './invoice-terms.ts';
import { type BtcPayInvoice, type BtcPayInvoiceEvent, type BtcPayPayment, Invoices, sums } from './invoices.ts';
import { type BtcPayWebhook, BtcPayWebhooks, type WebhookDelivery } from './webhooks.ts';

const STORE = 'sandbox';
const ROOT = '/btcpay/api/v1/';
const MAX_TAKEN = 10_000;

export class FakeBtcPayServer {
  private readonly invoices: Invoices;
  private readonly hooks = new BtcPayWebhooks();

  constructor(chains: Chains, node: LightningNode) {
    this.invoices = new Invoices(chains, node);
    this.invoices.subscribe((invoice, happenings, report) =>
      this.hooks.report(
        invoice.id,
        happenings.map((each) => eventOf(invoice, each)),
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
    this.hooks.close();
  }

  private async serve(call: Call): Promise<void> {
    assertKey(call);
    const [stores, store, what = '', id, more, deliveryId, action] = call.parameter.split('/').map(decodeURIComponent);
    if (stores !== 'stores') throw refusal(404, 'not-found', 'There is nothing here');
    if (store !== STORE) throw refusal(403, 'missing-permission', 'Insufficient API Permissions');
    const path = [what, id && ':id', more, deliveryId && ':id', action].filter(Boolean).join('/');
    const route = `${call.request.method} ${path}`;
    const query = call.query;
    if (route === 'POST invoices') return this.create(call);
    if (route === 'GET invoices') return call.json(200, this.list(query));
    if (route === 'GET invoices/:id') return call.json(200, printed(this.find(id), query, 'alone'));
    if (route === 'GET invoices/:id/payment-methods') return call.json(200, [methodOf(this.find(id), isAll(query))]);
    if (route === 'POST webhooks') return this.addHook(call);
    if (route === 'GET webhooks') return call.json(200, this.hooks.list().map(withoutSecret));
    if (route === 'DELETE webhooks/:id' && this.hooks.remove(id ?? '')) return call.bytes(200, 'text/plain', EMPTY);
    if (route === 'GET webhooks/:id/deliveries')
      return call.json(200, this.hooks.deliveries(id ?? '').map(printedDelivery));
    if (route === 'POST webhooks/:id/deliveries/:id/redeliver') return this.redeliver(call, deliveryId ?? '');
    throw refusal(404, 'not-found', 'There is nothing here');
  }

  private async create(call: Call): Promise<void> {
    const invoice = this.invoices.create(termsIn(await bodyOf(call)));
    call.json(200, printed(invoice, new URLSearchParams(), 'alone'));
  }

  private list(query: URLSearchParams): readonly object[] {
    const orderIds = new Set(query.getAll('orderId'));
    if (orderIds.size === 0) throw refusal(400, 'generic-error', 'the sandbox lists invoices by orderId only');
    const take = Number(query.get('take') ?? MAX_TAKEN);
    return this.invoices
      .withOrderIds(orderIds)
      .slice(0, take)
      .map((invoice) => printed(invoice, query, 'listed'));
  }

  private find(id = ''): BtcPayInvoice {
    const invoice = this.invoices.find(id);
    if (!invoice) throw refusal(404, 'invoice-not-found', 'The invoice was not found');
    return invoice;
  }

  private async addHook(call: Call): Promise<void> {
    const { url, secret, enabled = true, automaticRedelivery = true } = await bodyOf(call);
    if (typeof url !== 'string' || !URL.canParse(url)) throw invalid('Url', 'Invalid Url');
    if (typeof secret !== 'string' || secret === '') throw invalid('Secret', 'the sandbox makes no secrets up');
    const hook = { url, secret, enabled: enabled === true, automaticRedelivery: automaticRedelivery === true };
    call.json(200, { ...this.hooks.add(hook), authorizedEvents: EVERYTHING });
  }

  private redeliver(call: Call, deliveryId: string): void {
    const id = this.hooks.redeliver(deliveryId);
    if (id === undefined) throw refusal(404, 'webhookdelivery-not-found', 'The webhook delivery was not found');
    call.json(200, id);
  }
}

const EMPTY = Buffer.alloc(0);
const EVERYTHING = { everything: true, specificEvents: [] };

/** Any key will do, but there must be one. */
function assertKey({ request }: Call): void {
  if (/^token \S+$/i.test(request.headers.authorization ?? '')) return;
  throw refusal(401, 'unauthenticated', 'Authentication is required for accessing this endpoint');
}

async function bodyOf(call: Call) {
  const body = parseObject(await call.text());
  if (!body) throw refusal(400, 'generic-error', 'The request body is not a JSON object');
  return body;
}

function isAll(query: URLSearchParams): boolean {
  return query.get('onlyAccountedPayments') === 'false';
}

function printed(invoice: BtcPayInvoice, query: URLSearchParams, how: 'alone' | 'listed'): object {
  const { id, terms, created, expires, monitoringEnds, status, additionalStatus } = invoice;
  const { coin, kind, units, decimals, metadata, speedPolicy, paymentTolerance } = terms;
  const withMethods = query.get('includePaymentMethods') === 'true';
  return {
    id,
    storeId: STORE,
    amount: money.formatScaled(units, decimals),
    paidAmount: money.formatScaled(sums(invoice).paid, decimals),
    checkoutLink: `/btcpay/i/${id}`,
    ...{ status, additionalStatus },
    ...{ monitoringExpiration: monitoringEnds, expirationTime: expires, createdTime: created },
    availableStatusesForManualMarking: ['Settled', 'Invalid'],
    archived: false,
    ...(withMethods ? { paymentMethods: [methodOf(invoice, false)] } : how === 'alone' ? { paymentMethods: [] } : {}),
    ...{ type: 'Standard', currency: coin, metadata },
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

/** @param all also payments that do not count */
function methodOf(invoice: BtcPayInvoice, all: boolean): object {
  const { terms, destination, payments } = invoice;
  const { coin, kind, units, decimals } = terms;
  const { paid } = sums(invoice);
  const shown = [...payments.values()].filter(({ status }) => all || status !== 'Invalid');
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
    payments: shown.map((each) => printedPayment(each, decimals)),
    paymentMethodId: `${coin}-${kind}`,
    additionalData: {},
    currency: coin,
  };
}

function printedPayment({ id, receivedAt, units, status, destination }: BtcPayPayment, decimals: number): object {
  const value = money.formatScaled(units, decimals);
  return { id, receivedDate: receivedAt, value, fee: '0', status, destination };
}

function eventOf(invoice: BtcPayInvoice, { type, details, payment }: BtcPayInvoiceEvent) {
  const { id, terms } = invoice;
  const paid = payment && {
    paymentMethodId: `${terms.coin}-${terms.kind}`,
    payment: printedPayment(payment, terms.decimals),
  };
  const timestamp = Math.floor(Date.now() / 1000);
  return { type, timestamp, ...details, ...paid, storeId: STORE, invoiceId: id, metadata: terms.metadata };
}

function withoutSecret({ secret: _, ...hook }: BtcPayWebhook): object {
  return { ...hook, secret: null, authorizedEvents: EVERYTHING };
}

function printedDelivery({ id, httpCode, body }: WebhookDelivery): object {
  const status = httpCode === null ? 'Failed' : httpCode < 300 ? 'HttpSuccess' : 'HttpError';
  return { id, timestamp: body.timestamp, httpCode, status };
}
