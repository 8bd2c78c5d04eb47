/** The credential of an account, and the id that the books know the account by. */
import { randomUUID } from 'node:crypto';
import type { Secrets } from '../secrets.ts';

/** Random UUIDs. The id of an account was one, before it was derived from its `credit_id`. */
const RANDOM_VERSION = '4';
const DERIVED_VERSION = '8';

/** A new credential: 122 random bits, as a UUID. Nothing keeps it. */
export function generateCreditId(): string {
  return randomUUID();
}

/**
 * The ids that the account of a `credit_id` may have, that of a new account first: keyed hashes of it, in the form of UUIDs of
 * version 8, so that who reads ids of accounts has no credential. An account from before that was its own credential, and still is.
 * @param creditId a UUID in lower case
 */
export function toAccountIds(creditId: string, secrets: Secrets): readonly [string, ...string[]] {
  const [newest, ...older] = secrets.hashWithAllKeys(`credit_id ${creditId}`).map(formatUuid);
  const legacyIds = creditId[14] === RANDOM_VERSION ? [creditId] : [];
  return [newest as string, ...older, ...legacyIds];
}

/** The first 122 bits of a hash, by RFC 9562. */
function formatUuid(hash: string): string {
  const hex = Buffer.from(hash, 'base64url').toString('hex');
  const variant = '89ab'[Number.parseInt(hex[16] as string, 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${DERIVED_VERSION}${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
