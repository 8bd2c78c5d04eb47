import { expect, test } from '@jest/globals';
import { NotAttested } from './attestation-verifier.ts';
import { enclaveVerifier } from './verify-enclaves.ts';

const KEY = 'ab'.repeat(32);
const strict = enclaveVerifier({ repository: 'owner/name', allowUnattested: false });
const lenient = enclaveVerifier({ repository: 'owner/name', allowUnattested: true });

const simulated = (body: unknown) => ({
  domain: 'enclave.test',
  enclaveAttestationReport: { format: 'simulated', body: Buffer.from(JSON.stringify(body)).toString('base64') },
});

test('a simulated enclave is refused unless the user allows it, and then says that it is', async () => {
  await expect(strict.verify(simulated({ hpke_public_key: KEY }))).rejects.toThrow(NotAttested);
  await expect(lenient.verify(simulated({ hpke_public_key: KEY }))).resolves.toEqual({
    publicKey: new Uint8Array(32).fill(0xab),
    simulated: true,
  });
});

const nested = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`);
test.each([
  ['nothing', undefined],
  ['null', null],
  ['a list', []],
  ['no report', { domain: 'enclave.test' }],
  ['an unknown format', { domain: 'a', enclaveAttestationReport: { format: 'other', body: 'AAAA' } }],
  ['a key of another length', simulated({ hpke_public_key: 'ab' })],
  ['a key in capitals', simulated({ hpke_public_key: KEY.toUpperCase() })],
  ['a body that is a list', simulated([])],
  ['a body that is no JSON', { ...simulated({}), enclaveAttestationReport: { format: 'simulated', body: 'AAAA' } }],
  ['base64 with a blank', { domain: 'a', enclaveAttestationReport: { format: 'simulated', body: ' AAAA' } }],
  ['deep nesting', { ...simulated({ hpke_public_key: KEY }), sigstoreBundle: nested }],
  ['more than a mebibyte', { ...simulated({ hpke_public_key: KEY }), more: 'x'.repeat(1024 * 1024) }],
])('what is no bundle is not attested, whatever is allowed: %s', async (_, bundle) => {
  await expect(lenient.verify(bundle)).rejects.toThrow(NotAttested);
});
