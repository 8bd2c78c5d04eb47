import { expect, test } from '@jest/globals';
import seeds from '@sigstore/tuf/seeds.json' with { type: 'json' };
import { sampleCases } from '#testing';
import { AttestationError } from './attestation-verifier.ts';
import sigstoreRoot from './data/sigstore-root.json' with { type: 'json' };
import { parseRelease, verifySignedStatement } from './release.ts';
import { loadPinnedAnchors } from './trust-anchors.ts';
import vector from './vectors/sigstore-bundle.json' with { type: 'json' };

const { sigstore } = loadPinnedAnchors();

/**
 * Yields up to two copies of a text, with its first or its middle character changed. In base64 of more than 8
 * characters, the first or the middle byte is changed.
 */
function* otherTexts(text: string): Iterable<string> {
  const bytes = Buffer.from(text, 'base64');
  const isBase64 = text.length > 8 && bytes.toString('base64') === text;
  const length = isBase64 ? bytes.length : text.length;
  for (const at of new Set([0, Math.floor(length / 2)])) {
    if (isBase64) yield Buffer.from(bytes.map((byte, i) => (i === at ? byte ^ 1 : byte))).toString('base64');
    else yield `${text.slice(0, at)}${text[at] === '1' ? '2' : '1'}${text.slice(at + 1)}`;
  }
}

/** Yields copies of a value with one text changed, each with the path of the change. */
function* changes(value: unknown, path = ''): Iterable<readonly [path: string, changed: unknown]> {
  if (typeof value === 'string') {
    for (const text of otherTexts(value)) yield [path, text];
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      for (const [where, changed] of changes(inner, `${path}/${name}`)) {
        yield [where, Array.isArray(value) ? value.with(Number(name), changed) : { ...value, [name]: changed }];
      }
    }
  }
}

function vouchedFor(bundle: unknown): boolean {
  try {
    return JSON.stringify(verifySignedStatement(bundle, sigstore)) === JSON.stringify(real);
  } catch (error) {
    if (error instanceof AttestationError) return false;
    throw error;
  }
}

const real = verifySignedStatement(vector.bundle, sigstore);

test('pins the root that Sigstore’s own client contains', () => {
  const { targets } = seeds['https://tuf-repo-cdn.sigstore.dev'];
  expect(sigstoreRoot).toEqual(JSON.parse(Buffer.from(targets['trusted_root.json'], 'base64').toString('utf8')));
});

test('verifies a real signature of a GitHub workflow with the pinned root, and returns its signer', () => {
  expect(real).toMatchObject({
    issuer: 'https://token.actions.githubusercontent.com',
    repository: 'https://github.com/sigstore/sigstore-js',
    ref: 'refs/heads/main',
    workflow: 'https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main',
    statement: { _type: 'https://in-toto.io/Statement/v1', predicateType: 'https://slsa.dev/provenance/v1' },
  });
});

test('rejects a real signature that is for a branch or from a repository that is not trusted', () => {
  const by = (repository: string) => parseRelease(vector.bundle, '', { sigstore, repositories: [repository] });
  expect(() => by('sigstore/sigstore-js')).toThrow('its release is not signed for a tag');
  expect(() => by('sigstore/sigstore')).toThrow('is not signed by');
});

const ENTRY = '/verificationMaterial/tlogEntries/0';
/** Texts that may change. */
const IGNORED = [
  `${ENTRY}/inclusionProof/rootHash`, // repeated in data that the log signed, like the tree size
  `${ENTRY}/inclusionProof/treeSize`,
  '/dsseEnvelope/signatures/0/keyid', // a hint for the key, which is in the certificate
];

test('rejects a real bundle if the start or middle of a text is changed, except in three ignored texts', () => {
  const all = [...changes(vector.bundle)];
  const ignored = all.filter(([path]) => IGNORED.includes(path));
  const others = all.filter(([path]) => !IGNORED.includes(path));
  const listPassed = (some: readonly (readonly [path: string, changed: unknown])[]) =>
    some.filter(([, bundle]) => vouchedFor(bundle)).map(([path]) => path);
  expect([...new Set(listPassed(ignored))].toSorted()).toEqual(IGNORED.toSorted());
  expect(listPassed(sampleCases(others, 25))).toEqual([]);
});
