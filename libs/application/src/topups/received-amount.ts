import type { PaymentAdjustment } from '#domain';
import type { BackendPayment } from './payment-backend.ts';
import { assertBelievable } from './plausibility.ts';

/** What has come for good, of the coin's smallest unit, and what the back end has kept of it. */
export interface Received {
  readonly units: bigint;
  readonly fees: readonly PaymentAdjustment[];
}

/** @throws UpstreamFailure when what a back end says cannot be: ask again later */
export function receivedIn(reported: readonly BackendPayment[]): Received {
  for (const each of reported) assertBelievable(each);
  const final = reported.filter(({ confirmations }) => confirmations === 'final');
  const units = final.reduce((sum, each) => sum + each.units, 0n);
  return { units, fees: final.flatMap(({ fees = [] }) => fees) };
}
