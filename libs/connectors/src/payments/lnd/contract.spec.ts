import { readPayments } from '#catalogue';
import { LndNode } from '#connectors';
import { coinOf, paymentBackendContract, SandboxWallet, type Taken } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';

const lightning = (can: Taken['can']): Taken => ({
  coin: coinOf(readPayments(), 'BTC'),
  kind: 'bolt11',
  units: 1_000_000n,
  can,
});

paymentBackendContract('LND', [lightning(['more', 'late', 'hinted'])], async () => {
  const sandbox = await startSandbox({ port: 0 });
  const backend = new LndNode({ lndUrl: `${sandbox.url}/lnd`, lndMacaroon: '00', lndCertificate: undefined });
  const close = async () => {
    await backend.close();
    await sandbox.close();
  };
  return { backend, wallet: new SandboxWallet(sandbox.url), close };
});

const { LND_TEST_URL: lndUrl, LND_TEST_MACAROON: lndMacaroon = '', LND_TEST_CERT: lndCertificate } = process.env;
if (lndUrl) {
  const open = async () => {
    const backend = new LndNode({ lndUrl, lndMacaroon, lndCertificate });
    return { backend, close: () => backend.close() };
  };
  paymentBackendContract('a real LND', [lightning([])], open, 'without');
}
