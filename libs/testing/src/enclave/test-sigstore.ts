import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { json, X509Certificate } from '@sigstore/core';
import type { TrustMaterial } from '@sigstore/verify';
import { context, octets, sequence, utf8 } from './der.ts';
import {
  type CertificateParams,
  createExtension,
  encodeTbsCertificate,
  exportSpki,
  issueCertificate,
} from './issue.ts';

/** Identity of a signing GitHub workflow, as Sigstore's certificates state it. */
export interface SignerIdentity {
  readonly issuer: string;
  readonly repository: string;
  readonly ref: string;
  readonly workflow: string;
}

type Json = Readonly<Record<string, unknown>>;
interface Keys {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

const VALID_FROM = new Date('2024-01-01T00:00:00Z');
const VALID_UNTIL = new Date('2044-01-01T00:00:00Z');
const SIGNED_AT = new Date('2026-01-22T22:42:02Z');
const MINUTE = 60_000;
const FULCIO = '1.3.6.1.4.1.57264.1';
const LOG_NAME = 'log.test';

/** Sigstore's certificate authority and its two logs, with keys that only tests trust. */
export class TestSigstore {
  private readonly ca = generateP256Keys();
  private readonly log = generateP256Keys();
  private readonly certificateLog = generateP256Keys();
  private readonly caCertificate = issueCertificate({
    subject: 'sigstore.test',
    publicKey: this.ca.publicKey,
    issuer: this.authority,
    from: VALID_FROM,
    until: VALID_UNTIL,
    isCa: true,
  });

  /** The trust material that the proxy needs to trust this instance. */
  get trust(): TrustMaterial {
    const validFor = { start: VALID_FROM, end: VALID_UNTIL };
    const authority = (publicKey: KeyObject) => ({
      logID: toKeyId(publicKey),
      baseURL: `https://${LOG_NAME}`,
      publicKey,
      validFor,
    });
    return {
      certificateAuthorities: [{ certChain: [X509Certificate.parse(Buffer.from(this.caCertificate))], validFor }],
      timestampAuthorities: [],
      tlogs: [authority(this.log.publicKey)],
      ctlogs: [authority(this.certificateLog.publicKey)],
      publicKey: () => {
        throw new Error('no key is trusted without a certificate');
      },
    };
  }

  /** Returns a Sigstore bundle (version 0.3) of a statement. Its signing certificate is valid for ten minutes. */
  signStatement(statement: Json, by: SignerIdentity, payloadType = 'application/vnd.in-toto+json'): Json {
    const keys = generateP256Keys();
    const certificate = this.createCertificate(keys.publicKey, by);
    const payload = Buffer.from(JSON.stringify(statement));
    const envelope = `DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} ${payload}`;
    const signature = sign('sha256', Buffer.from(envelope), keys.privateKey).toString('base64');
    return {
      mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
      verificationMaterial: {
        certificate: { rawBytes: certificate.toString('base64') },
        tlogEntries: [this.createLogEntry(payload, signature, certificate)],
      },
      dsseEnvelope: { payload: payload.toString('base64'), payloadType, signatures: [{ sig: signature }] },
    };
  }

  private get authority() {
    return { name: 'sigstore.test', key: this.ca.privateKey };
  }

  private createCertificate(publicKey: KeyObject, { issuer, repository, ref, workflow }: SignerIdentity): Buffer {
    const params: CertificateParams = {
      subject: '',
      publicKey,
      issuer: this.authority,
      from: SIGNED_AT,
      until: new Date(SIGNED_AT.getTime() + 10 * MINUTE),
      extensions: [
        createExtension('2.5.29.17', sequence(context(6, Buffer.from(workflow), false)), true),
        createExtension(`${FULCIO}.8`, utf8(issuer)),
        createExtension(`${FULCIO}.12`, utf8(`https://github.com/${repository}`)),
        createExtension(`${FULCIO}.14`, utf8(ref)),
      ],
    };
    const logged = createExtension(
      '1.3.6.1.4.1.11129.2.4.2',
      octets(this.createCertificateTimestamps(encodeTbsCertificate(params))),
    );
    return issueCertificate({ ...params, extensions: [...(params.extensions ?? []), logged] });
  }

  /** Returns a list of one signed timestamp, which shows that the certificate is logged (RFC 6962, 3.2 and 3.3). */
  private createCertificateTimestamps(tbs: Buffer): Buffer {
    const at = u64(SIGNED_AT.getTime());
    const entry = Buffer.concat([sha256(exportSpki(this.ca.publicKey)), encodeUint(tbs.length, 3), tbs]);
    const signature = sign(
      'sha256',
      Buffer.concat([Buffer.of(0, 0), at, encodeUint(1, 2), entry, encodeUint(0, 2)]),
      this.certificateLog.privateKey,
    );
    const id = toKeyId(this.certificateLog.publicKey);
    const timestamp = Buffer.concat([
      Buffer.of(0),
      id,
      at,
      encodeUint(0, 2),
      Buffer.of(4, 3),
      encodeUint(signature.length, 2),
      signature,
    ]);
    return Buffer.concat([encodeUint(timestamp.length + 2, 2), encodeUint(timestamp.length, 2), timestamp]);
  }

  /** Returns the second of two entries in Rekor's log, with an inclusion promise and an inclusion proof. */
  private createLogEntry(payload: Buffer, signature: string, certificate: Buffer): Json {
    const spec = {
      payloadHash: { algorithm: 'sha256', value: sha256(payload).toString('hex') },
      signatures: [{ signature, verifier: certificate.toString('base64') }],
    };
    const body = Buffer.from(json.canonicalize({ apiVersion: '0.0.1', kind: 'dsse', spec }));
    const logId = toKeyId(this.log.publicKey);
    const integratedTime = SIGNED_AT.getTime() / 1000;
    const promise = json.canonicalize({
      body: body.toString('base64'),
      integratedTime,
      logID: logId.toString('hex'),
      logIndex: 1001,
    });
    const before = sha256(Buffer.from('the entry before'));
    const root = sha256(Buffer.of(1), before, sha256(Buffer.of(0), body)).toString('base64');
    const checkpointText = `${LOG_NAME} - 1\n2\n${root}\n`;
    const checkpointSignature = Buffer.concat([
      logId.subarray(0, 4),
      sign('sha256', Buffer.from(checkpointText), this.log.privateKey),
    ]);
    return {
      logIndex: '1001',
      logId: { keyId: logId.toString('base64') },
      kindVersion: { kind: 'dsse', version: '0.0.1' },
      integratedTime: String(integratedTime),
      inclusionPromise: {
        signedEntryTimestamp: sign('sha256', Buffer.from(promise), this.log.privateKey).toString('base64'),
      },
      inclusionProof: {
        logIndex: '1',
        treeSize: '2',
        rootHash: root,
        hashes: [before.toString('base64')],
        checkpoint: { envelope: `${checkpointText}\n\u2014 ${LOG_NAME} ${checkpointSignature.toString('base64')}\n` },
      },
      canonicalizedBody: body.toString('base64'),
    };
  }
}

function generateP256Keys(): Keys {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

function toKeyId(publicKey: KeyObject): Buffer {
  return sha256(exportSpki(publicKey));
}

function sha256(...parts: readonly Buffer[]): Buffer {
  return createHash('sha256').update(Buffer.concat(parts)).digest();
}

function encodeUint(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}

function u64(value: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64BE(BigInt(value));
  return buffer;
}
