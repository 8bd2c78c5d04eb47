/** What all Lightning back ends have in common: an invoice is known by its payment hash, and is looked up by that alone. */
import { type BackendPayment, UpstreamError } from '#application';

/** 32 bytes in lower-case hexadecimal, such as a payment hash. */
export function isHex32(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

/**
 * Looks up one invoice after the other.
 * @param find undefined where nothing has come
 * @throws UpstreamError when the payment of another invoice comes back
 */
export async function fetchInvoicesOneByOne(
  hashes: readonly string[],
  find: (hash: string) => Promise<BackendPayment | undefined>,
): Promise<readonly BackendPayment[]> {
  const payments: BackendPayment[] = [];
  for (const hash of hashes) {
    const payment = await find(hash);
    if (!payment) continue;
    if (payment.reference !== hash) throw mismatchedInvoiceError();
    payments.push(payment);
  }
  return payments;
}

export function mismatchedInvoiceError(): UpstreamError {
  return new UpstreamError('upstream_error', 'The Lightning node answered for another invoice');
}
