/**
 * Tests that the read model shows what the account counts towards the limit of a key, in whatever order events follow.
 */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type AccountCommand,
  type AccountState,
  accountDecider,
  advanceWindow,
  type HoldSettled,
  type ResetPeriod,
  toApiKeyRecord,
  UNRESTRICTED_ACCESS,
} from '#domain';
import { fold, type PicoUsd, parseUsd, Rejection } from '#kernel';
import { createCharge } from '#testing';
import { keys } from './keys.ts';

type Row = NonNullable<ReturnType<typeof keys.evolve>>;

const LIMIT = parseUsd('0.1');
const EXPIRY = '2026-12-31T00:00:00.000Z';
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;

/** An account with one key, and the row of that key. Commands are decided in the order in which they are sent. */
class CountedKey {
  private account: AccountState = accountDecider.getInitialState();
  private row: Row | undefined;
  private latest = '';
  private readonly settled = new Map<string, HoldSettled['data']>();

  constructor(resetPeriod: ResetPeriod | null, at: string) {
    const key = {
      keyId: 'k',
      name: 'k',
      hash: 'h',
      secret: { key: '', box: '' },
      ...UNRESTRICTED_ACCESS,
      expireAt: null,
    };
    this.send({ type: 'OpenAccount', data: { key: { ...key, limit: LIMIT.toString(), resetPeriod }, at } });
    const credit = { creditId: 'c', method: 'm', amount: parseUsd('1000'), bonus: parseUsd('0') };
    this.send({ type: 'AddCredit', data: { ...credit, at } });
  }

  hold(holdId: string, at: string, amount: PicoUsd = LIMIT): void {
    const amounts = { minAmount: parseUsd('0'), maxAmount: amount };
    this.send({ type: 'HoldFunds', data: { holdId, keyId: 'k', ...amounts, expiresAt: EXPIRY, query, at } });
  }

  extend(holdId: string, at: string, targetAmount: PicoUsd): void {
    const amounts = { minAmount: parseUsd('0'), targetAmount, knownAmount: parseUsd('0') };
    this.send({ type: 'ExtendHold', data: { holdId, ...amounts, at } });
  }

  settle(holdId: string, at: string, price: bigint = LIMIT): void {
    this.send({ type: 'SettleHold', data: { holdId, charge: createCharge({ price: price.toString() }), at } });
  }

  reverse(holdId: string, at: string): void {
    const settled = this.settled.get(holdId);
    if (settled) this.send({ type: 'ReverseCharge', data: { settled, at } });
  }

  revoke(at: string): void {
    this.send({ type: 'RevokeKey', data: { keyId: 'k', at } });
  }

  change(resetPeriod: ResetPeriod | null, at: string): void {
    this.send({ type: 'UpdateKey', data: { keyId: 'k', changes: { resetPeriod }, at } });
  }

  /** What the account counts and what the read model shows at the latest time of an event, in pico-USD. */
  getUsage(): { readonly counted: readonly bigint[]; readonly shown: readonly bigint[] } {
    const state = this.account.keys.get('k');
    if (!state || !this.row) throw new Error('the key was not created');
    const counted = toApiKeyRecord('k', state, this.latest);
    const { reset_period: resetPeriod, used_in: window, used, used_in_all } = this.row;
    const shown = advanceWindow(this.latest, { resetPeriod, window, used: BigInt(used) as PicoUsd }).used;
    return { counted: [counted.usedInPeriod, counted.usedInAll], shown: [shown, BigInt(used_in_all)] };
  }

  private send(command: AccountCommand): void {
    try {
      const events = accountDecider.decide(command, this.account);
      this.account = fold(accountDecider, this.account, events);
      for (const [i, stored] of (JSON.parse(JSON.stringify(events)) as typeof events).entries()) {
        const event = { ...stored, stream: 'account-a', position: BigInt(i) } as never;
        if (keys.getKey(event) !== undefined) this.row = keys.evolve(this.row, event) ?? undefined;
        if (stored.type === 'HoldSettled') this.settled.set(stored.data.holdId, stored.data);
        if (stored.data.at > this.latest) this.latest = stored.data.at;
      }
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
    }
  }
}

