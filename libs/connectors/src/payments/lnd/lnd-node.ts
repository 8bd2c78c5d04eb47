import { readFileSync } from 'node:fs';
import { Agent, type Dispatcher, request } from 'undici';
import { type LightningInvoice, LightningNode, type LightningPayment, UpstreamFailure } from '#application';

const TIMEOUT_MS = 10_000;

export interface LndOptions {
  /** Address of LND's REST API, without the `/v1`. */
  readonly url: string;
  /** Hexadecimal; needs `invoices:read` and `invoices:write`. */
  readonly macaroon: string;
  /** File with the node's own certificate. */
  readonly certificate: string | undefined;
}

/** LND's invoice as its REST API prints it: 64-bit numbers are strings, bytes are base64. */
interface LndInvoice {
  readonly state: 'OPEN' | 'SETTLED' | 'CANCELED' | 'ACCEPTED';
  readonly r_hash: string;
  readonly amt_paid_msat: string;
  readonly settle_date: string;
}

/**
 * A Lightning node through LND's REST API.
 * Facts from LND's API reference: `POST /v1/invoices`, `GET /v1/invoice/{r_hash_str}`, `GET /v1/invoices/subscribe`.
 */
export class LndNode extends LightningNode {
  private readonly url: string;
  private readonly headers: Record<string, string>;
  private readonly dispatcher: Dispatcher;

  constructor({ url, macaroon, certificate }: LndOptions) {
    super();
    this.url = url;
    this.headers = { 'content-type': 'application/json', 'grpc-metadata-macaroon': macaroon };
    const ca = certificate === undefined ? {} : { ca: readFileSync(certificate) };
    this.dispatcher = new Agent({ connect: { timeout: TIMEOUT_MS, ...ca } });
  }

  async createInvoice(msat: bigint, memo: string, expirySeconds: number): Promise<LightningInvoice> {
    const body = JSON.stringify({ value_msat: msat.toString(), memo, expiry: expirySeconds.toString() });
    const made = await this.ask<{ r_hash: string; payment_request: string }>('POST', '/v1/invoices', body);
    if (!made?.payment_request || !made.r_hash) {
      throw new UpstreamFailure('upstream_error', 'The Lightning node made no invoice');
    }
    return { invoice: made.payment_request, paymentHash: hexOf(made.r_hash) };
  }

  async lookUp(paymentHash: string): Promise<LightningPayment | undefined> {
    const invoice = await this.ask<LndInvoice>('GET', `/v1/invoice/${paymentHash}`);
    const payment = invoice && paymentOf(invoice);
    if (payment && payment.paymentHash !== paymentHash) {
      throw new UpstreamFailure('upstream_error', 'The Lightning node answered for another invoice');
    }
    return payment;
  }

  async *payments(signal: AbortSignal): AsyncGenerator<LightningPayment> {
    const { headers, dispatcher } = this;
    const options = { headers, dispatcher, signal, headersTimeout: 0, bodyTimeout: 0 };
    const { statusCode, body } = await request(`${this.url}/v1/invoices/subscribe`, options).catch(unreachable);
    if (statusCode !== 200) {
      await body.dump();
      throw new UpstreamFailure('upstream_error', `The Lightning node answered with status ${statusCode}`);
    }
    let pending = '';
    for await (const piece of body.setEncoding('utf8')) {
      const lines = (pending + piece).split('\n');
      pending = lines.pop() ?? '';
      for (const line of lines.filter((each) => each.trim() !== '')) {
        const payment = reportedIn(line);
        if (payment) yield payment;
      }
    }
  }

  close(): Promise<void> {
    return this.dispatcher.destroy();
  }

  /** @returns undefined when the node does not know what was asked for */
  private async ask<T>(method: 'GET' | 'POST', path: string, sent?: string): Promise<T | undefined> {
    const { headers, dispatcher } = this;
    const options = { method, headers, dispatcher, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS };
    const { statusCode, body } = await request(`${this.url}${path}`, sent ? { ...options, body: sent } : options).catch(
      unreachable,
    );
    if (statusCode === 200) return (await body.json().catch(unreadable)) as T;
    await body.dump();
    if (statusCode === 404) return undefined;
    throw new UpstreamFailure('upstream_error', `The Lightning node answered with status ${statusCode}`, {
      status: statusCode,
    });
  }
}

/** A line of the subscription: an invoice, or as the last one the reason why it ends. */
function reportedIn(line: string): LightningPayment | undefined {
  const { result, error } = JSON.parse(line) as { result?: LndInvoice; error?: { message?: string } };
  if (error) throw new UpstreamFailure('upstream_error', `The Lightning node reports no more: ${error.message}`);
  return result && paymentOf(result);
}

function paymentOf({ state, r_hash, amt_paid_msat, settle_date }: LndInvoice): LightningPayment | undefined {
  if (state !== 'SETTLED') return undefined;
  if (!r_hash || !/^\d+$/.test(amt_paid_msat) || !/^\d{1,12}$/.test(settle_date)) {
    throw new UpstreamFailure('upstream_error', 'The Lightning node told of a payment that cannot be understood');
  }
  const paidAt = new Date(Number(settle_date) * 1000).toISOString();
  return { paymentHash: hexOf(r_hash), msat: BigInt(amt_paid_msat), paidAt };
}

/** LND prints bytes in standard base64, and accepts and sometimes prints the URL-safe one. */
function hexOf(base64: string): string {
  return Buffer.from(base64, 'base64').toString('hex');
}

function unreachable(cause: unknown): never {
  throw new UpstreamFailure('upstream_unavailable', 'The Lightning node cannot be reached', { cause });
}

function unreadable(cause: unknown): never {
  throw new UpstreamFailure('upstream_error', 'The Lightning node sent an answer that cannot be read', { cause });
}
