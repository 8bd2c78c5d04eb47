/** How a top-up's invoice is called at BTCPay Server, and how sure a payment of it must be. */
import { UpstreamError } from '#application';
import type { CoinTerms } from '#domain';

/** What an invoice is found by. It cannot be listed by its own id, but by that of its order, which is the top-up. */
export interface InvoiceReference {
  readonly reference: string;
  readonly orderId: string;
  /** Such as `BTC-CHAIN`. */
  readonly method: string;
  readonly invoiceId: string;
}

const MAX_ID_LENGTH = 64;

/** What may stand in a path and in a reference. */
export function isBtcPayId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_ID_LENGTH && /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(value);
}

export function formatReference({ orderId, method, invoiceId }: Omit<InvoiceReference, 'reference'>): string {
  return `${orderId}/${method}/${invoiceId}`;
}

/** @throws UpstreamError when it is none that was made here */
export function parseReference(reference: string): InvoiceReference {
  const [orderId, method, invoiceId, rest] = reference.split('/');
  if (isBtcPayId(orderId) && isBtcPayId(method) && isBtcPayId(invoiceId) && rest === undefined)
    return { reference, orderId, method, invoiceId };
  throw new UpstreamError('upstream_error', 'This is no reference of BTCPay Server');
}

/** After how many confirmations a payment is settled, by BTCPay's words; after the slowest it is six. */
const SPEED_POLICIES: readonly (readonly [confirmations: number, policy: string])[] = [
  [0, 'HighSpeed'],
  [1, 'MediumSpeed'],
  [2, 'LowMediumSpeed'],
];
const SLOWEST_SPEED_POLICY = 'LowSpeed';
const MAX_CONFIRMATIONS = 6;
/** Its plug-in has a threshold of its own, which is set in BTCPay. */
const UNLIMITED_CONFIRMATIONS_COIN = 'XMR';

export function getMaxConfirmations({ code }: Pick<CoinTerms, 'code'>): number {
  return code === UNLIMITED_CONFIRMATIONS_COIN ? Number.POSITIVE_INFINITY : MAX_CONFIRMATIONS;
}

/** The policy under which nothing is settled before it is confirmed so often, or as often as BTCPay can wait for. */
export function toSpeedPolicy(confirmations: number): string {
  return (
    SPEED_POLICIES.find(([policyConfirmations]) => policyConfirmations >= confirmations)?.[1] ?? SLOWEST_SPEED_POLICY
  );
}
