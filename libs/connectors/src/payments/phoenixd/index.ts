/**
 * A Lightning node through ACINQ's phoenixd, which manages channels for a fee. An invoice is paid once, so the payment
 * hash is both the reference and the id of the payment.
 *
 * An invoice accepts its amount or more. `receivedSat` is the rest after phoenixd has bought liquidity with the
 * payment, and can be negative. `fees` is not used, because it includes what earlier payments have paid for that
 * purchase.
 *
 * Sources: phoenixd's API documentation and source (`Api.kt`, `JsonSerializers.kt`), and lightning-kmp.
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
import { BackendHttp } from '../backend-http.ts';
import { type BackendKind, hasSettings } from '../backend-kind.ts';
import { parseBackendJson } from '../exact-json.ts';
import { fetchInvoicesOneByOne, isHex32 } from '../lightning.ts';
import { createEmptySubscription } from '../no-hints.ts';

const MSAT_PER_SAT = 1_000n;

export interface PhoenixdSettings {
  readonly phoenixdUrl: string | undefined;
  /** `http-password-limited-access` of phoenixd's configuration is sufficient. */
  readonly phoenixdPassword: string | undefined;
  /** `webhook-secret` of phoenixd's configuration. Undefined: all webhooks are rejected. */
  readonly phoenixdWebhookSecret: string | undefined;
}

export const phoenixd: BackendKind<PhoenixdSettings> = {
  name: 'phoenixd',
  credentialSetting: 'PHOENIXD_PASSWORD',
  accepts: ({ code }, kind) => code === 'BTC' && kind === 'bolt11',
  open: (settings) =>
    hasSettings(settings, 'phoenixdUrl', 'phoenixdPassword') ? new PhoenixdBackend(settings) : undefined,
};

export class PhoenixdBackend implements PaymentBackend {
  readonly name = phoenixd.name;
  /** phoenixd's lookup by hash returns one payment. */
  readonly maxBatchSize = 1;
  private readonly http: BackendHttp;

  constructor(
    private readonly settings: PhoenixdSettings & { readonly phoenixdUrl: string; readonly phoenixdPassword: string },
  ) {
    this.http = new BackendHttp('The Lightning node', settings.phoenixdUrl);
  }

  async createPayment({ topupId, units, memo, expirySeconds }: PaymentRequest): Promise<CreatedPayment> {
    const params = {
      amountSat: String(units / MSAT_PER_SAT),
      description: memo,
      expirySeconds: String(expirySeconds),
      externalId: topupId,
    };
    const invoice = await this.call('POST', '/createinvoice', new URLSearchParams(params).toString());
    const { paymentHash, serialized } = invoice ?? {};
    if (!isHex32(paymentHash) || typeof serialized !== 'string') {
      throw new UpstreamError('upstream_error', 'The Lightning node did not create an invoice');
    }
    return { reference: paymentHash, destination: { kind: 'bolt11', value: serialized }, paymentHash };
  }

  fetchPayments(references: readonly string[]): Promise<readonly BackendPayment[]> {
    return fetchInvoicesOneByOne(references, {
      find: (hash) => this.call('GET', `/payments/incoming/${hash}`),
      getHash: ({ paymentHash }) => paymentHash,
      toPayment,
    });
  }

  /** Payments are reported by webhooks, or found by polling. */
  subscribe(signal: AbortSignal): AsyncIterable<string> {
    return createEmptySubscription(signal);
  }

  parseWebhook({ headers, body }: WebhookRequest): readonly string[] | undefined {
    const signature = headers['x-phoenix-signature'];
    const { phoenixdWebhookSecret: secret } = this.settings;
    if (secret === undefined || typeof signature !== 'string' || !isHex32(signature)) return undefined;
    const expected = createHmac('sha256', secret).update(body).digest();
    if (!timingSafeEqual(expected, Buffer.from(signature, 'hex'))) return undefined;
    const { type, paymentHash } = parseObject(body.toString('utf8')) ?? {};
    return type === 'payment_received' && isHex32(paymentHash) ? [paymentHash] : [];
  }

  close(): Promise<void> {
    return this.http.close();
  }

  /** @returns undefined if phoenixd responds with 404 */
  private async call(method: 'GET' | 'POST', path: string, form?: string) {
    const authorization = `Basic ${Buffer.from(`:${this.settings.phoenixdPassword}`).toString('base64')}`;
    const headers = { authorization, ...(form ? { 'content-type': 'application/x-www-form-urlencoded' } : {}) };
    const { status, text } = await this.http.send({ method, path, headers, ...(form ? { body: form } : {}) });
    if (status === 404) return undefined;
    if (status !== 200) this.http.throwStatusError(status);
    return parseObject(text) ?? this.http.throwUnreadable();
  }
}

/**
 * Returns a payment of the requested amount, or of the received amount if that is higher. What is missing from the
 * requested amount is the fee for liquidity.
 */
function toPayment(payment: Readonly<Record<string, unknown>>, hash: string): BackendPayment | undefined {
  const { isPaid, requestedSat, receivedSat, completedAt } = payment;
  if (isPaid !== true) return undefined;
  const hasIntegers = [requestedSat, receivedSat, completedAt].every(Number.isSafeInteger);
  if (!hasIntegers || Number(requestedSat) < 0 || Number(completedAt) <= 0 || Number(completedAt) > 1e14) {
    throw new UpstreamError('upstream_error', 'The Lightning node reported an unreadable payment');
  }
  const [requested, received] = [requestedSat, receivedSat].map((sat) => BigInt(sat as number) * MSAT_PER_SAT) as [
    bigint,
    bigint,
  ];
  const units = received > requested ? received : requested;
  const liquidityFee = units - received;
  return {
    reference: hash,
    id: hash,
    units,
    confirmations: 'final',
    receivedAt: new Date(Number(completedAt)).toISOString(),
    ...(liquidityFee > 0n
      ? { fees: [{ id: 'liquidity', units: liquidityFee, why: 'liquidity that phoenixd bought' }] }
      : {}),
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  const value = parseBackendJson(text);
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
}
