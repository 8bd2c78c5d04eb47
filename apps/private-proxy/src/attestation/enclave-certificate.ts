import { createHash } from 'node:crypto';
import type { X509Certificate } from '@sigstore/core';
import { AttestationError } from './attestation-verifier.ts';
import { parseBundleText } from './bundle.ts';
import { assertValidAt, MAX_CERTIFICATE_BYTES, parseCertificate } from './certificate.ts';

const CERTIFICATE_NAME = "the enclave's certificate";
const PEM = /^\s*-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/;
const ALTERNATIVE_NAMES = '2.5.29.17';
const DNS_NAME = 2;
const BASE32_ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * The certificate that the enclave presents on TLS connections. Its issuer is not checked: trust comes from the report,
 * which contains the digest of the certificate's key.
 */
export interface EnclaveCertificate {
  /** SHA-256 of the public key (SubjectPublicKeyInfo). */
  readonly keyDigest: Buffer;
  readonly dnsNames: readonly string[];
}

/**
 * @param value PEM; anything after the first certificate is ignored
 * @throws AttestationError if `value` is not a certificate, is not valid at `now`, or is not for the domain
 */
export function parseEnclaveCertificate(value: unknown, domain: string, now: Date): EnclaveCertificate {
  const [, base64] = PEM.exec(parseBundleText(value, CERTIFICATE_NAME, 4 * MAX_CERTIFICATE_BYTES)) ?? [];
  if (base64 === undefined) throw new AttestationError(`${CERTIFICATE_NAME} is not PEM`);
  const certificate = parseCertificate(Buffer.from(base64.replaceAll(/\s/g, ''), 'base64'), CERTIFICATE_NAME);
  assertValidAt(certificate, now, CERTIFICATE_NAME);
  const dnsNames = getDnsNames(certificate);
  const parent = domain.slice(domain.indexOf('.') + 1);
  if (!dnsNames.includes(domain) && !dnsNames.includes(`*.${parent}`))
    throw new AttestationError(`${CERTIFICATE_NAME} is for another domain`);
  return { keyDigest: createHash('sha256').update(certificate.publicKey).digest(), dnsNames };
}

/**
 * Decodes bytes that Tinfoil stores in DNS names of the certificate: `00<base32>.<label>.<domain>`, `01<base32>.…`,
 * base32 without padding.
 * @returns undefined if there are no such names
 * @throws AttestationError if such names cannot be decoded
 */
export function decodeDnsNames(dnsNames: readonly string[], label: string): Buffer | undefined {
  const parts = dnsNames
    .map((name) => name.split('.'))
    .filter(([, second]) => second === label)
    .map(([first]) => first ?? '')
    .sort();
  if (parts.length === 0) return undefined;
  if (parts.some((part, i) => part.slice(0, 2) !== String(i).padStart(2, '0'))) {
    throw new AttestationError(`${CERTIFICATE_NAME} has DNS names that cannot be decoded`);
  }
  return decodeBase32(parts.map((part) => part.slice(2)).join(''));
}

function decodeBase32(text: string): Buffer {
  const bytes: number[] = [];
  let bits = 0;
  let value = 0;
  for (const letter of text) {
    const index = BASE32_ALPHABET.indexOf(letter);
    if (index < 0) throw new AttestationError(`${CERTIFICATE_NAME} has DNS names that cannot be decoded`);
    value = ((value << 5) | index) & 0xfff;
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push((value >> bits) & 0xff);
  }
  return Buffer.from(bytes);
}

function getDnsNames(certificate: X509Certificate): readonly string[] {
  return (certificate.extension(ALTERNATIVE_NAMES)?.valueObj.subs[0]?.subs ?? [])
    .filter(({ tag }) => tag.isContextSpecific(DNS_NAME))
    .map(({ value }) => value.toString('latin1'));
}
