/**
 * A Lightning node through Core Lightning's REST plugin `clnrest`. An invoice is paid once, so the payment hash is both
 * the reference and the id of the payment.
 *
 * Every command is `POST /v1/<command>`. Success has status 201. A failure has status 500 and the error code of the
 * command. A missing or invalid rune has status 401 or 403.
 *
 * Sources: Core Lightning's documentation of `invoice`, `listinvoices` and `waitanyinvoice`, and the plugin's source.
 */
import {
  type BackendPayment,
  type CreatedPayment,
  type PaymentBackend,
  type PaymentRequest,
  UpstreamError,
} from '#application';
import { BackendHttp } from '../backend-http.ts';
import { type BackendKind, hasSettings } from '../backend-kind.ts';
import { parseExactJson, parseUnits, unixSecondsToInstant } from '../exact-json.ts';
import { fetchInvoicesOneByOne, isHex32 } from '../lightning.ts';

/** How long the node waits for a payment before it responds that there was none. */
const WAIT_SECONDS = 60;
/** Error code of `invoice`: an invoice with this label exists. */
const LABEL_EXISTS = 900;
/** Error code of `waitanyinvoice`: no invoice was paid in time. */
const NONE_PAID = 904;

export interface ClnSettings {
  /** Address of `clnrest`, without the `/v1`. */
  readonly clnUrl: string | undefined;
  /** Must allow `invoice`, `listinvoices` and `waitanyinvoice`. */
  readonly clnRune: string | undefined;
  /** The certificate of the authority that signed the node's certificate, in PEM format, or several. */
  readonly clnCertificates: readonly string[] | undefined;
}

export const cln: BackendKind<ClnSettings> = {
  name: 'cln',
  credentialSetting: 'CLN_RUNE',
  accepts: ({ code }, kind) => code === 'BTC' && kind === 'bolt11',
  open: (settings) => (hasSettings(settings, 'clnUrl', 'clnRune') ? new ClnBackend(settings) : undefined),
};

/** The fields of an invoice that are used. */
interface ClnInvoice {
  readonly label?: unknown;
  readonly payment_hash?: unknown;
  readonly bolt11?: unknown;
  readonly status?: unknown;
  readonly amount_received_msat?: unknown;
  readonly paid_at?: unknown;
  readonly pay_index?: unknown;
}

export class ClnBackend implements PaymentBackend {
  readonly name = cln.name;
  /** `listinvoices` returns one invoice by its hash, or all invoices. */
  readonly maxBatchSize = 1;
  private readonly http: BackendHttp;
  /** The index of the last payment that a subscription has yielded; at first, that of the newest payment. */
  private lastPayIndex: number | undefined;

  constructor(private readonly settings: ClnSettings & { readonly clnUrl: string; readonly clnRune: string }) {
    this.http = new BackendHttp('The Lightning node', settings.clnUrl, {
      getCertificates: () => settings.clnCertificates,
    });
  }

  async createPayment({ topupId, units, memo, expirySeconds }: PaymentRequest): Promise<CreatedPayment> {
    const params = { amount_msat: `${units}msat`, label: topupId, description: memo, expiry: expirySeconds };
    const invoice = await this.call<ClnInvoice>('invoice', params, LABEL_EXISTS);
    const { payment_hash: hash, bolt11 } = invoice ?? (await this.findInvoice({ label: topupId })) ?? {};
    if (!isHex32(hash) || typeof bolt11 !== 'string') {
      throw new UpstreamError('upstream_error', 'The Lightning node did not create an invoice');
    }
    return { reference: hash, destination: { kind: 'bolt11', value: bolt11 }, paymentHash: hash };
  }

  fetchPayments(references: readonly string[]): Promise<readonly BackendPayment[]> {
    return fetchInvoicesOneByOne(references, {
      find: (hash) => this.findInvoice({ payment_hash: hash }),
      getHash: ({ payment_hash }) => payment_hash,
      toPayment,
    });
  }

  async *subscribe(signal: AbortSignal): AsyncGenerator<string> {
    this.lastPayIndex ??= await this.findNewestPayIndex(signal);
    let paid = await this.waitForPaidAfter(this.lastPayIndex, WAIT_SECONDS, signal);
    for (; paid; paid = await this.waitForPaidAfter(this.lastPayIndex, WAIT_SECONDS, signal)) {
      this.lastPayIndex = paid.index;
      yield paid.hash;
    }
  }

  close(): Promise<void> {
    return this.http.close();
  }

  /**
   * Finds the index of the newest payment by bisection, because the node only returns the next payment after an index.
   */
  private async findNewestPayIndex(signal: AbortSignal): Promise<number> {
    let [low, high] = [0, Number.POSITIVE_INFINITY];
    while (low + 1 < high) {
      const guess = Number.isFinite(high) ? Math.floor((low + high) / 2) : low * 2;
      const paid = await this.waitForPaidAfter(guess, 0, signal);
      if (paid) low = paid.index;
      else high = guess + 1;
    }
    return low;
  }

  /**
   * Waits for the first invoice that is paid after the payment with this index.
   * @returns undefined if none is paid within `timeout` seconds
   */
  private async waitForPaidAfter(lastpay_index: number, timeout: number, signal: AbortSignal) {
    const invoice = await this.call<ClnInvoice>('waitanyinvoice', { lastpay_index, timeout }, NONE_PAID, {
      extraTimeoutMs: timeout * 1000,
      signal,
    });
    if (!invoice) return undefined;
    const { payment_hash: hash, pay_index: index } = invoice;
    if (!isHex32(hash) || !Number.isSafeInteger(index) || Number(index) <= lastpay_index) this.http.throwUnreadable();
    return { hash: hash as string, index: Number(index) };
  }

  private async findInvoice(by: { readonly label: string } | { readonly payment_hash: string }) {
    const response = await this.call<{ invoices?: readonly ClnInvoice[] }>('listinvoices', by);
    return Array.isArray(response?.invoices) ? response.invoices[0] : this.http.throwUnreadable();
  }

  /** @returns undefined if the command fails with the expected error code */
  private async call<T>(
    name: string,
    params: object,
    expected?: number,
    options: { readonly extraTimeoutMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<T | undefined> {
    const headers = { 'content-type': 'application/json', rune: this.settings.clnRune };
    const sent = { method: 'POST', path: `/v1/${name}`, headers, body: JSON.stringify(params), ...options } as const;
    const { status, text } = await this.http.send(sent);
    if (status !== 201 && status !== 200 && status !== 500) this.http.throwStatusError(status);
    const response = this.parseResponse(text);
    if (status !== 500) return response as T;
    const { code } = response as { readonly code?: unknown };
    return code !== undefined && code === expected ? undefined : this.http.throwStatusError(status);
  }

  private parseResponse(text: string): object {
    try {
      const parsed = parseExactJson(text);
      if (typeof parsed === 'object' && parsed !== null) return parsed;
    } catch {} // invalid JSON is handled like any other value that is not an object
    return this.http.throwUnreadable();
  }
}

function toPayment({ status, amount_received_msat, paid_at }: ClnInvoice, hash: string): BackendPayment | undefined {
  if (status !== 'paid') return undefined;
  const units = parseUnits(amount_received_msat);
  const receivedAt = unixSecondsToInstant(paid_at);
  if (units === undefined || receivedAt === undefined) {
    throw new UpstreamError('upstream_error', 'The Lightning node reported an unreadable payment');
  }
  return { reference: hash, id: hash, units, confirmations: 'final', receivedAt };
}
