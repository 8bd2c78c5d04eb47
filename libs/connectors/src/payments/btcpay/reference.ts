/** References of invoices at BTCPay Server, and its speed policies, which set the number of confirmations. */
import { UpstreamError } from '#application';
import type { CoinTerms } from '#domain';

/**
 * Identifies an invoice. Invoices cannot be listed by their own id, only by that of their order, which is the top-up.
 */
export interface InvoiceReference {
  readonly reference: string;
  readonly orderId: string;
  /** Such as `BTC-CHAIN`. */
  readonly method: string;
  readonly invoiceId: string;
}

const MAX_ID_LENGTH = 64;

/** Whether the value is safe in a path and in a reference. */
export function isBtcPayId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_ID_LENGTH && /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(value);
}

export function formatReference({ orderId, method, invoiceId }: Omit<InvoiceReference, 'reference'>): string {
  return `${orderId}/${method}/${invoiceId}`;
}

/** @throws UpstreamError if it is not a result of `formatReference` */
export function parseReference(reference: string): InvoiceReference {
  const [orderId, method, invoiceId, rest] = reference.split('/');
  if (isBtcPayId(orderId) && isBtcPayId(method) && isBtcPayId(invoiceId) && rest === undefined)
    return { reference, orderId, method, invoiceId };
  throw new UpstreamError('upstream_error', 'Invalid reference of a BTCPay invoice');
}

/** BTCPay's policies by the number of confirmations that settle a payment. The slowest policy requires six. */
const SPEED_POLICIES: readonly (readonly [confirmations: number, policy: string])[] = [
  [0, 'HighSpeed'],
  [1, 'MediumSpeed'],
  [2, 'LowMediumSpeed'],
];
const SLOWEST_SPEED_POLICY = 'LowSpeed';
const MAX_CONFIRMATIONS = 6;
/** The Monero plug-in has its own threshold, which is configured in BTCPay. */
const UNLIMITED_CONFIRMATIONS_COIN = 'XMR';

export function getMaxConfirmations({ code }: Pick<CoinTerms, 'code'>): number {
  return code === UNLIMITED_CONFIRMATIONS_COIN ? Number.POSITIVE_INFINITY : MAX_CONFIRMATIONS;
}

/** Returns the fastest policy that requires at least this number of confirmations, or the slowest policy. */
export function toSpeedPolicy(confirmations: number): string {
  return (
    SPEED_POLICIES.find(([policyConfirmations]) => policyConfirmations >= confirmations)?.[1] ?? SLOWEST_SPEED_POLICY
  );
}
