/**
 * `npm run prove:attestation [-- BUNDLE.json [TIME [owner/name]]]`: attestation evidence is accepted unchanged, and
 * rejected after changes. One at a time, the proof changes each bit of a real AMD report and its certificates up to
 * AMD's root. In the strings of a real Sigstore bundle, and of a complete bundle with test keys, it changes each byte.
 * Then it changes the complete bundle at random. Changes outside of unverified locations are rejected; a random change
 * may also have no effect. Only `AttestationError` is thrown. With a file, the proof instead checks whether that bundle
 * is accepted at the given time (now by default) with the pinned trust anchors, then changes it in the same ways.
 */
import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { AttestationError } from '../../apps/private-proxy/src/attestation/attestation-verifier.ts';
import { verifySignedStatement } from '../../apps/private-proxy/src/attestation/release.ts';
import { verifyReport } from '../../apps/private-proxy/src/attestation/snp/verify-report.ts';
import { loadPinnedAnchors, type TrustAnchors } from '../../apps/private-proxy/src/attestation/trust-anchors.ts';
import amdVector from '../../apps/private-proxy/src/attestation/vectors/amd-report.json' with { type: 'json' };
import sigstoreVector from '../../apps/private-proxy/src/attestation/vectors/sigstore-bundle.json' with {
  type: 'json',
};
import { createEnclaveVerifier, type EnclaveTrust } from '../../apps/private-proxy/src/attestation/verify-enclaves.ts';
import { AttestedEnclave } from '../../libs/testing/src/enclave/attested-enclave.ts';
import { type BundleMutation, generateByteChanges, generateRandomChanges } from './attestation/changes.ts';

/**
 * Locations in which changes may be accepted: hints, values that are repeated in signed parts, and the certificate of
 * the enclave, of which only the key, the names and the dates are verified.
 */
const UNVERIFIED_LOCATIONS = /\/(mediaType|keyid|inclusionProof\/(rootHash|treeSize)|enclaveCert)$/;
const LIVE = 'tinfoilsh/confidential-model-router';
const RANDOM_BUNDLES = 5_000;
const SLOW_MS = 250;

type AcceptsChange = (changed: unknown) => boolean | Promise<boolean>;

let failed = false;
const print = (line: string) => void process.stdout.write(`${line}\n`);

/** Checks that every changed value is rejected, except for changes in unverified locations. */
async function checkAllRejected(name: string, changes: Iterable<BundleMutation>, acceptsChange: AcceptsChange) {
  const acceptedCounts = new Map<string, number>();
  const begin = performance.now();
  let count = 0;
  let slowest = 0;
  for (const [location, changed] of changes) {
    const before = performance.now();
    count++;
    if (await acceptsChange(changed)) acceptedCounts.set(location, (acceptedCounts.get(location) ?? 0) + 1);
    slowest = Math.max(slowest, performance.now() - before);
  }
  const unexpected = [...acceptedCounts].filter(([location]) => !UNVERIFIED_LOCATIONS.test(location));
  failed ||= unexpected.length > 0 || count === 0;
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  const rest =
    acceptedCounts.size - unexpected.length > 0
      ? `, except in ${acceptedCounts.size - unexpected.length} unverified locations`
      : '';
  print(`${name}: ${count} changed, ${unexpected.length === 0 ? `all rejected${rest}` : 'ACCEPTED:'} (${seconds} s)`);
  for (const [location, times] of unexpected) print(`  ${location}, ${times} times`);
  if (slowest > SLOW_MS) print(`  the slowest took ${slowest.toFixed(0)} ms`);
}

function* generateBitChanges(bytes: Buffer): Iterable<BundleMutation> {
  for (let at = 0; at < bytes.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ (1 << bit);
      yield [`byte ${at}, bit ${bit}`, changed];
    }
  }
}

/** Returns whether `verify` does not throw AttestationError. @throws any other error of `verify` */
function isAccepted(verify: () => unknown): boolean {
  try {
    verify();
    return true;
  } catch (error) {
    if (error instanceof AttestationError) return false;
    throw error;
  }
}

