import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type AccountCommand,
  type AccountEvent,
  type AccountState,
  accountCodec,
  accountDecider,
  toPostings,
  UNRESTRICTED_ACCESS,
} from '#domain';
import { fold, money, type PicoUsd, Rejection, ZERO_USD } from '#kernel';
import { createCharge } from '#testing';

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const START = Date.parse('2026-11-20T23:00:00.000Z');
const HOURS = 3_600_000;
const instant = (hour: number) => new Date(START + hour * HOURS).toISOString();

const amount = fc.bigInt({ min: 0n, max: 1_000n }).map((each) => each as PicoUsd);
const holdId = fc.integer({ min: 0, max: 8 }).map((each) => `h${each}`);
const keyId = fc.constantFrom('k1', 'k2', null);
const owner = fc.constantFrom('gateway-1', 'gateway-2');
const hour = fc.integer({ min: 0, max: 60 });
const newKey = (id: string, limit: string | null, resetPeriod: 'daily' | null) => ({
  keyId: id,
  name: id,
  hash: id,
  secret: { key: '', box: '' },
  ...UNRESTRICTED_ACCESS,
  limit,
  resetPeriod,
  expireAt: null,
});

const command: fc.Arbitrary<AccountCommand> = fc.oneof(
  fc.record({ creditId: fc.constantFrom('c1', 'c2', 'c3'), amount, bonus: amount, hour }).map(({ hour, ...data }) => ({
    type: 'AddCredit' as const,
    data: { ...data, method: 'btc-lightning', at: instant(hour) },
  })),
  fc
    .record({
      adjustmentId: holdId,
      amount,
      isDebit: fc.boolean(),
      reverses: fc.option(holdId, { nil: undefined }),
      hour,
    })
    .map(({ hour, amount, isDebit, reverses, ...data }) => ({
      type: 'AdjustBalance' as const,
      data: {
        ...data,
        ...(reverses === undefined ? {} : { reverses }),
        amount: isDebit ? money.negate(amount) : amount,
        reason: '',
        actor: { name: 'alice', isVerified: false },
        at: instant(hour),
      },
    })),
  fc
    .record({ reversalId: holdId, creditId: fc.constantFrom('c1', 'c2'), amount, bonus: amount, hour })
    .map(({ hour, amount, bonus, ...data }) => ({
      type: 'ReverseCredit' as const,
      data: {
        ...data,
        amount: money.negate(amount),
        bonus: money.negate(bonus),
        method: 'btc-lightning',
        why: 'refunded',
        at: instant(hour),
      },
    })),
  fc
    .record({ holdId, keyId, owner, atLeast: amount, more: amount, first: amount, life: hour, hour })
    .map(({ atLeast, more, first, life, hour, ...data }) => ({
      type: 'HoldFunds' as const,
      data: {
        ...data,
        minAmount: atLeast,
        maxAmount: money.add(atLeast, more),
        partialHold: { minAmount: first, divisor: 3n },
        expiresAt: instant(hour + life),
        query,
        at: instant(hour),
      },
    })),
  fc
    .record({ holdId, atLeast: amount, more: amount, knownAmount: amount, hour })
    .map(({ atLeast, more, hour, ...data }) => ({
      type: 'ExtendHold' as const,
      data: { ...data, minAmount: atLeast, targetAmount: money.add(atLeast, more), at: instant(hour) },
    })),
  fc.record({ holdId, price: amount, cost: amount, hour }).map(({ holdId, price, cost, hour }) => ({
    type: 'SettleHold' as const,
    data: {
      holdId,
      charge: createCharge({ price: price.toString(), cost: cost.toString() }),
      at: instant(hour),
    },
  })),
  fc.record({ holdId, hour }).map(({ holdId, hour }) => ({
    type: 'ReleaseHold' as const,
    data: { holdId, errorCode: 'e', reason: '', attempts: [], at: instant(hour) },
  })),
  hour.map((each) => ({ type: 'ExpireHolds' as const, data: { before: instant(each), at: instant(each) } })),
  fc.record({ holdId, hour }).map(({ holdId, hour }) => ({
    type: 'KeepHold' as const,
    data: { holdId, owner: `video-${holdId}`, at: instant(hour) },
  })),
  fc.record({ owner, hour }).map(({ owner, hour }) => ({
    type: 'AbandonHolds' as const,
    data: { owner, before: instant(hour), at: instant(hour) },
  })),
  fc.constant({ type: 'RevokeKey' as const, data: { keyId: 'k2', at: instant(1) } }),
  fc.constantFrom(null, ['m', 'a/*'], ['m']).map((models) => ({
    type: 'UpdateKey' as const,
    data: { keyId: 'k1', changes: { models, metadata: { team: 'a' } }, at: instant(1) },
  })),
);

interface History {
  readonly account: AccountState;
  readonly events: readonly AccountEvent[];
  readonly states: readonly AccountState[];
}

