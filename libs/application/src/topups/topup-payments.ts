import {
  convertToUsd,
  isFinalPayment,
  type PaymentId,
  type PaymentsQuery,
  type ReportedPayment,
  TOPUP,
  type TopupCommand,
} from '#domain';
import { createRootCause, toStreamName, ZERO_USD } from '#kernel';
import type { PaymentRegistry } from '../billing/payment-registry.ts';
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
    private readonly registry: PaymentRegistry,
    private readonly clock: Clock,
  ) {}

  /**
   * Returns the commands that record the result of a poll. Pending payments that have disappeared are recorded as lost,
   * before the payments that may have replaced them. A final payment is claimed; if it belongs to another top-up or
   * challenge, the top-up learns that.
   * @throws UpstreamError if a report is implausible: retry later
   */
  async createCommands(
    topupId: string,
    query: PaymentsQuery,
    reported: readonly BackendPayment[],
  ): Promise<readonly TopupCommand[]> {
    for (const payment of reported) assertPlausiblePayment(payment);
    const existing = reported.filter((payment) => !hasNoValue(payment));
    const existingIds = new Set(existing.map(({ id }) => id));
    const missing = query.pending
      .filter((id) => !existingIds.has(id))
      .map(
        (id) =>
          ({ reference: query.reference, id, units: 0n, confirmations: 'lost', receivedAt: this.clock.now() }) as const,
      );
    const payments = await Promise.all(
      [...missing, ...existing].map((payment) => this.toPayment(topupId, query, payment)),
    );
    return payments
      .toSorted((a, b) => Number(b.confirmations === 'lost') - Number(a.confirmations === 'lost'))
      .map((data) => ({ type: 'RecordPayment', data }));
  }

  private async toPayment(topupId: string, query: PaymentsQuery, reported: BackendPayment): Promise<ReportedPayment> {
    const { reference: _, id, sourceId, ...details } = reported;
    const payment = { backend: query.backend, id };
    const isNew = !query.received.includes(id);
    const isFinal = isFinalPayment(reported.confirmations, query.confirmations);
    const isClaimed = isNew && isFinal && (await this.claim(payment, sourceId, topupId));
    const maxAmount = this.paymentMethods.getMaxAmount(query.method) ?? ZERO_USD;
    const data = { payment, ...details, isClaimed, maxAmount, at: this.clock.now() };
    const market = isNew && reported.confirmations !== 'lost' ? await this.findMarketValue(query, reported) : undefined;
    return market ? { ...data, market } : data;
  }

  /** Claims a payment and its source for the top-up, the source first: a contested payment itself has no owner. */
  private async claim(payment: PaymentId, sourceId: string | undefined, topupId: string): Promise<boolean> {
    const claimant = toStreamName(TOPUP, topupId);
    const cause = createRootCause('workflow:topups', topupId);
    const source = sourceId === undefined ? payment : { ...payment, id: sourceId };
    return (
      (source === payment || (await this.registry.claim(source, claimant, cause))) &&
      this.registry.claim(payment, claimant, cause)
    );
  }

  /**
   * Returns the value at the market rate; undefined if there is no rate now. The top-up decides whether the payment
   * then has to wait.
   * @throws UpstreamError if the value is implausible
   */
  private async findMarketValue({ coin: code }: PaymentsQuery, { units }: BackendPayment) {
    const coin = this.paymentMethods.getCoin(code);
    // the source of the rates reports its failures
    const rate = await this.rates.fetchUsdRate(code).catch(() => undefined);
    return rate && { rate, amount: toPlausibleUsd(convertToUsd(units, coin, rate.value)) };
  }
}
