import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type ChallengeCommand,
  type ChallengeEvent,
  type ChallengeProofClaim,
  type ChallengeState,
  challengeDecider,
  getChallengePhase,
  type HoldSettled,
  toPostings,
} from '#domain';
import { fold, money, type PicoUsd, parseUsd, Rejection, ZERO_USD } from '#kernel';
import { createCharge, createDeciderTest } from '#testing';

const given = createDeciderTest(challengeDecider);

const at = '2026-11-22T12:00:00.000Z';
const expiresAt = '2026-11-22T12:05:00.000Z';
const usableUntil = '2026-11-23T12:05:00.000Z';
const after = '2026-11-23T12:05:00.001Z';
const query = { model: 'web/search', type: 'data_enrichment', source: 'api', online: false, free: false } as const;
const price = parseUsd('0.0115');
const worth = parseUsd('0.0119');

const issue: ChallengeCommand = {
  type: 'IssueChallenge',
  data: {
    id: 'id',
    query,
    price: price.toString(),
    priceList: 'p',
    request: 'digest',
    method: 'btc-lightning',
    coin: 'BTC',
    units: '14000',
    worth: worth.toString(),
    rate: { value: '85000', source: 'kraken', at },
    backend: 'lnd',
    reference: 'ref',
    paymentHash: 'hash',
    expiresAt,
    usableUntil,
    at,
  },
};
const claim = (holdId: string, more: Partial<ChallengeProofClaim & { at: string }> = {}): ChallengeCommand => ({
  type: 'ClaimChallenge',
  data: { holdId, request: 'digest', maxAmount: price, expiresAt: after, query, at, ...more },
});
const settle = (holdId: string, due = price): ChallengeCommand => ({
  type: 'SettleHold',
  data: { holdId, charge: createCharge({ price: due.toString(), cost: '1' }), at },
});
const release = (holdId: string, errorCode = 'upstream_error'): ChallengeCommand => ({
  type: 'ReleaseHold',
  data: { holdId, errorCode, reason: '', attempts: [], at },
});
const paid = (units: bigint): ChallengeCommand => ({ type: 'RecordChallengePayment', data: { units, at } });

/** Returns the events of the commands, run one after the other. */
function facts(...commands: readonly ChallengeCommand[]): ChallengeEvent[] {
  return lived(commands).events;
}

function lived(commands: readonly ChallengeCommand[]) {
  let challenge: ChallengeState = challengeDecider.getInitialState();
  const events: ChallengeEvent[] = [];
  for (const command of commands) {
    const followed = challengeDecider.decide(command, challenge);
    challenge = fold(challengeDecider, challenge, followed);
    events.push(...followed);
  }
  return { challenge, events };
}

