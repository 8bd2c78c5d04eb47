/** Shared code of the Lightning backends. An invoice is identified and looked up by its payment hash. */
import { type BackendPayment, UpstreamError } from '#application';

/** 32 bytes in lower-case hexadecimal, such as a payment hash. */
export function isHex32(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

/**
 * Returns the payments of the paid invoices, looked up one after the other.
 * @param find returns undefined if the invoice is unknown or not paid
 * @throws UpstreamError if the backend returns the payment of another invoice
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
  return new UpstreamError('upstream_error', 'The Lightning node returned a different invoice');
}
