import { setTimeout as delay } from 'node:timers/promises';
import type { Clock, LightningNode, LightningPayment, TopupPayments } from '#application';

const RESUBSCRIBE_MS = 1_000;
/** How often open invoices are asked after, by how long ago they expired. What the node reports is only a hint. */
const POLL_OPEN_MS = 2_000;
const POLL_RECENT_MS = 60_000;
const POLL_OLD_MS = 3_600_000;
const RECENT_MS = 3_600_000;
/** An invoice is asked after for this long: a payment that was under way may settle late. */
const WATCHED_MS = 7 * 86_400_000;

export interface WatchedInvoice {
  readonly topupId: string;
  readonly paymentHash: string;
  readonly expiresAt: string;
}

export interface InvoiceWatchPorts {
  readonly node: LightningNode;
  readonly payments: TopupPayments;
  readonly clock: Clock;
  /** Invoices that nobody has paid yet and that expire after `since`. */
  open(since: string): Promise<readonly WatchedInvoice[]>;
  byHash(paymentHash: string): Promise<WatchedInvoice | undefined>;
  alarm(problem: string, error: unknown): void;
}

/** Records payments as the node reports them, and finds those that it did not report. */
export async function watchInvoices(ports: InvoiceWatchPorts, signal: AbortSignal): Promise<void> {
  await Promise.all([listen(ports, signal), poll(ports, signal)]);
}

async function listen(ports: InvoiceWatchPorts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const payment of ports.node.payments(signal)) {
        const invoice = await ports.byHash(payment.paymentHash);
        if (invoice) await record(ports, invoice, payment);
      }
    } catch (error) {
      if (!signal.aborted) ports.alarm('the Lightning node no longer reports payments; asking it again', error);
    }
    await delay(RESUBSCRIBE_MS, undefined, { signal }).catch(() => {});
  }
}

async function poll(ports: InvoiceWatchPorts, signal: AbortSignal): Promise<void> {
  const askedAt = new Map<string, number>();
  while (!signal.aborted) {
    try {
      const now = ports.clock.milliseconds();
      const open = await ports.open(new Date(now - WATCHED_MS).toISOString());
      const waited = ({ topupId }: WatchedInvoice) => now - (askedAt.get(topupId) ?? 0);
      const due = open.filter((invoice) => waited(invoice) >= interval(invoice, now));
      // A node that fails ends this round. Whoever has waited longest comes first in the next one, so that an invoice
      // with which it always fails does not keep it from the others.
      due.sort((a, b) => waited(b) - waited(a));
      for (const invoice of due) {
        if (signal.aborted) return;
        askedAt.set(invoice.topupId, now);
        const payment = await ports.node.lookUp(invoice.paymentHash);
        if (payment) await record(ports, invoice, payment);
      }
      const known = new Set(open.map(({ topupId }) => topupId));
      for (const topupId of askedAt.keys()) if (!known.has(topupId)) askedAt.delete(topupId);
    } catch (error) {
      ports.alarm('open invoices could not be asked after; trying again', error);
    }
    await delay(POLL_OPEN_MS, undefined, { signal }).catch(() => {});
  }
}

function interval({ expiresAt }: WatchedInvoice, now: number): number {
  const expiredFor = now - Date.parse(expiresAt);
  if (expiredFor < 0) return POLL_OPEN_MS;
  return expiredFor < RECENT_MS ? POLL_RECENT_MS : POLL_OLD_MS;
}

/** One payment that cannot be recorded must not keep others from it; the next poll finds it again. */
async function record(
  { payments, alarm }: InvoiceWatchPorts,
  invoice: WatchedInvoice,
  payment: LightningPayment,
): Promise<void> {
  try {
    await payments.record(invoice.topupId, invoice.expiresAt, payment);
  } catch (error) {
    alarm(`the payment of top-up ${invoice.topupId} could not be recorded; trying again`, error);
  }
}
