/**
 * Creates a certificate like LND's own: P-256, self-signed, for `localhost` and 127.0.0.1. Each use creates its own, so
 * no key is stored. It is valid from yesterday to tomorrow. Structure: RFC 5280; encoding: DER.
 */
import { generateKeyPairSync, sign } from 'node:crypto';

const DAY_MS = 86_400_000;

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_ID = 0x06;
const UTF8_STRING = 0x0c;
const GENERALIZED_TIME = 0x18;
const SEQUENCE = 0x30;
const SET = 0x31;
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;
const DNS_NAME = 0x82;
const IP_ADDRESS = 0x87;

const COMMON_NAME = Buffer.from([0x55, 0x04, 0x03]);
const SUBJECT_ALT_NAME = Buffer.from([0x55, 0x1d, 0x11]);
const ECDSA_WITH_SHA256 = Buffer.from([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]);
const X509_V3 = Buffer.from([2]);
const SERIAL = Buffer.from([1]);

/** @returns certificate and private key in PEM */
export function createSelfSignedCertificate(): { readonly cert: string; readonly key: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = encodeDer(
    SEQUENCE,
    encodeDer(SET, encodeDer(SEQUENCE, encodeDer(OBJECT_ID, COMMON_NAME), encodeDer(UTF8_STRING, Buffer.from('lnd')))),
  );
  const names = encodeDer(
    SEQUENCE,
    encodeDer(DNS_NAME, Buffer.from('localhost')),
    encodeDer(IP_ADDRESS, Buffer.from([127, 0, 0, 1])),
  );
  const algorithm = encodeDer(SEQUENCE, encodeDer(OBJECT_ID, ECDSA_WITH_SHA256));
  const content = encodeDer(
    SEQUENCE,
    encodeDer(VERSION, encodeDer(INTEGER, X509_V3)),
    encodeDer(INTEGER, SERIAL),
    algorithm,
    name,
    encodeDer(SEQUENCE, encodeTime(-DAY_MS), encodeTime(DAY_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    encodeDer(
      EXTENSIONS,
      encodeDer(SEQUENCE, encodeDer(SEQUENCE, encodeDer(OBJECT_ID, SUBJECT_ALT_NAME), encodeDer(OCTET_STRING, names))),
    ),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', content, privateKey)]);
  const certificate = encodeDer(SEQUENCE, content, algorithm, encodeDer(BIT_STRING, signature));
  const cert = `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64')}\n-----END CERTIFICATE-----\n`;
  return { cert, key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) };
}

function encodeDer(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function encodeTime(fromNow: number): Buffer {
  const digits = new Date(Date.now() + fromNow).toISOString().slice(0, 19).replace(/\D/g, '');
  return encodeDer(GENERALIZED_TIME, Buffer.from(`${digits}Z`));
}
