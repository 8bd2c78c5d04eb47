import { describe, expect, test } from '@jest/globals';
import { hasDifferentCost, type Tariff, toChargeItem } from '#domain';

const tariff: Tariff = {
  of: 'm',
  provider: 'p',
  creditor: 'router',
  prices: [{ unit: 'input', per: 1n, cost: 10n, price: 20n }],
};

test('a reported cost is stored with the item, and changes neither its cost nor its price', () => {
  const call = { usage: { input: 3 }, estimated: false };
  const item = toChargeItem(tariff, call);
  expect(item).not.toHaveProperty('reportedCost');
  expect(toChargeItem(tariff, { ...call, reportedCost: '500' })).toEqual({ ...item, reportedCost: '500' });
});

describe('a reported cost', () => {
  test.each([
    ['is missing', '100', undefined, undefined],
    ['agrees', '100', '100', false],
    ['is 1 % higher', '2800000000', '2828000000', false],
    ['is 1 % lower', '2800000000', '2772000000', false],
    ['is more than 1 % higher', '2800000000', '2828000001', true],
    ['is more than 1 % lower', '2800000000', '2771999999', true],
    ['is one pico-USD apart', '7', '8', false],
    ['is two pico-USD apart', '7', '9', true],
    ['is rounded to its last digit', '13400000', '13000000', false],
    ['is rounded to a micro-USD', '1700000', '1000000', false],
    ['is far apart with few digits', '2800000000', '500000000000', true],
    ['is 0 for a tiny cost', '900000', '0', false],
    ['is 0 for another cost', '1100000', '0', true],
    ['is not 0 for a free call', '0', '5000001', true],
  ] as const)('that %s is compared', (_, cost, reportedCost, expected) => {
    expect(hasDifferentCost(reportedCost === undefined ? { cost } : { cost, reportedCost })).toBe(expected);
  });
});
