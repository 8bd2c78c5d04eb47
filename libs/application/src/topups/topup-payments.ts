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
    private readonly paymentMethods: PaymentMethods,
    private readonly clock: Clock,
  ) {}

  /**
   * The commands that record what a look has found, and that what was on its way is not there any more.
   * @throws UpstreamError when a late payment needs a rate and there is none, or what the back end says cannot be: ask
   * again later
   */
  async createCommands(query: PaymentsQuery, reported: readonly BackendPayment[]): Promise<readonly TopupCommand[]> {
    for (const payment of reported) assertPlausiblePayment(payment);
    const received = reported.filter((payment) => !hasNoValue(payment));
    const receivedIds = new Set(received.map(({ id }) => id));
    const { backend } = query;
    const at = this.clock.now();
    const lost = query.pending
      .filter((id) => !receivedIds.has(id))
      .map(
        (id): ReportedPayment => ({ payment: { backend, id }, units: 0n, confirmations: 'lost', receivedAt: at, at }),
      );
    const payments = await Promise.all(received.map((payment) => this.toPayment(query, payment)));
    return [...payments, ...lost].map((data) => ({ type: 'RecordPayment', data }));
  }

  private async toPayment(query: PaymentsQuery, reported: BackendPayment): Promise<ReportedPayment> {
    const { reference: _, id, ...details } = reported;
    const data = { payment: { backend: query.backend, id }, ...details, at: this.clock.now() };
    const market = query.received.includes(id) ? undefined : await this.getMarketValue(query, data);
    return market ? { ...data, market } : data;
  }

  /** One that is in time is worth what was asked for, so it does not wait for a rate. */
  private async getMarketValue(query: PaymentsQuery, payment: ReportedPayment) {
    const { coin: code } = query;
    const { units } = payment;
    const coin = this.paymentMethods.getCoin(code);
    const isAtMarketRate = isCreditedAtMarketRate(query, payment);
    if (coin.fixedRate !== undefined && !isAtMarketRate) return undefined;
    const rate = await this.rates.fetchUsdRate(code).catch((error) => {
      if (isAtMarketRate) throw error;
    });
    return rate && { rate, amount: toPlausibleUsd(convertToUsd(units, coin, rate.value)) };
  }
}
