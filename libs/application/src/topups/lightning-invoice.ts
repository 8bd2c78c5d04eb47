import { decode } from 'light-bolt11-decoder';
import { UpstreamError } from '../errors.ts';

/** The default of BOLT 11. */
const DEFAULT_EXPIRY_SECONDS = 3600;
/** Of the year 9999. */
const MAX_TIMESTAMP_SECONDS = 253_402_300_800;
const HASH = /^[0-9a-f]{64}$/;

/** What an invoice must say before it is handed out. */
export interface ExpectedInvoice {
  readonly msat: bigint;
  /** Lower-case hexadecimal; where it is known. */
  readonly paymentHash?: string;
  /** ISO 8601. */
  readonly now: string;
}

/** What an invoice says. */
export interface VerifiedInvoice {
  /** ISO 8601. */
  readonly expiresAt: string;
  /** Lower-case hexadecimal. */
  readonly paymentHash: string;
  /** In the words of wallets; undefined for one that has none. */
  readonly network: string | undefined;
}

/** By the beginning of an invoice. */
const NETWORKS = [
  [/^lnbcrt/i, 'regtest'],
  [/^lntbs/i, 'signet'],
  [/^lntb/i, 'testnet'],
  [/^lnbc/i, 'mainnet'],
] as const;

/**
 * Reads a Lightning invoice (BOLT 11) before it is handed out: it is for this amount and hash, and can still be paid.
 * @throws UpstreamError when it is for something else
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
  throw new UpstreamError('upstream_error', 'The Lightning node made an invoice for something else than was asked');
}

function decodeSections(invoice: string): ReadonlyMap<string, unknown> {
  try {
    const { sections } = decode(invoice);
    return new Map(sections.map((section) => [section.name, 'value' in section ? section.value : '']));
  } catch (cause) {
    throw new UpstreamError('upstream_error', 'The Lightning node made an invoice that cannot be read', { cause });
  }
}
