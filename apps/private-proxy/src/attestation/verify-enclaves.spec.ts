import { generateKeyPairSync } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect, test } from '@jest/globals';
import { AttestedEnclave, createExtension, der, type EnclaveOverrides, TestProcessor } from '#testing';
import { AttestationError } from './attestation-verifier.ts';
import { loadPinnedAnchors, type TrustAnchors } from './trust-anchors.ts';
import { createEnclaveVerifier, type EnclaveTrust } from './verify-enclaves.ts';

const KEY = Buffer.alloc(32, 0xab);
const genoa = new TestProcessor();
const enclave = new AttestedEnclave(KEY, genoa);
const anchors: TrustAnchors = {
  ...loadPinnedAnchors(), // the floors are the real ones
  amd: [genoa.root],
  sigstore: enclave.sigstore.trust,
  now: () => enclave.now,
};
const trust = { repositories: ['other/first', enclave.repository], allowUnattested: false };

/** Returns `attested`, or the reason for which the verifier rejects the bundle. */
async function said(bundle: unknown, { by = trust, on = anchors }: { by?: EnclaveTrust; on?: TrustAnchors } = {}) {
  try {
    await createEnclaveVerifier(by, on).verify(bundle);
    return 'attested';
  } catch (error) {
    if (!(error instanceof AttestationError)) throw error;
    return error.reason;
  }
}

test('attests an enclave with evidence of its processor, its software and its key', async () => {
  await expect(createEnclaveVerifier(trust, anchors).verify(enclave.createBundle())).resolves.toEqual({
    publicKey: new Uint8Array(KEY),
    isSimulated: false,
    evidence: {
      processor: 'EPYC 9004 (Genoa)',
      measurement: enclave.measurement.toString('hex'),
      release: { repository: enclave.repository, ref: 'refs/tags/v1.2.3', digest: enclave.digest },
    },
  });
  expect(await said(enclave.createBundle({ names: { hpke: null, hatt: null } }))).toBe('attested');
});

const { subject } = enclave.createStatement() as { readonly subject: readonly unknown[] };
const levels = { old: [10, 0, 0, 0, 0, 0, 22, 84], oldMicrocode: [10, 0, 0, 0, 0, 0, 23, 83] };
const elsewhere = 'https://github.com/other/name/.github/workflows/release.yml@refs/tags/v1.2.3';
const expired = new Date('2026-01-31T00:00:00Z');
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;