async function proveReport(): Promise<void> {
  const [report, chip, ark, ask] = [amdVector.report, amdVector.vcek, amdVector.ark, amdVector.ask].map((text) =>
    Buffer.from(text, 'base64'),
  ) as [Buffer, Buffer, Buffer, Buffer];
  const now = new Date('2023-01-01T00:00:00Z');
  const createAnchors = (root: Buffer, issuer: Buffer) => ({
    amd: [{ product: 'Milan', ark: root.toString('base64'), ask: issuer.toString('base64') }],
    now,
  });
  const isAuthentic = isAccepted(() => verifyReport(report, chip, { amd: loadPinnedAnchors().amd, now }));
  failed ||= !isAuthentic;
  print(`a real report of an AMD processor is ${isAuthentic ? '' : 'NOT '}accepted with AMD's pinned root`);
  const cases: readonly (readonly [string, Buffer, (changed: Buffer) => unknown])[] = [
    ['the bits of the report', report, (changed) => verifyReport(changed, chip, createAnchors(ark, ask))],
    ["the bits of the chip's certificate", chip, (changed) => verifyReport(report, changed, createAnchors(ark, ask))],
    ["the bits of AMD's certificate", ask, (changed) => verifyReport(report, chip, createAnchors(ark, changed))],
    ["the bits of AMD's root", ark, (changed) => verifyReport(report, chip, createAnchors(changed, ask))],
  ];
  for (const [name, bytes, verify] of cases) {
    await checkAllRejected(name, generateBitChanges(bytes), (changed) => isAccepted(() => verify(changed as Buffer)));
  }
}

async function proveSignature(): Promise<void> {
  const { sigstore } = loadPinnedAnchors();
  const real = JSON.stringify(verifySignedStatement(sigstoreVector.bundle, sigstore));
  await checkAllRejected('the bytes of a real Sigstore bundle', generateByteChanges(sigstoreVector.bundle), (changed) =>
    isAccepted(() => {
      if (JSON.stringify(verifySignedStatement(changed, sigstore)) !== real)
        throw new Error('a changed statement was accepted');
    }),
  );
}

async function proveBundle(bundle: unknown, trust: EnclaveTrust, anchors: TrustAnchors): Promise<void> {
  const verifier = createEnclaveVerifier(trust, anchors);
  const enclave = await verifier.verify(bundle).catch((error: Error) => error);
  if (enclave instanceof Error) {
    failed = true;
    return print(`the bundle is rejected: ${enclave.message}`);
  }
  print(`the bundle is accepted: ${JSON.stringify(enclave.evidence)}`);
  const createBundleCheck = (differs: (other: unknown) => boolean) => async (changed: unknown) => {
    try {
      return differs(await verifier.verify(changed));
    } catch (error) {
      if (error instanceof AttestationError) return false;
      throw error;
    }
  };
  await checkAllRejected(
    'the bytes of the bundle',
    generateByteChanges(bundle),
    createBundleCheck(() => true),
  );
  const isAnother = (other: unknown) => !isDeepStrictEqual(other, enclave);
  await checkAllRejected(
    'randomly changed bundles',
    generateRandomChanges(bundle, RANDOM_BUNDLES),
    createBundleCheck(isAnother),
  );
}

const [file, time, repository] = process.argv.slice(2);
if (file !== undefined) {
  const anchors = { ...loadPinnedAnchors(), now: () => new Date(time ?? Date.now()) };
  const bundle: unknown = JSON.parse(await readFile(file, 'utf8'));
  await proveBundle(bundle, { repositories: [repository ?? LIVE], allowUnattested: false }, anchors);
} else {
  await proveReport();
  await proveSignature();
  const enclave = new AttestedEnclave(Buffer.alloc(32, 0xab));
  const anchors = {
    ...loadPinnedAnchors(),
    amd: [enclave.processor.root],
    sigstore: enclave.sigstore.trust,
    now: () => enclave.now,
  };
  print('\na complete bundle, with a test root instead of those of AMD and Sigstore');
  await proveBundle(enclave.createBundle(), { repositories: [enclave.repository], allowUnattested: false }, anchors);
}
process.exitCode = failed ? 1 : 0;