function live(commands: readonly AccountCommand[], limit: string | null, period: 'daily' | null): History {
  const opening: AccountCommand[] = [
    { type: 'OpenAccount', data: { key: newKey('k1', limit, limit === null ? null : period), at: instant(0) } },
    { type: 'CreateKey', data: { key: newKey('k2', null, null), at: instant(0) } },
  ];
  const events: AccountEvent[] = [];
  const states: AccountState[] = [];
  let account = accountDecider.getInitialState();
  for (const each of [...opening, ...commands]) {
    try {
      const followed = accountDecider.decide(each, account);
      account = fold(accountDecider, account, followed);
      events.push(...followed);
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
    }
    states.push(account);
  }
  return { account, events, states };
}

const lives = fc
  .record({
    commands: fc.array(command, { maxLength: 60 }),
    limit: fc.option(fc.constant('10000000000')),
    period: fc.option(fc.constant('daily' as const)),
  })
  .map(({ commands, limit, period }) => live(commands, limit, period));

/** Returns the snapshot of an account with sorted entries: states with the same entries iterate in different orders. */
const encodeSorted = (account: AccountState): unknown =>
  JSON.parse(JSON.stringify(accountCodec.encode(account)), (_, value) =>
    Array.isArray(value) ? value.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : value,
  );

describe('an account after any sequence of commands', () => {
  test('has a negative available amount only because of a reversal', () => {
    fc.assert(
      fc.property(lives, ({ events }) => {
        let account = accountDecider.getInitialState();
        for (const event of events) {
          const before = account.available;
          account = accountDecider.evolve(account, event);
          expect(account.held >= ZERO_USD).toBe(true);
          const { available } = account;
          expect(available >= ZERO_USD || available >= before || event.type === 'CreditReversed').toBe(true);
        }
      }),
    );
  });

  test('has postings that sum to zero and add up to its balance', () => {
    fc.assert(
      fc.property(lives, ({ account, events }) => {
        const lines = events.flatMap((event) => toPostings('account-a', event));
        expect(money.sum(lines.map((line) => line.amount))).toBe(0n);
        const of = (name: string) =>
          -money.sum(lines.filter((line) => line.account === name).map((line) => line.amount));
        expect([of('customer:available'), of('customer:held')]).toEqual([account.available, account.held]);
      }),
    );
  });

  test('ended each hold at most once, and its held amount is the sum of the open holds', () => {
    fc.assert(
      fc.property(lives, ({ account, events }) => {
        const ends = events.flatMap((event) => ('held' in event.data ? [event.data.holdId] : []));
        expect(new Set(ends).size).toBe(ends.length);
        expect(money.sum([...account.holds.values()].map((hold) => hold.amount))).toBe(account.held);
      }),
    );
  });

  test('never used more than the limit of a key in any reset window', () => {
    const capped = fc.array(command, { maxLength: 80 }).map((commands) => live(commands, '10000000000', 'daily'));
    fc.assert(
      fc.property(capped, ({ states }) => {
        for (const { keys } of states) {
          const key = keys.get('k1');
          expect(key === undefined || key.limit === null || key.used + key.held <= key.limit).toBe(true);
        }
      }),
    );
  });

  test('has the same state when its events are replayed through JSON, from a snapshot at any of them', () => {
    fc.assert(
      fc.property(lives, fc.nat(), ({ account, events }, cut) => {
        const stored: AccountEvent[] = JSON.parse(JSON.stringify(events));
        const at = events.length === 0 ? 0 : cut % events.length;
        const before = fold(accountDecider, accountDecider.getInitialState(), stored.slice(0, at));
        const restored = accountCodec.decode(JSON.parse(JSON.stringify(accountCodec.encode(before))) as never);
        const replayed = fold(accountDecider, restored, stored.slice(at));
        expect(encodeSorted(replayed)).toEqual(encodeSorted(account));
        expect(replayed.accessLength).toBe(account.accessLength);
      }),
    );
  });

  test('ends its holds in the same order in a state from events and in one from a snapshot', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat({ max: 99 }), { minLength: 9 }), fc.nat(), (ids, count) => {
        const holds = ids.map((id) => ({
          type: 'FundsHeld' as const,
          data: { holdId: `h${id}`, keyId: null, amount: '1', expiresAt: instant(1), query, at: instant(0) },
        }));
        const ends = holds.slice(0, count % holds.length).map(({ data }) => ({
          type: 'HoldExpired' as const,
          data: { ...data, held: '1', heldAt: data.at },
        }));
        const opened = { type: 'AccountOpened' as const, data: { at: instant(0) } };
        const state = fold(accountDecider, accountDecider.getInitialState(), [opened, ...holds, ...ends]);
        const restored = accountCodec.decode(JSON.parse(JSON.stringify(accountCodec.encode(state))) as never);
        const expire = { type: 'ExpireHolds' as const, data: { before: instant(2), at: instant(2) } };
        expect(accountDecider.decide(expire, restored)).toEqual(accountDecider.decide(expire, state));
      }),
    );
  });
});
