/** What `get_transfers` and its like say, read as if it could be a lie. */
import { UpstreamError } from '#application';
import { parseUnits, unixSecondsToInstant } from '../exact-json.ts';

export interface Transfer {
  readonly txid: string;
  /** Of the subaddress. */
  readonly minor: number;
  /** Piconeros: the sum of all outputs of the transaction to the subaddress. */
  readonly units: bigint;
  /** 0 while it is in no block. */
  readonly confirmations: number;
  /** When the wallet saw it first; as soon as it is in a block, the time of that. */
  readonly seconds: number;
  readonly receivedAt: string;
  /**
   * Whether it can be believed. A payer can lock an output until a block or a time of his choice, years from now: the
   * wallet has it then and cannot spend it. Another transaction may already spend what one without a block spends.
   */
  readonly isTrusted: boolean;
}

/**
 * The transfers of an answer, each transaction to each subaddress once. One that is in a block may still be among those
 * without a block.
 * @throws UpstreamError
 */
export function parseTransfers(
  { in: mined = [], pool = [] }: { readonly in?: unknown; readonly pool?: unknown },
  account: number,
): readonly Transfer[] {
  const transfersById = new Map<string, Transfer>();
  for (const entry of [...parseList(mined), ...parseList(pool)]) {
    const transfer = parseTransfer(entry, account);
    const id = `${transfer.txid}/${transfer.minor}`;
    const existing = transfersById.get(id);
    if (!existing) transfersById.set(id, transfer);
    else if (existing.units !== transfer.units) throwUnreadable();
  }
  return [...transfersById.values()];
}

function parseList(list: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(list) && list.every((entry) => typeof entry === 'object' && entry !== null)
    ? list
    : throwUnreadable();
}

function parseTransfer(entry: Readonly<Record<string, unknown>>, account: number): Transfer {
  const { txid, amount, confirmations = 0, timestamp, type, unlock_time, locked, double_spend_seen } = entry;
  const { major, minor } = (entry.subaddr_index ?? {}) as { readonly major?: unknown; readonly minor?: unknown };
  const units = parseUnits(amount);
  const receivedAt = unixSecondsToInstant(timestamp);
  const hasValidCounts = [minor, confirmations].every((count) => Number.isSafeInteger(count) && Number(count) >= 0);
  const isReadable = typeof txid === 'string' && /^[0-9a-f]{64}$/.test(txid) && hasValidCounts && major === account;
  if (!isReadable || units === undefined || receivedAt === undefined) return throwUnreadable();
  const inPool = type === 'pool';
  return {
    txid,
    minor: Number(minor),
    units,
    confirmations: inPool ? 0 : Number(confirmations),
    seconds: Number(timestamp),
    receivedAt,
    isTrusted: (unlock_time === 0 || locked === false) && !(inPool && double_spend_seen !== false),
  };
}

function throwUnreadable(): never {
  throw new UpstreamError('upstream_error', 'The Monero wallet reported a payment that cannot be read');
}
