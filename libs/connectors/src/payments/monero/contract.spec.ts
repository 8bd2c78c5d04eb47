import { readPayments } from '#catalogue';
import { MoneroWallet } from '#connectors';
import { coinOf, paymentBackendContract, SandboxWallet, type Taken } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';

/** What is undone is not lost at once, and leaves no amount: that has tests of its own. */
const monero: Taken = {
  coin: coinOf(readPayments(), 'XMR'),
  kind: 'address',
  units: 123_456_789_012n,
  can: ['more', 'less', 'late', 'twice', 'waiting', 'replaced'],
};

paymentBackendContract('monero-wallet-rpc', [monero], async () => {
  const sandbox = await startSandbox({ port: 0 });
  const backend = new MoneroWallet(`${sandbox.url}/monero`, 'sandbox:sandbox');
  const close = async () => {
    await backend.close();
    await sandbox.close();
  };
  return { backend, wallet: new SandboxWallet(sandbox.url), close };
});
