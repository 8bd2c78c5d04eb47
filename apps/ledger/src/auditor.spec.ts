import { describe, expect, test } from '@jest/globals';
import type { Charge, DomainEvent } from '#domain';
import type { Recorded } from '#kernel';
import { Auditor } from './auditor.ts';

const at = '2026-11-20T12:00:00.000Z';
const query = { model: 'a/model', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const usage = { input: 10, cacheRead: 0, cacheWrite: 0, output: 5, reasoning: 0 };
const rates = { model: query.model, provider: 'a', input: '1000000', output: '2000000', reasoning: '0', request: '0' };
/** 10 × 1 + 5 × 2 pico-USD, and half of it on top. */
const charge: Charge = {
  cost: '20',
  price: '30',
  provider: 'a',
  priceList: 'v1',
  usage,
  estimated: false,
  attempts: [],
};

const published: DomainEvent = {
  type: 'PriceListPublished',
  data: { version: 'v1', rates: [{ ...rates, cacheRead: '0', cacheWrite: '0', marginBasisPoints: 15_000 }], at },
};
const credited: DomainEvent = {
  type: 'CreditAdded',
  data: { creditId: 'topup', method: 'btc-lightning', amount: '95', bonus: '5', at },
};
const held = (holdId: string, amount = '40'): DomainEvent => ({
  type: 'FundsHeld',
  data: { holdId, keyId: null, amount, expiresAt: at, query, at },
});
const settled = (holdId: string, differing: Partial<Charge> = {}, money = {}): DomainEvent => ({
  type: 'HoldSettled',
  data: {
    holdId,
    keyId: null,
    held: '40',
    heldAt: at,
    query,
    at,
    charged: '30',
    charge: { ...charge, ...differing },
    ...money,
  },
});
const expired = (holdId: string): DomainEvent => ({
  type: 'HoldExpired',
  data: { holdId, keyId: null, held: '40', heldAt: at, query, at },
});

/** What an auditor says about one account's facts. */
function audit(...facts: readonly DomainEvent[]) {
  const differences: string[] = [];
  const auditor = new Auditor((difference) => void differences.push(difference));
  facts.forEach((fact, nr) => {
    const record = { id: '', stream: 'account-me', revision: nr, position: BigInt(nr), recordedAt: at, metadata: {} };
    auditor.see({ ...fact, ...record } as Recorded<DomainEvent>);
  });
  return { differences, summary: auditor.summary() };
}

describe('an auditor who reads only the facts', () => {
  test('has nothing to say about books that are in order', () => {
    const { differences, summary } = audit(
      published,
      credited,
      held('1'),
      settled('1'),
      held('2'),
      expired('2'),
      held('3'),
    );
    expect(differences).toEqual([]);
    expect(summary).toEqual([
      'trial balance: 16 lines, sum 0 USD',
      '1 accounts, 1 holds open, 1 of them past their expiry',
      '1 charges computed again, 0 of them estimates',
    ]);
  });

  test.each<[string, readonly DomainEvent[], string]>([
    ['a hold that was made twice', [held('1'), held('1')], 'hold 1 was made twice'],
    ['a hold that ended twice', [held('1'), settled('1'), expired('1')], 'hold 1 ended without being open'],
    ['a hold that was never made', [settled('1')], 'hold 1 ended without being open'],
    ['a balance below zero', [held('1', '101')], 'account me falls below zero at position 2'],
    [
      'a hold that gives back more than it took',
      [held('1', '39'), settled('1')],
      'hold 1 ended with another amount than it was made with',
    ],
    [
      'a charge below the price',
      [held('1'), settled('1', {}, { charged: '29' })],
      '29 pico-USD were charged for 1, and 30 were due',
    ],
    [
      'a charge above what was held',
      [held('1', '29'), settled('1', {}, { held: '29' })],
      '30 pico-USD were charged for 1, and 29 were due',
    ],
    [
      'a price that is too high by a pico-USD',
      [held('1'), settled('1', { price: '31' }, { charged: '31' })],
      'the charge of 1 does not follow from its usage and prices',
    ],
    [
      'a cost that is too low by a pico-USD',
      [held('1'), settled('1', { cost: '19' })],
      'the charge of 1 does not follow from its usage and prices',
    ],
    [
      'usage that was changed afterwards',
      [held('1'), settled('1', { usage: { ...usage, output: 6 } })],
      'the charge of 1 does not follow from its usage and prices',
    ],
    [
      'a charge by a price list that was never published',
      [held('1'), settled('1', { priceList: 'v2' })],
      'the charge of 1 names price list v2, which has no a/model',
    ],
  ])('finds %s', (_, facts, difference) => {
    expect(audit(published, credited, ...facts).differences).toEqual([difference]);
  });
});
