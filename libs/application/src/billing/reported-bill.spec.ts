import { expect, test } from '@jest/globals';
import { hasDifferentCost, type Tariff, toChargeItem } from '#domain';
import { parseUsd, ZERO_USD } from '#kernel';
import { createChargeItem } from './create-charge-item.ts';
import { omitSearchCost } from './reported-bill.ts';

const fee: Tariff = {
  of: 'web_search_xai',
  provider: 'xai',
  creditor: 'openrouter',
  prices: [{ unit: 'search', per: 1n, cost: parseUsd('0.005'), price: parseUsd('0.006') }],
};
const model: Tariff = {
  of: 'x-ai/grok-4.3',
  provider: 'xai',
  creditor: 'openrouter',
  prices: [{ unit: 'input', per: 1n, cost: parseUsd('0.0001'), price: parseUsd('0.0002') }],
};

test.each([
  ['0.0150', 3, '0'],
  ['0.0151', 3, '0.0001'],
  ['0.0051', 1, '0.0001'],
  ['0.0151', 0, '0.0151'],
  ['0.0149', 3, '0'], // never negative
])('of a reported cost of %s USD for a call with %i searches, %s USD is for the call', (cost, searches, rest) => {
  const bill = { cost: parseUsd(cost), terms: { service_tier: 'priority' } };
  expect(omitSearchCost(bill, fee, searches)).toEqual({ ...bill, cost: parseUsd(rest) });
});

test('a report without a cost stays as it is', () => {
  expect(omitSearchCost({}, fee, 2)).toEqual({});
  expect(omitSearchCost({ isImplausible: true }, fee, 2)).toEqual({ isImplausible: true });
});

test('the items of a call with searches add up to the reported cost, and the costs agree', () => {
  const reported = parseUsd('0.0352');
  const observer = { reportError: () => {} };
  const reportedBill = omitSearchCost({ cost: reported }, fee, 7);
  const call = createChargeItem(model, { usage: { input: 2 }, estimated: false, reportedBill }, ZERO_USD, observer);
  const searches = toChargeItem(fee, { usage: { search: 7 }, estimated: false, beside: true });

  expect(hasDifferentCost(call)).toBe(false);
  expect(searches).not.toHaveProperty('reportedCost');
  expect(BigInt(call.reportedCost ?? 0) + BigInt(searches.cost)).toBe(reported);
});
