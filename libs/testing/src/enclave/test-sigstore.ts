import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { json, X509Certificate } from '@sigstore/core';
import type { TrustMaterial } from '@sigstore/verify';
import { context, octets, sequence, utf8 } from './der.ts';
import { type CertificateWish, extension, issue, spkiOf, toBeSigned } from './issue.ts';

/** Who signs, as GitHub's workflows are named in certificates of Sigstore. */
export interface SignerWish {
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

const FROM = new Date('2024-01-01T00:00:00Z');
const UNTIL = new Date('2044-01-01T00:00:00Z');
const SIGNED_AT = new Date('2026-01-22T22:42:02Z');
const MINUTE = 60_000;
const FULCIO = '1.3.6.1.4.1.57264.1';
const LOG_NAME = 'log.test';

/** Sigstore's authorities, with keys of their own, which nothing but a test trusts: who certifies, and two logs. */
export class TestSigstore {
  private readonly ca = p256();
  private readonly log = p256();
  private readonly certificateLog = p256();
  private readonly caCertificate = issue({
    subject: 'sigstore.test',
    publicKey: this.ca.publicKey,
    issuer: this.authority,
    from: FROM,
    until: UNTIL,
    isCa: true,
  });

  /** As the proxy trusts Sigstore's. */
  get trust(): TrustMaterial {
    const validFor = { start: FROM, end: UNTIL };
    const authority = (publicKey: KeyObject) => ({
      logID: idOf(publicKey),
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

  /** A Sigstore bundle (0.3) of a statement, signed by a workflow with a key that lives for ten minutes. */
  signed(statement: Json, by: SignerWish, payloadType = 'application/vnd.in-toto+json'): Json {
    const keys = p256();
    const certificate = this.certificateOf(keys.publicKey, by);
    const payload = Buffer.from(JSON.stringify(statement));
    const envelope = `DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} ${payload}`;
    const signature = sign('sha256', Buffer.from(envelope), keys.privateKey).toString('base64');
    return {
      mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
      verificationMaterial: {
        certificate: { rawBytes: certificate.toString('base64') },
        tlogEntries: [this.logged(payload, signature, certificate)],
      },
      dsseEnvelope: { payload: payload.toString('base64'), payloadType, signatures: [{ sig: signature }] },
    };
  }

  private get authority() {
    return { name: 'sigstore.test', key: this.ca.privateKey };
  }

  private certificateOf(publicKey: KeyObject, { issuer, repository, ref, workflow }: SignerWish): Buffer {
    const wish: CertificateWish = {
      subject: '',
      publicKey,
      issuer: this.authority,
      from: SIGNED_AT,
      until: new Date(SIGNED_AT.getTime() + 10 * MINUTE),
      extensions: [
        extension('2.5.29.17', sequence(context(6, Buffer.from(workflow), false)), true),
        extension(`${FULCIO}.8`, utf8(issuer)),
        extension(`${FULCIO}.12`, utf8(`https://github.com/${repository}`)),
        extension(`${FULCIO}.14`, utf8(ref)),
      ],
    };
    const logged = extension('1.3.6.1.4.1.11129.2.4.2', octets(this.certificateTimestamps(toBeSigned(wish))));
    return issue({ ...wish, extensions: [...(wish.extensions ?? []), logged] });
  }

  /** What says that the certificate is in the log of certificates (RFC 6962, 3.2 and 3.3). */
  private certificateTimestamps(tbs: Buffer): Buffer {
    const at = u64(SIGNED_AT.getTime());
    const entry = Buffer.concat([sha256(spkiOf(this.ca.publicKey)), uint(tbs.length, 3), tbs]);
    const signature = sign(
      'sha256',
      Buffer.concat([Buffer.of(0, 0), at, uint(1, 2), entry, uint(0, 2)]),
      this.certificateLog.privateKey,
    );
    const id = idOf(this.certificateLog.publicKey);
    const timestamp = Buffer.concat([
      Buffer.of(0),
      id,
      at,
      uint(0, 2),
      Buffer.of(4, 3),
      uint(signature.length, 2),
      signature,
    ]);
    return Buffer.concat([uint(timestamp.length + 2, 2), uint(timestamp.length, 2), timestamp]);
  }

  /** The entry in Rekor's log, the second of two: promised, and proven by a signed root. */
  private logged(payload: Buffer, signature: string, certificate: Buffer): Json {
    const spec = {
      payloadHash: { algorithm: 'sha256', value: sha256(payload).toString('hex') },
      signatures: [{ signature, verifier: certificate.toString('base64') }],
    };
    const body = Buffer.from(json.canonicalize({ apiVersion: '0.0.1', kind: 'dsse', spec }));
    const logId = idOf(this.log.publicKey);
    const integratedTime = SIGNED_AT.getTime() / 1000;
    const promise = json.canonicalize({
      body: body.toString('base64'),
      integratedTime,
      logID: logId.toString('hex'),
      logIndex: 1001,
    });
    const before = sha256(Buffer.from('the entry before'));
    const root = sha256(Buffer.of(1), before, sha256(Buffer.of(0), body)).toString('base64');
    const note = `${LOG_NAME} - 1\n2\n${root}\n`;
    const signedNote = Buffer.concat([logId.subarray(0, 4), sign('sha256', Buffer.from(note), this.log.privateKey)]);
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
        checkpoint: { envelope: `${note}\n\u2014 ${LOG_NAME} ${signedNote.toString('base64')}\n` },
      },
      canonicalizedBody: body.toString('base64'),
    };
  }
}

function p256(): Keys {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

function idOf(publicKey: KeyObject): Buffer {
  return sha256(spkiOf(publicKey));
}

function sha256(...parts: readonly Buffer[]): Buffer {
  return createHash('sha256').update(Buffer.concat(parts)).digest();
}

function uint(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}

function u64(value: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64BE(BigInt(value));
  return buffer;
}
