import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type AccountCommand,
  type AccountState,
  accountDecider,
  type HoldSettled,
  type ResetPeriod,
  UNRESTRICTED_ACCESS,
} from '#domain';
import { fold, type PicoUsd, parseUsd, Rejection } from '#kernel';
import { createCharge } from '#testing';

const START = Date.parse('2026-11-27T22:00:00.000Z'); // a Friday near the end of its day and of its month
const HOUR_MS = 3_600_000;
const LIMIT = parseUsd('1');

const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const secret = { key: '', box: '' };
const charge = (price: bigint) => createCharge({ price: price.toString() });

/** An account whose only key has a limit. Time advances only by `wait`. */
class Story {
  account: AccountState = accountDecider.getInitialState();
  /** The data of the last event. */
  ended: object = {};
  private now = START;

  constructor(resetPeriod: ResetPeriod | null) {
    const key = {
      keyId: 'k',
      name: 'k',
      hash: 'h',
      secret,
      limit: LIMIT.toString(),
      resetPeriod,
      expireAt: null,
      ...UNRESTRICTED_ACCESS,
    };
    this.send({ type: 'OpenAccount', data: { key, at: this.at() } });
    const credit = { creditId: 'c', method: 'm', amount: parseUsd('1000'), bonus: parseUsd('0'), at: this.at() };
    this.send({ type: 'AddCredit', data: credit });
  }

  /** Holds up to `amount`, as far as the limit allows. Returns what is held under the id. */
  hold(holdId: string, amount: PicoUsd): bigint {
    const expiresAt = this.at(48);
    const part = { minAmount: parseUsd('0'), divisor: 1n };
    const hold = {
      holdId,
      keyId: 'k',
      minAmount: parseUsd('0'),
      maxAmount: amount,
      partialHold: part,
      expiresAt,
      query,
      at: this.at(),
    };
    this.send({ type: 'HoldFunds', data: hold });
    return this.account.holds.get(holdId)?.amount ?? 0n;
  }

  /** Extends a hold up to a total of `to`. Returns what is held afterwards. */
  extend(holdId: string, to: PicoUsd): bigint {
    const knownAmount = this.account.holds.get(holdId)?.amount ?? parseUsd('0');
    const data = { holdId, minAmount: parseUsd('0'), targetAmount: to, knownAmount, at: this.at() };
    this.send({ type: 'ExtendHold', data });
    return this.account.holds.get(holdId)?.amount ?? 0n;
  }

  settle(holdId: string, price: bigint): void {
    this.send({ type: 'SettleHold', data: { holdId, charge: charge(price), at: this.at() } });
  }

  release(holdId: string): void {
    this.send({ type: 'ReleaseHold', data: { holdId, errorCode: 'e', reason: '', attempts: [], at: this.at() } });
  }

  expire(): void {
    this.send({ type: 'ExpireHolds', data: { before: this.at(), at: this.at() } });
  }

  reset(resetPeriod: ResetPeriod | null): void {
    this.send({ type: 'UpdateKey', data: { keyId: 'k', changes: { resetPeriod }, at: this.at() } });
  }

  /** Gives back the charge of the last hold that was settled. */
  reverse(): void {
    this.send({ type: 'ReverseCharge', data: { settled: this.ended as HoldSettled['data'], at: this.at() } });
  }

  wait(hours: number): void {
    this.now += hours * HOUR_MS;
  }

  get key() {
    return this.account.keys.get('k') ?? { used: 0n, held: 0n };
  }

  private at(inHours = 0): string {
    return new Date(this.now + inHours * HOUR_MS).toISOString();
  }

  private send(command: AccountCommand): void {
    try {
      const events = accountDecider.decide(command, this.account);
      this.account = fold(accountDecider, this.account, events);
      this.ended = events.at(-1)?.data ?? this.ended;
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
    }
  }
}

