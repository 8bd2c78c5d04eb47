/** The JSON form of values in events. */

/** An ISO 8601 instant in UTC with milliseconds, in the format of `Date.toISOString`. Sorts as text. */
export type Instant = string;
/** Pico-USD as a decimal string. */
export type Amount = string;

/** An encrypted secret, as it is stored in an event. */
export interface SealedSecret {
  /** Id of the key that encrypted it. */
  readonly key: string;
  /** AES-256-GCM: base64 of nonce, ciphertext and tag. */
  readonly box: string;
}
