import { readPayments } from '#catalogue';
import { PhoenixdBackend } from '#connectors';
import { getCoin, type PaymentCase, paymentBackendContract, SandboxWallet } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';

const lightning: PaymentCase = {
  coin: getCoin(readPayments(), 'BTC'),
  kind: 'bolt11',
  units: 1_000_000n,
  capabilities: ['overpaid', 'after_expiry'],
};

paymentBackendContract('phoenixd', [lightning], async () => {
  const sandbox = await startSandbox({ port: 0 });
  const backend = new PhoenixdBackend({
    phoenixdUrl: `${sandbox.url}/phoenixd`,
    phoenixdPassword: 'password',
    phoenixdWebhookSecret: undefined,
  });
  const close = async () => {
    await backend.close();
    await sandbox.close();
  };
  return { backend, wallet: new SandboxWallet(sandbox.url), close };
});

const { PHOENIXD_TEST_URL: url, PHOENIXD_TEST_PASSWORD: password = '' } = process.env;
if (url) {
  const open = async () => {
    const backend = new PhoenixdBackend({
      phoenixdUrl: url,
      phoenixdPassword: password,
      phoenixdWebhookSecret: undefined,
    });
    return { backend, close: () => backend.close() };
  };
  paymentBackendContract('a real phoenixd', [lightning], open, 'without');
}
