import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type ChallengeCommand,
  type ChallengeIssued,
  type ChallengeState,
  type Charge,
  challengeDecider,
  type DomainEvent,
} from '#domain';
import { fold, type PicoUsd, parseUsd, Rejection, type StoredEvent } from '#kernel';
import { createCharge, createIssuedChallenge } from '#testing';
import {
  type ChallengeScenario,
  challengeScenarios,
  runChallengeScenario,
} from '../../testing/src/scenarios/challenge-scenarios.ts';
import { Auditor } from './auditor.ts';

const at = '2026-11-22T12:00:00.000Z';
const usableUntil = '2026-11-23T12:05:00.000Z';
const after = '2026-11-23T12:05:00.001Z';
const query = { model: 'web/search', type: 'data_enrichment', source: 'api', online: false, free: false } as const;
const sold = { of: query.model, provider: 'exa', creditor: 'exa' };

/** A charge whose cost is equal to its price. */
const charge = (price: PicoUsd): Charge => {
  const amounts = { cost: price.toString(), price: price.toString() };
  return createCharge({ ...sold, usage: { character: Number(price) }, ...amounts }, { priceList: 'v1' });
};
const prices = [{ unit: 'character', per: 1, cost: '1', price: '1' }];
const published = { type: 'PriceListPublished', data: { version: 'v1', lines: [{ ...sold, prices }], at } };

interface Stored {
  readonly type: string;
  readonly data: object;
}

const VERSIONS: Readonly<Record<string, number>> = {
  PriceListPublished: 2,
  HoldSettled: 2,
  HoldReleased: 2,
  ChargeAbsorbed: 2,
};

/** Audits the events of one challenge. */
function audit(facts: readonly Stored[]) {
  const differences: string[] = [];
  const auditor = new Auditor((difference) => void differences.push(difference));
  for (const [nr, { type, data }] of [published, ...facts].entries()) {
    const stream = nr === 0 ? 'pricelist-v1' : 'challenge-c';
    const place = { id: '', stream, revision: nr, position: BigInt(nr), recordedAt: at };
    const fact = { ...place, type, data, metadata: { version: VERSIONS[type] ?? 1 } } as StoredEvent;
    auditor.auditEvent(fact, fact as StoredEvent<DomainEvent>);
  }
  return { differences, summary: auditor.formatSummary() };
}

/** Returns the events that result from a scenario. */
function factsOf(life: ChallengeScenario): readonly Stored[] {
  const facts: Stored[] = [];
  const challenges = new Map<string, ChallengeState>();
  let now = Date.parse(at);
  const story = {
    challenges,
    getInstant: (inMs = 0) => new Date(now + inMs).toISOString(),
    advance(minutes: number) {
      now += minutes * 60_000;
    },
    runChallengeCommand(id: string, command: ChallengeCommand) {
      const state = challenges.get(id) ?? challengeDecider.getInitialState();
      try {
        const events = challengeDecider.decide(command, state);
        challenges.set(id, fold(challengeDecider, state, events));
        facts.push(...events);
      } catch (error) {
        if (!(error instanceof Rejection)) throw error;
      }
    },
  };
  runChallengeScenario(story, life, charge);
  return facts;
}

test('reports no differences for random scenarios of a challenge', () => {
  fc.assert(
    fc.property(challengeScenarios, (life) => {
      expect(audit(factsOf(life)).differences).toEqual([]);
    }),
  );
});

/** 0.0115 USD at 85,000 USD per coin are 14 satoshis, rounded up, which are worth 0.0119 USD. */
const [price, worth] = [parseUsd('0.0115').toString(), parseUsd('0.0119').toString()];
const issued = (more: Partial<ChallengeIssued['data']> = {}): Stored => {
  return { type: 'ChallengeIssued', data: createIssuedChallenge(more) };
};
const received = { method: 'btc-lightning', coin: 'BTC', backend: 'lnd', at };
const paid = (more: object = {}): Stored => {
  return { type: 'ChallengePaid', data: { ...received, units: '14000', amount: worth, price, by: 'backend', ...more } };
};
const overpaid = (units: string, amount: string): Stored => {
  return { type: 'ChallengeOverpaid', data: { ...received, units, amount } };
};
const held = (holdId: string, amount = price): Stored => {
  return { type: 'FundsHeld', data: { holdId, keyId: null, amount, expiresAt: at, query, at } };
};
const ended = (holdId: string, amount = price) => ({ holdId, keyId: null, held: amount, heldAt: at, query, at });
const expired = (holdId: string): Stored => ({ type: 'HoldExpired', data: ended(holdId) });
const settled = (holdId: string, sum = price, amount = price): Stored => ({
  type: 'HoldSettled',
  data: { ...ended(holdId, amount), charged: sum, charge: charge(BigInt(sum) as PicoUsd) },
});
const forfeited = (amount = price, when = after): Stored => ({
  type: 'ChallengeForfeited',
  data: { amount, at: when },
});

