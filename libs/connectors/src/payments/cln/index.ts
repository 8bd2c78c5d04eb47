/**
 * A Lightning node through Core Lightning's REST plugin, `clnrest`. A reference is a payment hash, and so is the id of a
 * payment: an invoice is paid once.
 * Facts from Core Lightning's documentation of `invoice`, `listinvoices` and `waitanyinvoice`, and from the plugin's
 * source: every command is `POST /v1/<command>`, what succeeds has status 201, what does not 500 with the code of the
 * command, a missing or wrong rune 401 or 403.
 */
import {
  type BackendPayment,
  type CreatedPayment,
  type PaymentBackend,
  type PaymentRequest,
  UpstreamError,
} from '#application';
import { BackendHttp } from '../backend-http.ts';
import type { BackendKind } from '../backend-kind.ts';
import { parseExactJson, parseUnits, unixSecondsToInstant } from '../exact-json.ts';
import { fetchInvoicesOneByOne, isHex32 } from '../lightning.ts';

/** How long the node waits for a payment before it answers that there was none. */
const WAIT_SECONDS = 60;
/** `invoice`: there is one with this label already. `waitanyinvoice`: none was paid in time. */
const LABEL_EXISTS = 900;
const NONE_PAID = 904;

export interface ClnSettings {
  /** Address of `clnrest`, without the `/v1`. */
  readonly clnUrl: string | undefined;
  /** Must allow `invoice`, `listinvoices` and `waitanyinvoice`. */
  readonly clnRune: string | undefined;
  /** File with the certificate of its authority. */
  readonly clnCertificate: string | undefined;
}

export const cln: BackendKind<ClnSettings> = {
  name: 'cln',
  accepts: ({ code }, kind) => code === 'BTC' && kind === 'bolt11',
  open({ clnUrl, clnRune, clnCertificate }) {
    if (clnUrl === undefined || clnRune === undefined) return undefined;
    return new ClnBackend(clnUrl, clnRune, clnCertificate);
  },
};

/** An invoice as far as it is read. */
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
  /** `listinvoices` finds one invoice by its hash, or all that there are. */
  readonly maxBatchSize = 1;
  private readonly http: BackendHttp;
  /** The index of the newest payment that was hinted at. */
  private lastPayIndex: number | undefined;

  constructor(
    url: string,
    private readonly rune: string,
    certificate: string | undefined,
  ) {
    this.http = new BackendHttp('The Lightning node', url, { certificate });
  }

  async createPayment({ topupId, units, memo, expirySeconds }: PaymentRequest): Promise<CreatedPayment> {
    const params = { amount_msat: `${units}msat`, label: topupId, description: memo, expiry: expirySeconds };
    const invoice = await this.call<ClnInvoice>('invoice', params, LABEL_EXISTS);
    const { payment_hash: hash, bolt11 } = invoice ?? (await this.findInvoice({ label: topupId })) ?? {};
    if (!isHex32(hash) || typeof bolt11 !== 'string') {
      throw new UpstreamError('upstream_error', 'The Lightning node made no invoice');
    }
    return { reference: hash, destination: { kind: 'bolt11', value: bolt11 }, paymentHash: hash };
  }

  fetchPayments(references: readonly string[]): Promise<readonly BackendPayment[]> {
    return fetchInvoicesOneByOne(references, async (payment_hash) => {
      const invoice = await this.findInvoice({ payment_hash });
      return invoice && toPayment(invoice);
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

  /** The index of the newest payment. The node only says which is the next after another, so it is found by halving. */
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

  /** The first invoice that was paid after the payment of this index. */
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

  /** @returns undefined when the command fails with the code that is expected of it */
  private async call<T>(
    name: string,
    params: object,
    expected?: number,
    options: { readonly extraTimeoutMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<T | undefined> {
    const headers = { 'content-type': 'application/json', rune: this.rune };
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
    } catch {} // it is as unreadable as one that is no object
    return this.http.throwUnreadable();
  }
}

function toPayment({ status, payment_hash, amount_received_msat, paid_at }: ClnInvoice): BackendPayment | undefined {
  if (status !== 'paid') return undefined;
  const units = parseUnits(amount_received_msat);
  const receivedAt = unixSecondsToInstant(paid_at);
  if (!isHex32(payment_hash) || units === undefined || receivedAt === undefined) {
    throw new UpstreamError('upstream_error', 'The Lightning node reported a payment that cannot be read');
  }
  return { reference: payment_hash, id: payment_hash, units, confirmations: 'final', receivedAt };
}
