import { isDeepStrictEqual } from 'node:util';
import { X509Certificate } from '@sigstore/core';
import { AttestationError, withAttestationError } from './attestation-verifier.ts';

/** Maximum length of a certificate. AMD's certificates have at most 1,700 bytes. */
export const MAX_CERTIFICATE_BYTES = 8192;

const SEQUENCE = 0x30;
const BIT_STRING = 0x03;

/**
 * Requires lengths that are encoded as in DER. The values of primitive types are not checked against DER.
 * @throws AttestationError unless `der` is exactly one certificate of at most MAX_CERTIFICATE_BYTES that
 * `assertCanonicalForm` accepts
 */
export function parseCertificate(der: Buffer, name: string): X509Certificate {
  if (der.length > MAX_CERTIFICATE_BYTES) throw new AttestationError(`${name} is too long`);
  return withAttestationError(`${name} is not an X.509 certificate`, () => {
    const certificate = X509Certificate.parse(Buffer.from(der));
    if (!certificate.root.toDER().equals(der)) throw new Error('not DER');
    assertCanonicalForm(certificate, name);
    return certificate;
  });
}

/**
 * Requires the canonical form of the parts that a certificate's signature does not cover (RFC 5280, 4.1.1). The outer
 * algorithm must equal the signed one, and the signature must have no unused bits. Without this check, bytes of these
 * parts could be changed unnoticed. Also requires version 3.
 * @throws AttestationError
 */
export function assertCanonicalForm({ root, version, tbsCertificate }: X509Certificate, name: string): void {
  const tags = [root, ...root.subs].map(({ tag }) => tag.toDER());
  const [, algorithm, signature] = root.subs;
  const signedAlgorithm = tbsCertificate.subs[2]?.toDER(); // after version and serial number
  if (
    !isDeepStrictEqual(tags, [SEQUENCE, SEQUENCE, SEQUENCE, BIT_STRING]) ||
    version !== 'v3' ||
    !algorithm?.toDER().equals(signedAlgorithm ?? Buffer.of()) ||
    signature?.value[0] !== 0
  ) {
    throw new AttestationError(`${name} is not a canonical X.509 certificate of version 3`);
  }
}

/** @throws AttestationError if the certificate is not valid at `now` */
export function assertValidAt(certificate: X509Certificate, now: Date, name: string): void {
  if (now < certificate.notBefore) throw new AttestationError(`${name} is not valid yet`);
  if (now > certificate.notAfter) throw new AttestationError(`${name} has expired`);
}
