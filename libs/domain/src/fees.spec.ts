import { expect, test } from '@jest/globals';
import {
  type Charge,
  type Fee,
  isExplained,
  type PublishedRates,
  postings,
  priceOf,
  ratesFrom,
  withFees,
} from '#domain';
import { money } from '#kernel';

const rates: PublishedRates = {
  model: 'v/m',
  provider: 'openai',
  input: '1000000000000',
  cacheRead: '1000000000000',
  cacheWrite: '1000000000000',
  output: '2000000000000',
  reasoning: '2000000000000',
  request: '0',
  marginBasisPoints: 10_550,
};
const search: Fee = { name: 'web_search', provider: 'exa', price: '20000000000', cost: '5000000000' };
const usage = { input: 10, cacheRead: 0, cacheWrite: 0, output: 5, reasoning: 0 };

function chargeWith(fees: readonly Fee[]): Charge {
  const { cost, price } = withFees(priceOf(usage, ratesFrom(rates)), fees);
  const amounts = { cost: money.toJson(cost), price: money.toJson(price) };
  return { ...amounts, provider: 'openai', priceList: 'list', usage, estimated: false, attempts: [], fees };
}

function linesOf(charge: Charge, held: string, charged: string) {
  const query = { model: 'v/m', type: 'chat_completion', source: 'api', online: true, free: false } as const;
  const at = '2026-11-21T00:00:00.000Z';
  const data = { holdId: 'h', keyId: null, held, heldAt: at, query, at, charged, charge };
  const lines = postings('customer', { type: 'HoldSettled', data });
  expect(money.sum(lines.map(({ amount }) => amount))).toBe(0n);
  return Object.fromEntries(lines.map(({ account, amount }) => [account, amount]));
}

test('a fee is sold and owed in lines of its own', () => {
  const charge = chargeWith([search]);
  expect(linesOf(charge, charge.price, charge.price)).toMatchObject({
    'revenue:chat_completion': -21_100_000n,
    'revenue:web_search': -20_000_000_000n,
    'cost:openai': 20_000_000n,
    'payable:openai': -20_000_000n,
    'cost:exa': 5_000_000_000n,
    'payable:exa': -5_000_000_000n,
  });
});

test('what the customer does not pay of a fee is an overrun', () => {
  const charge = chargeWith([search]);
  expect(linesOf(charge, '21100000', '21100000')).toMatchObject({ overrun: 20_000_000_000n });
});

test('a charge is explained by fees that its price list has, as often as they are there', () => {
  expect(isExplained(chargeWith([search, search]), rates, [search])).toBe(true);
  expect(isExplained(chargeWith([search]), rates)).toBe(false);
  expect(isExplained(chargeWith([{ ...search, price: '1' }]), rates, [search])).toBe(false);
  expect(isExplained({ ...chargeWith([search]), fees: [] }, rates, [search])).toBe(false);
});

test('a charge of several calls costs the request as often, and is explained by nothing else', () => {
  const flat = { ...rates, request: '7000000' };
  const chargeOf = (calls: number): Charge => {
    const { cost, price } = priceOf(usage, ratesFrom(flat), calls);
    return { ...chargeWith([]), cost: money.toJson(cost), price: money.toJson(price), calls };
  };
  expect(BigInt(chargeOf(3).cost) - BigInt(chargeOf(1).cost)).toBe(14_000_000n);
  expect([0, 1, 3].map((calls) => isExplained(chargeOf(calls), flat))).toEqual([true, true, true]);
  expect(isExplained({ ...chargeOf(3), calls: 2 }, flat)).toBe(false);
  const { calls, ...once } = chargeOf(1);
  expect(isExplained(once, flat)).toBe(true);
});
