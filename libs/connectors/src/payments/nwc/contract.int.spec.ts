import { describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import { NwcBackend } from '#connectors';
import { getCoin, type PaymentCase, paymentBackendContract, SandboxWallet } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';

const lightning: PaymentCase = {
  coin: getCoin(readPayments(), 'BTC'),
  kind: 'bolt11',
  units: 1_000_000n,
  capabilities: ['after_expiry'],
};

paymentBackendContract('a wallet behind Nostr Wallet Connect', [lightning], async () => {
  const sandbox = await startSandbox({ port: 0 });
  const made = await fetch(`${sandbox.url}/nwc/wallets`, { method: 'POST' });
  const backend = new NwcBackend({ nwcReceiveUrl: ((await made.json()) as { nwc_url: string }).nwc_url });
  const close = async () => {
    await backend.close();
    await sandbox.close();
  };
  return { backend, wallet: new SandboxWallet(sandbox.url), close };
});

const { NWC_TEST_URL: url } = process.env;
if (url) {
  const open = async () => {
    const backend = new NwcBackend({ nwcReceiveUrl: url });
    return { backend, close: () => backend.close() };
  };
  paymentBackendContract('a real wallet behind Nostr Wallet Connect', [lightning], open, 'without');
}

describe("the operator's wallet", () => {
  const PUBKEY = '79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798';
  const SECRET = 'a7'.repeat(32);

  test('is unavailable if its relay is unreachable; the relay may have a private address', async () => {
    const backend = new NwcBackend({
      nwcReceiveUrl: `nostr+walletconnect://${PUBKEY}?relay=ws://127.0.0.1:1&secret=${SECRET}`,
    });
    await expect(backend.fetchPayments(['ab'.repeat(32)])).rejects.toMatchObject({
      name: 'UpstreamError',
      code: 'upstream_unavailable',
    });
  });

  test('fails the start if its connection string is invalid, without its secret in the error', () => {
    const open = () => new NwcBackend({ nwcReceiveUrl: `nostr+walletconnect://${PUBKEY}?secret=${SECRET}` });
    expect(open).toThrow('NWC_RECEIVE_URL must name from 1 to 4 relays');
    expect(open).not.toThrow(SECRET);
  });
});
