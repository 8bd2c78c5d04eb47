/** A wallet of a third party that pays the invoices of the simulated node. */
import { parseReportMode, type ReportMode } from '../report.ts';
import { type Call, HttpError, parseObject, type Routes } from '../router.ts';
import { parsePaymentHash } from './bolt11.ts';
import type { LightningInvoice, LightningNode } from './node.ts';

interface PaymentOrder {
  readonly invoice: string;
  /** Pays an expired invoice as well. */
  readonly allowsExpired: boolean;
  /** The paid amount; undefined means the requested amount. A smaller amount is rejected. */
  readonly msat: bigint | undefined;
  readonly report: ReportMode;
  /** Unix seconds; undefined means now. */
  readonly settledAt: number | undefined;
}

export function walletRoutes(node: LightningNode): Routes {
  return {
    'POST /wallet/pay': async (call) => {
      const paid = pay(node, await readOrder(call));
      const { preimage, hash, payment } = paid;
      call.sendJson(200, {
        preimage: preimage.toString('hex'),
        payment_hash: hash.toString('hex'),
        amount_msat: String(payment?.msat),
      });
    },
  };
}

/**
 * Pays the requested amount of an invoice now.
 * @throws HttpError 400 if the invoice is invalid, unknown, paid or expired, or has no amount
 */
export function payInvoice(node: LightningNode, invoice: string): LightningInvoice {
  return pay(node, {
    invoice,
    allowsExpired: false,
    msat: undefined,
    report: parseReportMode(undefined),
    settledAt: undefined,
  });
}

function pay(
  node: LightningNode,
  { invoice: text, allowsExpired, msat, report, settledAt }: PaymentOrder,
): LightningInvoice {
  const hash = parsePaymentHash(text);
  if (hash === undefined)
    throw badRequestError('"invoice" must be a valid invoice for regtest, which begins with lnbcrt');
  const invoice = node.find(hash);
  if (invoice?.paymentRequest !== text.toLowerCase()) throw badRequestError('unable to find a path to destination');
  if (invoice.payment) throw badRequestError('invoice is already paid');
  const at = settledAt ?? node.getUnixTime();
  const expiry = invoice.created + invoice.expirySeconds;
  if (at < invoice.created) throw badRequestError('settled_at is before the creation of the invoice');
  if (at >= expiry && !allowsExpired)
    throw badRequestError(`invoice expired. Valid until ${new Date(expiry * 1000).toISOString()}`);
  const amount = msat ?? invoice.msat;
  if (amount === 0n) throw badRequestError('amount must be specified when paying a zero amount invoice');
  if (amount < invoice.msat)
    throw badRequestError(`the invoice requires ${invoice.msat} msat; the node accepts no smaller amount`);
  return node.settle(invoice, { msat: amount, at, report });
}

async function readOrder(call: Call): Promise<PaymentOrder> {
  const body = parseObject(await call.readText());
  if (!body) throw badRequestError('the body must be a JSON object');
  const { invoice, late = false, amount_msat, report, settled_at, ...unknown } = body;
  for (const name in unknown) throw badRequestError(`unknown option "${name}"`);
  if (typeof invoice !== 'string') throw badRequestError('"invoice" must be a string');
  if (typeof late !== 'boolean') throw badRequestError('"late" must be true or false');
  return {
    invoice,
    allowsExpired: late,
    msat: amount_msat === undefined ? undefined : BigInt(parsePositiveInteger('amount_msat', amount_msat)),
    report: parseReportMode(report),
    settledAt: settled_at === undefined ? undefined : Number(parsePositiveInteger('settled_at', settled_at)),
  };
}

function parsePositiveInteger(name: string, value: unknown): string {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  if (!/^[1-9]\d{0,17}$/.test(text)) throw badRequestError(`"${name}" must be an integer from 1 to 10¹⁸ − 1`);
  return text;
}

function badRequestError(error: string): HttpError {
  return new HttpError(400, { error });
}
