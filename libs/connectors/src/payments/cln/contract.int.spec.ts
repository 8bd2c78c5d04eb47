import { readFileSync } from 'node:fs';
import { readPayments } from '#catalogue';
import { ClnBackend } from '#connectors';
import { getCoin, type PaymentCase, paymentBackendContract, SandboxWallet } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';

const lightning: PaymentCase = {
  coin: getCoin(readPayments(), 'BTC'),
  kind: 'bolt11',
  units: 1_000_000n,
  capabilities: ['overpaid', 'after_expiry', 'hinted'],
};

paymentBackendContract('Core Lightning', [lightning], async () => {
  const sandbox = await startSandbox({ port: 0 });
  const backend = new ClnBackend({ clnUrl: `${sandbox.url}/cln`, clnRune: 'rune', clnCertificates: undefined });
  const close = async () => {
    await backend.close();
    await sandbox.close();
  };
  return { backend, wallet: new SandboxWallet(sandbox.url), close };
});

const { CLN_TEST_URL: url, CLN_TEST_RUNE: rune = '', CLN_TEST_TLS_CERT: file } = process.env;
if (url) {
  const open = async () => {
    const clnCertificates = file ? [readFileSync(file, 'utf8')] : undefined;
    const backend = new ClnBackend({ clnUrl: url, clnRune: rune, clnCertificates });
    return { backend, close: () => backend.close() };
  };
  paymentBackendContract('a real Core Lightning', [lightning], open, 'without');
}
