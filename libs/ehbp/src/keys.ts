/** Keys of enclaves, and their wire format: the key configuration of RFC 9458, section 3. */
import type { webcrypto } from 'node:crypto';
import type { KeyPair } from 'hpke';
import { EhbpError, KEY_BYTES, SUITE, SUITE_IDS } from './protocol.ts';

export interface EnclaveKeys {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** The private key cannot be exported. */
  readonly keyPair: KeyPair<webcrypto.CryptoKey>;
}

const KEY_ID = 0;
const SUITE_BYTES = 4;
/** Byte offsets of the fields after the key id, which is the first byte. */
const CONFIG_OFFSETS = { kem: 1, publicKey: 3, suitesLength: 3 + KEY_BYTES, suites: 5 + KEY_BYTES };

export async function generateKeys(): Promise<EnclaveKeys> {
  const pair = await SUITE.GenerateKeyPair(false);
  return { publicKey: await SUITE.SerializePublicKey(pair.publicKey), keyPair: pair };
}

/** Encodes the key configuration that an enclave publishes at `/.well-known/hpke-keys`. */
export function encodeKeyConfig(publicKey: Uint8Array): Uint8Array {
  const config = Buffer.alloc(CONFIG_OFFSETS.suites + SUITE_BYTES);
  config.writeUInt8(KEY_ID);
  config.writeUInt16BE(SUITE_IDS.kem, CONFIG_OFFSETS.kem);
  config.set(publicKey, CONFIG_OFFSETS.publicKey);
  config.writeUInt16BE(SUITE_BYTES, CONFIG_OFFSETS.suitesLength);
  config.writeUInt16BE(SUITE_IDS.kdf, CONFIG_OFFSETS.suites);
  config.writeUInt16BE(SUITE_IDS.aead, CONFIG_OFFSETS.suites + 2);
  return config;
}

/**
 * Returns the public key (32 bytes) of the key configuration at the start of the bytes, and ignores what follows it.
 * @throws EhbpError if the configuration is incomplete or malformed, or is not for the cipher suite of this protocol
 */
export function parsePublicKey(config: Uint8Array): Uint8Array {
  const bytes = Buffer.from(config.buffer, config.byteOffset, config.length);
  const suites = bytes.length >= CONFIG_OFFSETS.suites ? bytes.readUInt16BE(CONFIG_OFFSETS.suitesLength) : 0;
  if (suites === 0 || suites % SUITE_BYTES !== 0 || bytes.length < CONFIG_OFFSETS.suites + suites) {
    throw new EhbpError('malformed', 'the key configuration is incomplete, malformed or for another key length');
  }
  const supportedSuites = Array.from({ length: suites / SUITE_BYTES }, (_, i) =>
    bytes.readUInt32BE(CONFIG_OFFSETS.suites + i * SUITE_BYTES),
  );
  const requiredSuite = SUITE_IDS.kdf * 0x1_0000 + SUITE_IDS.aead;
  if (bytes.readUInt16BE(CONFIG_OFFSETS.kem) !== SUITE_IDS.kem || !supportedSuites.includes(requiredSuite)) {
    throw new EhbpError('malformed', 'the key configuration is not for X25519, HKDF-SHA256 and AES-256-GCM');
  }
  return new Uint8Array(bytes.subarray(CONFIG_OFFSETS.publicKey, CONFIG_OFFSETS.suitesLength));
}
