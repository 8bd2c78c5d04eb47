import { describe, expect, test } from '@jest/globals';
import { toPicoUsd } from '#kernel';
import { combinePartialHolds, type HeldPrices } from './model-orders.ts';

const usd = (amount: number) => toPicoUsd(BigInt(amount));
const full = (maxPrice: number): HeldPrices => ({ maxPrice: usd(maxPrice) });
const fixed = (minAmount: number): HeldPrices => ({
  maxPrice: usd(1_000),
  partialHold: { minAmount: usd(minAmount), divisor: 8n },
});
const extensible = (minAmount: number, limit: number, stopPrice?: number): HeldPrices => ({
  maxPrice: usd(1_000),
  partialHold: {
    minAmount: usd(minAmount),
    divisor: 64n,
    extension: {
      minLimitPrice: usd(limit),
      longPrice: usd(limit * 2),
      stopPrice: stopPrice === undefined ? undefined : usd(stopPrice),
    },
  },
});

describe('the partial hold of several models', () => {
  test('is none if the maximum price of each is held', () => {
    expect(combinePartialHolds([full(5), full(7)])).toBeUndefined();
  });

  test('is sufficient for the highest of each price', () => {
    expect(combinePartialHolds([extensible(3, 50, 1), extensible(4, 40, 2)])).toEqual({
      minAmount: 4n,
      divisor: 64n,
      extension: { minLimitPrice: 50n, longPrice: 100n, stopPrice: 2n },
    });
  });

  test('includes the maximum price of a model that is held in full', () => {
    expect(combinePartialHolds([extensible(3, 50, 1), full(70)])).toEqual({
      minAmount: 70n,
      divisor: 64n,
      extension: { minLimitPrice: 70n, longPrice: 100n, stopPrice: 1n },
    });
  });

  test('is not extended if that is impossible for one model', () => {
    expect(combinePartialHolds([extensible(3, 50, 1), fixed(9)])).toEqual({
      minAmount: 9n,
      divisor: 8n,
      extension: undefined,
    });
  });

  test('has no price of stopping if the speed of one model is unknown', () => {
    expect(combinePartialHolds([extensible(3, 50, 1), extensible(3, 50)])?.extension?.stopPrice).toBeUndefined();
  });
});
