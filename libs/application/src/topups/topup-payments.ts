import {
  convertToUsd,
  isCreditedAtMarketRate,
  type PaymentsQuery,
  type ReportedPayment,
  type TopupCommand,
} from '#domain';
import type { Clock } from '../clock.ts';
import type { ExchangeRates } from './exchange-rates.ts';
import type { BackendPayment } from './payment-backend.ts';
import type { PaymentMethods } from './payment-methods.ts';
import { assertPlausiblePayment, hasNoValue, toPlausibleUsd } from './plausibility.ts';

/** What back ends say about payments, as commands for their top-ups. */
export class TopupPayments {
  constructor(
    private readonly rates: ExchangeRates,
    private readonly offered: PaymentMethods,
    private readonly clock: Clock,
  ) {}

  /**
   * The commands that record what a look has found, and that what was on its way is not there any more.
   * @throws UpstreamError when a late payment needs a rate and there is none, or what the back end says cannot be: ask
   * again later
   */
  async recording(wanted: PaymentsQuery, reported: readonly BackendPayment[]): Promise<readonly TopupCommand[]> {
    for (const each of reported) assertPlausiblePayment(each);
    const came = reported.filter((each) => !hasNoValue(each));
    const found = new Set(came.map(({ id }) => id));
    const { backend } = wanted;
    const at = this.clock.now();
    const lost = wanted.pending
      .filter((id) => !found.has(id))
      .map(
        (id): ReportedPayment => ({ payment: { backend, id }, units: 0n, confirmations: 'lost', receivedAt: at, at }),
      );
    const payments = await Promise.all(came.map((each) => this.payment(wanted, each)));
    return [...payments, ...lost].map((data) => ({ type: 'RecordPayment', data }));
  }

  private async payment(wanted: PaymentsQuery, came: BackendPayment): Promise<ReportedPayment> {
    const { reference: _, id, ...found } = came;
    const data = { payment: { backend: wanted.backend, id }, ...found, at: this.clock.now() };
    const market = wanted.received.includes(id) ? undefined : await this.worthNow(wanted, data);
    return market ? { ...data, market } : data;
  }

  /** One that is in time is worth what was asked for, so it does not wait for a rate. */
  private async worthNow(wanted: PaymentsQuery, payment: ReportedPayment) {
    const { coin: code } = wanted;
    const { units } = payment;
    const coin = this.offered.coin(code);
    const late = isCreditedAtMarketRate(wanted, payment);
    if (coin.fixedRate !== undefined && !late) return undefined;
    const rate = await this.rates.usdPer(code).catch((error) => {
      if (late) throw error;
    });
    return rate && { rate, amount: toPlausibleUsd(convertToUsd(units, coin, rate.value)) };
  }
}
