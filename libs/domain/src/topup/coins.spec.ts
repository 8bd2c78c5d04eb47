import { describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import { type Coin, type CoinTerms, convertToUnits, convertToUsd, formatCoins, parseCoinAmount } from '#domain';
import { formatUsd, money, parseUsd } from '#kernel';

const { coins, methods } = readPayments();
const coinOf = (code: Coin) => coins.find((each) => each.code === code) as CoinTerms;

describe('an amount', () => {
  test.each<[string, Coin, string, bigint]>([
    ['1', 'BTC', '85252', 1_173_000n], // a multiple of 1,000 millisatoshis
    ['1', 'LBTC', '85252', 1_173n],
    ['2', 'LTC', '80', 2_500_000n],
    ['5', 'XMR', '300', 16_666_666_667n],
  ])('of %s USD is converted to units of %s, rounded up', (amount, coin, rate, units) => {
    expect(convertToUnits(parseUsd(amount), coinOf(coin), rate)).toBe(units);
  });

  test.each<[bigint, Coin, string, string]>([
    [1_000_000n, 'BTC', '67516.00', '0.67516'],
    [1_000n, 'LBTC', '67516.00', '0.67516'],
    [2_500_000n, 'LTC', '80', '2'],
    [1n, 'XMR', '300.5', '0.0000000003'], // rounded down
  ])('of %s units of %s is converted to USD, rounded down', (units, coin, rate, value) => {
    expect(formatUsd(convertToUsd(units, coinOf(coin), rate))).toBe(value);
  });

  test.each<[string, string, Coin, bigint]>([
    ['0.00000123', 'BTC', 'BTC', 123_000n],
    ['123', 'SATS', 'BTC', 123_000n],
    ['1e-8', 'LTC', 'LTC', 1n],
    ['0.01', 'XMR', 'XMR', 10_000_000_000n],
  ])('of %s %s is parsed to units of %s', (amount, currency, coin, units) => {
    expect(parseCoinAmount(amount, currency, coinOf(coin))).toBe(units);
  });

  test.each<[string, string, Coin]>([
    ['0.000000001', 'BTC', 'BTC'], // a tenth of a satoshi
    ['0.5', 'SATS', 'BTC'],
    ['1', 'LTC', 'BTC'],
    ['1', 'constructor', 'BTC'],
    ['much', 'XMR', 'XMR'],
  ])('of %s %s is rejected as an amount of %s', (amount, currency, coin) => {
    expect(() => parseCoinAmount(amount, currency, coinOf(coin))).toThrow(RangeError);
  });

  test('is formatted in coins without an exponent', () => {
    expect([formatCoins(1n, coinOf('XMR')), formatCoins(25_000_000n, coinOf('BTC'))]).toEqual([
      '0.000000000001',
      '0.00025',
    ]);
  });
});

test.each(coins)('$code is its own currency, and a multiple of its step', ({ code, currencies, decimals, step }) => {
  expect(currencies[code]).toBe(decimals);
  expect(10n ** BigInt(decimals) % BigInt(step)).toBe(0n);
});

test.each(methods)('$method has USD limits, and minimums are below maximums', ({ coin, limits, confirmations }) => {
  expect(Object.keys(limits)).toContain('USD');
  for (const [currency, { min, max }] of Object.entries(limits)) {
    const read = (amount: string) =>
      currency === 'USD' ? money.parseUsd(amount) : parseCoinAmount(amount, currency, coinOf(coin));
    expect(read(min)).toBeLessThan(read(max));
  }
  expect(confirmations).toBeGreaterThanOrEqual(0);
});
