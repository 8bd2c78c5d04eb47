/**
 * BTCPay Server through its Greenfield API, for any coin on its chain and Bitcoin over Lightning. Rates are ours, so an
 * invoice is in the coin itself, of exactly our amount, with one payment method. Its status says nothing here: an
 * expired invoice stays expired when it is paid. What counts are its payments.
 * Facts from BTCPay Server's description of the API (`swagger.template.invoices.json`, 2.4) and what it does.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  type BackendPayment,
  type CreatedPayment,
  type PaymentBackend,
  type PaymentRequest,
  UpstreamError,
  type WebhookRequest,
} from '#application';
import type { CoinTerms } from '#domain';
import { money } from '#kernel';
import { BackendHttp, type BackendRequest } from '../backend-http.ts';
import type { BackendKind } from '../backend-kind.ts';
import { parseBackendJson } from '../exact-json.ts';
import { createEmptySubscription } from '../no-hints.ts';
import {
  formatReference,
  getMaxConfirmations,
  type InvoiceReference,
  isBtcPayId,
  parseReference,
  toSpeedPolicy,
} from './reference.ts';
import {
  type BtcPayInvoiceSummary,
  ImplausibleBtcPayResponseError,
  type PolledInvoice,
  parseDestination,
  parseInvoiceList,
  parseInvoicePayments,
  parseMatchingInvoiceId,
} from './responses.ts';

/** A list is asked for by the order ids in its address, and Kestrel takes addresses of 8 KiB. */
const MAX_BATCH_SIZE = 100;
/** How long after its expiry a payment that is not confirmed is waited for: as long as we look. */
const MONITORING_MINUTES = 7 * 24 * 60;
const SIGNATURE = 'btcpay-sig';
/** Customers do not wait for their turn, looks do. */
const POLL_OPTIONS: Partial<BackendRequest> = { isRateLimited: true };

export interface BtcPaySettings {
  readonly btcpayUrl: string | undefined;
  readonly btcpayStoreId: string;
  /** Needs `btcpay.store.cancreateinvoice` and `btcpay.store.canviewinvoices`. */
  readonly btcpayApiKey: string;
  /** Undefined: web hooks are not believed. */
  readonly btcpayWebhookSecret: string | undefined;
  /** Requests in a second: invoices with payments are asked for one by one. Unbounded where it is left out. */
  readonly pollsPerSecond?: number;
}

export const btcpay: BackendKind<BtcPaySettings> = {
  name: 'btcpay',
  accepts: ({ code }, kind) => kind === 'address' || (kind === 'bolt11' && code === 'BTC'),
  getMaxConfirmations,
  open: ({ btcpayUrl, ...settings }, { coins }) =>
    btcpayUrl === undefined ? undefined : new BtcPayBackend({ btcpayUrl, ...settings }, coins),
};

export class BtcPayBackend implements PaymentBackend {
  readonly name = btcpay.name;
  readonly maxBatchSize = MAX_BATCH_SIZE;
  private readonly http: BackendHttp;
  private readonly headers: Readonly<Record<string, string>>;
  private readonly invoicesPath: string;

  constructor(
    private readonly settings: BtcPaySettings & { readonly btcpayUrl: string },
    private readonly coins: readonly CoinTerms[],
  ) {
    this.http = new BackendHttp('BTCPay Server', settings.btcpayUrl, {
      ...(settings.pollsPerSecond === undefined ? {} : { perSecond: settings.pollsPerSecond }),
    });
    this.headers = { 'content-type': 'application/json', authorization: `token ${settings.btcpayApiKey}` };
    this.invoicesPath = `/api/v1/stores/${encodeURIComponent(settings.btcpayStoreId)}/invoices`;
  }

  async createPayment(request: PaymentRequest): Promise<CreatedPayment> {
    const { coin, kind, units, topupId, expirySeconds, confirmations } = request;
    const method = `${coin.code}-${kind === 'bolt11' ? 'LN' : 'CHAIN'}`;
    const amount = money.formatScaled(units, coin.decimals);
    const terms = {
      coin,
      method,
      amount,
      units,
      orderId: topupId,
      speedPolicy: toSpeedPolicy(confirmations),
    };
    const body = JSON.stringify({
      amount,
      currency: coin.code,
      metadata: { orderId: topupId, paymentMethod: method },
      checkout: {
        speedPolicy: terms.speedPolicy,
        paymentMethods: [method],
        defaultPaymentMethod: method,
        expirationMinutes: Math.ceil(expirySeconds / 60),
        monitoringMinutes: MONITORING_MINUTES,
        paymentTolerance: 0,
        lazyPaymentMethods: false,
      },
    });
    const created = await this.call('POST', this.invoicesPath, { body });
    return this.mapImplausibleErrors(async () => {
      const invoiceId = parseMatchingInvoiceId(created, terms);
      const methods = await this.call('GET', `${this.invoicesPath}/${invoiceId}/payment-methods`);
      const reference = formatReference({ orderId: topupId, method, invoiceId });
      return { reference, destination: { kind, value: parseDestination(methods, kind, terms) } };
    });
  }