describe('the limit of a key whose reset window changes while requests run', () => {
  test.each([
    [null, 'daily'],
    ['daily', 'weekly'],
    ['weekly', null],
  ] as const)('is not raised by earlier holds when the period changes from %p to %p and back', (one, other) => {
    const story = new Story(one);
    story.hold('before', LIMIT);
    story.reset(other);
    story.reset(one);
    story.release('before');
    expect(story.hold('after', parseUsd('5'))).toBe(LIMIT);
  });

  test('does not count the charge of a hold that was placed before the change', () => {
    const story = new Story('daily');
    story.hold('before', parseUsd('0.4'));
    story.reset('weekly');
    story.reset('daily');
    story.settle('before', parseUsd('0.4'));
    expect(story.key).toMatchObject({ used: 0n, held: 0n });
  });

  test('is not raised by the reversal of a charge from before a change that a process with a lagging clock made', () => {
    const story = new Story('daily');
    story.hold('before', parseUsd('0.4'));
    story.settle('before', parseUsd('0.4'));
    const settled = story.ended;
    story.wait(-1);
    story.reset('weekly');
    story.wait(1);
    story.ended = settled;
    story.reverse();
    expect(story.key).toMatchObject({ used: 0n, held: 0n });
    expect(story.hold('after', parseUsd('5'))).toBe(LIMIT);
  });

  test('counts holds that were placed after the change', () => {
    const story = new Story('daily');
    story.hold('before', LIMIT);
    story.reset('weekly');
    story.hold('after', parseUsd('0.7'));
    story.release('before');
    expect(story.key).toMatchObject({ used: 0n, held: parseUsd('0.7') });
    story.settle('after', parseUsd('0.6'));
    expect(story.key).toMatchObject({ used: parseUsd('0.6'), held: 0n });
    expect(story.hold('more', parseUsd('5'))).toBe(parseUsd('0.4'));
  });

  test('counts a hold completely in the later window in which it is extended', () => {
    const story = new Story('daily');
    story.hold('long', parseUsd('0.8'));
    story.wait(3);
    story.hold('other', parseUsd('0.5'));
    expect(story.extend('long', parseUsd('0.9'))).toBe(parseUsd('0.8'));
    story.release('other');
    expect(story.extend('long', parseUsd('5'))).toBe(LIMIT);
    expect(story.key).toMatchObject({ used: 0n, held: LIMIT });
    story.settle('long', parseUsd('0.9'));
    expect(story.key).toMatchObject({ used: parseUsd('0.9'), held: 0n });
    expect(story.ended).toMatchObject({ heldAt: '2026-11-27T22:00:00.000Z', countedAt: '2026-11-28T01:00:00.000Z' });
  });

  test('is never exceeded in one window by any sequence of commands', () => {
    const id = fc.integer({ min: 0, max: 6 }).map(String);
    const amount = fc.bigInt({ min: 1n, max: 2n * LIMIT }).map((each) => each as PicoUsd);
    const period = fc.constantFrom('daily', 'weekly', 'monthly', null);
    const step = fc.oneof(
      fc.tuple(id, amount).map(([each, most]) => ({ act: (story: Story) => void story.hold(each, most) })),
      fc.tuple(id, amount).map(([each, price]) => ({ act: (story: Story) => story.settle(each, price) })),
      fc.tuple(id, amount).map(([each, to]) => ({ act: (story: Story) => void story.extend(each, to) })),
      id.map((each) => ({ act: (story: Story) => story.release(each) })),
      period.map((each) => ({ act: (story: Story) => story.reset(each) })),
      fc.integer({ min: 0, max: 40 }).map((hours) => ({ act: (story: Story) => story.wait(hours) })),
      fc.constant({ act: (story: Story) => story.expire() }),
    );
    fc.assert(
      fc.property(period, fc.array(step, { maxLength: 60 }), (first, steps) => {
        const story = new Story(first);
        for (const { act } of steps) {
          act(story);
          expect(story.key.held).toBeGreaterThanOrEqual(0n);
          expect(story.key.used + story.key.held).toBeLessThanOrEqual(LIMIT);
        }
      }),
    );
  });
});
