import { bundleFromJSON, isBundleWithDsseEnvelope } from '@sigstore/bundle';
import { type SignedEntity, type Signer, type TrustMaterial, toSignedEntity, Verifier } from '@sigstore/verify';
import { AttestationError, withAttestationError } from './attestation-verifier.ts';
import { parseBundleObject, parseBundleText } from './bundle.ts';
import { assertCanonicalForm } from './certificate.ts';

/** A signed statement, with the signer's identity that Sigstore certified. Releases are signed by GitHub workflows. */
export interface SignedStatement {
  readonly statement: Readonly<Record<string, unknown>>;
  /** The OpenID Connect issuer that identified the signer. */
  readonly issuer: string | undefined;
  /** URL of the repository on whose source the workflow ran, such as `https://github.com/owner/name`. */
  readonly repository: string | undefined;
  /** Such as `refs/tags/v1.2.3`. */
  readonly ref: string | undefined;
  /** The workflow file, such as `https://github.com/owner/name/.github/workflows/release.yml@refs/tags/v1.2.3`. */
  readonly workflow: string | undefined;
}

/** A release of the software that an enclave should run. */
export interface EnclaveRelease {
  readonly repository: string;
  readonly ref: string;
  readonly digest: string;
  /** Launch digest of an AMD guest that runs the release, 96 hex digits. */
  readonly measurement: string;
}

const GITHUB_ACTIONS = 'https://token.actions.githubusercontent.com';
const IN_TOTO = 'application/vnd.in-toto+json';
const STATEMENT = /^https:\/\/in-toto\.io\/Statement\/v(0\.1|1)$/;
const MULTI_PLATFORM = 'https://tinfoil.sh/predicate/snp-tdx-multiplatform/v1';
/** Maximum number of log entries, and of timestamps. Real releases have one or two, and each takes time to verify. */
const MAX_PROOFS = 4;
/**
 * Requires at least one entry in the transparency log, one timestamp and one entry of the certificate in the
 * certificate log, each signed by a pinned authority.
 */
const THRESHOLDS = { tlogThreshold: 1, timestampThreshold: 1, ctlogThreshold: 1 };

/** @see https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md; both are of type UTF8String */
const SOURCE_REPOSITORY = '1.3.6.1.4.1.57264.1.12';
const SOURCE_REF = '1.3.6.1.4.1.57264.1.14';
const UTF8_STRING = 0x0c;

/**
 * Verifies that the bundle is the release with this digest, signed for a tag of a trusted repository.
 * @param bundle a Sigstore bundle, parsed from JSON
 * @throws AttestationError if it is not, or if the release states no measurement
 */
export function parseRelease(
  bundle: unknown,
  digest: string,
  trusted: { readonly sigstore: TrustMaterial; readonly repositories: readonly string[] },
): EnclaveRelease {
  const { statement, ...signer } = verifySignedStatement(bundle, trusted.sigstore);
  const { repository, ref } = verifyTaggedSource(signer, trusted.repositories);
  const { _type: type, predicateType, predicate, subject } = statement;
  if (typeof type !== 'string' || !STATEMENT.test(type))
    throw new AttestationError('the statement of its release has an unsupported type');
  if (predicateType !== MULTI_PLATFORM) throw new AttestationError('its release does not state a measurement');
  const [firstSubject, ...otherSubjects] = Array.isArray(subject) ? subject : [];
  const { sha256 } = parseBundleObject(
    parseBundleObject(firstSubject, 'the subject of its release').digest,
    'the digest of its release',
  );
  if (otherSubjects.length > 0 || sha256 !== digest)
    throw new AttestationError('its release has another digest than the bundle');
  const measurement = parseBundleText(
    parseBundleObject(predicate, 'the measurement of its release').snp_measurement,
    'snp_measurement',
    96,
  );
  if (!/^[0-9a-f]{96}$/.test(measurement))
    throw new AttestationError('the measurement of its release is not 96 hex digits');
  return { repository, ref, digest, measurement };
}

/**
 * Verifies a signature with Sigstore and returns the statement and its signer. The caller must check whether this
 * signer may sign releases.
 * @throws AttestationError if the bundle is invalid or unsupported, or Sigstore does not confirm its signature
 */
export function verifySignedStatement(bundle: unknown, sigstore: TrustMaterial): SignedStatement {
  const { entity, payload } = parseSignedEntity(bundle);
  const { identity } = verifySigner(entity, sigstore);
  const readExtension = (id: string) => {
    const value = identity?.oids?.find(({ oid }) => oid?.id.join('.') === id)?.value;
    return value?.[0] === UTF8_STRING && value[1] === value.length - 2 ? value.toString('utf8', 2) : undefined;
  };
  return {
    statement: parseStatement(payload),
    issuer: identity?.extensions?.issuer,
    repository: readExtension(SOURCE_REPOSITORY),
    ref: readExtension(SOURCE_REF),
    workflow: identity?.subjectAlternativeName,
  };
}

function parseSignedEntity(value: unknown): { readonly entity: SignedEntity; readonly payload: Buffer } {
  return withAttestationError('the signature of its release cannot be parsed', () => {
    const bundle = bundleFromJSON(parseBundleObject(value, 'sigstoreBundle'));
    if (!isBundleWithDsseEnvelope(bundle)) throw new AttestationError('its release has no signed statement');
    const { payloadType, payload } = bundle.content.dsseEnvelope;
    if (payloadType !== IN_TOTO) throw new AttestationError('the statement of its release has an unsupported type');
    const { tlogEntries, timestampVerificationData } = bundle.verificationMaterial;
    if (tlogEntries.length > MAX_PROOFS || (timestampVerificationData?.rfc3161Timestamps.length ?? 0) > MAX_PROOFS) {
      throw new AttestationError('the signature of its release has too many proofs');
    }
    return { entity: toSignedEntity(bundle), payload };
  });
}

function verifySigner(entity: SignedEntity, sigstore: TrustMaterial): Signer {
  if (entity.key.$case !== 'certificate') throw new AttestationError('its release is signed without a certificate');
  const { certificate } = entity.key;
  return withAttestationError('Sigstore does not confirm the signature of its release', () => {
    assertCanonicalForm(certificate, 'the certificate of its release');
    return new Verifier(sigstore, THRESHOLDS).verify(entity);
  });
}

function parseStatement(payload: Buffer): Readonly<Record<string, unknown>> {
  const statement: unknown = withAttestationError('the statement of its release is not JSON', () =>
    JSON.parse(payload.toString('utf8')),
  );
  return parseBundleObject(statement, 'the statement of its release');
}

/** Requires a tag of a trusted repository, and a workflow file of that repository at the same tag. */
function verifyTaggedSource(
  { issuer, repository: repositoryUrl, ref, workflow }: Omit<SignedStatement, 'statement'>,
  trusted: readonly string[],
): { readonly repository: string; readonly ref: string } {
  const repository = trusted.find((candidate) => repositoryUrl === toRepositoryUrl(candidate));
  if (issuer !== GITHUB_ACTIONS || repository === undefined) {
    throw new AttestationError(`its release is not signed by ${trusted.join(' or ')} on GitHub`);
  }
  if (!ref?.startsWith('refs/tags/')) throw new AttestationError('its release is not signed for a tag');
  if (!workflow?.startsWith(`${toRepositoryUrl(repository)}/.github/workflows/`) || !workflow.endsWith(`@${ref}`)) {
    throw new AttestationError('its release is signed by a workflow of another repository or tag');
  }
  return { repository, ref };
}

function toRepositoryUrl(repository: string): string {
  return `https://github.com/${repository}`;
}
