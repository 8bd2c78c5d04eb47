import { constants, type KeyObject, sign } from 'node:crypto';
import { bits, context, element, encodeTrue, integer, octets, oid, sequence, time, utf8 } from './der.ts';

export interface CertificateParams {
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly issuer: { readonly name: string; readonly key: KeyObject };
  readonly from: Date;
  readonly until: Date;
  readonly isCa?: boolean;
  /** Results of `createExtension`. */
  readonly extensions?: readonly Buffer[];
}

/** A signature algorithm with its DER identifier. */
interface Algorithm {
  readonly identifier: Buffer;
  sign(key: KeyObject, bytes: Buffer): Buffer;
}

const SHA384 = sequence(oid('2.16.840.1.101.3.4.2.2'), element(0x05));
/** AMD's algorithm: RSASSA-PSS with a salt of 48 bytes. */
const PSS_SHA384: Algorithm = {
  identifier: sequence(
    oid('1.2.840.113549.1.1.10'),
    sequence(
      context(0, SHA384),
      context(1, sequence(oid('1.2.840.113549.1.1.8'), SHA384)),
      context(2, integer(48)),
      context(3, integer(1)),
    ),
  ),
  sign: (key, bytes) => sign('sha384', bytes, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 48 }),
};
const ECDSA_SHA256: Algorithm = {
  identifier: sequence(oid('1.2.840.10045.4.3.2')),
  sign: (key, bytes) => sign('sha256', bytes, key),
};

/** Issues a certificate in DER. An RSA key signs with PSS and SHA-384, any other key with ECDSA and SHA-256. */
export function issueCertificate(params: CertificateParams): Buffer {
  const algorithm = selectAlgorithm(params.issuer.key);
  const tbs = encodeTbsCertificate(params);
  return sequence(tbs, algorithm.identifier, bits(algorithm.sign(params.issuer.key, tbs)));
}

/** Encodes the signed part of a certificate. */
export function encodeTbsCertificate({
  subject,
  publicKey,
  issuer,
  from,
  until,
  isCa = false,
  extensions = [],
}: CertificateParams): Buffer {
  const all = isCa ? [createExtension('2.5.29.19', sequence(encodeTrue()), true), ...extensions] : extensions;
  return sequence(
    context(0, integer(2)),
    integer(1),
    selectAlgorithm(issuer.key).identifier,
    encodeName(issuer.name),
    sequence(time(from), time(until)),
    encodeName(subject),
    exportSpki(publicKey),
    context(3, sequence(...all)),
  );
}

export function createExtension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(oid(id), ...(critical ? [encodeTrue()] : []), octets(value));
}

export function toPem(der: Buffer): string {
  return `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replaceAll(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
}

export function exportSpki(publicKey: KeyObject): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' });
}

function selectAlgorithm(key: KeyObject): Algorithm {
  return key.asymmetricKeyType === 'rsa' ? PSS_SHA384 : ECDSA_SHA256;
}

function encodeName(name: string): Buffer {
  return sequence(element(0x31, sequence(oid('2.5.4.3'), utf8(name))));
}
