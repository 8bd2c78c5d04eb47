/**
 * The common part of both sides of the Encrypted HTTP Body Protocol (SPEC.md of
 * https://github.com/tinfoilsh/encrypted-http-body-protocol). Requests use HPKE (RFC 9180) in base mode, and responses
 * use keys that are derived as in RFC 9458. Bodies are sequences of ciphertext frames.
 */
import { AEAD_AES_256_GCM, CipherSuite, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256 } from 'hpke';

/** Request header: the encapsulated key as 64 hexadecimal digits. */
export const ENCAPSULATED_KEY_HEADER = 'ehbp-encapsulated-key';
/** Response header: 32 random bytes as 64 hexadecimal digits. A response without it is not encrypted. */
export const RESPONSE_NONCE_HEADER = 'ehbp-response-nonce';
/** The `type` of the 422 problem with which an enclave rejects a request encrypted with a key other than its own. */
export const KEY_CONFIG_PROBLEM = 'urn:ietf:params:ehbp:error:key-config';
/** The content type of a key configuration. */
export const KEY_CONFIG_TYPE = 'application/ohttp-keys';

export const SUITE = new CipherSuite(KEM_DHKEM_X25519_HKDF_SHA256, KDF_HKDF_SHA256, AEAD_AES_256_GCM);
/** Identifiers of the algorithms in the registries of RFC 9180, section 7. */
export const SUITE_IDS = { kem: 0x0020, kdf: 0x0001, aead: 0x0002 } as const;
export const REQUEST_INFO = Buffer.from('ehbp request');
export const RESPONSE_LABEL = Buffer.from('ehbp response');
export const KEY_BYTES = 32;

/** The data does not follow the protocol, ended early, or is not what the other side encrypted. */
export type EhbpErrorCode = 'malformed' | 'truncated' | 'unauthentic';

/** A violation of the protocol. Its message contains neither plaintext nor key material. */
export class EhbpError extends Error {
  override readonly name = 'EhbpError';
  readonly code: EhbpErrorCode;

  constructor(code: EhbpErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Returns whether a text is a valid header value for an encapsulated key or a nonce. */
export function isHeaderValue(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/**
 * Parses 32 bytes from a header. Only lower-case digits are accepted: otherwise one changed bit could turn `a` into `A`
 * undetected.
 * @throws EhbpError if the text is not 64 lower-case hexadecimal digits
 */
export function parseHeaderBytes(hex: string, header: string): Uint8Array {
  if (isHeaderValue(hex)) return Buffer.from(hex, 'hex');
  throw new EhbpError('malformed', `${header} is not 64 lower-case hexadecimal digits`);
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}
