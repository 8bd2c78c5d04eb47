import type { BackendPayment } from '#application';
import type { PlannedPayment } from './plan.ts';
import type { PaymentNetwork } from './simulated-payments.ts';

/** When a payment is confirmed, or lost. */
const CONFIRMED_AFTER_MS = 4_000;
/** Time until a confirmed payment is reversed, and until a reversal is won. */
const REVERSED_AFTER_MS = 9_000;

export interface PaidInvoice {
  /** Id of the payment, apart from Lightning payments, whose id is that of the invoice. */
  readonly id: string;
  /** The invoice, and others for which the payment backend reports the same payment. */
  readonly references: readonly [string, ...string[]];
  /** Amount of the invoice, in the smallest unit of the coin. */
  readonly units: bigint;
}

/** Pays an invoice. The payment then takes its course. */
export function payInvoice(
  network: PaymentNetwork,
  { percent, course }: PlannedPayment,
  { id, references, units: invoiced }: PaidInvoice,
): void {
  const { time } = network.options;
  const destination = network.get(references[0])?.destination;
  if (destination?.kind === 'bolt11') {
    network.tryToPay(destination.value);
    return;
  }
  const receivedAt = network.now;
  const units = (invoiced * BigInt(percent)) / 100n;
  const report = (state: Pick<BackendPayment, 'confirmations' | 'reversals'>) => {
    for (const reference of references) network.report({ reference, id, units, receivedAt, ...state });
  };
  report({ confirmations: course === 'final' ? 'final' : 0 });
  if (course === 'final') return;
  time.startTimer(CONFIRMED_AFTER_MS, () => report({ confirmations: course === 'lost' ? 'lost' : 'final' }));
  if (course === 'refunded') {
    const refunds = [{ id: `${id}-refund`, units: -(units / 3n), why: 'refunded in part' }];
    time.startTimer(CONFIRMED_AFTER_MS + REVERSED_AFTER_MS, () =>
      report({ confirmations: 'lost', reversals: refunds }),
    );
    return;
  }
  const reversals = [{ id: `${id}-reversal`, units: -units, why: 'charged back' }];
  if (course === 'disputed') reversals.push({ id: `${id}-won`, units, why: 'the dispute was won' });
  if (course !== 'reversed' && course !== 'disputed') return;
  for (const i of reversals.keys())
    time.startTimer(CONFIRMED_AFTER_MS + (i + 1) * REVERSED_AFTER_MS, () =>
      report({ confirmations: 'final', reversals: reversals.slice(0, i + 1) }),
    );
}