describe('a challenge', () => {
  test('is issued with one event and without postings', () => {
    const [issued, ...more] = facts(issue, issue);
    expect([issued?.type, more]).toEqual(['ChallengeIssued', []]);
    expect(toPostings('challenge-c', issued as never)).toEqual([]);
  });

  test('cannot be claimed if it was not issued', () => {
    given().when(claim('h1')).thenRefused('challenge_not_found');
  });

  test('is paid and claimed by its proof; the excess over the price is posted as rounding', () => {
    const events = facts(issue, claim('h1')).slice(1);
    expect(events.map(({ type }) => type)).toEqual(['ChallengePaid', 'FundsHeld']);
    const lines = events.flatMap((event) => toPostings('challenge-c', event as never));
    const sums = lines.map(({ account, customer, amount }) => [account, customer, amount]);
    expect(sums).toEqual([
      ['clearing:btc-lightning', null, worth],
      ['challenge:available', 'c', -price],
      ['rounding:btc-lightning', null, price - worth],
      ['challenge:available', 'c', price],
      ['challenge:held', 'c', -price],
    ]);
  });

  test('can be claimed by one request at a time and used once', () => {
    given(...facts(issue, claim('h1')))
      .when(claim('h1'))
      .thenAlreadySo();
    given(...facts(issue, claim('h1')))
      .when(claim('h2'))
      .thenRefused('challenge_running');
    given(...facts(issue, claim('h1'), settle('h1')))
      .when(claim('h2'))
      .thenRefused('challenge_used');
  });

  test('can be used again after a failed request, until usableUntil', () => {
    const released = facts(issue, claim('h1'), release('h1'));
    expect(facts(issue, claim('h1'), release('h1'), claim('h2')).at(-1)?.type).toBe('FundsHeld');
    given(...released)
      .when(claim('h2', { at: after }))
      .thenRefused('challenge_expired');
  });

  test('does not pay for another request', () => {
    given(...facts(issue))
      .when(claim('h1', { request: 'other' }))
      .thenRefused('challenge_mismatch');
  });

  test('is exhausted after three attempts with a request that providers reject', () => {
    const tries = ['h1', 'h2', 'h3'].flatMap((id) => [claim(id), release(id, 'content_policy_violation')]);
    given(...facts(issue, ...tries))
      .when(claim('h4'))
      .thenRefused('challenge_exhausted');
    expect(getChallengePhase(lived([issue, ...tries]).challenge, at)).toBe('exhausted');
  });

  test('is exhausted once the operator has absorbed as much as its price', () => {
    const lost = (holdId: string, cost: PicoUsd): ChallengeCommand => ({
      type: 'ReleaseHold',
      data: {
        holdId,
        errorCode: 'upstream_error',
        reason: '',
        attempts: [],
        at,
        absorbed: createCharge({ price: '0', cost: cost.toString() }),
      },
    });
    const tries = [claim('h1'), lost('h1', parseUsd('0.01')), claim('h2'), lost('h2', parseUsd('0.01'))];
    given(...facts(issue, ...tries))
      .when(claim('h3'))
      .thenRefused('challenge_exhausted');
  });

  test('can be used again after responses that were not delivered because of the store', () => {
    const charge = createCharge({ price: price.toString(), cost: price.toString() });
    const absorb = (holdId: string): ChallengeCommand => ({ type: 'AbsorbCharge', data: { holdId, charge, at } });
    const past = facts(issue, claim('h1'), absorb('h1'), claim('h2'), settle('h2'));
    const settled = past.find((event) => event.type === 'HoldSettled')?.data as HoldSettled['data'];
    const reverse: ChallengeCommand = { type: 'ReverseCharge', data: { settled, at } };
    const { challenge } = lived([issue, claim('h1'), absorb('h1'), claim('h2'), settle('h2'), reverse]);
    expect(challenge).toMatchObject({ available: price, charged: 0n, served: 0 });
    expect(getChallengePhase(challenge, at)).toBe('paid');
    const again = facts(issue, claim('h1'), absorb('h1'), claim('h2'), settle('h2'), reverse, claim('h3')).at(-1);
    expect(again).toMatchObject({ type: 'FundsHeld', data: { holdId: 'h3', amount: price.toString() } });
  });

  test('has the uncharged part of its price available after its hold is settled', () => {
    const { challenge } = lived([issue, claim('h1'), settle('h1', parseUsd('0.01'))]);
    expect([challenge.available, challenge.charged]).toEqual([parseUsd('0.0015'), parseUsd('0.01')]);
  });

  test('is served again up to two times, at the cost of the operator, if a gateway died before it responded', () => {
    const [held] = facts(issue, claim('h1'), settle('h1'), claim('h2', { isRetry: true })).slice(-1);
    expect(held).toMatchObject({ type: 'FundsHeld', data: { holdId: 'h2', amount: '0' } });
    const served = ['h1', 'h2', 'h3'].flatMap((id) => [claim(id, { isRetry: true }), settle(id)]);
    given(...facts(issue, ...served))
      .when(claim('h4', { isRetry: true }))
      .thenRefused('challenge_used');
  });

  test('is paid once, by the proof or by the report of the backend; an excess is recorded as overpaid', () => {
    given(...facts(issue, claim('h1')))
      .when(paid(14_000n))
      .thenAlreadySo();
    const more = facts(issue, claim('h1'), paid(15_000n)).at(-1);
    expect(more).toMatchObject({ type: 'ChallengeOverpaid', data: { units: '1000', amount: '850000000' } });
    given(...facts(issue, paid(15_000n)))
      .when(paid(15_000n))
      .thenAlreadySo();
    given(...facts(issue))
      .when(paid(13_999n))
      .thenRefused('payment_conflict');
  });

  test('records a fee once, also if one report lists it twice', () => {
    const fee = { id: 'f1', units: 4_000n, why: 'liquidity' };
    const command = { type: 'RecordChallengePayment', data: { units: 14_000n, fees: [fee, fee], at } } as const;
    const recorded = facts(issue, command, command);
    expect(recorded.filter(({ type }) => type === 'PaymentFeeCharged')).toHaveLength(1);
  });

  test('becomes income only when it can no longer be used', () => {
    const forfeit = (when: string, usableBefore = when): ChallengeCommand => ({
      type: 'ForfeitChallenge',
      data: { usableBefore, at: when },
    });
    for (const early of [forfeit(usableUntil), forfeit(usableUntil, after), forfeit(after, usableUntil)])
      given(...facts(issue, paid(14_000n)))
        .when(early)
        .thenAlreadySo();
    given(...facts(issue, claim('h1')))
      .when(forfeit(after))
      .thenAlreadySo();
    const { challenge, events } = lived([issue, paid(14_000n), forfeit(after), forfeit(after)]);
    expect(events.map(({ type }) => type)).toEqual(['ChallengeIssued', 'ChallengePaid', 'ChallengeForfeited']);
    expect([challenge.available, getChallengePhase(challenge, after)]).toEqual([ZERO_USD, 'forfeited']);
  });
});

