import { bundleFromJSON, isBundleWithDsseEnvelope } from '@sigstore/bundle';
import { type SignedEntity, type Signer, type TrustMaterial, toSignedEntity, Verifier } from '@sigstore/verify';
import { AttestationError, withAttestationError } from './attestation-verifier.ts';
import { parseBundleObject, parseBundleText } from './bundle.ts';
import { assertCanonicalForm } from './certificate.ts';

/** What a workflow of a GitHub repository signed, by who Sigstore says that it was. */
export interface SignedStatement {
  readonly statement: Readonly<Record<string, unknown>>;
  /** Who vouches for the workflow's identity. */
  readonly issuer: string | undefined;
  /** The page of the repository whose source it ran on, such as `https://github.com/owner/name`. */
  readonly repository: string | undefined;
  /** Such as `refs/tags/v1.2.3`. */
  readonly ref: string | undefined;
  /** The workflow's own file, such as `https://github.com/owner/name/.github/workflows/release.yml@refs/tags/v1.2.3`. */
  readonly workflow: string | undefined;
}

/** A release of the program that an enclave should run. */
export interface EnclaveRelease {
  readonly repository: string;
  readonly ref: string;
  readonly digest: string;
  /** The digest of what an AMD guest is launched with, 96 hex digits. */
  readonly measurement: string;
}

const GITHUB_ACTIONS = 'https://token.actions.githubusercontent.com';
const IN_TOTO = 'application/vnd.in-toto+json';
const STATEMENT = /^https:\/\/in-toto\.io\/Statement\/v(0\.1|1)$/;
const MULTI_PLATFORM = 'https://tinfoil.sh/predicate/snp-tdx-multiplatform/v1';
/** Of each kind of proof. Real releases have one or two, and each takes time to check. */
const MAX_PROOFS = 4;
/** One signature, one entry in a log, one time-stamp and one entry of the certificate in a log, each by who is pinned. */
const THRESHOLDS = { tlogThreshold: 1, timestampThreshold: 1, ctlogThreshold: 1 };

/** @see https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md; UTF8String each */
const SOURCE_REPOSITORY = '1.3.6.1.4.1.57264.1.12';
const SOURCE_REF = '1.3.6.1.4.1.57264.1.14';
const UTF8_STRING = 0x0c;

/**
 * The release whose signed statement names `digest`, of a repository whose tags are trusted.
 * @param bundle a Sigstore bundle, parsed from JSON
 * @throws AttestationError
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
    throw new AttestationError('its release has a statement of another kind');
  if (predicateType !== MULTI_PLATFORM) throw new AttestationError('its release says nothing about what it measures');
  const [firstSubject, ...otherSubjects] = Array.isArray(subject) ? subject : [];
  const { sha256 } = parseBundleObject(
    parseBundleObject(firstSubject, 'the subject of its release').digest,
    'the digest of its release',
  );
  if (otherSubjects.length > 0 || sha256 !== digest)
    throw new AttestationError('its release is another than the bundle names');
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
 * Whatever Sigstore vouches for. Whether its signer may sign releases is yet to be judged.
 * @throws AttestationError
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
  return withAttestationError('the signature of its release cannot be read', () => {
    const bundle = bundleFromJSON(parseBundleObject(value, 'sigstoreBundle'));
    if (!isBundleWithDsseEnvelope(bundle)) throw new AttestationError('its release has no signed statement');
    const { payloadType, payload } = bundle.content.dsseEnvelope;
    if (payloadType !== IN_TOTO) throw new AttestationError('its release has a statement of another kind');
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
  return withAttestationError('Sigstore does not vouch for the signature of its release', () => {
    assertCanonicalForm(certificate, 'the certificate of its release');
    return new Verifier(sigstore, THRESHOLDS).verify(entity);
  });
}

function parseStatement(payload: Buffer): Readonly<Record<string, unknown>> {
  const statement: unknown = withAttestationError('the statement of its release is no JSON', () =>
    JSON.parse(payload.toString('utf8')),
  );
  return parseBundleObject(statement, 'the statement of its release');
}

/** A tag of a trusted repository, built by a workflow of that repository as it is at the tag. */
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
    throw new AttestationError('its release is signed by a workflow of another place');
  }
  return { repository, ref };
}

function toRepositoryUrl(repository: string): string {
  return `https://github.com/${repository}`;
}
