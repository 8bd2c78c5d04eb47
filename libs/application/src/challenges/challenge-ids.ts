/**
 * Ids of payment challenges. An id is an HMAC over all `ChallengeParameters`, so a client that sends them back cannot
 * change any of them.
 */
import { createHmac } from 'node:crypto';
import type { Secrets } from '../secrets.ts';

/** How a challenge is paid: the `method` of the `Payment` scheme. */
export const CHALLENGE_METHOD = 'lightning';
/** What the payment is for: the `intent` of the `Payment` scheme. */
export const CHALLENGE_INTENT = 'charge';

/** 32 bytes in base64url. */
export const CHALLENGE_ID = /^[\w-]{42}[AEIMQUYcgkosw048]$/;

const UUID_BYTES = 16;

/** The parameters that an id covers, each as in the header `WWW-Authenticate`. */
export interface ChallengeParameters {
  readonly realm: string;
  readonly method: string;
  readonly intent: string;
  readonly request: string;
  readonly expires?: string | undefined;
  readonly digest?: string | undefined;
  readonly opaque?: string | undefined;
}

/**
 * Returns the id that the specification of the `Payment` scheme recommends: base64url of HMAC-SHA256 over the seven
 * parameters, joined by `|`. A missing one is empty.
 */
export function toChallengeId(
  { realm, method, intent, request, expires = '', digest = '', opaque = '' }: ChallengeParameters,
  key: Uint8Array,
): string {
  const slots = [realm, method, intent, request, expires, digest, opaque];
  return createHmac('sha256', key).update(slots.join('|')).digest('base64url');
}

/** Returns the id of a challenge's stream: the first half of the challenge id, as a UUID. */
export function toChallengeStreamId(id: string): string {
  const hex = Buffer.from(id, 'base64url').toString('hex', 0, UUID_BYTES);
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Returns the keys of challenge ids. The first creates new ids; earlier ids may have been created with any of them. */
export function deriveChallengeKeys(secrets: Secrets): readonly Buffer[] {
  return secrets.derivePurposeKeys('countinghouse payment challenges');
}
