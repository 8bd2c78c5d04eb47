import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { X509Certificate } from '@sigstore/core';
import { AttestationError } from '../attestation-verifier.ts';
import { assertValidAt, parseCertificate } from '../certificate.ts';
import type { Tcb } from './report.ts';

/**
 * AMD's certificates for one product line, as base64 of DER: the root (`ARK`), and the intermediate one (`ASK`), whose
 * key signs the certificates of chips.
 */
export interface AmdRoot {
  readonly product: string;
  readonly ark: string;
  readonly ask: string;
}

/** The key of one chip at its firmware levels (VCEK), with the data that AMD certified. */
export interface ChipKey {
  readonly publicKey: KeyObject;
  readonly product: string;
  readonly tcb: Tcb;
  readonly hardwareId: Buffer;
}

const CHIP_CERTIFICATE_NAME = 'the certificate of its chip';
/**
 * RSASSA-PSS with SHA-384, MGF1 with SHA-384 and a salt of 48 bytes, with and without the default trailer. AMD uses no
 * other algorithm.
 */
const PSS_SHA384 = [
  '304606092a864886f70d01010a3039a00f300d06096086480165030402020500' +
    'a11c301a06092a864886f70d010108300d06096086480165030402020500a203020130a303020101',
  '304106092a864886f70d01010a3034a00f300d06096086480165030402020500' +
    'a11c301a06092a864886f70d010108300d06096086480165030402020500a203020130',
];
const SALT_BYTES = 48;

/** @see Versioned Chip Endorsement Key (VCEK) Certificate and KDS Interface Specification (AMD 57230), extensions */
const AMD_EXTENSION_OID = '1.3.6.1.4.1.3704.1';
const PRODUCT_NAME_OID = `${AMD_EXTENSION_OID}.2`;
const HARDWARE_ID_OID = `${AMD_EXTENSION_OID}.4`;
const CLOUD_ID_OID = `${AMD_EXTENSION_OID}.5`; // only in certificates of a cloud provider's key (VLEK)
const LEVEL_NUMBERS = { fmc: 9, bootloader: 1, tee: 2, snp: 3, microcode: 8 } as const;
/** Levels that AMD has reserved. A chip that uses one has a component whose level is not in reports. */
const RESERVED_LEVEL_NUMBERS = [4, 5, 6, 7];

const IA5_STRING = 0x16;
const OCTET_STRING = 0x04;

/**
 * Verifies a chip's certificate up to a pinned root of AMD and returns the key of the chip.
 * @param der the certificate that the enclave presents (VCEK)
 * @throws AttestationError unless the root signed the issuer, and the issuer the certificate. All three must be valid
 * at `now`. The certificate must be complete, and for a chip of the issuer's product.
 */
export function parseChipKey(der: Buffer, roots: readonly AmdRoot[], now: Date): ChipKey {
  const certificate = parseCertificate(der, CHIP_CERTIFICATE_NAME);
  const { product, issuer } = verifyIssuer(certificate, roots, now);
  assertSignature(certificate, issuer, CHIP_CERTIFICATE_NAME);
  assertValidAt(certificate, now, CHIP_CERTIFICATE_NAME);
  if (certificate.isCA || certificate.extension(CLOUD_ID_OID))
    throw new AttestationError(`${CHIP_CERTIFICATE_NAME} is not for the key of a chip`);
  if (parseProductName(certificate) !== product)
    throw new AttestationError(`${CHIP_CERTIFICATE_NAME} is for another product than its issuer`);
  return {
    publicKey: parseP384Key(certificate),
    product,
    tcb: parseTcb(certificate),
    hardwareId: parseHardwareId(certificate),
  };
}

/**
 * Finds the issuer by its name among the pinned certificates. Its chain is verified every time, because the pinned data
 * could contain a mistake.
 */