test.each<[what: string, wish: EnclaveOverrides, reason: string]>([
  ['it can be debugged', { report: { guestPolicy: 0xb_0000n } }, 'debug'],
  ['it can be migrated', { report: { guestPolicy: 0x7_0000n } }, 'another host'],
  ['it can use CXL memory', { report: { guestPolicy: 0x23_0000n } }, 'not protected'],
  ['its policy lacks the bit that is always set', { report: { guestPolicy: 0x1_0000n } }, 'reserved bits'],
  ['its policy has an unknown bit', { report: { guestPolicy: 0x400_0000n | 0x3_0000n } }, 'reserved bits'],
  ['its host configuration has an unknown bit', { report: { platform: 0x127n } }, 'unknown bits'],
  ['its memory was not checked for aliases', { report: { platform: 0x07n } }, 'aliases'],
  ['the host requested the report', { report: { vmpl: 0xffff_ffff } }, 'VMPL'],
  ['a lower privilege level of the guest requested the report', { report: { vmpl: 1 } }, 'VMPL'],
  ['its SNP firmware is old', { report: { tcb: levels.old }, chip: { levels: { 3: 22 } } }, 'too old'],
  ['its microcode is old', { report: { tcb: levels.oldMicrocode }, chip: { levels: { 8: 83 } } }, 'too old'],
  ['its firmware can be rolled back', { report: { committedTcb: levels.old } }, 'too old'],
  ['it was launched on old firmware', { report: { launchTcb: levels.old } }, 'too old'],
  [
    'it was launched on firmware that is newer than the current one',
    { report: { launchTcb: [10, 0, 0, 0, 0, 0, 24, 84] } },
    'too old',
  ],
  ['its firmware has an old version', { report: { firmware: [39, 55, 1] } }, 'too old'],
  ['its processor is not on the list', { report: { cpuid: [0x19, 0xa0, 2] } }, 'not one that this proxy trusts'],
  ['its report does not name its processor', { report: { version: 2 } }, 'not one that this proxy trusts'],
  ['its report has another version', { report: { version: 4 } }, 'version 4'],
  [
    'its processor is of another product',
    { report: { cpuid: [0x1a, 2, 1], tcb: Array(8).fill(0) } },
    'another product',
  ],
  ['its chip is certified for other firmware levels', { chip: { levels: { 3: 24 } } }, 'other firmware levels'],
  ['its chip has an unknown firmware level', { chip: { levels: { 5: 1 } } }, 'firmware levels that'],
  ['another chip is certified', { chip: { hardwareId: Buffer.alloc(64, 1) } }, 'another chip'],
  ['its chip is certified as another product', { chip: { product: 'Milan-B0' } }, 'another product'],
  ['the certificate of its chip has expired', { chip: { until: expired } }, 'has expired'],
  [
    'the certificate of its chip was signed with another key',
    { chip: { issuerKey: stranger } },
    'signature of the certificate',
  ],
  [
    'its report key belongs to a cloud provider',
    { chip: { extraExtensions: [createExtension('1.3.6.1.4.1.3704.1.5', der.ia5('cloud'))] } },
    'not for the key of a chip',
  ],
  ['it runs other software', { report: { measurement: Buffer.alloc(48, 1) } }, 'does not run the software'],
  [
    'the release has another digest',
    { statement: { subject: [{ digest: { sha256: '00'.repeat(32) } }] } },
    'another digest',
  ],
  ['the release has two subjects', { statement: { subject: [...subject, ...subject] } }, 'another digest'],
  ['the release has no subject', { statement: { subject: [] } }, 'subject'],
  ['the statement has another type', { statement: { _type: 'https://in-toto.io/Statement/v2' } }, 'unsupported type'],
  [
    'the statement has another predicate type',
    { statement: { predicateType: 'https://slsa.dev/provenance/v1' } },
    'does not state',
  ],
  ['the release has no measurement', { statement: { predicate: {} } }, 'snp_measurement'],
  ['the release has an empty measurement', { statement: { predicate: { snp_measurement: '' } } }, 'snp_measurement'],
  ['the signed payload is not marked as a statement', { payloadType: 'text/plain' }, 'unsupported type'],
  ['another issuer identified the signer', { signer: { issuer: 'https://accounts.test' } }, 'not signed by'],
  ['another repository signed', { signer: { repository: 'other/name' } }, 'not signed by'],
  ['a repository with a longer name signed', { signer: { repository: `${enclave.repository}-2` } }, 'not signed by'],
  ['a branch was signed', { signer: { ref: 'refs/heads/main' } }, 'not signed for a tag'],
  ['a workflow of another repository signed', { signer: { workflow: elsewhere } }, 'another repository or tag'],
  ['its workflow is from another tag', { signer: { ref: 'refs/tags/v1' } }, 'another repository or tag'],
  ['its own certificate has expired', { certificateUntil: expired }, 'has expired'],
  ['its certificate names another encryption key', { names: { hpke: Buffer.alloc(32, 1) } }, 'another encryption key'],
  ['its certificate is for another report', { names: { hatt: '00'.repeat(32) } }, 'another report'],
])('rejects an enclave if %s', async (_, wish, reason) => {
  const bundle = enclave.createBundle(wish);
  expect(await said(bundle)).toContain(reason);
  expect(await said(bundle, { by: { ...trust, allowUnattested: true } })).toContain(reason);
});

test('rejects a bundle with a foreign certificate, report, digest or domain, or an untrusted repository', async () => {
  const [mine, others] = [enclave.createBundle(), new AttestedEnclave(Buffer.alloc(32, 1), genoa).createBundle()];
  expect(await said(others)).toContain('Sigstore does not confirm');
  expect(await said({ ...mine, vcek: new TestProcessor().createCertificate().toString('base64') })).toContain(
    'signature',
  );
  expect(await said({ ...mine, enclaveCert: others.enclaveCert })).toContain('another key');
  expect(await said({ ...mine, enclaveAttestationReport: others.enclaveAttestationReport })).toContain('another key');
  expect(await said({ ...mine, digest: 'd2'.repeat(32) })).toContain('another digest than the bundle');
  expect(await said({ ...mine, domain: 'elsewhere.test' })).toContain('another domain');
  expect(await said(mine, { by: { ...trust, repositories: ['other/name'] } })).toContain('not signed by other/name');
});

test('attests an enclave only while its own certificate and AMD’s root are valid', async () => {
  const bundle = enclave.createBundle();
  const at = (time: string) => said(bundle, { on: { ...anchors, now: () => new Date(time) } });
  expect(await at('2026-03-31T23:59:59Z')).toBe('attested');
  expect(await at('2026-04-01T00:00:01Z')).toBe("the enclave's certificate has expired");
  expect(await at('2025-12-31T23:59:59Z')).toBe("the enclave's certificate is not valid yet");
  expect(await at('2045-01-01T00:00:00Z')).toBe("AMD's root for Genoa has expired");
});

test('rejects an enclave if the pinned roots of AMD or Sigstore did not sign its evidence', async () => {
  expect(await said(enclave.createBundle(), { on: { ...loadPinnedAnchors(), now: anchors.now } })).toContain(
    'not issued by AMD for a product',
  );
  const { sigstore } = loadPinnedAnchors();
  expect(await said(enclave.createBundle(), { on: { ...anchors, sigstore } })).toContain('Sigstore does not confirm');
});

