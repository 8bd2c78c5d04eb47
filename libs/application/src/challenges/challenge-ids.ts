/** Ids of payment challenges: each says all that its client may send back, so that nothing of it can be changed. */
import { createHmac } from 'node:crypto';
import type { Secrets } from '../secrets.ts';

/** How a challenge is paid, and what its payment is for, in the words of the `Payment` scheme. */
export const CHALLENGE_METHOD = 'lightning';
export const CHALLENGE_INTENT = 'charge';

/** 32 bytes in base64url. */
export const CHALLENGE_ID = /^[\w-]{42}[AEIMQUYcgkosw048]$/;

const UUID_BYTES = 16;

/** What an id stands for, each as it is written in the header. */
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
 * The id that the specification of the scheme recommends: base64url of HMAC-SHA256 over seven slots with bars between them,
 * empty where there is nothing.
 */
export function toChallengeId(
  { realm, method, intent, request, expires = '', digest = '', opaque = '' }: ChallengeParameters,
  key: Uint8Array,
): string {
  const slots = [realm, method, intent, request, expires, digest, opaque];
  return createHmac('sha256', key).update(slots.join('|')).digest('base64url');
}

/** Under which a challenge has its stream: the first half of its id. */
export function toChallengeStreamId(id: string): string {
  const hex = Buffer.from(id, 'base64url').toString('hex', 0, UUID_BYTES);
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** The key that ids are made with, and those that may have made others. */
export function deriveChallengeKeys(secrets: Secrets): readonly Buffer[] {
  return secrets.derivePurposeKeys('countinghouse payment challenges');
}
