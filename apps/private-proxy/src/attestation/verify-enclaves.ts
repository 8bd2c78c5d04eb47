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
  /** Accepts enclaves that are marked as simulated (`ALLOW_UNATTESTED`). All others are still verified. */
  readonly allowUnattested: boolean;
}

const SEV_SNP_FORMAT = 'https://tinfoil.sh/predicate/sev-snp-guest/v2';
const TDX_FORMAT_PATTERN = /^https:\/\/tinfoil\.sh\/predicate\/tdx-guest\//;

/**
 * Creates a verifier. The format of a report determines how its bundle is checked. The verifier trusts only data that
 * `anchors` and `trust` authenticate, and simulated enclaves if `trust` allows them.
 * @param anchors the pinned ones, except in tests
 */
export function createEnclaveVerifier(
  trust: EnclaveTrust,
  anchors: TrustAnchors = loadPinnedAnchors(),
): AttestationVerifier {
  return {
    async verify(value) {
      return withAttestationError('its evidence cannot be parsed', () =>
        verifyBundle(parseBundle(value), trust, anchors),
      );
    },
  };
}

function verifyBundle(bundle: AttestationBundle, trust: EnclaveTrust, anchors: TrustAnchors): VerifiedEnclave {
  const { format } = bundle.report;
  if (format === SEV_SNP_FORMAT) return verifySevSnpEnclave(bundle, trust, anchors);
  if (TDX_FORMAT_PATTERN.test(format))
    throw new AttestationError('it runs on an Intel processor, which this proxy does not support');
  if (format !== SIMULATED_FORMAT) throw new AttestationError('the format of its report is unknown');
  if (!trust.allowUnattested) {
    throw new AttestationError(
      'it is simulated and has no evidence; ALLOW_UNATTESTED=1 accepts it, but the gateway can then read everything',
    );
  }
  return parseSimulatedEnclave(bundle);
}

/**
 * Verifies that an enclave runs a release of a trusted repository, on a genuine AMD processor with firmware that is
 * recent enough. The signed report also authenticates the keys of the enclave.
 * @throws AttestationError
 */
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
    throw new AttestationError(`it does not run the software that ${release.repository} released`);

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

/**
 * Requires that the certificate has the TLS key that the report names. If its DNS names contain the encryption key or a
 * digest of the report, these must match as well.
 */
function assertMatchingCertificate(
  report: SnpReport,
  { certificate, domain, presentedReport, now }: PresentedCertificate,
): void {
  const { keyDigest, dnsNames } = parseEnclaveCertificate(certificate, domain, now);
  const keys = getReportKeys(report);
  if (!keyDigest.equals(keys.tlsDigest)) throw new AttestationError('its certificate has another key than its report');
  if (decodeDnsNames(dnsNames, 'hpke')?.equals(keys.encryption) === false) {
    throw new AttestationError('its certificate names another encryption key than its report');
  }
  const digest = createHash('sha256').update(presentedReport.format).update(presentedReport.body).digest('hex');
  if (decodeDnsNames(dnsNames, 'hatt')?.equals(Buffer.from(digest)) === false) {
    throw new AttestationError('its certificate is for another report');
  }
}

/** Returns the keys that the guest put into its report: a digest of its TLS key, and its encryption key (X25519). */
function getReportKeys({ reportData }: SnpReport): { readonly tlsDigest: Buffer; readonly encryption: Buffer } {
  return { tlsDigest: reportData.subarray(0, 32), encryption: reportData.subarray(32) };
}

function parseDigest(value: unknown): string {
  const digest = parseBundleText(value, 'digest', 64);
  if (!/^[0-9a-f]{64}$/.test(digest)) throw new AttestationError('digest is not 64 hex digits');
  return digest;
}
