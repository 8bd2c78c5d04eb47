import { describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import { createPaymentBackends, type PaymentSettings } from '#connectors';
import type { PaymentMethod } from '#domain';

const terms = readPayments();
const NOWHERE = 'http://127.0.0.1:1';
const SETTINGS = { lndUrl: NOWHERE, lndMacaroon: '00', topupBackends: {} } as PaymentSettings;

test('every back end goes by the name of its kind', async () => {
  const small = { clnUrl: NOWHERE, clnRune: 'r', phoenixdUrl: NOWHERE, phoenixdPassword: 'p', moneroUrl: NOWHERE };
  const backends = createPaymentBackends({ ...SETTINGS, ...small, btcpayUrl: NOWHERE, btcpayStoreId: 's' }, terms);
  expect(backends.backends.map(({ name }) => name)).toEqual(['lnd', 'btcpay', 'cln', 'phoenixd', 'monero']);
  await backends.close();
});

describe('settings and data that do not fit together stop the start:', () => {
  const chosen = (topupBackends: Record<string, string>) => () =>
    createPaymentBackends({ ...SETTINGS, topupBackends }, terms);

  test.each<[string, Record<string, string>, string]>([
    ['a method that is not there', { doge: 'lnd' }, 'TOPUP_BACKENDS names the method "doge", which is not there'],
    ['a back end that cannot take it', { btc: 'lnd' }, 'the back end lnd cannot take btc'],
    ['a back end that is not configured', { btc: 'btcpay' }, 'TOPUP_BACKENDS names "btcpay", which is not configured'],
  ])('%s', (_, topupBackends, sentence) => {
    expect(chosen(topupBackends)).toThrow(sentence);
  });

  test.each<[string, string, number, string]>([
    ['none at all', 'btc', 0, 'asks for 0 confirmations of btc, and it takes at least one'],
    ['more than a back end waits for', 'ltc', 7, 'asks for 7 confirmations of ltc, and btcpay waits for 6 at most'],
  ])('confirmations: %s', (_, method, confirmations, sentence) => {
    const methods = terms.methods.map((each) => (each.method === method ? { ...each, confirmations } : each));
    const settings = { ...SETTINGS, btcpayUrl: NOWHERE, btcpayStoreId: 's' };
    expect(() => createPaymentBackends(settings, { ...terms, methods })).toThrow(sentence);
  });

  test('data that names a back end that is not there', () => {
    const [lightning] = terms.methods as readonly [PaymentMethod];
    const misspelt = { ...terms, methods: [{ ...lightning, backends: ['lndd'] }] };
    expect(() => createPaymentBackends(SETTINGS, misspelt)).toThrow(
      'the payment method btc-lightning names the back end "lndd", which is not there',
    );
  });

  test('data that names a back end for what it cannot take', () => {
    const [lightning] = terms.methods as readonly [PaymentMethod];
    const onChain = { ...terms, methods: [{ ...lightning, method: 'btc', destination: 'address' as const }] };
    expect(() => createPaymentBackends(SETTINGS, onChain)).toThrow('the back end lnd cannot take btc');
  });
});