  async fetchPayments(
    references: readonly string[],
    received: readonly string[] = [],
  ): Promise<readonly BackendPayment[]> {
    const invoiceReferences = references.map(parseReference);
    const summaries = await this.fetchSummaries(invoiceReferences);
    const result: BackendPayment[] = [];
    const listedReferences: InvoiceReference[] = [];
    for (const invoice of invoiceReferences) {
      const payments = summaries.get(invoice.invoiceId)?.parsePayments(this.toPolledInvoice(invoice));
      if (payments) listedReferences.push(invoice);
      result.push(...(payments ?? (await this.fetchInvoicePayments(invoice))));
    }
    const missing = new Set(received).difference(new Set(result.map(({ id }) => id)));
    return [...result, ...(missing.size > 0 ? await this.fetchUnlisted(missing, listedReferences, summaries) : [])];
  }

  /** BTCPay tells by web hooks alone. */
  subscribe(signal: AbortSignal): AsyncIterable<string> {
    return createEmptySubscription(signal);
  }

  parseWebhook({ headers, body }: WebhookRequest): readonly string[] | undefined {
    const { btcpayWebhookSecret: secret, btcpayStoreId } = this.settings;
    const signature = headers[SIGNATURE];
    if (secret === undefined || typeof signature !== 'string') return undefined;
    const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
    const presented = Buffer.from(signature);
    if (presented.length !== expected.length || !timingSafeEqual(presented, expected)) return undefined;
    const event = parseBackendJson(body.toString());
    if (typeof event !== 'object' || event === null) return undefined;
    const { invoiceId, storeId, metadata } = event as Readonly<Record<string, unknown>>;
    const { orderId, paymentMethod: method } = (metadata ?? {}) as Readonly<Record<string, unknown>>;
    if (storeId !== btcpayStoreId || !isBtcPayId(invoiceId) || !isBtcPayId(orderId) || !isBtcPayId(method)) return []; // not one of ours
    return [formatReference({ orderId, method, invoiceId })];
  }

  close(): Promise<void> {
    return this.http.close();
  }

  /** One question for many: mostly it is the only one. BTCPay before 2.4 does not say what was paid here. */
  private async fetchSummaries(
    references: readonly InvoiceReference[],
  ): Promise<ReadonlyMap<string, BtcPayInvoiceSummary>> {
    const query = new URLSearchParams({ includePaymentMethods: 'true', take: String(2 * MAX_BATCH_SIZE) });
    for (const { orderId } of references) query.append('orderId', orderId);
    const response = await this.call('GET', `${this.invoicesPath}?${query}`, POLL_OPTIONS);
    return this.mapImplausibleErrors(async () => parseInvoiceList(response));
  }

  /** A list leaves out payments that do not count any more. They are looked for first where something has happened. */
  private async fetchUnlisted(
    missing: Set<string>,
    references: readonly InvoiceReference[],
    summaries: ReadonlyMap<string, BtcPayInvoiceSummary>,
  ): Promise<readonly BackendPayment[]> {
    const isTouched = ({ invoiceId }: InvoiceReference) => summaries.get(invoiceId)?.hasActivity === true;
    const payments: BackendPayment[] = [];
    for (const reference of [...references.filter(isTouched), ...references.filter((one) => !isTouched(one))]) {
      if (missing.size === 0) break;
      payments.push(...(await this.fetchInvoicePayments(reference)).filter(({ id }) => missing.delete(id)));
    }
    return payments;
  }

  private async fetchInvoicePayments(reference: InvoiceReference): Promise<readonly BackendPayment[]> {
    const path = `${this.invoicesPath}/${reference.invoiceId}/payment-methods?onlyAccountedPayments=false`;
    const response = await this.call('GET', path, POLL_OPTIONS);
    return this.mapImplausibleErrors(async () => parseInvoicePayments(response, this.toPolledInvoice(reference)));
  }

  private toPolledInvoice({ reference, orderId, method }: InvoiceReference): PolledInvoice {
    return { reference, orderId, method, coin: this.getCoin(method) };
  }

  private getCoin(method: string): CoinTerms {
    const code = method.slice(0, method.lastIndexOf('-'));
    const coin = this.coins.find((coinTerms) => coinTerms.code === code);
    if (coin) return coin;
    throw new UpstreamError('upstream_error', `The coin ${code}, which was paid in, is missing from payments.json`);
  }

  /** @returns undefined when BTCPay does not know what was asked for */
  private async call(method: 'GET' | 'POST', path: string, options: Partial<BackendRequest> = {}): Promise<unknown> {
    const { status, text } = await this.http.send({ method, path, headers: this.headers, ...options });
    if (status === 404 && method === 'GET') return undefined;
    if (status !== 200) this.http.throwStatusError(status);
    return parseBackendJson(text) ?? this.http.throwUnreadable();
  }

  private async mapImplausibleErrors<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof ImplausibleBtcPayResponseError)) throw error;
      throw new UpstreamError('upstream_error', `What BTCPay Server answered ${error.message}`);
    }
  }
}
