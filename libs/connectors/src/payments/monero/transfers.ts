/** Parses the response of `get_transfers` without trusting it. */
import { UpstreamError } from '#application';
import { parseUnits, unixSecondsToInstant } from '../exact-json.ts';

export interface Transfer {
  readonly txid: string;
  /** Index of the subaddress. */
  readonly minor: number;
  /** The sum of all outputs of the transaction to the subaddress, in piconeros. */
  readonly units: bigint;
  /** 0 while the transaction is in no block. */
  readonly confirmations: number;
  /** When the wallet first observed the transaction, or the time of its block, in Unix seconds. */
  readonly seconds: number;
  readonly receivedAt: string;
  /**
   * Whether the payment is safe. A payer can lock an output until any block or time, even years from now. The wallet
   * cannot spend a locked output. A transaction without a block may compete with another one that spends the same
   * outputs.
   */
  readonly isTrusted: boolean;
}

/**
 * Returns the transfers of a response, each transaction to each subaddress once. A transfer that is in a block may
 * still be in the list of those without a block.
 * @throws UpstreamError if the response is unreadable, or two entries for a transaction and subaddress differ in their
 * amount
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
  throw new UpstreamError('upstream_error', 'The Monero wallet reported an unreadable payment');
}
