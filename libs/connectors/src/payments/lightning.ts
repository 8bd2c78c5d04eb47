/** Shared code of the Lightning backends. An invoice is identified and looked up by its payment hash. */
import { type BackendPayment, UpstreamError } from '#application';

/** 32 bytes in lower-case hexadecimal, such as a payment hash. */
export function isHex32(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

/** How the invoices of a backend are fetched, and how its responses are read. */
interface InvoiceLookup<Invoice> {
  /** Returns undefined if the invoice is unknown. */
  find(hash: string): Promise<Invoice | undefined>;
  /** Returns the payment hash in the response, in lower-case hexadecimal; anything else if there is none. */
  getHash(invoice: Invoice): unknown;
  /** Returns the payment of the invoice; undefined if it is not paid. */
  toPayment(invoice: Invoice, hash: string): BackendPayment | undefined;
}

/**
 * Returns the payments of the paid invoices, looked up one after the other.
 * @throws UpstreamError if the backend returns another invoice, paid or not: the requested one may be paid
 */
export async function fetchInvoicesOneByOne<Invoice>(
  hashes: readonly string[],
  { find, getHash, toPayment }: InvoiceLookup<Invoice>,
): Promise<readonly BackendPayment[]> {
  const payments: BackendPayment[] = [];
  for (const hash of hashes) {
    const invoice = await find(hash);
    if (invoice === undefined) continue;
    if (getHash(invoice) !== hash)
      throw new UpstreamError('upstream_error', 'The Lightning node returned a different invoice');
    const payment = toPayment(invoice, hash);
    if (payment) payments.push(payment);
  }
  return payments;
}
