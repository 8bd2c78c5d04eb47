/** The JSON form of values in facts. */

/** An ISO 8601 instant in UTC with milliseconds, as `Date.toISOString` prints it: sorts as text. */
export type Instant = string;
/** Pico-USD as a decimal string. */
export type Amount = string;

/** A secret as a fact keeps it. */
export interface SealedSecret {
  /** Which key seals it. */
  readonly key: string;
  /** AES-256-GCM: base64 of nonce, ciphertext and tag. */
  readonly box: string;
}
