/**
 * What both sides of the Encrypted HTTP Body Protocol agree on (SPEC.md of github.com/tinfoilsh/encrypted-http-body-protocol): HPKE
 * (RFC 9180) in base mode for the request, keys derived as in RFC 9458 for the answer, bodies as frames of ciphertext.
 */
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256 } from 'hpke';

/** Header of a request: its encapsulated key as 64 hexadecimal digits. */
export const ENCAPSULATED_KEY_HEADER = 'ehbp-encapsulated-key';
/** Header of an answer: 32 random bytes as 64 hexadecimal digits. An answer without it is not encrypted. */
export const RESPONSE_NONCE_HEADER = 'ehbp-response-nonce';
/** The `type` of the problem (status 422) by which an enclave says that it does not have the key that a request is for. */
export const KEY_CONFIG_PROBLEM = 'urn:ietf:params:ehbp:error:key-config';
/** The content type of a key configuration. */
export const KEY_CONFIG_TYPE = 'application/ohttp-keys';

export const SUITE = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM);
/** Identifiers of the suite's parts in the registry of RFC 9180. */
export const SUITE_IDS = { kem: 0x0020, kdf: 0x0001, aead: 0x0002 } as const;
export const REQUEST_INFO = Buffer.from('ehbp request');
export const RESPONSE_LABEL = Buffer.from('ehbp response');
export const KEY_BYTES = 32;

/** What is wrong: it was never of this protocol, it ended early, or it is not what the other side encrypted. */
export type EhbpErrorCode = 'malformed' | 'truncated' | 'unauthentic';

/** Something that is not what the protocol promises. Its message has nothing of what was encrypted, nor of any key. */
export class EhbpError extends Error {
  override readonly name = 'EhbpError';
  readonly code: EhbpErrorCode;

  constructor(code: EhbpErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Whether this can stand in the header of an encapsulated key or of a nonce. */
export function isHeaderValue(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/**
 * Reads 32 bytes from a header. The protocol writes small letters, and nothing else is taken: so each changed bit shows.
 * @throws EhbpError
 */
export function parseHeaderBytes(hex: string, header: string): Uint8Array {
  if (isHeaderValue(hex)) return Buffer.from(hex, 'hex');
  throw new EhbpError('malformed', `${header} is not 64 hexadecimal digits in small letters`);
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}
