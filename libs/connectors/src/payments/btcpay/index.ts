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
import { noHints } from '../no-hints.ts';
import {
  formatReference,
  getMaxConfirmations,
  type InvoiceReference,
  isId,
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
const BATCH = 100;
/** How long after its expiry a payment that is not confirmed is waited for: as long as we look. */
const MONITORING_MINUTES = 7 * 24 * 60;
const SIGNATURE = 'btcpay-sig';
/** Customers do not wait for their turn, looks do. */
const LOOK: Partial<BackendRequest> = { paced: true };

export interface BtcPaySettings {
  readonly btcpayUrl: string | undefined;
  readonly btcpayStoreId: string;
  /** Needs `btcpay.store.cancreateinvoice` and `btcpay.store.canviewinvoices`. */
  readonly btcpayApiKey: string;
  /** Undefined: web hooks are not believed. */
  readonly btcpayWebhookSecret: string | undefined;
  /** Requests in a second: invoices with payments are asked for one by one. Unbounded where it is left out. */
  readonly looksPerSecond?: number;
}

export const btcpay: BackendKind<BtcPaySettings> = {
  name: 'btcpay',
  takes: ({ code }, kind) => kind === 'address' || (kind === 'bolt11' && code === 'BTC'),
  mostConfirmations: getMaxConfirmations,
  open: ({ btcpayUrl, ...settings }, { coins }) =>
    btcpayUrl === undefined ? undefined : new BtcPayBackend({ btcpayUrl, ...settings }, coins),
};

export class BtcPayBackend implements PaymentBackend {
  readonly name = btcpay.name;
  readonly maxBatchSize = BATCH;
  private readonly http: BackendHttp;
  private readonly headers: Readonly<Record<string, string>>;
  private readonly invoices: string;

  constructor(
    private readonly settings: BtcPaySettings & { readonly btcpayUrl: string },
    private readonly coins: readonly CoinTerms[],
  ) {
    this.http = new BackendHttp('BTCPay Server', settings.btcpayUrl, {
      ...(settings.looksPerSecond === undefined ? {} : { perSecond: settings.looksPerSecond }),
    });
    this.headers = { 'content-type': 'application/json', authorization: `token ${settings.btcpayApiKey}` };
    this.invoices = `/api/v1/stores/${encodeURIComponent(settings.btcpayStoreId)}/invoices`;
  }

  async createPayment(asked: PaymentRequest): Promise<CreatedPayment> {
    const { coin, kind, units, topupId, expirySeconds, confirmations } = asked;
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
    const made = await this.ask('POST', this.invoices, { body });
    return this.believing(async () => {
      const invoiceId = parseMatchingInvoiceId(made, terms);
      const methods = await this.ask('GET', `${this.invoices}/${invoiceId}/payment-methods`);
      const reference = formatReference({ orderId: topupId, method, invoiceId });
      return { reference, destination: { kind, value: parseDestination(methods, kind, terms) } };
    });
  }

  async fetchPayments(
    references: readonly string[],
    received: readonly string[] = [],
  ): Promise<readonly BackendPayment[]> {
    const wanted = references.map(parseReference);
    const listed = await this.list(wanted);
    const found: BackendPayment[] = [];
    const shown: InvoiceReference[] = [];
    for (const each of wanted) {
      const payments = listed.get(each.invoiceId)?.payments(this.looked(each));
      if (payments) shown.push(each);
      found.push(...(payments ?? (await this.paymentsOf(each))));
    }
    const missing = new Set(received).difference(new Set(found.map(({ id }) => id)));
    return [...found, ...(missing.size > 0 ? await this.unlisted(missing, shown, listed) : [])];
  }

  /** BTCPay tells by web hooks alone. */
  subscribe(signal: AbortSignal): AsyncIterable<string> {
    return noHints(signal);
  }

  parseWebhook({ headers, body }: WebhookRequest): readonly string[] | undefined {
    const { btcpayWebhookSecret: secret, btcpayStoreId } = this.settings;
    const signature = headers[SIGNATURE];
    if (secret === undefined || typeof signature !== 'string') return undefined;
    const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
    const given = Buffer.from(signature);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    const event = parseBackendJson(body.toString());
    if (typeof event !== 'object' || event === null) return undefined;
    const { invoiceId, storeId, metadata } = event as Readonly<Record<string, unknown>>;
    const { orderId, paymentMethod: method } = (metadata ?? {}) as Readonly<Record<string, unknown>>;
    if (storeId !== btcpayStoreId || !isId(invoiceId) || !isId(orderId) || !isId(method)) return []; // not one of ours
    return [formatReference({ orderId, method, invoiceId })];
  }

  close(): Promise<void> {
    return this.http.close();
  }

  /** One question for many: mostly it is the only one. BTCPay before 2.4 does not say what was paid here. */
  private async list(wanted: readonly InvoiceReference[]): Promise<ReadonlyMap<string, BtcPayInvoiceSummary>> {
    const query = new URLSearchParams({ includePaymentMethods: 'true', take: String(2 * BATCH) });
    for (const { orderId } of wanted) query.append('orderId', orderId);
    const answer = await this.ask('GET', `${this.invoices}?${query}`, LOOK);
    return this.believing(async () => parseInvoiceList(answer));
  }

  /** A list leaves out payments that do not count any more. They are looked for first where something has happened. */
  private async unlisted(
    missing: Set<string>,
    shown: readonly InvoiceReference[],
    listed: ReadonlyMap<string, BtcPayInvoiceSummary>,
  ): Promise<readonly BackendPayment[]> {
    const isTouched = ({ invoiceId }: InvoiceReference) => listed.get(invoiceId)?.isTouched === true;
    const found: BackendPayment[] = [];
    for (const each of [...shown.filter(isTouched), ...shown.filter((one) => !isTouched(one))]) {
      if (missing.size === 0) break;
      found.push(...(await this.paymentsOf(each)).filter(({ id }) => missing.delete(id)));
    }
    return found;
  }

  private async paymentsOf(wanted: InvoiceReference): Promise<readonly BackendPayment[]> {
    const path = `${this.invoices}/${wanted.invoiceId}/payment-methods?onlyAccountedPayments=false`;
    const answer = await this.ask('GET', path, LOOK);
    return this.believing(async () => parseInvoicePayments(answer, this.looked(wanted)));
  }

  private looked({ reference, orderId, method }: InvoiceReference): PolledInvoice {
    return { reference, orderId, method, coin: this.coinOf(method) };
  }

  private coinOf(method: string): CoinTerms {
    const code = method.slice(0, method.lastIndexOf('-'));
    const coin = this.coins.find((each) => each.code === code);
    if (coin) return coin;
    throw new UpstreamError('upstream_error', `The coin ${code}, which was paid in, is missing from payments.json`);
  }

  /** @returns undefined when BTCPay does not know what was asked for */
  private async ask(method: 'GET' | 'POST', path: string, more: Partial<BackendRequest> = {}): Promise<unknown> {
    const { status, text } = await this.http.ask({ method, path, headers: this.headers, ...more });
    if (status === 404 && method === 'GET') return undefined;
    if (status !== 200) this.http.refused(status);
    return parseBackendJson(text) ?? this.http.unreadable();
  }

  private async believing<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof ImplausibleBtcPayResponseError)) throw error;
      throw new UpstreamError('upstream_error', `What BTCPay Server answered ${error.message}`);
    }
  }
}
