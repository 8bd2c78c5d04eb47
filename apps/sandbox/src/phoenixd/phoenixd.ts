/**
 * ACINQ's phoenixd in front of the simulated Lightning node. Source: `Api.kt` and `JsonSerializers.kt` of phoenixd.
 * Requests are forms; responses are JSON, with times in milliseconds. Amounts are in satoshis, except `fees` in
 * millisatoshis. An unknown payment gets status 404. Webhooks are signed over their bytes. Failed ones get no retry.
 */
import { createHmac } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { LightningInvoice, LightningNode } from '../lightning/node.ts';
import type { ReportMode } from '../report.ts';
import { type Call, type Handler, HttpError, parseObject, type Routes } from '../router.ts';

const DEFAULT_EXPIRY_SECONDS = 3_600;
const MAX_DESCRIPTION = 128;
const TIMEOUT_MS = 10_000;
/** Delay of a reordered webhook. Webhooks of later payments within this time arrive first. */
const REORDER_DELAY_MS = 300;
const MSAT_PER_SAT = 1_000n;

/** The settings that `PUT /phoenixd/conf` replaces. An actual phoenixd reads the webhook and secret from a file. */
interface Configuration {
  /** URL; undefined if no webhooks are sent. */
  readonly webhook?: string;
  readonly webhookSecret: string;
  /** Deducted from each payment, as if phoenixd had bought liquidity for it. */
  readonly liquidityFeeSat: bigint;
}

export class PhoenixdPeer {
  private readonly externalIds = new Map<string, string | undefined>();
  private readonly fees = new Map<string, bigint>();
  private readonly closing = new AbortController();
  private configuration: Configuration = { webhookSecret: 'sandbox', liquidityFeeSat: 0n };

  constructor(private readonly node: LightningNode) {
    node.onSettled((invoice) => void this.handleSettled(invoice));
  }

  routes(): Routes {
    const routes: Record<string, Handler> = {
      'POST /phoenixd/createinvoice': async (call) => this.create(call),
      'GET /phoenixd/payments/incoming/:hash': (call) =>
        call.sendJson(200, this.toPaymentJson(this.find(call.parameter))),
    };
    const guarded = Object.entries(routes).map(([route, handler]) => [route, withPassword(handler)]);
    return { ...Object.fromEntries(guarded), 'PUT /phoenixd/conf': async (call) => this.configure(call) };
  }

  close(): void {
    this.closing.abort();
  }

  private async configure(call: Call): Promise<void> {
    const { webhook, webhook_secret = 'sandbox', liquidity_fee_sat = 0 } = parseObject(await call.readText()) ?? {};
    const valid = (webhook === undefined || URL.canParse(String(webhook))) && Number.isSafeInteger(liquidity_fee_sat);
    if (!valid) throw new HttpError(400, { error: '"webhook" must be a URL and "liquidity_fee_sat" an integer' });
    const fee = { liquidityFeeSat: BigInt(liquidity_fee_sat as number), webhookSecret: String(webhook_secret) };
    this.configuration = { ...fee, ...(webhook === undefined ? {} : { webhook: String(webhook) }) };
    call.sendJson(200, {});
  }

  private async create(call: Call): Promise<void> {
    const form = new URLSearchParams(await call.readText());
    const description = form.get('description');
    if (description === null) throw createError(400, 'Must provide either a description or descriptionHash');
    if (description.length > MAX_DESCRIPTION) throw createError(400, 'Request parameter description is too long');
    const amountSat = parseLong(form, 'amountSat');
    const expirySeconds = Number(parseLong(form, 'expirySeconds') ?? DEFAULT_EXPIRY_SECONDS);
    if (amountSat === undefined) throw createError(400, 'the sandbox requires amountSat');
    const invoice = this.node.issue({ msat: amountSat * MSAT_PER_SAT, memo: description, expirySeconds });
    const paymentHash = invoice.hash.toString('hex');
    this.externalIds.set(paymentHash, form.get('externalId') ?? undefined);
    call.sendJson(200, { amountSat: Number(amountSat), paymentHash, serialized: invoice.paymentRequest });
  }

