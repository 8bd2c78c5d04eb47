import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CHALLENGE, type CoinPosting, type DomainEvent, type TopupState, toCoinPostings } from '#domain';
import type { StoredEvent } from '#kernel';
import { createHistoryArbitrary } from '../../../testing/src/scenarios/histories.ts';

const sum = (all: Iterable<bigint>) => [...all].reduce((total, each) => total + each, 0n);
const unitsOf = (lines: readonly CoinPosting[]) => sum(lines.map(({ units }) => units));

/** Returns the units that a top-up received, minus its reversals and fees. */
function holds({ payments, fees }: TopupState): bigint {
  const left = [...payments.values()].map(({ remainingUnits }) => remainingUnits);
  return sum(left) - sum([...fees.values()].map(BigInt));
}

/** Returns the fees of all challenges from the events, because the state of a challenge has only the ids of fees. */
function feesOfChallenges(facts: readonly StoredEvent<DomainEvent>[]): bigint {
  const ofChallenges = facts.filter(({ stream }) => stream.startsWith(`${CHALLENGE}-`));
  return sum(ofChallenges.map((fact) => (fact.type === 'PaymentFeeCharged' ? BigInt(fact.data.units) : 0n)));
}

test('coin postings of any event sum to zero, and the wallet has the payments minus reversals and fees', () => {
  let booked = 0;
  fc.assert(
    fc.property(createHistoryArbitrary(60), ({ events: facts, topups, challenges }) => {
      const lines = facts.flatMap((fact) => {
        const ofFact = toCoinPostings(fact, () => undefined);
        for (const coin of new Set(ofFact.map((line) => line.coin)))
          expect(unitsOf(ofFact.filter((line) => line.coin === coin))).toBe(0n);
        return ofFact;
      });
      booked += lines.length;
      const wallet = lines.filter(({ account, coin }) => account === 'wallet:lnd' && coin === 'BTC');
      const paidOnce = sum([...challenges.values()].map(({ units }) => units));
      expect(unitsOf(wallet)).toBe(sum([...topups.values()].map(holds)) + paidOnce - feesOfChallenges(facts));
    }),
  );
  expect(booked).toBeGreaterThan(0);
});
