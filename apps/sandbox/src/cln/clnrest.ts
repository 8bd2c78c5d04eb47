/**
 * Core Lightning's REST plugin for the simulated Lightning node. Sources: Core Lightning's documentation of its
 * commands, and the plugin's source code. Success has status 201, a failed command 500 with an error code, an unknown
 * command 404, a missing rune 403.
 */
import type { LightningInvoice, LightningNode } from '../lightning/node.ts';
import { type Call, HttpError, parseObject, type Routes } from '../router.ts';

const DEFAULT_EXPIRY_SECONDS = 7 * 86_400;
const MAX_LABEL = 128;

type Params = Readonly<Record<string, unknown>>;

export function clnRoutes(node: LightningNode): Routes {
  const peer = new ClnPeer(node);
  return { 'POST /cln/v1/:command': (call) => peer.serve(call) };
}

class ClnPeer {
  private readonly byLabel = new Map<string, string>();
  private readonly labels = new Map<string, string>();

  constructor(private readonly node: LightningNode) {}

  /** Any rune is accepted, but one is required. */
  async serve(call: Call): Promise<void> {
    if (!call.request.headers.rune) throw createError(403, 1501, 'Not authorized: Missing rune');
    const params = parseObject((await call.readText()) || '{}') ?? fail(-32600, 'Could not parse the request');
    if (call.parameter === 'invoice') return call.sendJson(201, this.createInvoice(params));
    if (call.parameter === 'listinvoices') return call.sendJson(201, { invoices: this.list(params) });
    if (call.parameter === 'waitanyinvoice') return call.sendJson(201, await this.waitForPayment(params, call));
    throw createError(404, -32601, `Unknown command '${call.parameter}'`);
  }

  private createInvoice({
    amount_msat,
    label,
    description,
    expiry = DEFAULT_EXPIRY_SECONDS,
    ...unknown
  }: Params): object {
    for (const name in unknown) fail(-32602, `Unknown parameter: '${name}'`);
    if (typeof label !== 'string' || label === '' || label.length > MAX_LABEL)
      fail(-32602, 'label: should be a string');
    if (typeof description !== 'string') fail(-32602, 'missing required parameter: description');
    if (!Number.isSafeInteger(expiry) || Number(expiry) <= 0) fail(-32602, 'expiry: should be an unsigned integer');
    if (this.byLabel.has(label)) fail(900, 'Duplicate label');
    const invoice = this.node.issue({ msat: parseMsat(amount_msat), memo: description, expirySeconds: Number(expiry) });
    const hash = invoice.hash.toString('hex');
    this.byLabel.set(label, hash);
    this.labels.set(hash, label);
    return {
      payment_hash: hash,
      expires_at: invoice.created + invoice.expirySeconds,
      bolt11: invoice.paymentRequest,
      payment_secret: invoice.paymentAddress.toString('hex'),
      created_index: this.labels.size,
    };
  }

  private list({ label, payment_hash, ...unknown }: Params): readonly object[] {
    for (const name in unknown) fail(-32602, `the sandbox does not simulate '${name}'`);
    const hash = typeof label === 'string' ? this.byLabel.get(label) : payment_hash;
    const invoice = typeof hash === 'string' && this.labels.has(hash) ? this.node.find(hash) : undefined;
    return invoice ? [this.toInvoiceJson(invoice)] : [];
  }

  /**
   * Waits for a payment whose index is above `lastpay_index`, and returns the first such payment. Payments with the
   * report mode `never` or `forged` are left out.
   * @throws HttpError 500 for invalid parameters, or if there is no such payment within `timeout` seconds
   */
  private waitForPayment({ lastpay_index = 0, timeout, ...unknown }: Params, { response }: Call): Promise<object> {
    for (const name in unknown) fail(-32602, `Unknown parameter: '${name}'`);
    const after = Number(lastpay_index);
    if (!Number.isSafeInteger(after) || after < 0) fail(-32602, 'lastpay_index: should be an unsigned 64 bit integer');
    const paidInvoice = this.findPaidAfter(after);
    if (paidInvoice) return Promise.resolve(paidInvoice);
    return new Promise((resolve, reject) => {
      const timer =
        timeout === undefined
          ? undefined
          : setTimeout(() => end(() => reject(createError(500, 904, 'Timed out'))), Number(timeout) * 1000);
      const unsubscribe = this.node.subscribe(() => {
        const paid = this.findPaidAfter(after);
        if (paid) end(() => resolve(paid));
      });
      const end = (onEnd: () => void) => {
        clearTimeout(timer);
        unsubscribe();
        onEnd();
      };
      response.on('close', () => end(() => reject(createError(500, 904, 'Timed out'))));
    });
  }

  private findPaidAfter(index: number): object | undefined {
    const ownInvoices = this.node.listSettledInvoices(0).filter(({ hash }) => this.labels.has(hash.toString('hex')));
    const next = ownInvoices.find(({ payment }) => payment && payment.settleIndex > index);
    return next && this.toInvoiceJson(next);
  }

  private toInvoiceJson(invoice: LightningInvoice): object {
    const { hash, msat, payment, created, expirySeconds, memo, paymentRequest, preimage } = invoice;
    const state = this.node.getState(invoice);
    const label = this.labels.get(hash.toString('hex')) ?? '';
    const paid = payment && {
      pay_index: payment.settleIndex,
      amount_received_msat: Number(payment.msat),
      paid_at: payment.at,
      payment_preimage: preimage.toString('hex'),
    };
    return {
      label,
      bolt11: paymentRequest,
      payment_hash: hash.toString('hex'),
      amount_msat: Number(msat),
      status: state === 'SETTLED' ? 'paid' : state === 'OPEN' ? 'unpaid' : 'expired',
      ...paid,
      description: memo,
      expires_at: created + expirySeconds,
      created_index: invoice.addIndex,
      ...(payment ? { updated_index: payment.settleIndex } : {}),
    };
  }
}

/** Parses an integer above 0 with an optional unit: `msat`, which is the default, or `sat` for 1,000 msat. */
function parseMsat(value: unknown): bigint {
  const [, digits, unit = ''] = /^(\d{1,18})(msat|sat)?$/.exec(String(value)) ?? [];
  if (digits === undefined || /^0+$/.test(digits)) return fail(-32602, 'amount_msat: should be positive msat or "any"');
  return BigInt(digits) * (unit === 'sat' ? 1000n : 1n);
}

function fail(code: number, message: string): never {
  throw createError(500, code, message);
}

function createError(status: number, code: number, message: string): HttpError {
  return new HttpError(status, { code, message });
}
