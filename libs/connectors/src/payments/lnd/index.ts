/**
 * A Lightning node through LND's REST API. An invoice is paid once, so the payment hash is both the reference and the
 * id of the payment.
 *
 * Source: LND's API reference for `POST /v1/invoices`, `GET /v1/invoice/{r_hash_str}`, `GET /v1/invoices/subscribe`.
 */
import {
  type BackendPayment,
  type CreatedPayment,
  createCredentialError,
  type PaymentBackend,
  type PaymentRequest,
  UpstreamError,
} from '#application';
import { BackendHttp } from '../backend-http.ts';
import { type BackendKind, hasSettings } from '../backend-kind.ts';
import { parseBackendJson, unixSecondsToInstant } from '../exact-json.ts';
import { fetchInvoicesOneByOne } from '../lightning.ts';
import { splitLines } from '../lines.ts';

/** Matches LND's messages for an invalid macaroon and for one without the permission. Their status is 500. */
const MACAROON_ERROR =
  /^(verification failed|permission denied|expected 1 macaroon|cannot (get|decode) macaroon|encoding\/hex)/;
/** Maximum characters of a line of the subscription. An invoice has a few thousand. */
const MAX_LINE_LENGTH = 1024 * 1024;

export interface LndSettings {
  /** Address of LND's REST API, without the `/v1`. */
  readonly lndUrl: string | undefined;
  /** Hexadecimal; needs the permissions `invoices:read` and `invoices:write`. */
  readonly lndMacaroon: string;
  /** The node's self-signed certificate, in PEM format, or several while it is exchanged. */
  readonly lndCertificates: readonly string[] | undefined;
}

export const lnd: BackendKind<LndSettings> = {
  name: 'lnd',
  credentialSetting: 'LND_MACAROON',
  accepts: ({ code }, kind) => code === 'BTC' && kind === 'bolt11',
  open: (settings) => (hasSettings(settings, 'lndUrl') ? new LndBackend(settings) : undefined),
};

/** An invoice in LND's REST format: 64-bit numbers are strings, bytes are base64. */
interface LndInvoice {
  readonly state: 'OPEN' | 'SETTLED' | 'CANCELED' | 'ACCEPTED';
  readonly r_hash: string;
  readonly amt_paid_msat: string;
  readonly settle_date: string;
}

export class LndBackend implements PaymentBackend {
  readonly name = lnd.name;
  /** LND's lookup by hash returns one invoice. */
  readonly maxBatchSize = 1;
  private readonly http: BackendHttp;

  constructor(private readonly settings: LndSettings & { readonly lndUrl: string }) {
    this.http = new BackendHttp('The Lightning node', settings.lndUrl, {
      getCertificates: () => settings.lndCertificates,
    });
  }

  private get headers(): Readonly<Record<string, string>> {
    return { 'content-type': 'application/json', 'grpc-metadata-macaroon': this.settings.lndMacaroon };
  }

  async createPayment({ units, memo, expirySeconds }: PaymentRequest): Promise<CreatedPayment> {
    const body = JSON.stringify({ value_msat: units.toString(), memo, expiry: expirySeconds.toString() });
    const invoice = await this.call<{ r_hash: string; payment_request: string }>('POST', '/v1/invoices', body);
    if (typeof invoice?.payment_request !== 'string' || !isHash(invoice.r_hash)) {
      throw new UpstreamError('upstream_error', 'The Lightning node did not create an invoice');
    }
    const paymentHash = base64ToHex(invoice.r_hash);
    return { reference: paymentHash, destination: { kind: 'bolt11', value: invoice.payment_request }, paymentHash };
  }

  fetchPayments(references: readonly string[]): Promise<readonly BackendPayment[]> {
    return fetchInvoicesOneByOne(references, {
      find: (hash) => this.call<LndInvoice>('GET', `/v1/invoice/${hash}`),
      getHash: ({ r_hash }) => (isHash(r_hash) ? base64ToHex(r_hash) : undefined),
      toPayment,
    });
  }

  async *subscribe(signal: AbortSignal): AsyncGenerator<string> {
    const chunks = await this.http.stream('/v1/invoices/subscribe', this.headers, signal);
    for await (const line of splitLines(chunks, MAX_LINE_LENGTH, () => this.http.throwUnreadable())) {
      const reference = line.trim() === '' ? undefined : parseSettledHash(line);
      if (reference !== undefined) yield reference;
    }
  }

  close(): Promise<void> {
    return this.http.close();
  }

  /** @returns undefined if the node responds with 404 */
  private async call<T>(method: 'GET' | 'POST', path: string, sent?: string): Promise<T | undefined> {
    const { headers } = this;
    const { status, text } = await this.http.send({ method, path, headers, ...(sent ? { body: sent } : {}) });
    if (status === 404) return undefined;
    if (status >= 500 && MACAROON_ERROR.test(parseMessage(text)))
      throw createCredentialError('The Lightning node does not accept the macaroon', status);
    if (status !== 200) this.http.throwStatusError(status);
    return (parseBackendJson(text) as T | null | undefined) ?? this.http.throwUnreadable();
  }
}

/**
 * Returns the hash of the invoice that a line of the subscription reports as paid.
 * @returns undefined if the line reports no paid invoice
 * @throws UpstreamError for a line that is not JSON, or for the error with which the node ends the subscription. The
 * node's text is dropped, because it may quote the request with the macaroon.
 */
function parseSettledHash(line: string): string | undefined {
  const message = parseBackendJson(line) as
    | { readonly result?: Partial<LndInvoice>; readonly error?: unknown }
    | null
    | undefined;
  if (message === undefined)
    throw new UpstreamError('upstream_error', 'The Lightning node sent a report that cannot be read');
  const { result, error } = message ?? {};
  if (error) throw new UpstreamError('upstream_error', 'The Lightning node ended the subscription and reports no more');
  return result?.state === 'SETTLED' && isHash(result.r_hash) ? base64ToHex(result.r_hash) : undefined;
}

/** Returns the message of an error response, which is not reported further; empty if there is none. */
function parseMessage(text: string): string {
  const { message } = (parseBackendJson(text) ?? {}) as { readonly message?: unknown };
  return typeof message === 'string' ? message : '';
}

function toPayment({ state, amt_paid_msat, settle_date }: LndInvoice, hash: string): BackendPayment | undefined {
  if (state !== 'SETTLED') return undefined;
  const receivedAt = unixSecondsToInstant(Number(settle_date));
  if (!/^\d{1,19}$/.test(amt_paid_msat) || receivedAt === undefined) {
    throw new UpstreamError('upstream_error', 'The Lightning node reported an unreadable payment');
  }
  const units = BigInt(amt_paid_msat);
  return { reference: hash, id: hash, units, confirmations: 'final', receivedAt };
}

/** 32 bytes in base64. */
function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9+/_-]{43}=?$/.test(value);
}

/** Decodes both base64 alphabets: LND returns bytes in the standard one, and sometimes in the URL-safe one. */
function base64ToHex(base64: string): string {
  return Buffer.from(base64, 'base64').toString('hex');
}
