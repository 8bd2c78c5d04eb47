import { decode } from 'light-bolt11-decoder';
import { UpstreamError } from '../errors.ts';

/** The default of BOLT 11. */
const DEFAULT_EXPIRY_SECONDS = 3600;
/** End of the year 9999. */
const MAX_TIMESTAMP_SECONDS = 253_402_300_800;
const HASH = /^[0-9a-f]{64}$/;

/** What an invoice must contain. */
export interface ExpectedInvoice {
  readonly msat: bigint;
  /** Lower-case hexadecimal; undefined if unknown. */
  readonly paymentHash?: string;
  /** ISO 8601. */
  readonly now: string;
}

/** The content of a verified invoice. */
export interface VerifiedInvoice {
  /** ISO 8601. */
  readonly expiresAt: string;
  /** Lower-case hexadecimal. */
  readonly paymentHash: string;
  /** Name of the network as wallets use it; undefined for an unknown prefix. */
  readonly network: string | undefined;
}

/** Networks by the prefix of an invoice. */
const NETWORKS = [
  [/^lnbcrt/i, 'regtest'],
  [/^lntbs/i, 'signet'],
  [/^lntb/i, 'testnet'],
  [/^lnbc/i, 'mainnet'],
] as const;

/**
 * Verifies a Lightning invoice (BOLT 11) before it is handed out: its amount, its payment hash, and that it can still
 * be paid.
 * @throws UpstreamError if the invoice cannot be decoded, differs from the request, or has expired
 */
export function verifyInvoice(invoice: string, { msat, paymentHash, now }: ExpectedInvoice): VerifiedInvoice {
  const sections = decodeSections(invoice);
  const hash = String(sections.get('payment_hash'));
  const seconds = Number(sections.get('timestamp')) + Number(sections.get('expiry') ?? DEFAULT_EXPIRY_SECONDS);
  const expiresAt = seconds < MAX_TIMESTAMP_SECONDS ? new Date(seconds * 1000).toISOString() : '';
  const isExpected =
    HASH.test(hash) &&
    (paymentHash === undefined || hash === paymentHash) &&
    BigInt(String(sections.get('amount') ?? 0)) === msat &&
    expiresAt > now;
  if (isExpected)
    return { expiresAt, paymentHash: hash, network: NETWORKS.find(([begins]) => begins.test(invoice))?.[1] };
  throw new UpstreamError('upstream_error', 'The Lightning invoice has expired or differs from the request');
}

function decodeSections(invoice: string): ReadonlyMap<string, unknown> {
  try {
    const { sections } = decode(invoice);
    return new Map(sections.map((section) => [section.name, 'value' in section ? section.value : '']));
  } catch (cause) {
    throw new UpstreamError('upstream_error', 'The Lightning node created an invoice that cannot be decoded', {
      cause,
    });
  }
}
