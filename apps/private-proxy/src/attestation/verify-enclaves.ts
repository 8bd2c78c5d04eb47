import { createHash } from 'node:crypto';
import {
  AttestationError,
  type AttestationVerifier,
  type VerifiedEnclave,
  withAttestationError,
} from './attestation-verifier.ts';
import { type AttestationBundle, gunzip, parseBase64, parseBundle, parseBundleText } from './bundle.ts';
import { MAX_CERTIFICATE_BYTES } from './certificate.ts';
import { decodeDnsNames, parseEnclaveCertificate } from './enclave-certificate.ts';
import { parseRelease } from './release.ts';
import { parseSimulatedEnclave, SIMULATED_FORMAT } from './simulated.ts';
import { assertPolicy } from './snp/policy.ts';
import { REPORT_BYTES, type SnpReport } from './snp/report.ts';
import { verifyReport } from './snp/verify-report.ts';
import { loadPinnedAnchors, type TrustAnchors } from './trust-anchors.ts';

export interface EnclaveTrust {
  /** GitHub repositories whose releases are trusted, such as `owner/name`. */
  readonly repositories: readonly string[];
  /** Accepts enclaves that say themselves that they prove nothing (`ALLOW_UNATTESTED`). All others are checked as ever. */
  readonly allowUnattested: boolean;
}

const SEV_SNP_FORMAT = 'https://tinfoil.sh/predicate/sev-snp-guest/v2';
const TDX_FORMAT_PATTERN = /^https:\/\/tinfoil\.sh\/predicate\/tdx-guest\//;

/**
 * Checks each bundle by the format of its report. What is trusted is in this program and in `trust`, never in a bundle.
 * @param anchors others than the pinned ones are for tests alone
 */
export function createEnclaveVerifier(
  trust: EnclaveTrust,
  anchors: TrustAnchors = loadPinnedAnchors(),
): AttestationVerifier {
  return {
    async verify(value) {
      return withAttestationError('what it shows of itself cannot be read', () =>
        verifyBundle(parseBundle(value), trust, anchors),
      );
    },
  };
}

function verifyBundle(bundle: AttestationBundle, trust: EnclaveTrust, anchors: TrustAnchors): VerifiedEnclave {
  const { format } = bundle.report;
  if (format === SEV_SNP_FORMAT) return verifySevSnpEnclave(bundle, trust, anchors);
  if (TDX_FORMAT_PATTERN.test(format))
    throw new AttestationError('it runs on an Intel processor, which this proxy cannot check');
  if (format !== SIMULATED_FORMAT) throw new AttestationError('the format of its report is not known');
  if (!trust.allowUnattested) {
    throw new AttestationError(
      'it is simulated and proves nothing; ALLOW_UNATTESTED=1 accepts such enclaves, whose gateway can read everything',
    );
  }
  return parseSimulatedEnclave(bundle);
}

/** The key of an enclave that runs a release of the trusted repository on a genuine, safe AMD processor. */
function verifySevSnpEnclave(
  { report: presentedReport, fields }: AttestationBundle,
  trust: EnclaveTrust,
  anchors: TrustAnchors,
): VerifiedEnclave {
  const now = anchors.now();
  const packed = parseBase64(presentedReport.body, 'the body of the report', 2 * REPORT_BYTES);
  const chipCertificate = parseBase64(fields.vcek, 'vcek', MAX_CERTIFICATE_BYTES);
  const { report } = verifyReport(gunzip(packed, 'its report', REPORT_BYTES), chipCertificate, {
    amd: anchors.amd,
    now,
  });
  const { processor } = assertPolicy(report, anchors.floors);

  const release = parseRelease(fields.sigstoreBundle, parseDigest(fields.digest), {
    ...trust,
    sigstore: anchors.sigstore,
  });
  const measurement = report.measurement.toString('hex');
  if (measurement !== release.measurement)
    throw new AttestationError(`it does not run what ${release.repository} released`);

  assertMatchingCertificate(report, {
    certificate: fields.enclaveCert,
    domain: parseBundleText(fields.domain, 'domain', 253),
    presentedReport,
    now,
  });
  const { repository, ref, digest } = release;
  return {
    publicKey: new Uint8Array(getReportKeys(report).encryption),
    isSimulated: false,
    evidence: { processor, measurement, release: { repository, ref, digest } },
  };
}

interface PresentedCertificate {
  readonly certificate: unknown;
  readonly domain: string;
  readonly presentedReport: AttestationBundle['report'];
  readonly now: Date;
}

/** The certificate is of the key in the report, and where it repeats key and report in its names, of just these. */
function assertMatchingCertificate(
  report: SnpReport,
  { certificate, domain, presentedReport, now }: PresentedCertificate,
): void {
  const { keyDigest, dnsNames } = parseEnclaveCertificate(certificate, domain, now);
  const keys = getReportKeys(report);
  if (!keyDigest.equals(keys.tlsDigest))
    throw new AttestationError('its certificate is of another key than its report');
  if (decodeDnsNames(dnsNames, 'hpke')?.equals(keys.encryption) === false) {
    throw new AttestationError('its certificate names another key to encrypt to than its report');
  }
  const digest = createHash('sha256').update(presentedReport.format).update(presentedReport.body).digest('hex');
  if (decodeDnsNames(dnsNames, 'hatt')?.equals(Buffer.from(digest)) === false) {
    throw new AttestationError('its certificate is for another report');
  }
}

/** What the guest says in its report: the digest of its TLS key, and the key (X25519) that requests are encrypted to. */
function getReportKeys({ reportData }: SnpReport): { readonly tlsDigest: Buffer; readonly encryption: Buffer } {
  return { tlsDigest: reportData.subarray(0, 32), encryption: reportData.subarray(32) };
}

function parseDigest(value: unknown): string {
  const digest = parseBundleText(value, 'digest', 64);
  if (!/^[0-9a-f]{64}$/.test(digest)) throw new AttestationError('digest is not 64 hex digits');
  return digest;
}
