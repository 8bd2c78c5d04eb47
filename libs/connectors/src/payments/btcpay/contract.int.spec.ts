import { readPayments } from '#catalogue';
import { BtcPayBackend } from '#connectors';
import { getCoin, type PaymentCase, paymentBackendContract, SandboxWallet } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';

const terms = readPayments();
const onChain: PaymentCase['capabilities'] = [
  'overpaid',
  'underpaid',
  'after_expiry',
  'twice',
  'waiting',
  'replaced',
  'reversed',
];
const chain = (code: string, units: bigint): PaymentCase => ({
  coin: getCoin(terms, code),
  kind: 'address',
  units,
  capabilities: onChain,
});
const ALL: readonly PaymentCase[] = [
  { coin: getCoin(terms, 'BTC'), kind: 'bolt11', units: 1_000_000n, capabilities: ['overpaid', 'after_expiry'] },
  chain('BTC', 20_000_000n),
  chain('LTC', 12_345_676n),
  chain('LBTC', 50_000n),
  chain('XMR', 123_456_789_012n),
];

paymentBackendContract('BTCPay Server', ALL, async () => {
  const sandbox = await startSandbox({ port: 0 });
  const store = { btcpayStoreId: 'sandbox', btcpayApiKey: 'key', btcpayWebhookSecret: undefined };
  const backend = new BtcPayBackend({ btcpayUrl: `${sandbox.url}/btcpay`, ...store }, terms.coins);
  const close = async () => {
    await backend.close();
    await sandbox.close();
  };
  return { backend, wallet: new SandboxWallet(sandbox.url), close };
});

/** Payment methods of the store, such as `BTC-LN,BTC-CHAIN`. */
const { BTCPAY_TEST_URL: btcpayUrl, BTCPAY_TEST_METHODS = 'BTC-LN,BTC-CHAIN' } = process.env;
if (btcpayUrl) {
  const has = (coin: string, kind: string) =>
    BTCPAY_TEST_METHODS.split(',').includes(`${coin}-${kind === 'bolt11' ? 'LN' : 'CHAIN'}`);
  const { BTCPAY_TEST_STORE_ID: btcpayStoreId = '', BTCPAY_TEST_API_KEY: btcpayApiKey = '' } = process.env;
  const open = async () => {
    const settings = { btcpayUrl, btcpayStoreId, btcpayApiKey, btcpayWebhookSecret: undefined };
    const backend = new BtcPayBackend(settings, terms.coins);
    return { backend, close: () => backend.close() };
  };
  const served = ALL.filter(({ coin, kind }) => has(coin.code, kind));
  paymentBackendContract('a real BTCPay Server', served, open, 'without');
}
