import { PaymentBackends } from '#application';
import { type LndSettings, lnd } from './lnd/index.ts';

/** Every kind of back end that takes payments. */
export const BACKEND_KINDS = [lnd] as const;

export type PaymentSettings = LndSettings;

/** Opens the back ends that are configured. */
export function openPaymentBackends(settings: PaymentSettings): PaymentBackends {
  return new PaymentBackends(
    BACKEND_KINDS.map((kind) => kind.open(settings)).filter((backend) => backend !== undefined),
  );
}
