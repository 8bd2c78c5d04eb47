import type { PaymentAdjustment } from '#domain';
import type { BackendPayment } from './payment-backend.ts';
import { assertPlausiblePayment } from './plausibility.ts';

/** The sum of final payments, in the smallest unit of the coin, and the fees of the payment backend. */
export interface ReceivedAmount {
  readonly units: bigint;
  readonly fees: readonly PaymentAdjustment[];
}

/** Adds up the final payments. @throws UpstreamError if a report is implausible: retry later */
export function toReceivedAmount(reported: readonly BackendPayment[]): ReceivedAmount {
  for (const payment of reported) assertPlausiblePayment(payment);
  const final = reported.filter(({ confirmations }) => confirmations === 'final');
  const units = final.reduce((sum, payment) => sum + payment.units, 0n);
  return { units, fees: final.flatMap(({ fees = [] }) => fees) };
}
