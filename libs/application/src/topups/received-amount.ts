import type { PaymentAdjustment } from '#domain';
import type { BackendPayment } from './payment-backend.ts';
import { assertPlausiblePayment } from './plausibility.ts';

/** What has come for good, of the coin's smallest unit, and what the back end has kept of it. */
export interface ReceivedAmount {
  readonly units: bigint;
  readonly fees: readonly PaymentAdjustment[];
}

/** @throws UpstreamError when what a back end says cannot be: ask again later */
export function toReceivedAmount(reported: readonly BackendPayment[]): ReceivedAmount {
  for (const payment of reported) assertPlausiblePayment(payment);
  const final = reported.filter(({ confirmations }) => confirmations === 'final');
  const units = final.reduce((sum, payment) => sum + payment.units, 0n);
  return { units, fees: final.flatMap(({ fees = [] }) => fees) };
}
