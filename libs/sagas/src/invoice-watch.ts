import { setTimeout as delay } from 'node:timers/promises';
import type { AwaitedTopup, Clock, PaymentBackend, PaymentBackends, TopupPayments } from '#application';

const RESUBSCRIBE_MS = 1_000;
/** How often open top-ups are asked after, by how long ago they expired. What a back end hints at is only a hint. */
const POLL_OPEN_MS = 2_000;
const POLL_RECENT_MS = 60_000;
const POLL_OLD_MS = 3_600_000;
const RECENT_MS = 3_600_000;
/** A top-up is asked after for this long: a payment that was under way may settle late. */
const WATCHED_MS = 7 * 86_400_000;

export interface InvoiceWatchPorts {
  readonly backends: PaymentBackends;
  readonly payments: TopupPayments;
  readonly clock: Clock;
  /** Top-ups that may still be paid and that expire after `since`. */
  open(since: string): Promise<readonly AwaitedTopup[]>;
  byReference(backend: string, reference: string): Promise<AwaitedTopup | undefined>;
  alarm(problem: string, error: unknown): void;
}

/** Records payments as the back ends hint at them, and finds those that they did not. */
export async function watchInvoices(ports: InvoiceWatchPorts, signal: AbortSignal): Promise<void> {
  const watches = ports.backends.all.flatMap((backend) => [
    listen(backend, ports, signal),
    poll(backend, ports, signal),
  ]);
  await Promise.all(watches);
}

async function listen(backend: PaymentBackend, ports: InvoiceWatchPorts, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const reference of backend.hints(signal)) {
        const topup = await ports.byReference(backend.name, reference);
        if (topup) await look(backend, [topup], ports);
      }
    } catch (error) {
      if (!signal.aborted) ports.alarm(`${backend.name} no longer reports payments; asking it again`, error);
    }
    await delay(RESUBSCRIBE_MS, undefined, { signal }).catch(() => {});
  }
}

async function poll(backend: PaymentBackend, ports: InvoiceWatchPorts, signal: AbortSignal): Promise<void> {
  const askedAt = new Map<string, number>();
  while (!signal.aborted) {
    try {
      const now = ports.clock.milliseconds();
      const open = await ports.open(new Date(now - WATCHED_MS).toISOString());
      const waited = ({ topupId }: AwaitedTopup) => now - (askedAt.get(topupId) ?? 0);
      const due = open.filter((topup) => topup.backend === backend.name && waited(topup) >= interval(topup, now));
      // A back end that fails ends this round. Whatever has waited longest comes first in the next one, so that a
      // top-up with which it always fails does not keep it from the others.
      due.sort((a, b) => waited(b) - waited(a));
      for (let i = 0; i < due.length; i += backend.batch) {
        if (signal.aborted) return;
        const batch = due.slice(i, i + backend.batch);
        for (const { topupId } of batch) askedAt.set(topupId, now);
        await look(backend, batch, ports);
      }
      const known = new Set(open.map(({ topupId }) => topupId));
      for (const topupId of askedAt.keys()) if (!known.has(topupId)) askedAt.delete(topupId);
    } catch (error) {
      ports.alarm(`open top-ups could not be asked after at ${backend.name}; trying again`, error);
    }
    await delay(POLL_OPEN_MS, undefined, { signal }).catch(() => {});
  }
}

function interval({ expiresAt }: AwaitedTopup, now: number): number {
  const expiredFor = now - Date.parse(expiresAt);
  if (expiredFor < 0) return POLL_OPEN_MS;
  return expiredFor < RECENT_MS ? POLL_RECENT_MS : POLL_OLD_MS;
}

async function look(
  backend: PaymentBackend,
  topups: readonly AwaitedTopup[],
  { payments, alarm }: InvoiceWatchPorts,
): Promise<void> {
  const byReference = new Map(topups.map((topup) => [topup.reference, topup]));
  for (const payment of await backend.look([...byReference.keys()])) {
    const topup = byReference.get(payment.reference);
    if (!topup) continue;
    try {
      await payments.record(topup, payment);
    } catch (error) {
      // One payment that cannot be recorded must not keep others from it; the next poll finds it again.
      alarm(`the payment of top-up ${topup.topupId} could not be recorded; trying again`, error);
    }
  }
}
