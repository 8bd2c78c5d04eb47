import { type Payment, type PaymentsWanted, type Reversal, type TopupCommand, topupWorkflow } from '#domain';
import { startedBy } from '#kernel';
import type { Clock } from '../clock.ts';
import type { Topups } from '../streams.ts';
import type { ExchangeRates } from './exchange-rates.ts';
import type { BackendPayment } from './payment-backend.ts';

/** A payment that reached the back end this long after the expiry was still on its way in time. */
const GRACE_MS = 60_000;

/** What back ends say about payments, as commands for their top-ups. */
export class TopupPayments {
  constructor(
    private readonly topups: Topups,
    private readonly rates: ExchangeRates,
    private readonly clock: Clock,
  ) {}

  /**
   * The command that records a payment.
   * @throws UpstreamFailure when a late payment needs a rate and there is none: ask again later
   */
  async recording({ coin, backend, expiresAt }: PaymentsWanted, came: BackendPayment): Promise<TopupCommand> {
    const { id, units, fee, confirmations, receivedAt } = came;
    const late = Date.parse(receivedAt) > Date.parse(expiresAt) + GRACE_MS;
    const data: Payment = {
      ...{ payment: { backend, id }, units, confirmations, receivedAt },
      ...(fee === undefined ? {} : { fee }),
      ...(late ? { lateRate: await this.rates.usdPer(coin) } : {}),
      at: this.clock.now(),
    };
    return { type: 'RecordPayment', data };
  }

  /** Records that a payment was taken back, or given again. */
  async reverse(topupId: string, reversal: Omit<Reversal, 'at'>): Promise<void> {
    const data = { ...reversal, at: this.clock.now() };
    await this.topups.run(topupId, { type: 'ReversePayment', data }, startedBy(`saga:${topupWorkflow.name}`, topupId));
  }
}
