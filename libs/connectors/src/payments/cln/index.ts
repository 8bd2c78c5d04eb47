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
import { parseExactly, parseUnits, unixSecondsToInstant } from '../exact-json.ts';
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
  takes: ({ code }, kind) => code === 'BTC' && kind === 'bolt11',
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
  private last: number | undefined;

  constructor(
    url: string,
    private readonly rune: string,
    certificate: string | undefined,
  ) {
    this.http = new BackendHttp('The Lightning node', url, { certificate });
  }

  async createPayment({ topupId, units, memo, expirySeconds }: PaymentRequest): Promise<CreatedPayment> {
    const asked = { amount_msat: `${units}msat`, label: topupId, description: memo, expiry: expirySeconds };
    const made = await this.command<ClnInvoice>('invoice', asked, LABEL_EXISTS);
    const { payment_hash: hash, bolt11 } = made ?? (await this.find({ label: topupId })) ?? {};
    if (!isHex32(hash) || typeof bolt11 !== 'string') {
      throw new UpstreamError('upstream_error', 'The Lightning node made no invoice');
    }
    return { reference: hash, destination: { kind: 'bolt11', value: bolt11 }, paymentHash: hash };
  }

  fetchPayments(references: readonly string[]): Promise<readonly BackendPayment[]> {
    return fetchInvoicesOneByOne(references, async (payment_hash) => {
      const invoice = await this.find({ payment_hash });
      return invoice && paymentOf(invoice);
    });
  }

  async *subscribe(signal: AbortSignal): AsyncGenerator<string> {
    this.last ??= await this.newest(signal);
    let paid = await this.paidAfter(this.last, WAIT_SECONDS, signal);
    for (; paid; paid = await this.paidAfter(this.last, WAIT_SECONDS, signal)) {
      this.last = paid.index;
      yield paid.hash;
    }
  }

  close(): Promise<void> {
    return this.http.close();
  }

  /** The index of the newest payment. The node only says which is the next after another, so it is found by halving. */
  private async newest(signal: AbortSignal): Promise<number> {
    let [known, beyond] = [0, Number.POSITIVE_INFINITY];
    while (known + 1 < beyond) {
      const guess = Number.isFinite(beyond) ? Math.floor((known + beyond) / 2) : known * 2;
      const paid = await this.paidAfter(guess, 0, signal);
      if (paid) known = paid.index;
      else beyond = guess + 1;
    }
    return known;
  }

  /** The first invoice that was paid after the payment of this index. */
  private async paidAfter(lastpay_index: number, timeout: number, signal: AbortSignal) {
    const invoice = await this.command<ClnInvoice>('waitanyinvoice', { lastpay_index, timeout }, NONE_PAID, {
      waitsMs: timeout * 1000,
      signal,
    });
    if (!invoice) return undefined;
    const { payment_hash: hash, pay_index: index } = invoice;
    if (!isHex32(hash) || !Number.isSafeInteger(index) || Number(index) <= lastpay_index) this.http.unreadable();
    return { hash: hash as string, index: Number(index) };
  }

  private async find(by: { readonly label: string } | { readonly payment_hash: string }) {
    const answer = await this.command<{ invoices?: readonly ClnInvoice[] }>('listinvoices', by);
    return Array.isArray(answer?.invoices) ? answer.invoices[0] : this.http.unreadable();
  }

  /** @returns undefined when the command fails with the code that is expected of it */
  private async command<T>(
    name: string,
    params: object,
    expected?: number,
    more: { readonly waitsMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<T | undefined> {
    const headers = { 'content-type': 'application/json', rune: this.rune };
    const sent = { method: 'POST', path: `/v1/${name}`, headers, body: JSON.stringify(params), ...more } as const;
    const { status, text } = await this.http.ask(sent);
    if (status !== 201 && status !== 200 && status !== 500) this.http.refused(status);
    const answer = this.read(text);
    if (status !== 500) return answer as T;
    const { code } = answer as { readonly code?: unknown };
    return code !== undefined && code === expected ? undefined : this.http.refused(status);
  }

  private read(text: string): object {
    try {
      const answer = parseExactly(text);
      if (typeof answer === 'object' && answer !== null) return answer;
    } catch {} // it is as unreadable as one that is no object
    return this.http.unreadable();
  }
}

function paymentOf({ status, payment_hash, amount_received_msat, paid_at }: ClnInvoice): BackendPayment | undefined {
  if (status !== 'paid') return undefined;
  const units = parseUnits(amount_received_msat);
  const receivedAt = unixSecondsToInstant(paid_at);
  if (!isHex32(payment_hash) || units === undefined || receivedAt === undefined) {
    throw new UpstreamError('upstream_error', 'The Lightning node reported a payment that cannot be read');
  }
  return { reference: payment_hash, id: payment_hash, units, confirmations: 'final', receivedAt };
}
