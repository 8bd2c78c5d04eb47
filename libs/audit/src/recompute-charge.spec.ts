import { describe, expect, test } from '@jest/globals';
import { ALL_UNITS, calculateCostAndPrice, type Price, type Usage } from '#domain';
import { recomputeCharge } from './recompute-charge.ts';

const prices: readonly Price[] = [
  { unit: 'input', per: 3n, cost: 1n, price: 2n, when: { inputTokens: { above: 10 } } },
  { unit: 'input', per: 7n, cost: 1n, price: 3n },
  { unit: 'output', per: 9n, cost: 5n, price: 4n },
];
const fraction = (over: bigint, under: bigint) => ({ numerator: over, denominator: under });
const lines = prices.map(({ unit, per, cost = 0n, price = 0n, when = {} }) => ({
  unit,
  when: when as Readonly<Record<string, string>>,
  cost: fraction(cost, per),
  price: fraction(price, per),
}));

const PART = {
  of: 'm',
  beside: false,
  provider: 'p',
  creditor: 'p',
  terms: {},
  estimated: false,
  absorbed: false,
  cost: 0n,
  price: 0n,
};

describe('the arithmetic of the auditor', () => {
  test.each(ALL_UNITS)(
    'calculates the same cost and price for %s as the service, or none if the service finds none',
    (unit) => {
      for (const quantity of [5, 11]) {
        const used = { [unit]: quantity };
        const again = recomputeCharge({ ...PART, usage: used }, lines);
        let charged: unknown;
        try {
          charged = calculateCostAndPrice(used, prices);
        } catch {
          charged = undefined; // the unit has no price
        }
        expect(again).toEqual(charged);
      }
    },
  );

  test.each<Usage>([{ lookup: 1, result: 4 }, { lookup: 1 }, {}])(
    'calculates the same as the service for %j, which is sold per lookup and invoiced per result',
    (used) => {
      const sold: readonly Price[] = [
        { unit: 'lookup', per: 1n, price: 172n },
        { unit: 'result', per: 1n, cost: 15n },
      ];
      const listed = sold.map(({ unit, per, cost, price }) => ({
        unit,
        when: {},
        cost: cost === undefined ? null : fraction(cost, per),
        price: price === undefined ? null : fraction(price, per),
      }));
      expect(recomputeCharge({ ...PART, usage: used }, listed)).toEqual(calculateCostAndPrice(used, sold));
    },
  );
});
