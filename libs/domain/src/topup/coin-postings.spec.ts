import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type CoinPosting, coinPostings, type Topup } from '#domain';
import { histories } from '../../../testing/src/histories.ts';

const sum = (all: Iterable<bigint>) => [...all].reduce((total, each) => total + each, 0n);
const unitsOf = (lines: readonly CoinPosting[]) => sum(lines.map(({ units }) => units));

/** What is left of a top-up's payments, less fees. */
function holds({ payments, fees }: Topup): bigint {
  const left = [...payments.values()].map(({ unitsLeft }) => unitsLeft);
  return sum(left) - sum([...fees.values()].map(BigInt));
}

test('whatever happens, coins are booked twice, and the wallet holds what is left of payments', () => {
  let booked = 0;
  fc.assert(
    fc.property(histories(60), ({ facts, topups }) => {
      const lines = facts.flatMap((fact) => {
        const ofFact = coinPostings(fact, () => undefined);
        for (const coin of new Set(ofFact.map((line) => line.coin)))
          expect(unitsOf(ofFact.filter((line) => line.coin === coin))).toBe(0n);
        return ofFact;
      });
      booked += lines.length;
      const wallet = lines.filter(({ account, coin }) => account === 'wallet:lnd' && coin === 'BTC');
      expect(unitsOf(wallet)).toBe(sum([...topups.values()].map(holds)));
    }),
  );
  expect(booked).toBeGreaterThan(0);
});
