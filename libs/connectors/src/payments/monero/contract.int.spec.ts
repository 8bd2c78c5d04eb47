import { readPayments } from '#catalogue';
import { MoneroBackend } from '#connectors';
import { getCoin, type PaymentCase, paymentBackendContract, SandboxWallet, type Wallet } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';
import { WalletRpc } from './wallet-rpc.ts';

/**
 * The capability `reversed` is missing, because a lost payment is reported only after ten blocks and without an amount.
 * `monero.int.spec.ts` tests such payments.
 */
const monero: PaymentCase = {
  coin: getCoin(readPayments(), 'XMR'),
  kind: 'address',
  units: 123_456_789_012n,
  capabilities: ['overpaid', 'underpaid', 'after_expiry', 'twice', 'waiting', 'replaced'],
};

paymentBackendContract('monero-wallet-rpc', [monero], async () => {
  const sandbox = await startSandbox({ port: 0 });
  const backend = new MoneroBackend({ moneroUrl: `${sandbox.url}/monero`, moneroLogin: 'sandbox:sandbox' });
  const close = async () => {
    await backend.close();
    await sandbox.close();
  };
  return { backend, wallet: new SandboxWallet(sandbox.url), close };
});

/** A real wallet server, the wallet server of a payer, and a node that mines for the payer on demand (`--regtest`). */
const { MONERO_TEST_URL: url, MONERO_TEST_LOGIN: login } = process.env;
const { MONERO_TEST_PAYER_URL: payerUrl, MONERO_TEST_NODE_URL: nodeUrl, MONERO_TEST_MINER: miner } = process.env;
if (url) {
  const open = async () => {
    const backend = new MoneroBackend({ moneroUrl: url, moneroLogin: login });
    const payer = payerUrl === undefined ? undefined : new WalletRpc(payerUrl, () => undefined);
    const close = async () => {
      await payer?.close();
      await backend.close();
    };
    return payer ? { backend, wallet: payingWith(payer), close } : { backend, close };
  };
  const taken: PaymentCase = { ...monero, capabilities: ['overpaid', 'underpaid', 'twice'] };
  paymentBackendContract('a real monero-wallet-rpc', [taken], open, payerUrl ? 'with a wallet' : 'without');
}

function payingWith(payer: WalletRpc): Wallet {
  return {
    async pay({ value }, units) {
      const destinations = [{ address: value, amount: Number(units) }];
      return String((await payer.call('transfer', { destinations })).tx_hash);
    },
    async mine() {
      const params = { amount_of_blocks: 10, wallet_address: miner };
      const body = JSON.stringify({ jsonrpc: '2.0', id: '0', method: 'generateblocks', params });
      await (await fetch(`${nodeUrl}/json_rpc`, { method: 'POST', body })).arrayBuffer();
      await payer.call('refresh', {});
    },
  };
}