function verifyIssuer(certificate: X509Certificate, roots: readonly AmdRoot[], now: Date) {
  for (const { product, ...root } of roots) {
    const signingCertificate = parseCertificate(Buffer.from(root.ask, 'base64'), `AMD's certificate for ${product}`);
    if (!signingCertificate.subject.equals(certificate.issuer)) continue;
    const ark = parseCertificate(Buffer.from(root.ark, 'base64'), `AMD's root for ${product}`);
    for (const [issued, issuer, name] of [
      [ark, ark, `AMD's root for ${product}`],
      [signingCertificate, ark, `AMD's certificate for ${product}`],
    ] as const) {
      if (!issued.issuer.equals(issuer.subject) || !issuer.isCA)
        throw new AttestationError(`${name} was not issued by AMD's root`);
      assertSignature(issued, issuer, name);
      assertValidAt(issued, now, name);
    }
    if (!signingCertificate.isCA) throw new AttestationError(`AMD's certificate for ${product} is not for a CA`);
    return { product, issuer: signingCertificate };
  }
  throw new AttestationError(`${CHIP_CERTIFICATE_NAME} was not issued by AMD for a product this proxy supports`);
}

function assertSignature(certificate: X509Certificate, issuer: X509Certificate, name: string): void {
  const [, algorithm, signature] = certificate.root.subs;
  if (!PSS_SHA384.includes(algorithm?.toDER().toString('hex') ?? '')) {
    throw new AttestationError(`${name} is not signed by RSA-PSS with SHA-384`);
  }
  const key = {
    key: createPublicKey({ key: issuer.publicKey, format: 'der', type: 'spki' }),
    padding: constants.RSA_PKCS1_PSS_PADDING,
    saltLength: SALT_BYTES,
  };
  const bytes = signature?.value.subarray(1) ?? Buffer.of(); // the first byte is the number of unused bits, which is 0
  if (!verify('sha384', certificate.tbsCertificate.toDER(), key, bytes)) {
    throw new AttestationError(`the signature of ${name} is invalid`);
  }
}

/** Returns the product name, such as `Milan`, without a stepping as in `Milan-B0`; undefined if it is missing. */
function parseProductName(certificate: X509Certificate): string | undefined {
  const value = certificate.extension(PRODUCT_NAME_OID)?.value;
  if (value?.[0] !== IA5_STRING || value[1] !== value.length - 2) return undefined;
  return value.toString('latin1', 2).split('-')[0];
}

function parseTcb(certificate: X509Certificate): Tcb {
  const readLevel = (number: number) => {
    const value = certificate.extension(`${AMD_EXTENSION_OID}.3.${number}`)?.valueObj.subs[0];
    return value === undefined ? undefined : Number(value.toInteger());
  };
  const requireLevel = (number: number) => {
    const value = readLevel(number);
    if (value === undefined) throw new AttestationError(`${CHIP_CERTIFICATE_NAME} lacks a firmware level`);
    return value;
  };
  if (RESERVED_LEVEL_NUMBERS.some((number) => (readLevel(number) ?? 0) !== 0)) {
    throw new AttestationError(`${CHIP_CERTIFICATE_NAME} has firmware levels that this proxy does not support`);
  }
  return {
    fmc: readLevel(LEVEL_NUMBERS.fmc) ?? 0,
    bootloader: requireLevel(LEVEL_NUMBERS.bootloader),
    tee: requireLevel(LEVEL_NUMBERS.tee),
    snp: requireLevel(LEVEL_NUMBERS.snp),
    microcode: requireLevel(LEVEL_NUMBERS.microcode),
  };
}

/** The id is either raw or wrapped in an octet string: AMD has issued both forms. */
function parseHardwareId(certificate: X509Certificate): Buffer {
  const value = certificate.extension(HARDWARE_ID_OID)?.value;
  if (value === undefined) throw new AttestationError(`${CHIP_CERTIFICATE_NAME} does not identify the chip`);
  const wrapped = value[0] === OCTET_STRING && value[1] === value.length - 2 && [10, 66].includes(value.length);
  return wrapped ? value.subarray(2) : value;
}

function parseP384Key(certificate: X509Certificate): KeyObject {
  const key = createPublicKey({ key: certificate.publicKey, format: 'der', type: 'spki' });
  if (key.asymmetricKeyDetails?.namedCurve !== 'secp384r1')
    throw new AttestationError(`${CHIP_CERTIFICATE_NAME} has no P-384 key`);
  return key;
}
