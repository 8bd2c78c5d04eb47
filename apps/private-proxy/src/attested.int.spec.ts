import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { AttestedEnclave, type EnclaveOverrides, FakeGateway } from '#testing';
import { loadPinnedAnchors } from './attestation/trust-anchors.ts';
import { createEnclaveVerifier } from './attestation/verify-enclaves.ts';
import { type RunningProxy, startProxy } from './proxy.ts';
import { readProxySettings } from './settings.ts';

const CHAT = { model: 'private/one', messages: [{ role: 'user', content: 'Hi' }] };

let gateway: FakeGateway;
let enclave: AttestedEnclave;
let proxy: RunningProxy;

beforeAll(async () => {
  gateway = await FakeGateway.listen();
  enclave = new AttestedEnclave(Buffer.from(gateway.keys.publicKey));
  const settings = readProxySettings({
    PPQ_API_KEY: 'sk-ofTheProxy',
    PPQ_API_BASE: gateway.url,
    PORT: '0',
    ENCLAVE_REPOSITORY: enclave.repository,
  });
  const verifier = createEnclaveVerifier(settings, {
    ...loadPinnedAnchors(),
    amd: [enclave.processor.root],
    sigstore: enclave.sigstore.trust,
    now: () => enclave.now,
  });
  proxy = await startProxy(settings, verifier, pino({ level: 'silent' }));
});
afterAll(async () => {
  await proxy.close();
  await gateway.close();
});

async function asked(path = '/v1/chat/completions') {
  const body = JSON.stringify({ ...CHAT, max_tokens: 10 });
  const response = await fetch(proxy.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  return { status: response.status, text: await response.text() };
}

/** Decodes the base64 text at `path`, and returns the bundle with one bit of its decoded byte `at` changed. */
function flipped(bundle: object, path: readonly string[], at: number): object {
  const [name = '', ...rest] = path;
  const part = (bundle as Record<string, unknown>)[name];
  if (rest.length > 0) {
    const inner = flipped(part as object, rest, at);
    return Array.isArray(bundle) ? bundle.with(Number(name), inner) : { ...bundle, [name]: inner };
  }
  const bytes = Buffer.from(String(part), 'base64');
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return { ...bundle, [name]: bytes.toString('base64') };
}

function withReport(change: (report: Buffer) => void): object {
  const { enclaveAttestationReport } = enclave.createBundle() as { enclaveAttestationReport: { body: string } };
  const report = gunzipSync(Buffer.from(enclaveAttestationReport.body, 'base64'));
  change(report);
  return enclave.createBundleWithReport(report);
}

const wished = (wish: EnclaveOverrides) => () => enclave.createBundle(wish);
const entry = ['sigstoreBundle', 'verificationMaterial', 'tlogEntries', '0'];

test.each<[what: string, bundle: () => object]>([
  ['a byte of its report was changed', () => withReport((report) => report.writeUInt8(1, 0x140))],
  [
    'a byte of the signature of its report was changed',
    () => withReport((report) => report.writeUInt8(report.readUInt8(0x2a0) ^ 1, 0x2a0)),
  ],
  ['its key was replaced in its report', () => withReport((report) => report.fill(7, 0x70, 0x90))],
  ['its key was replaced in its certificate', wished({ names: { hpke: Buffer.alloc(32, 7) } })],
  ['a byte of the certificate of its chip was changed', () => flipped(enclave.createBundle(), ['vcek'], 300)],
  ['it runs other software', wished({ report: { measurement: Buffer.alloc(48, 7) } })],
  [
    'a byte of the signed statement was changed',
    () => flipped(enclave.createBundle(), ['sigstoreBundle', 'dsseEnvelope', 'payload'], 9),
  ],
  ['a byte of its log entry was changed', () => flipped(enclave.createBundle(), [...entry, 'canonicalizedBody'], 9)],
  [
    'a byte of the log’s signed timestamp was changed',
    () => flipped(enclave.createBundle(), [...entry, 'inclusionPromise', 'signedEntryTimestamp'], 9),
  ],
  ['it can be debugged', wished({ report: { guestPolicy: 0xb_0000n } })],
  ['its firmware is old', wished({ report: { tcb: [10, 0, 0, 0, 0, 0, 22, 84] }, chip: { levels: { 3: 22 } } })],
  ['the certificate of its chip has expired', wished({ chip: { until: new Date('2026-01-01T00:00:00Z') } })],
  ['its own certificate has expired', wished({ certificateUntil: new Date('2026-01-31T00:00:00Z') })],
])('sends nothing to an enclave if %s', async (_, bundle) => {
  gateway.bundle = bundle;
  const before = gateway.requestLines.length;
  for (const path of ['/v1/chat/completions', '/v1/messages']) {
    const { status, text } = await asked(path);
    expect({ status, text }).toEqual({ status: 502, text: expect.stringContaining('Nothing was sent') });
  }
  expect(gateway.requestLines.slice(before).filter((line) => !line.startsWith('GET '))).toEqual([]);
});

test('encrypts requests for an attested enclave and shows its evidence on the status page', async () => {
  gateway.bundle = () => enclave.createBundle();
  expect(await asked()).toEqual({ status: 200, text: expect.stringContaining('"content":"Hello"') });
  expect(gateway.calls.at(-1)?.chat).toMatchObject({ ...CHAT, model: 'one' });
  const page = await (await fetch(proxy.url)).text();
  expect(page).toContain(`${enclave.repository} refs/tags/v1.2.3 on AMD EPYC 9004 (Genoa)`);
  expect(await (await fetch(`${proxy.url}/health`)).json()).toMatchObject({ attestation: true });
});
