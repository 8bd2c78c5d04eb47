import { createHash } from 'node:crypto';
import { type AttestationVerifier, NotAttested, readOrRefuse, type VerifiedEnclave } from './attestation-verifier.ts';
import { type AttestationBundle, base64In, bundleIn, gunzipped, textIn } from './bundle.ts';
import { MAX_CERTIFICATE } from './certificate.ts';
import { enclaveCertificateIn, encodedIn } from './enclave-certificate.ts';
import { type Anchors, pinned } from './pinned.ts';
import { releaseIn } from './release.ts';
import { SIMULATED, simulatedEnclave } from './simulated.ts';
import { authenticReport } from './snp/authentic-report.ts';
import { checkPolicy } from './snp/policy.ts';
import { REPORT_BYTES, type SnpReport } from './snp/report.ts';

export interface EnclaveTrust {
  /** GitHub repositories whose releases are trusted, such as `owner/name`. */
  readonly repositories: readonly string[];
  /** Accepts enclaves that say themselves that they prove nothing (`ALLOW_UNATTESTED`). All others are checked as ever. */
  readonly allowUnattested: boolean;
}

const SEV_SNP = 'https://tinfoil.sh/predicate/sev-snp-guest/v2';
const INTEL = /^https:\/\/tinfoil\.sh\/predicate\/tdx-guest\//;

/**
 * Checks each bundle by the format of its report. What is trusted is in this program and in `trust`, never in a bundle.
 * @param anchors others than the pinned ones are for tests alone
 */
export function enclaveVerifier(trust: EnclaveTrust, anchors: Anchors = pinned()): AttestationVerifier {
  return {
    async verify(value) {
      return readOrRefuse('what it shows of itself cannot be read', () => verified(bundleIn(value), trust, anchors));
    },
  };
}

function verified(bundle: AttestationBundle, trust: EnclaveTrust, anchors: Anchors): VerifiedEnclave {
  const { format } = bundle.report;
  if (format === SEV_SNP) return sevSnpEnclave(bundle, trust, anchors);
  if (INTEL.test(format)) throw new NotAttested('it runs on an Intel processor, which this proxy cannot check');
  if (format !== SIMULATED) throw new NotAttested('the format of its report is not known');
  if (!trust.allowUnattested) {
    throw new NotAttested(
      'it is simulated and proves nothing; ALLOW_UNATTESTED=1 accepts such enclaves, whose gateway can read everything',
    );
  }
  return simulatedEnclave(bundle);
}

/** The key of an enclave that runs a release of the trusted repository on a genuine, safe AMD processor. */
function sevSnpEnclave(
  { report: shown, fields }: AttestationBundle,
  trust: EnclaveTrust,
  anchors: Anchors,
): VerifiedEnclave {
  const now = anchors.now();
  const packed = base64In(shown.body, 'the body of the report', 2 * REPORT_BYTES);
  const chip = base64In(fields.vcek, 'vcek', MAX_CERTIFICATE);
  const { report } = authenticReport(gunzipped(packed, 'its report', REPORT_BYTES), chip, { amd: anchors.amd, now });
  const { processor } = checkPolicy(report, anchors.floors);

  const release = releaseIn(fields.sigstoreBundle, digestIn(fields.digest), { ...trust, sigstore: anchors.sigstore });
  const measurement = report.measurement.toString('hex');
  if (measurement !== release.measurement) throw new NotAttested(`it does not run what ${release.repository} released`);

  checkCertificate(report, {
    certificate: fields.enclaveCert,
    domain: textIn(fields.domain, 'domain', 253),
    shown,
    now,
  });
  const { repository, ref, digest } = release;
  return {
    publicKey: new Uint8Array(keysIn(report).encryption),
    simulated: false,
    evidence: { processor, measurement, release: { repository, ref, digest } },
  };
}

interface ShownCertificate {
  readonly certificate: unknown;
  readonly domain: string;
  readonly shown: AttestationBundle['report'];
  readonly now: Date;
}

/** The certificate is of the key in the report, and where it repeats key and report in its names, of just these. */
function checkCertificate(report: SnpReport, { certificate, domain, shown, now }: ShownCertificate): void {
  const { keyDigest, dnsNames } = enclaveCertificateIn(certificate, domain, now);
  const keys = keysIn(report);
  if (!keyDigest.equals(keys.tlsDigest)) throw new NotAttested('its certificate is of another key than its report');
  if (encodedIn(dnsNames, 'hpke')?.equals(keys.encryption) === false) {
    throw new NotAttested('its certificate names another key to encrypt to than its report');
  }
  const digest = createHash('sha256').update(shown.format).update(shown.body).digest('hex');
  if (encodedIn(dnsNames, 'hatt')?.equals(Buffer.from(digest)) === false) {
    throw new NotAttested('its certificate is for another report');
  }
}

/** What the guest says in its report: the digest of its TLS key, and the key (X25519) that requests are encrypted to. */
function keysIn({ reportData }: SnpReport): { readonly tlsDigest: Buffer; readonly encryption: Buffer } {
  return { tlsDigest: reportData.subarray(0, 32), encryption: reportData.subarray(32) };
}

function digestIn(value: unknown): string {
  const digest = textIn(value, 'digest', 64);
  if (!/^[0-9a-f]{64}$/.test(digest)) throw new NotAttested('digest is not 64 hex digits');
  return digest;
}
