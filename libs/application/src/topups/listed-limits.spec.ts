import { describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import { StoreUnavailableError } from '#kernel';
import { Clock } from '../clock.ts';
import { UpstreamError } from '../errors.ts';
import { ExchangeRates, type Rate } from './exchange-rates.ts';
import { ListedLimits } from './listed-limits.ts';
import { type PaymentBackend, PaymentBackendRegistry } from './payment-backend.ts';
import { PaymentMethods } from './payment-methods.ts';

class TestClock extends Clock {
  current = 0;

  nowMs(): number {
    return this.current;
  }
}

class TestRates extends ExchangeRates {
  calls = 0;

  constructor(public bitcoinRate: string | Error) {
    super();
  }

  async fetchUsdRate(coin: string): Promise<Rate> {
    this.calls++;
    if (coin !== 'BTC') return { value: '3', source: 'test', at: '' };
    if (this.bitcoinRate instanceof Error) throw this.bitcoinRate;
    return { value: this.bitcoinRate, source: 'test', at: '' };
  }
}

function open(rate: string | Error) {
  const terms = readPayments();
  const backend = { name: 'btcpay' } as unknown as PaymentBackend;
  const rates = new TestRates(rate);
  const clock = new TestClock();
  const methods = new PaymentMethods(terms, new PaymentBackendRegistry([backend]), 1);
  const listed = new ListedLimits(methods, rates, clock);
  const list = async () =>
    Object.fromEntries((await listed.listMethods()).map(({ terms, limits }) => [terms.method, limits]));
  return { rates, clock, list };
}

describe('listed limits', () => {
  test('are those in USD at the current rate, rounded to amounts that are accepted; SATS have their own', async () => {
    const { list } = open('123456.7');
    expect((await list())['btc-lightning']).toEqual({
      USD: { min: '0.1', max: '1000' },
      BTC: { min: '0.00000082', max: '0.0081' },
      SATS: { min: '100', max: '1000000' },
    });
    expect((await list()).ltc).toEqual({
      USD: { min: '2', max: '1000' },
      LTC: { min: '0.66666667', max: '333.33333333' },
    });
  });

  test('are calculated again after 10 s', async () => {
    const { list, clock, rates } = open('100000');
    await Promise.all([list(), list()]);
    const { calls } = rates;
    rates.bitcoinRate = '50000';
    clock.current = 9_999;
    expect((await list()).btc?.BTC?.min).toBe('0.0001');
    expect(rates.calls).toBe(calls);
    clock.current = 10_000;
    expect((await list()).btc?.BTC?.min).toBe('0.0002');
  });

  test.each([new UpstreamError('upstream_unavailable', 'no rate'), new StoreUnavailableError('no database')])(
    'lack a currency without a rate: %s',
    async (error) => {
      const { list } = open(error);
      const { btc, ltc } = await list();
      expect(btc).toEqual({ USD: { min: '10', max: '10000' } });
      expect(ltc).toHaveProperty('LTC');
    },
  );
});
