/** The credential of an account, and the id of the account in events and tables. */
import type { Randomness } from '#kernel';
import type { Secrets } from '../secrets.ts';

/** Version of random UUIDs. In older accounts such a UUID is both the credential and the id. */
const RANDOM_VERSION = '4';
const DERIVED_VERSION = '8';

/** Generates a credential: 122 random bits, as a UUID. The credential is not stored. */
export function generateCreditId({ generateId }: Pick<Randomness, 'generateId'>): string {
  return generateId();
}

/**
 * Returns the ids that the account of a `credit_id` may have; a new account gets the first. For each master key there
 * is a keyed hash in the form of a UUID of version 8, which does not reveal the credential. In older accounts the id is
 * the credential itself.
 * @param creditId a UUID in lower case
 */
export function toAccountIds(creditId: string, secrets: Secrets): readonly [string, ...string[]] {
  const [newest, ...older] = secrets.hashWithAllKeys(`credit_id ${creditId}`).map(formatUuid);
  const legacyIds = creditId[14] === RANDOM_VERSION ? [creditId] : [];
  return [newest as string, ...older, ...legacyIds];
}

/** Formats 122 of the first 128 bits of a hash as a UUID of version 8 (RFC 9562). */
function formatUuid(hash: string): string {
  const hex = Buffer.from(hash, 'base64url').toString('hex');
  const variant = '89ab'[Number.parseInt(hex[16] as string, 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${DERIVED_VERSION}${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