  private find(hash: string): LightningInvoice {
    const invoice = this.externalIds.has(hash) ? this.node.find(hash) : undefined;
    if (!invoice) throw createError(404, 'Not found');
    return invoice;
  }

  private toPaymentJson(invoice: LightningInvoice): object {
    const { hash, preimage, memo, paymentRequest, msat, payment, created, expirySeconds } = invoice;
    const paymentHash = hash.toString('hex');
    const fee = this.fees.get(paymentHash) ?? 0n;
    const externalId = this.externalIds.get(paymentHash);
    return {
      type: 'incoming_payment',
      subType: 'lightning',
      paymentHash,
      preimage: preimage.toString('hex'),
      ...(externalId === undefined ? {} : { externalId }),
      description: memo,
      invoice: paymentRequest,
      isPaid: payment !== undefined,
      isExpired: this.node.getUnixTime() > created + expirySeconds,
      requestedSat: Number(msat / MSAT_PER_SAT),
      receivedSat: payment ? Number(payment.msat / MSAT_PER_SAT - fee) : 0,
      fees: Number(fee * MSAT_PER_SAT),
      expiresAt: (created + expirySeconds) * 1000,
      ...(payment ? { completedAt: payment.at * 1000 } : {}),
      createdAt: created * 1000,
    };
  }

  private async handleSettled(invoice: LightningInvoice): Promise<void> {
    const hash = invoice.hash.toString('hex');
    if (!this.externalIds.has(hash) || !invoice.payment) return;
    this.fees.set(hash, this.configuration.liquidityFeeSat);
    const { report } = invoice.payment;
    if (report === 'never') return;
    if (report === 'reordered') await pause(REORDER_DELAY_MS, undefined, { ref: false });
    for (let times = report === 'twice' ? 2 : 1; times > 0; times--) await this.sendWebhook(invoice, report);
  }

  private async sendWebhook({ hash, payment }: LightningInvoice, report: ReportMode): Promise<void> {
    const { webhook, webhookSecret } = this.configuration;
    if (webhook === undefined) return;
    const paymentHash = hash.toString('hex');
    const externalId = this.externalIds.get(paymentHash);
    const amountSat = Number((payment?.msat ?? 0n) / MSAT_PER_SAT - (this.fees.get(paymentHash) ?? 0n));
    const event = { type: 'payment_received', timestamp: Date.now(), amountSat, paymentHash };
    const body = JSON.stringify({ ...event, ...(externalId === undefined ? {} : { externalId }) }, undefined, 4);
    const secret = report === 'forged' ? `not ${webhookSecret}` : webhookSecret;
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const headers = { 'content-type': 'application/json', 'X-Phoenix-Signature': signature };
    const signal = AbortSignal.any([this.closing.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    try {
      await (await fetch(webhook, { method: 'POST', headers, body, signal })).arrayBuffer();
    } catch {} // phoenixd does not repeat a failed webhook
  }
}

/** Any password is accepted, but one is required. */
function withPassword(handler: Handler): Handler {
  return (call) => {
    const [scheme = '', value = ''] = (call.request.headers.authorization ?? '').split(' ');
    const password = scheme.toLowerCase() === 'basic' ? Buffer.from(value, 'base64').toString().split(':')[1] : '';
    if (!password)
      throw createError(401, 'Invalid authentication (use basic auth with the http password set in phoenix.conf)');
    return handler(call);
  };
}

function parseLong(form: URLSearchParams, name: string): bigint | undefined {
  const value = form.get(name);
  if (value === null) return undefined;
  if (!/^\d{1,15}$/.test(value)) throw createError(400, `Parameter ${name} is of the wrong type (expected: integer)`);
  return BigInt(value);
}

/** phoenixd's errors are plain text. */
function createError(status: number, sentence: string): HttpError {
  return new HttpError(status, sentence);
}
