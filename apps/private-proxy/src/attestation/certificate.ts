import { isDeepStrictEqual } from 'node:util';
import { X509Certificate } from '@sigstore/core';
import { AttestationError, withAttestationError } from './attestation-verifier.ts';

/** The most bytes that a certificate may have: AMD's have some 1,600. */
export const MAX_CERTIFICATE_BYTES = 8192;

const SEQUENCE = 0x30;
const BIT_STRING = 0x03;

/** @throws AttestationError for what is not exactly one X.509 version 3 certificate in its one true encoding (DER) */
export function parseCertificate(der: Buffer, name: string): X509Certificate {
  if (der.length > MAX_CERTIFICATE_BYTES) throw new AttestationError(`${name} is too long`);
  return withAttestationError(`${name} is no X.509 certificate`, () => {
    const certificate = X509Certificate.parse(Buffer.from(der));
    if (!certificate.root.toDER().equals(der)) throw new Error('not DER');
    assertCanonicalForm(certificate, name);
    return certificate;
  });
}

/**
 * A signature covers what is in the first of a certificate's three parts. What is around it has but one form: the algorithm
 * is the one that is named in that part, and the signature has whole bytes.
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
    throw new AttestationError(`${name} is no X.509 certificate of version 3`);
  }
}

/** @throws AttestationError where it is not valid at that time */
export function assertValidAt(certificate: X509Certificate, now: Date, name: string): void {
  if (now < certificate.notBefore) throw new AttestationError(`${name} is not valid yet`);
  if (now > certificate.notAfter) throw new AttestationError(`${name} has expired`);
}