test('attests an enclave on a Turin processor, which has other firmware levels and a shorter chip id', async () => {
  const turin = new TestProcessor('Turin');
  const newer = new AttestedEnclave(KEY, turin);
  const on = { ...anchors, amd: [genoa.root, turin.root], sigstore: newer.sigstore.trust };
  const report = { version: 5, cpuid: [0x1a, 2, 1], tcb: [1, 3, 2, 5, 0, 0, 0, 97], firmware: [3, 58, 1] } as const;
  expect(await said(newer.createBundle({ report }), { on })).toBe('attested');
  expect(
    await said(
      newer.createBundle({ report: { ...report, tcb: [1, 3, 2, 3, 0, 0, 0, 97] }, chip: { levels: { 3: 3 } } }),
      {
        on,
      },
    ),
  ).toContain('too old');
  expect(await said(newer.createBundle({ report, chip: { levels: { 9: 2 } } }), { on })).toContain(
    'other firmware levels',
  );
  expect(await said(newer.createBundle({ report, chip: { hardwareId: Buffer.alloc(8) } }), { on })).toContain(
    'another chip',
  );
});

const simulated = (body: unknown) => ({
  enclaveAttestationReport: { format: 'simulated', body: Buffer.from(JSON.stringify(body)).toString('base64') },
});
const lenient = { ...trust, allowUnattested: true };

test('rejects a simulated enclave unless the user allows it, and marks it as simulated if so', async () => {
  const bundle = simulated({ hpke_public_key: 'ab'.repeat(32) });
  expect(await said(bundle)).toMatch(/^it is simulated and has no evidence; ALLOW_UNATTESTED=1 /);
  await expect(createEnclaveVerifier(lenient).verify(bundle)).resolves.toEqual({
    publicKey: new Uint8Array(KEY),
    isSimulated: true,
  });
});

const valid = enclave.createBundle();
const report = valid.enclaveAttestationReport as { readonly format: string; readonly body: string };
const bomb = gzipSync(Buffer.alloc(4 * 1024 * 1024)).toString('base64');
const nested = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`);
const sealed = { ...(valid.sigstoreBundle as { verificationMaterial: { tlogEntries: unknown[] } }) };
test.each<[what: string, bundle: unknown]>([
  ['undefined', undefined],
  ['null', null],
  ['a list', []],
  ['no report', { domain: 'enclave.test' }],
  ['an unknown format', { ...valid, enclaveAttestationReport: { ...report, format: 'other' } }],
  [
    'a report from an Intel processor',
    {
      ...valid,
      enclaveAttestationReport: { ...report, format: 'https://tinfoil.sh/predicate/tdx-guest/v2' },
    },
  ],
  ['a key of another length', simulated({ hpke_public_key: 'ab' })],
  ['a key in capitals', simulated({ hpke_public_key: 'AB'.repeat(32) })],
  ['a body that is a list', simulated([])],
  ['a body that is not JSON', { enclaveAttestationReport: { format: 'simulated', body: 'AAAA' } }],
  ['base64 with a space', { enclaveAttestationReport: { format: 'simulated', body: ' AAAA' } }],
  ['a report that decompresses to too many bytes', { ...valid, enclaveAttestationReport: { ...report, body: bomb } }],
  ['a report that is not compressed', { ...valid, enclaveAttestationReport: { ...report, body: 'AAAA' } }],
  ['a report that is too short', enclave.createBundleWithReport(Buffer.alloc(1183))],
  ['a report of zeros', enclave.createBundleWithReport(Buffer.alloc(1184))],
  ['a certificate that is a number', { ...valid, vcek: 5 }],
  ['a certificate that is no certificate', { ...valid, vcek: 'MAMCAQE=' }],
  ['an enclave certificate without PEM markers', { ...valid, enclaveCert: 'AAAA' }],
  [
    'an enclave certificate of three zero bytes',
    { ...valid, enclaveCert: '-----BEGIN CERTIFICATE-----AAAA-----END CERTIFICATE-----' },
  ],
  ['a Sigstore bundle that is a list', { ...valid, sigstoreBundle: [] }],
  ['an empty Sigstore bundle', { ...valid, sigstoreBundle: {} }],
  [
    'no log entry',
    {
      ...valid,
      sigstoreBundle: { ...sealed, verificationMaterial: { ...sealed.verificationMaterial, tlogEntries: [] } },
    },
  ],
  [
    'the same log entry 200 times',
    {
      ...valid,
      sigstoreBundle: {
        ...sealed,
        verificationMaterial: {
          ...sealed.verificationMaterial,
          tlogEntries: Array(200).fill(sealed.verificationMaterial.tlogEntries[0]),
        },
      },
    },
  ],
  ['deep nesting', { ...valid, more: nested }],
  ['more than a mebibyte', { ...valid, more: 'x'.repeat(1024 * 1024) }],
])('rejects a malformed bundle even if simulated enclaves are allowed: %s', async (_, bundle) => {
  expect(await said(bundle, { by: lenient })).not.toBe('attested');
});
