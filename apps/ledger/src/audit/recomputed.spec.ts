import { describe, expect, test } from '@jest/globals';
import { ALL_UNITS, type Price, priceOf } from '#domain';
import { recomputed } from './recomputed.ts';

const prices: readonly Price[] = [
  { unit: 'input', per: 3n, cost: 1n, price: 2n, when: { inputTokens: { above: 10 } } },
  { unit: 'input', per: 7n, cost: 1n, price: 3n },
  { unit: 'output', per: 9n, cost: 5n, price: 4n },
];
const fraction = (over: bigint, under: bigint) => ({ over, under });
const lines = prices.map(({ unit, per, cost = 0n, price = 0n, when = {} }) => ({
  ...{ unit, when: when as Readonly<Record<string, string>> },
  ...{ cost: fraction(cost, per), price: fraction(price, per) },
}));

describe('the auditor, who has an arithmetic of his own,', () => {
  test.each(ALL_UNITS)('falls back from %s to the price that the charge fell back to', (unit) => {
    for (const quantity of [5, 11]) {
      const used = { [unit]: quantity };
      const part = { of: 'm', beside: false, provider: 'p', creditor: 'p', estimated: false, absorbed: false };
      const again = recomputed({ ...part, used, terms: {}, cost: 0n, price: 0n }, lines);
      let charged: unknown;
      try {
        charged = priceOf(used, prices);
      } catch {
        charged = undefined; // there is no price for it
      }
      expect(again).toEqual(charged);
    }
  });
});