describe('the usage of a key that the read model shows', () => {
  const [before, after] = ['2026-11-30T23:59:59.900Z', '2026-12-01T00:00:00.100Z'];
  const [much, little] = [parseUsd('0.09'), parseUsd('0.01')];
  const all = money(much + little);

  test('includes a charge in the window of its hold if holds around midnight are stored in the other order', () => {
    const key = new CountedKey('daily', before);
    key.hold('second', after, little);
    key.hold('first', before, much);
    key.settle('first', after, much);
    key.settle('second', after, little);
    expect(key.getUsage()).toEqual({ counted: [all, all], shown: [all, all] });
  });

  test('excludes the charge of a hold that was stored before a change of the period with an earlier time', () => {
    const key = new CountedKey('daily', before);
    key.hold('h', after, much);
    key.change('monthly', before);
    key.settle('h', after, much);
    expect(key.getUsage()).toEqual({ counted: [0n, much], shown: [0n, much] });
  });

  test('excludes the charge of a hold that was stored before a change of the period at the same time', () => {
    const key = new CountedKey('daily', before);
    key.hold('h', after, much);
    key.change('monthly', after);
    key.settle('h', after, much);
    expect(key.getUsage()).toEqual({ counted: [0n, much], shown: [0n, much] });
  });

  test('includes the charge of a hold that was stored after a change of the period with a later time', () => {
    const key = new CountedKey('daily', before);
    key.change('monthly', after);
    key.hold('h', before, much);
    key.settle('h', after, much);
    expect(key.getUsage()).toEqual({ counted: [much, much], shown: [much, much] });
  });

  test('includes a charge that is reversed after the key was revoked only in its window', () => {
    const key = new CountedKey(null, before);
    key.hold('h', before, much);
    key.settle('h', before, much);
    key.revoke(after);
    key.reverse('h', after);
    expect(key.getUsage()).toEqual({ counted: [much, 0n], shown: [much, 0n] });
  });

  test('is what the account counts, in any order of holds, extensions, charges, reversals and changes near resets', () => {
    const id = fc.integer({ min: 0, max: 5 }).map(String);
    const amount = fc.bigInt({ min: 1n, max: LIMIT / 3n }).map(money);
    const period = fc.constantFrom('daily', 'weekly', 'monthly', null);
    // 2026-11-30 is a Monday, so that days, weeks and months end close to each other.
    const time = fc
      .tuple(
        fc.constantFrom('2026-11-29T00:00:00.000Z', '2026-11-30T00:00:00.000Z', '2026-12-01T00:00:00.000Z'),
        fc.integer({ min: -2, max: 2 }),
      )
      .map(([boundary, milliseconds]) => new Date(Date.parse(boundary) + milliseconds).toISOString());
    const step = fc.oneof(
      fc.tuple(id, time, amount).map((args) => (key: CountedKey) => key.hold(...args)),
      fc.tuple(id, time, amount).map((args) => (key: CountedKey) => key.extend(...args)),
      fc.tuple(id, time, amount).map((args) => (key: CountedKey) => key.settle(...args)),
      fc.tuple(id, time).map((args) => (key: CountedKey) => key.reverse(...args)),
      fc.tuple(period, time).map((args) => (key: CountedKey) => key.change(...args)),
      fc.tuple(time).map((args) => (key: CountedKey) => key.revoke(...args)),
    );
    fc.assert(
      fc.property(period, time, fc.array(step, { maxLength: 40 }), (first, at, steps) => {
        const key = new CountedKey(first, at);
        for (const apply of steps) {
          apply(key);
          const { counted, shown } = key.getUsage();
          expect(shown).toEqual(counted);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

function money(amount: bigint): PicoUsd {
  return amount as PicoUsd;
}
