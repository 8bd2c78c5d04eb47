import { describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import { createPaymentBackends, type PaymentSettings } from '#connectors';
import type { PaymentMethod } from '#domain';

const terms = readPayments();
const NOWHERE = 'http://127.0.0.1:1';
const SETTINGS = { lndUrl: NOWHERE, lndMacaroon: '00', topupBackends: {} } as PaymentSettings;

test('every configured payment backend is created', async () => {
  const small = { clnUrl: NOWHERE, clnRune: 'r', phoenixdUrl: NOWHERE, phoenixdPassword: 'p', moneroUrl: NOWHERE };
  const backends = createPaymentBackends({ ...SETTINGS, ...small, btcpayUrl: NOWHERE, btcpayStoreId: 's' }, terms);
  expect(backends.backends.map(({ name }) => name)).toEqual(['lnd', 'btcpay', 'cln', 'phoenixd', 'monero']);
  await backends.close();
});

describe('the start fails because of', () => {
  const chosen = (topupBackends: Record<string, string>) => () =>
    createPaymentBackends({ ...SETTINGS, topupBackends }, terms);

  test.each<[string, Record<string, string>, string]>([
    ['an unknown method', { doge: 'lnd' }, 'TOPUP_BACKENDS names the method "doge", which does not exist'],
    ['a backend that does not support the method', { btc: 'lnd' }, 'the backend lnd does not support btc'],
    ['a backend that is not configured', { btc: 'btcpay' }, 'TOPUP_BACKENDS names "btcpay", which is not configured'],
  ])('%s', (_, topupBackends, sentence) => {
    expect(chosen(topupBackends)).toThrow(sentence);
  });

  test.each<[string, string, number, string]>([
    ['zero confirmations for a chain', 'btc', 0, 'requires 0 confirmations of btc, but the minimum is 1'],
    ['too many confirmations', 'ltc', 7, 'requires 7 confirmations of ltc, but btcpay supports at most 6'],
  ])('%s', (_, method, confirmations, sentence) => {
    const methods = terms.methods.map((each) => (each.method === method ? { ...each, confirmations } : each));
    const settings = { ...SETTINGS, btcpayUrl: NOWHERE, btcpayStoreId: 's' };
    expect(() => createPaymentBackends(settings, { ...terms, methods })).toThrow(sentence);
  });

  test('a payment method that names an unknown backend', () => {
    const [lightning] = terms.methods as readonly [PaymentMethod];
    const misspelt = { ...terms, methods: [{ ...lightning, backends: ['lndd'] }] };
    expect(() => createPaymentBackends(SETTINGS, misspelt)).toThrow(
      'payments.json or TOPUP_BACKENDS names for btc-lightning the backend "lndd", which does not exist',
    );
  });

  test('a payment method that names a backend which does not support it', () => {
    const [lightning] = terms.methods as readonly [PaymentMethod];
    const onChain = { ...terms, methods: [{ ...lightning, method: 'btc', destination: 'address' as const }] };
    expect(() => createPaymentBackends(SETTINGS, onChain)).toThrow('the backend lnd does not support btc');
  });
});
