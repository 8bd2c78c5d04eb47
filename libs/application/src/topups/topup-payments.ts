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

/** Converts reports of payment backends into commands for top-ups. */
export class TopupPayments {
  constructor(
    private readonly rates: ExchangeRates,
    private readonly paymentMethods: PaymentMethods,
    private readonly clock: Clock,
  ) {}

  /**
   * Returns the commands that record the result of a poll. Pending payments that have disappeared are recorded as lost.
   * @throws UpstreamError if a late payment needs an exchange rate and there is none, or a report is implausible: retry
   *   later
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

  /**
   * Returns the value at the market rate.
   * @returns undefined for a payment that is credited at the rate of its invoice, if there is no market rate or a fixed
   *   rate
   * @throws UpstreamError if there is no rate for any other payment, or the value is implausible
   */
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
