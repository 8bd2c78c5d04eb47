/** Charges for responses that the customer did not get. */
import { describe, expect, test } from '@jest/globals';
import { type AccountCommand, type AccountEvent, accountDecider, type HoldSettled, UNRESTRICTED_ACCESS } from '#domain';
import { fold, parseUsd, Rejection } from '#kernel';
import { createCharge } from '#testing';

const at = '2026-11-20T12:00:00.000Z';
const later = '2026-11-20T12:00:09.000Z';
const tomorrow = '2026-11-21T12:00:00.000Z';
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const charge = createCharge({ price: parseUsd('0.6').toString(), cost: parseUsd('0.5').toString() });
const key = { keyId: 'k1', name: 'k1', hash: '', secret: { key: '', box: '' }, ...UNRESTRICTED_ACCESS, expireAt: null };
const limits = { limit: parseUsd('1').toString(), resetPeriod: 'daily' } as const;
const [minAmount, maxAmount] = [parseUsd('0.7'), parseUsd('0.7')];

const opening: readonly AccountCommand[] = [
  { type: 'OpenAccount', data: { key: { ...key, ...limits }, at } },
  {
    type: 'AddCredit',
    data: { creditId: 'c', method: 'btc-lightning', amount: parseUsd('5'), bonus: parseUsd('0'), at },
  },
];
const hold = (holdId: string, more: object = {}): AccountCommand => ({
  type: 'HoldFunds',
  data: { holdId, keyId: 'k1', minAmount, maxAmount, expiresAt: tomorrow, query, at, ...more },
});
const settle: AccountCommand = { type: 'SettleHold', data: { holdId: 'h', charge, at } };
const absorb: AccountCommand = { type: 'AbsorbCharge', data: { holdId: 'h', charge, at: later } };
const release: AccountCommand = {
  type: 'ReleaseHold',
  data: { holdId: 'h', errorCode: 'timeout', reason: '', attempts: [], at },
};
const expire: AccountCommand = { type: 'ExpireHolds', data: { before: tomorrow, at: tomorrow } };

class Account {
  readonly events: AccountEvent[] = [];

  get state() {
    return fold(accountDecider, accountDecider.getInitialState(), this.events);
  }

  /** @returns the types of the new events, or the code of the rejection */
  run(...commands: readonly AccountCommand[]): readonly string[] | string {
    try {
      const events = commands.flatMap((command) => {
        const decided = accountDecider.decide(command, this.state);
        this.events.push(...decided);
        return decided;
      });
      return events.map(({ type }) => type);
    } catch (error) {
      if (error instanceof Rejection) return error.code;
      throw error;
    }
  }

  reverse(when = later) {
    const settled = this.events.find(({ type }) => type === 'HoldSettled') as HoldSettled;
    return this.run({ type: 'ReverseCharge', data: { settled: settled.data, at: when } });
  }
}

function open(...commands: readonly AccountCommand[]): Account {
  const account = new Account();
  account.run(...opening, hold('h'), ...commands);
  return account;
}

describe('a charge for a response that was not delivered', () => {
  test('ends its hold unpaid, and the operator absorbs it; the account does not lose credit for that', () => {
    const account = open();
    expect(account.run(absorb)).toEqual(['HoldExpired', 'ChargeAbsorbed']);
    expect(account.state).toMatchObject({ available: parseUsd('5'), held: 0n });
    expect(account.state.losses).toBeUndefined();
    expect(account.run(absorb)).toEqual([]);
    expect(account.run(settle)).toEqual([]);
  });

  test('is absorbed after its hold has expired', () => {
    expect(open(expire).run(absorb)).toEqual(['ChargeAbsorbed']);
  });

  test('is not absorbed if the hold was released or settled, or is unknown', () => {
    expect(open(release).run(absorb)).toBe('hold_resolved');
    expect(open(settle).run(absorb)).toBe('hold_resolved');
    const account = new Account();
    account.run(...opening);
    expect(account.run(absorb)).toBe('hold_not_found');
  });
});

describe('the reversal of a charge', () => {
  test('returns the money once, also to the limit of the key', () => {
    const account = open(settle);
    expect(account.run(hold('h2'))).toBe('key_limit_exceeded');
    expect(account.reverse()).toEqual(['ChargeReversed']);
    expect(account.reverse()).toEqual([]);
    expect(account.run(absorb)).toEqual([]);
    expect(account.run(settle)).toBe('hold_resolved');
    expect(account.state).toMatchObject({ available: parseUsd('5'), held: 0n });
    expect(account.state.keys.get('k1')).toMatchObject({ used: 0n, usedInAll: 0n });
    expect(account.run(hold('h2'))).toEqual(['FundsHeld']);
  });

  test('changes nothing in a window of the limit in which the charge was not counted', () => {
    const account = open(settle);
    account.run(hold('h2', { expiresAt: '2026-11-22T12:00:00.000Z', at: tomorrow }));
    account.run({ type: 'SettleHold', data: { holdId: 'h2', charge, at: tomorrow } });
    account.reverse(tomorrow);
    expect(account.state.keys.get('k1')).toMatchObject({ used: parseUsd('0.6'), usedInAll: parseUsd('0.6') });
  });

  test('subtracts nothing from counters that were restarted after the charge', () => {
    const account = open(settle);
    account.run({ type: 'UpdateKey', data: { keyId: 'k1', changes: { resetPeriod: 'weekly' }, at: later } });
    account.run({ type: 'UpdateKey', data: { keyId: 'k1', changes: { resetPeriod: 'daily' }, at: later } });
    account.reverse();
    expect(account.state.keys.get('k1')).toMatchObject({ used: 0n, usedInAll: 0n });
  });

  test.each([
    ['was released', [release]],
    ['is open', []],
  ])('is rejected for a hold without a charge: it %s', (_, commands) => {
    const settled = { ...open(settle).events.find(({ type }) => type === 'HoldSettled')?.data } as HoldSettled['data'];
    const reverse: AccountCommand = { type: 'ReverseCharge', data: { settled, at: later } };
    expect(open(...commands).run(reverse)).toBe('hold_not_found');
  });

  test('is possible, once, however many other holds of the account have ended since', () => {
    const account = open(settle);
    for (let i = 0; i < 1_100; i++) {
      const holdId = `other-${i}`;
      const release: AccountCommand = {
        type: 'ReleaseHold',
        data: { holdId, errorCode: 'e', reason: 'r', attempts: [], at: later },
      };
      account.run(hold(holdId, { keyId: null }), release);
    }
    expect(account.run(absorb)).toBe('hold_not_found');
    expect([account.reverse(), account.reverse()]).toEqual([['ChargeReversed'], []]);
    expect(account.state).toMatchObject({ available: parseUsd('5'), held: 0n });
  });
});
