/**
 * BTCPay Server through its Greenfield API, for any coin on its chain and for Bitcoin over Lightning. The gateway has
 * its own exchange rates, so an invoice has exactly the requested amount in the coin itself, and one payment method.
 * Only its payments matter, not its status: an expired invoice stays expired when it is paid.
 *
 * Sources: BTCPay Server's API description (`swagger.template.invoices.json`, 2.4) and its observed behaviour.
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
import { BackendHttp, type BackendRequest, runAfterCreation } from '../backend-http.ts';
import { type BackendKind, hasSettings } from '../backend-kind.ts';
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

/** A list is requested with all order ids in its URL. BTCPay's web server limits the request line to 8 KiB. */
const MAX_BATCH_SIZE = 100;
/** How long BTCPay waits for confirmations of a payment after the expiry of its invoice. */
const MONITORING_MINUTES = 7 * 24 * 60;
const SIGNATURE = 'btcpay-sig';
/** Polls are rate-limited; requests for which a customer waits are not. */
const POLL_OPTIONS: Partial<BackendRequest> = { isRateLimited: true };

export interface BtcPaySettings {
  readonly btcpayUrl: string | undefined;
  readonly btcpayStoreId: string;
  /** Needs the permissions `btcpay.store.cancreateinvoice` and `btcpay.store.canviewinvoices`. */
  readonly btcpayApiKey: string;
  /** Undefined: all webhooks are rejected. */
  readonly btcpayWebhookSecret: string | undefined;
  /**
   * Maximum number of polls per second; unlimited if undefined. Invoices that a list does not report completely are
   * polled one by one.
   */
  readonly pollsPerSecond?: number;
}

export const btcpay: BackendKind<BtcPaySettings> = {
  name: 'btcpay',
  credentialSetting: 'BTCPAY_API_KEY',
  accepts: ({ code }, kind) => kind === 'address' || (kind === 'bolt11' && code === 'BTC'),
  getMaxConfirmations,
  open: (settings, { coins }) => (hasSettings(settings, 'btcpayUrl') ? new BtcPayBackend(settings, coins) : undefined),
};

export class BtcPayBackend implements PaymentBackend {
  readonly name = btcpay.name;
  readonly maxBatchSize = MAX_BATCH_SIZE;
  private readonly http: BackendHttp;
  private readonly invoicesPath: string;

  constructor(
    private readonly settings: BtcPaySettings & { readonly btcpayUrl: string },
    private readonly coins: readonly CoinTerms[],
  ) {
    this.http = new BackendHttp('BTCPay Server', settings.btcpayUrl, {
      ...(settings.pollsPerSecond === undefined ? {} : { perSecond: settings.pollsPerSecond }),
    });
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
      const methodsPath = `${this.invoicesPath}/${invoiceId}/payment-methods`;
      const methods = await runAfterCreation(() => this.call('GET', methodsPath));
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

  /** BTCPay announces payments only by webhooks. */
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
    // An event of another store or of another application names no invoice of the gateway.
    if (storeId !== btcpayStoreId || !isBtcPayId(invoiceId) || !isBtcPayId(orderId) || !isBtcPayId(method)) return [];
    return [formatReference({ orderId, method, invoiceId })];
  }

  close(): Promise<void> {
    return this.http.close();
  }

  /** Fetches many invoices in one request, which is usually sufficient. Before version 2.4 the list has no payments. */
  private async fetchSummaries(
    references: readonly InvoiceReference[],
  ): Promise<ReadonlyMap<string, BtcPayInvoiceSummary>> {
    const query = new URLSearchParams({ includePaymentMethods: 'true', take: String(2 * MAX_BATCH_SIZE) });
    for (const { orderId } of references) query.append('orderId', orderId);
    const response = await this.call('GET', `${this.invoicesPath}?${query}`, POLL_OPTIONS);
    return this.mapImplausibleErrors(async () => parseInvoiceList(response));
  }

  /** Fetches the missing payments: the list omits payments that are invalid now. Polls invoices with activity first. */
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
    throw new UpstreamError('upstream_error', `The coin ${code} of a payment is missing from payments.json`);
  }

  /** @returns undefined if BTCPay responds to a GET request with 404 */
  private async call(method: 'GET' | 'POST', path: string, options: Partial<BackendRequest> = {}): Promise<unknown> {
    const headers = { 'content-type': 'application/json', authorization: `token ${this.settings.btcpayApiKey}` };
    const { status, text } = await this.http.send({ method, path, headers, ...options });
    if (status === 404 && method === 'GET') return undefined;
    if (status !== 200) this.http.throwStatusError(status);
    return parseBackendJson(text) ?? this.http.throwUnreadable();
  }

  private async mapImplausibleErrors<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof ImplausibleBtcPayResponseError)) throw error;
      throw new UpstreamError('upstream_error', `The response of BTCPay Server ${error.message}`);
    }
  }
}
