/** Another Lightning wallet, which pays the invoices of the simulated node. */
import { type Report, reportIn } from '../report.ts';
import { type Call, parseObject, Refusal, type Routes } from '../router.ts';
import { paymentHashIn } from './bolt11.ts';
import type { LightningInvoice, LightningNode } from './node.ts';

interface Order {
  readonly invoice: string;
  /** Pays although the invoice has expired. */
  readonly late: boolean;
  /** Pays another amount than was asked; never less. */
  readonly msat: bigint | undefined;
  readonly report: Report;
  /** Unix seconds; undefined is now. */
  readonly settledAt: number | undefined;
}

export function walletRoutes(node: LightningNode): Routes {
  return {
    'POST /wallet/pay': async (call) => {
      const paid = pay(node, await readOrder(call));
      const { preimage, hash, payment } = paid;
      call.json(200, {
        preimage: preimage.toString('hex'),
        payment_hash: hash.toString('hex'),
        amount_msat: String(payment?.msat),
      });
    },
  };
}

/** Pays what an invoice asks for, now. @throws Refusal */
export function payInvoice(node: LightningNode, invoice: string): LightningInvoice {
  return pay(node, { invoice, late: false, msat: undefined, report: reportIn(undefined), settledAt: undefined });
}

function pay(node: LightningNode, { invoice: text, late, msat, report, settledAt }: Order): LightningInvoice {
  const hash = paymentHashIn(text);
  if (hash === undefined) throw failure('this is not an invoice of this network: it must be for regtest (lnbcrt…)');
  const invoice = node.find(hash);
  if (invoice?.paymentRequest !== text.toLowerCase()) throw failure('unable to find a path to destination');
  if (invoice.payment) throw failure('invoice is already paid');
  const at = settledAt ?? node.seconds();
  const expiry = invoice.created + invoice.expirySeconds;
  if (at < invoice.created) throw failure('settled_at is before the invoice was made');
  if (at >= expiry && !late) throw failure(`invoice expired. Valid until ${new Date(expiry * 1000).toISOString()}`);
  const amount = msat ?? invoice.msat;
  if (amount === 0n) throw failure('amount must be specified when paying a zero amount invoice');
  if (amount < invoice.msat)
    throw failure(`the invoice asks for ${invoice.msat} msat, and the node takes nothing less`);
  return node.settle(invoice, { msat: amount, at, report });
}

async function readOrder(call: Call): Promise<Order> {
  const body = parseObject(await call.text());
  if (!body) throw failure('the body must be a JSON object');
  const { invoice, late = false, amount_msat, report, settled_at, ...unknown } = body;
  for (const name in unknown) throw failure(`there is no option "${name}"`);
  if (typeof invoice !== 'string') throw failure('"invoice" must be a string');
  if (typeof late !== 'boolean') throw failure('"late" must be true or false');
  return {
    invoice,
    late,
    msat: amount_msat === undefined ? undefined : BigInt(wholeNumber('amount_msat', amount_msat)),
    report: reportIn(report),
    settledAt: settled_at === undefined ? undefined : Number(wholeNumber('settled_at', settled_at)),
  };
}

function wholeNumber(name: string, value: unknown): string {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  if (!/^[1-9]\d{0,17}$/.test(text)) throw failure(`"${name}" must be a whole number above 0`);
  return text;
}

function failure(error: string): Refusal {
  return new Refusal(400, { error });
}