describe('an auditor of challenges', () => {
  test('counts paid challenges, and sums the amounts held and owed for them', () => {
    const part = parseUsd('0.01').toString();
    const facts = [issued(), paid(), held('1'), expired('1'), held('2'), settled('2', part)];
    const { differences, summary } = audit([...facts, overpaid('1000', '850000000')]);
    expect(differences).toEqual([]);
    expect(summary[2]).toBe('1 challenges paid, 0.00235 USD of them held or owed');
    expect(summary[1]).toMatch(/^0 accounts with postings, 0 holds open/);
  });

  test.each<[string, readonly Stored[], string]>([
    ['a challenge that was never issued', [paid()], 'was never issued'],
    ['a challenge that was issued twice', [issued(), issued()], 'was issued twice'],
    ['a challenge that was paid twice', [issued(), paid(), paid()], 'was paid twice'],
    ['an underpayment', [issued(), paid({ units: '13000' })], 'was paid with other amounts than required'],
    ['a credit above the price', [issued(), paid({ price: worth })], 'was paid with other amounts than required'],
    [
      'an overpayment that is credited above its value',
      [issued(), paid(), overpaid('1000', '850000001')],
      'was paid with other amounts than required',
    ],
    [
      'an overpayment before the payment',
      [issued(), overpaid('1000', '850000000')],
      'was paid with other amounts than required',
    ],
    ['a claim of an unpaid challenge', [issued(), held('1')], 'was claimed before it was paid'],
    [
      'two concurrent claims',
      [issued(), paid(), held('1'), held('2', '0')],
      'was claimed while a request that it pays for was running',
    ],
    [
      'charges that exceed the payment',
      [issued(), paid(), held('1'), settled('1'), held('2'), settled('2')],
      'was charged more than was paid',
    ],
    ['a forfeiture during use', [issued(), paid(), held('1'), forfeited('0')], 'was forfeited while it could be used'],
    [
      'a forfeiture while the challenge is still usable',
      [issued(), paid(), forfeited(price, usableUntil)],
      'was forfeited while it could be used',
    ],
    [
      'a forfeiture of more than the remaining amount',
      [issued(), paid(), forfeited(worth)],
      'was forfeited with another amount than the remaining one',
    ],
    [
      'a claim after a forfeiture',
      [issued(), paid(), forfeited(), held('1', '0')],
      'was claimed after it was forfeited',
    ],
    [
      'an amount with one satoshi too many',
      [issued({ units: '15000', worth: '12750000000' })],
      'has an amount that is not its price rounded up to a satoshi',
    ],
    [
      'an amount with one satoshi too few',
      [issued({ units: '13000', worth: '11050000000' })],
      'has an amount that is not its price rounded up to a satoshi',
    ],
    [
      'an amount with a fraction of a satoshi',
      [issued({ units: '13600', worth: '11560000000' })],
      'has an amount that is not its price rounded up to a satoshi',
    ],
    ['a value at another rate', [issued({ worth: '11900000001' })], 'has an amount that does not match its rate'],
    [
      'another price list',
      [issued({ priceList: 'v0' }), paid(), held('1'), settled('1')],
      'was charged with price list v1, but issued with v0',
    ],
  ])('reports %s', (_, facts, wrong) => {
    expect(audit(facts).differences).toContain(`challenge-c ${wrong}`);
  });

  test('reports a balance below zero', () => {
    expect(audit([issued(), paid(), held('1', worth)]).differences).toContain(
      'challenge c is below zero at position 3',
    );
  });
});
