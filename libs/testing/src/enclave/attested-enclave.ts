import { createHash, generateKeyPairSync } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { context, sequence } from './der.ts';
import { createExtension, exportSpki, issueCertificate, toPem } from './issue.ts';
import { type ChipOverrides, type ReportParams, TestProcessor } from './test-processor.ts';
import { type SignerIdentity, TestSigstore } from './test-sigstore.ts';

/** Differences between the bundle of an enclave and a valid one. */
export interface EnclaveOverrides {
  readonly report?: Partial<ReportParams>;
  readonly chip?: ChipOverrides;
  readonly signer?: Partial<SignerIdentity>;
  readonly statement?: Readonly<Record<string, unknown>>;
  readonly payloadType?: string;
  /** The values that the `.hpke.` and `.hatt.` names of its certificate encode; null omits the names. */
  readonly names?: { readonly hpke?: Buffer | null; readonly hatt?: string | null };
  readonly certificateUntil?: Date;
}

type Json = Readonly<Record<string, unknown>>;

const FORMAT = 'https://tinfoil.sh/predicate/sev-snp-guest/v2';
const DOMAIN = 'enclave.test';
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** An enclave with complete evidence: its processor is a TestProcessor, and its release is signed by a TestSigstore. */
export class AttestedEnclave {
  readonly repository = 'enclaves/model-router';
  readonly measurement = Buffer.alloc(48, 0x3e);
  readonly digest = 'd1'.repeat(32);
  /** A time at which the certificates of the processor and of the enclave are valid. */
  readonly now = new Date('2026-02-01T00:00:00Z');
  readonly sigstore = new TestSigstore();
  private readonly tls = generateKeyPairSync('ec', { namedCurve: 'secp384r1' });
  private readonly publicCa = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });

  /** @param publicKey X25519, 32 bytes; the key that requests are encrypted for */
  constructor(
    readonly publicKey: Buffer,
    readonly processor = new TestProcessor(),
  ) {}

  /** Returns the bundle in Tinfoil's format. */
  createBundle(overrides: EnclaveOverrides = {}): Json {
    const tlsDigest = createHash('sha256').update(exportSpki(this.tls.publicKey)).digest();
    const reportData = Buffer.concat([tlsDigest, this.publicKey]);
    const report = this.processor.createReport({ reportData, measurement: this.measurement, ...overrides.report });
    return this.createBundleWithReport(report, overrides);
  }

  /** Returns a bundle with this report, which a test may have changed. */
  createBundleWithReport(
    report: Buffer,
    { chip, signer, statement, payloadType, names, certificateUntil }: EnclaveOverrides = {},
  ): Json {
    const body = gzipSync(report).toString('base64');
    const hatt = createHash('sha256')
      .update(FORMAT + body)
      .digest('hex');
    return {
      domain: DOMAIN,
      enclaveAttestationReport: { format: FORMAT, body },
      digest: this.digest,
      sigstoreBundle: this.sigstore.signStatement(
        { ...this.createStatement(), ...statement },
        { ...this.createSigner(), ...signer },
        payloadType,
      ),
      vcek: this.processor.createCertificate(chip).toString('base64'),
      enclaveCert: this.createCertificate({ hpke: this.publicKey, hatt, ...names }, certificateUntil),
    };
  }

  createStatement(): Json {
    return {
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name: 'tinfoil-deployment.json', digest: { sha256: this.digest } }],
      predicateType: 'https://tinfoil.sh/predicate/snp-tdx-multiplatform/v1',
      predicate: { snp_measurement: this.measurement.toString('hex'), cmdline: 'readonly=on' },
    };
  }

  private createSigner(): SignerIdentity {
    const ref = 'refs/tags/v1.2.3';
    return {
      issuer: 'https://token.actions.githubusercontent.com',
      repository: this.repository,
      ref,
      workflow: `https://github.com/${this.repository}/.github/workflows/release.yml@${ref}`,
    };
  }

  private createCertificate(
    { hpke, hatt }: NonNullable<EnclaveOverrides['names']>,
    until = new Date('2026-04-01T00:00:00Z'),
  ): string {
    const names = [
      DOMAIN,
      ...(hpke ? encodeNames(hpke, 'hpke') : []),
      ...(hatt ? encodeNames(Buffer.from(hatt), 'hatt') : []),
    ].map((name) => context(2, Buffer.from(name), false));
    const der = issueCertificate({
      subject: DOMAIN,
      publicKey: this.tls.publicKey,
      issuer: { name: 'a public authority', key: this.publicCa.privateKey },
      from: new Date('2026-01-01T00:00:00Z'),
      until,
      extensions: [createExtension('2.5.29.17', sequence(...names))],
    });
    return toPem(der);
  }
}

/** Encodes bytes as DNS names of a certificate: `00<base32>.label.enclave.test`, `01<base32>.…`. */
function encodeNames(bytes: Buffer, label: string): readonly string[] {
  const binary = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  const letters = (binary.match(/.{1,5}/g) ?? [])
    .map((five) => BASE32[Number.parseInt(five.padEnd(5, '0'), 2)])
    .join('');
  return (letters.match(/.{1,45}/g) ?? []).map((part, i) => `${String(i).padStart(2, '0')}${part}.${label}.${DOMAIN}`);
}