test('a challenge has balanced postings and never charges more than its price, after any sequence of commands', () => {
  const holdId = fc.constantFrom('h1', 'h2', 'h3');
  const when = fc.constantFrom(at, expiresAt, usableUntil, after);
  const command: fc.Arbitrary<ChallengeCommand> = fc.oneof(
    fc.record({ holdId, at: when, isRetry: fc.boolean() }).map(({ holdId: id, ...more }) => claim(id, more)),
    fc.record({ holdId, due: fc.bigInt(0n, 2n * price) }).map((each) => settle(each.holdId, each.due as typeof price)),
    holdId.map((id) => release(id)),
    fc.bigInt(14_000n, 16_000n).map(paid),
    when.map((each) => ({ type: 'ForfeitChallenge' as const, data: { usableBefore: each, at: each } })),
    when.map((each) => ({ type: 'ExpireHolds' as const, data: { before: each, at: each } })),
    holdId.map((id) => ({ type: 'KeepHold' as const, data: { holdId: id, owner: `video-${id}`, at } })),
  );
  fc.assert(
    fc.property(fc.array(command, { maxLength: 40 }), (commands) => {
      let challenge = fold(challengeDecider, challengeDecider.getInitialState(), facts(issue));
      const lines: ReturnType<typeof toPostings>[number][] = [];
      for (const each of commands) {
        try {
          const events = challengeDecider.decide(each, challenge);
          challenge = fold(challengeDecider, challenge, events);
          lines.push(...events.flatMap((event) => toPostings('challenge-c', event as never)));
        } catch (error) {
          if (!(error instanceof Rejection)) throw error;
        }
        expect(challenge.available >= ZERO_USD).toBe(true);
      }
      const of = (name: string) => -money.sum(lines.filter((line) => line.account === name).map((line) => line.amount));
      const held = money.sum([...challenge.holds.values()].map(({ amount }) => amount));
      expect([of('challenge:available'), of('challenge:held')]).toEqual([challenge.available, held]);
      expect(money.sum(lines.map(({ amount }) => amount))).toBe(ZERO_USD);
      expect(of('revenue:unclaimed')).toBe(challenge.forfeited);
      expect(challenge.holds.size <= 1).toBe(true);
      if (challenge.paid) expect(challenge.charged <= money.parseJsonAmount(challenge.paid.price)).toBe(true);
      else expect(challenge.charged).toBe(ZERO_USD);
    }),
  );
});
