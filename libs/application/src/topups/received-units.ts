import { assertBelievable } from './believable-payment.ts';
import type { BackendPayment } from './payment-backend.ts';

/**
 * What has come for good, of the coin's smallest unit.
 * @throws UpstreamFailure when what a back end says cannot be: ask again later
 */
export function unitsReceived(reported: readonly BackendPayment[]): bigint {
  for (const each of reported) assertBelievable(each);
  return reported.filter(({ confirmations }) => confirmations === 'final').reduce((sum, { units }) => sum + units, 0n);
}
