import { describe, expect, test } from '@jest/globals';
import { BACKEND_KINDS, openPaymentBackends, type PaymentSettings } from '#connectors';
import { PAYMENT_METHODS } from '#domain';

describe.each(PAYMENT_METHODS)('$method', ({ backends, coin, destination }) => {
  test.each(backends)('can be taken by %s', (name) => {
    const kind = BACKEND_KINDS.find((each) => each.name === name);
    expect(kind?.takes).toContainEqual({ coin, kind: destination });
  });
});

test('every back end goes by the name of its kind', async () => {
  const settings = { lndUrl: 'http://127.0.0.1:1', lndMacaroon: '00' };
  const backends = openPaymentBackends(settings as PaymentSettings);
  expect(backends.all.map(({ name }) => name)).toEqual(['lnd']);
  await backends.close();
});
