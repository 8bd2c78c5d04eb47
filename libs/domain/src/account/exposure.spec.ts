/** What providers may bill beyond what is held is limited over all running requests of an account, and of a key. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type AccountCommand,
  type AccountEvent,
  type AccountState,
  accountCodec,
  accountDecider,
  type HoldExtensionTerms,
  type RiskLimits,
  UNRESTRICTED_ACCESS,
} from '#domain';
import { fold, money, type PicoUsd, Rejection, ZERO_USD } from '#kernel';
import { createCharge } from '#testing';
import { calculateExposure, calculateReserve } from './exposure.ts';

const AT = '2026-11-20T12:00:00.000Z';
const LATER = '2026-11-21T12:00:00.000Z';
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const usd = (amount: number) => BigInt(amount) as PicoUsd;
const formatted = (amount: number) => money.formatUsd(usd(amount));
const LIMITS: RiskLimits = { lossPerHour: usd(1_000), exposure: usd(20), exposurePercent: 3n };

interface HoldParams extends Partial<HoldExtensionTerms> {
  readonly first?: number;
  readonly max?: number;
  readonly waiting?: number;
  readonly isFirstAttempt?: boolean;
  readonly keyId?: string | null;
  readonly riskLimits?: RiskLimits;
}

/** An account with a balance in pico-USD, and a key `capped` with a limit. */
class Story {
  account: AccountState = accountDecider.getInitialState();
  at = AT;

  constructor(balance: number, limit: number | null = null, resetPeriod: 'daily' | null = null) {
    const key = { hash: '', secret: { key: '', box: '' }, ...UNRESTRICTED_ACCESS, resetPeriod, expireAt: null };
    const created = { ...key, keyId: 'k', name: 'k', limit: limit === null ? null : String(limit) };
    this.run({ type: 'OpenAccount', data: { key: created, at: AT } });
    const credit = { creditId: 'c', method: 'm', amount: usd(balance), bonus: ZERO_USD };
    this.run({ type: 'AddCredit', data: { ...credit, at: AT } });
  }

  run(command: AccountCommand): readonly AccountEvent[] {
    const events = accountDecider.decide(command, this.account);
    this.account = fold(accountDecider, this.account, events);
    return events;
  }

  /** Holds `first` of at most `max` for a response that can be stopped within `stopPrice` after its hold is used up. */
  hold(
    holdId: string,
    {
      first = 100,
      max = 100_000,
      waiting: others = 0,
      isFirstAttempt = false,
      keyId = null,
      ...params
    }: HoldParams = {},
  ) {
    const { riskLimits = LIMITS, minLimitPrice = usd(150), longPrice = usd(100), ...extension } = params;
    const partialHold = {
      minAmount: usd(first),
      divisor: 1_000_000n,
      extension: { minLimitPrice, longPrice, ...extension },
    };
    const prices = { minAmount: usd(1), maxAmount: usd(max), partialHold };
    const waiting = isFirstAttempt ? undefined : others;
    const data = { holdId, keyId, ...prices, waiting, riskLimits, expiresAt: LATER, query, at: this.at };
    const [event] = this.run({ type: 'HoldFunds', data });
    if (event?.type !== 'FundsHeld') return undefined;
    const { amount, limitPrice = amount } = event.data;
    return { amount: Number(amount), limitPrice: Number(limitPrice) };
  }

  /** Extends a hold to at least `min`, at most `target`. Returns what is held afterwards. */
  extend(holdId: string, min: number, target = min, stopPrice?: PicoUsd): number {
    const knownAmount = this.account.holds.get(holdId)?.amount as PicoUsd;
    const amounts = { minAmount: usd(min), targetAmount: usd(target), knownAmount, stopPrice };
    this.run({ type: 'ExtendHold', data: { holdId, ...amounts, riskLimits: LIMITS, at: this.at } });
    return Number(this.account.holds.get(holdId)?.amount);
  }

  settle(holdId: string, price: number, absorbed?: string): void {
    const charge = createCharge({ price: String(price), cost: String(price) });
    const [item] = charge.items;
    const items = absorbed && item ? [...charge.items, { ...item, price: '0', absorbed }] : charge.items;
    this.run({ type: 'SettleHold', data: { holdId, charge: { ...charge, items }, at: this.at } });
  }

  /** Returns the code of the rejection, and whether a later attempt may be accepted. */
  reject(command: () => unknown): string {
    try {
      command();
    } catch (error) {
      if (error instanceof Rejection) return `${error.code}${error.isTemporary ? ' for now' : ''}`;
      throw error;
    }
    return 'accepted';
  }
}

describe('the output limit of a response', () => {
  test('is what the balance reaches if the response runs alone, whatever its speed', () => {
    expect(new Story(1_000).hold('a')).toEqual({ amount: 100, limitPrice: 1_000 });
    expect(new Story(1_000).hold('a', { stopPrice: usd(10) })).toEqual({ amount: 100, limitPrice: 1_000 });
    expect(new Story(1_000).hold('a', { max: 400 })).toEqual({ amount: 100, limitPrice: 400 });
  });
  test('also reaches the money of running requests if the provider can be stopped in time', () => {
    const story = new Story(1_000);
    story.hold('a', { stopPrice: usd(10) });
    expect(story.hold('b', { stopPrice: usd(10) })).toEqual({ amount: 100, limitPrice: 1_000 });
  });
  test('leaves money for requests that wait, but is at least that of a usual long response', () => {
    expect(new Story(1_000).hold('a', { waiting: 1 })).toEqual({ amount: 100, limitPrice: 100 + Math.floor(930 / 16) });
    expect(new Story(1_000).hold('a', { waiting: 60 })).toEqual({ amount: 100, limitPrice: 150 });
  });
  test('leaves money for requests at other gateways while others run', () => {
    const story = new Story(1_000);
    story.hold('a', { waiting: 1 });
    expect(story.hold('b')).toEqual({ amount: 100, limitPrice: 100 + Math.floor((830 - 58) / 8) });
  });
  test('is lower if requests wait and the provider may bill all of the money before it can be stopped', () => {
    const limitOf = (stopPrice: number) => new Story(1_000).hold('a', { waiting: 9, stopPrice: usd(stopPrice) });
    expect([limitOf(899)?.limitPrice, limitOf(900)?.limitPrice]).toEqual([1_000, 150]);
  });
  test('is not lower only because the exposure is not covered yet if the provider can be stopped in time', () => {
    const story = new Story(1_000);
    for (const id of ['a', 'b', 'c']) story.hold(id, { stopPrice: usd(220) });
    const next = { minLimitPrice: usd(101), stopPrice: usd(220) };
    expect(story.reject(() => story.hold('d', next))).toBe('insufficient_balance for now');
    story.settle('a', 1);
    expect(story.hold('d', next)?.limitPrice).toBe(999);
  });
  test('takes all of the money only at the second attempt, because other requests may arrive at the same time', () => {
    const story = new Story(1_000);
    expect(story.reject(() => story.hold('a', { isFirstAttempt: true }))).toBe('insufficient_balance for now');
    expect(story.hold('b', { isFirstAttempt: true, stopPrice: usd(10) })?.limitPrice).toBe(1_000);
    expect(new Story(1_000).hold('a', { isFirstAttempt: true, max: 900 })?.limitPrice).toBe(900);
  });
  test('is within what the limit of the key reaches', () => {
    expect(new Story(10_000, 700).hold('a', { keyId: 'k' })?.limitPrice).toBe(700);
  });
  test('is not reduced if the gateway cannot choose it, and the response starts alone', () => {
    const story = new Story(1_000);
    const enclave = { fixedLimitPrice: usd(5_000), minLimitPrice: usd(5_000) };
    expect(story.hold('a', enclave)?.limitPrice).toBe(5_000);
    expect(story.reject(() => story.hold('b', enclave))).toBe('insufficient_balance for now');
  });
});

describe('if running requests hold all that they may need, a response', () => {
  /** The balance is 1,000, of which a job holds 880. */
  function startJob(): Story {
    const story = new Story(1_000);
    story.hold('job', { first: 880, max: 880 });
    return story;
  }

  test('starts, and its output limit is what is available if no higher one is covered', () => {
    const long = { minLimitPrice: usd(500), longPrice: usd(500) };
    expect(startJob().hold('a', long)).toEqual({ amount: 100, limitPrice: 120 });
    expect(startJob().hold('a', { ...long, minLimitPrice: usd(150) })).toEqual({ amount: 100, limitPrice: 150 });
    expect(startJob().hold('a', { ...long, stopPrice: usd(50) })).toEqual({ amount: 100, limitPrice: 1_000 });
  });
  test('starts with an output limit that the gateway cannot choose', () => {
    expect(startJob().hold('a', { fixedLimitPrice: usd(5_000) })?.limitPrice).toBe(5_000);
  });
  test('starts within the limit of its key, where a job holds the rest, although others run on the balance', () => {
    const story = new Story(100_000, 1_000);
    story.hold('job', { first: 880, max: 880, keyId: 'k' });
    story.hold('a', { stopPrice: usd(10) });
    expect(story.hold('b', { minLimitPrice: usd(500), keyId: 'k' })).toEqual({ amount: 100, limitPrice: 120 });
  });
  test('gets as far as its money', () => {
    const story = startJob();
    story.hold('a', { stopPrice: usd(50) });
    expect(story.extend('a', 110, 1_000)).toBe(120);
  });
  test('waits if another one may need more', () => {
    const story = startJob();
    story.hold('a', { first: 10, longPrice: usd(20), stopPrice: usd(1) });
    expect(story.reject(() => story.hold('b', { longPrice: usd(120), stopPrice: usd(1) }))).toMatch(/for now$/);
  });
});

describe('a rejection', () => {
  test('is final if the money of the running requests cannot help, because the balance is negative without them', () => {
    const story = new Story(1_000);
    story.hold('a', { first: 200, max: 200 });
    const reversal = { reversalId: 'r', creditId: 'c', method: 'm', amount: usd(-900), bonus: ZERO_USD, why: 'lost' };
    story.run({ type: 'ReverseCredit', data: { ...reversal, at: AT } });
    expect(story.reject(() => story.hold('b'))).toBe('insufficient_balance for now');
    story.run({ type: 'ReverseCredit', data: { ...reversal, reversalId: 's', amount: usd(-100), at: AT } });
    expect(story.reject(() => story.hold('b'))).toBe('insufficient_balance');
  });
  test('is final if the limit of the key was lowered to less than what is used without the running requests', () => {
    const cent = 10_000_000_000;
    const story = new Story(10 * cent, 3 * cent);
    story.hold('a', { keyId: 'k', first: cent, max: cent });
    story.settle('a', cent);
    story.hold('b', { keyId: 'k', stopPrice: usd(1) });
    story.run({ type: 'UpdateKey', data: { keyId: 'k', changes: { limit: String(cent) }, at: AT } });
    expect(story.reject(() => story.hold('c', { keyId: 'k' }))).toBe('key_limit_exceeded');
  });
  test('states how much would have to be available, which is more than is available', () => {
    const story = new Story(1_000);
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) story.hold(id, { waiting: 60 });
    const attempt = () => story.hold('g', { waiting: 60 });
    // Seven exposures of 50, of which 30 are tolerated, and the hold of 100.
    expect(attempt).toThrow(
      expect.objectContaining({ details: expect.objectContaining({ required: formatted(420) }) }),
    );
  });
});

describe('a hold is rejected for now', () => {
  test('if providers could bill more than is available and tolerated before they are stopped', () => {
    const story = new Story(1_000);
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) story.hold(id, { waiting: 60 }); // each may bill 50 beyond its hold
    expect(story.account.exposure).toBe(300n);
    expect(story.reject(() => story.hold('g', { waiting: 60 }))).toBe('insufficient_balance for now');
    expect(story.hold('h', { stopPrice: usd(1), longPrice: usd(100), first: 10 })?.limitPrice).toBe(1_000);
  });
  test('if running responses then lacked the money to become long', () => {
    const story = new Story(1_000);
    const long = { longPrice: usd(400), stopPrice: usd(1) };
    story.hold('a', long);
    story.hold('b', long);
    expect(story.account.reserve).toBe(602n); // with what is generated before the provider stops
    expect(story.reject(() => story.hold('c', long))).toBe('insufficient_balance for now');
    story.settle('a', 50);
    story.hold('c', long);
  });
  test('if too little is available within the limit of its key, whatever the balance', () => {
    const story = new Story(1_000_000, 500);
    const long = { longPrice: usd(240), stopPrice: usd(1), keyId: 'k' };
    story.hold('a', long);
    story.hold('b', long);
    expect(story.reject(() => story.hold('c', long))).toBe('key_limit_exceeded for now');
    story.hold('c', { ...long, keyId: null });
  });
  test('also without extension, but not if it is free', () => {
    const story = new Story(1_000);
    story.hold('a', { longPrice: usd(900), stopPrice: usd(1) });
    const command = (amount: number): AccountCommand => {
      const amounts = { minAmount: usd(amount), maxAmount: usd(amount) };
      return { type: 'HoldFunds', data: { holdId: 'b', keyId: null, ...amounts, expiresAt: LATER, query, at: AT } };
    };
    expect(story.reject(() => story.run(command(200)))).toBe('insufficient_balance for now');
    expect(story.reject(() => story.run(command(2_000)))).toBe('insufficient_balance');
    expect(story.run(command(0))).toHaveLength(1);
  });
});

describe('an extension', () => {
  test('leaves what others need for long responses, beyond the minimum and the price of a long response', () => {
    const story = new Story(1_000);
    const long = { longPrice: usd(300), stopPrice: usd(1) };
    story.hold('a', long);
    story.hold('b', long);
    story.hold('c', long);
    expect(story.extend('a', 120, 1_000)).toBe(398); // 700 are available, the other two may need 402
    expect(story.extend('a', 450, 1_000)).toBe(450);
    expect(story.extend('b', 120, 1_000)).toBe(300);
  });
  test('is limited so that the exposure of all requests stays covered', () => {
    const story = new Story(1_000, null);
    story.hold('a', { stopPrice: usd(300) });
    story.hold('b', { stopPrice: usd(300) });
    expect(story.extend('a', 120, 1_000)).toBe(100 + 800 + 30 - 600);
    expect(story.reject(() => story.extend('b', 120))).toBe('insufficient_balance');
    story.settle('b', 100);
    expect(story.extend('a', 400, 1_000)).toBe(900); // alone it gets as far as the money
  });
  test('that only reduces the exposure is not limited by it', () => {
    const story = new Story(1_000);
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) story.hold(id, { waiting: 60 });
    expect(story.extend('a', 150)).toBe(150);
    expect(story.account.exposure).toBe(250n);
  });
  test('is limited by the requests of the reset window that it moves to', () => {
    const story = new Story(100_000, 1_000, 'daily');
    story.hold('a', { keyId: 'k', stopPrice: usd(10) });
    story.at = '2026-11-21T00:00:01.000Z';
    story.hold('b', { keyId: 'k', first: 50, stopPrice: usd(400) });
    expect(story.extend('a', 120, 900)).toBe(100 + (850 - 450));
  });
  test('is limited by the exposure after the speed of the response has become known', () => {
    const story = new Story(1_000);
    story.hold('a');
    story.hold('b', { first: 10, max: 10 });
    expect(story.extend('a', 120, 500, usd(7))).toBe(500);
  });
  test('to what an ended response has cost takes what is available, because it ends the exposure of the response', () => {
    const story = new Story(1_000);
    story.hold('a', { stopPrice: usd(400) });
    story.hold('b', { stopPrice: usd(400) });
    expect(story.reject(() => story.extend('a', 200, 400))).toBe('insufficient_balance');
    const data = { holdId: 'b', minAmount: usd(101), targetAmount: usd(350), knownAmount: usd(100), isFinal: true };
    story.run({ type: 'ExtendHold', data: { ...data, riskLimits: LIMITS, at: AT } });
    expect(story.account.holds.get('b')?.amount).toBe(350n);
  });
  test('to what an ended response has cost does not require a valid key', () => {
    const story = new Story(1_000);
    story.hold('a', { keyId: 'k' });
    story.run({ type: 'RevokeKey', data: { keyId: 'k', at: AT } });
    expect(story.reject(() => story.extend('a', 200))).toBe('key_revoked');
    const data = { holdId: 'a', minAmount: usd(101), targetAmount: usd(900), knownAmount: usd(100), isFinal: true };
    story.run({ type: 'ExtendHold', data: { ...data, riskLimits: LIMITS, at: AT } });
    expect(story.account.holds.get('a')?.amount).toBe(900n);
  });
  test('can state the speed of a response, if that was unknown before', () => {
    const story = new Story(1_000);
    story.hold('a');
    expect(story.account.exposure).toBe(900n);
    expect(story.extend('a', 101, 101, usd(7))).toBe(101);
    expect(story.account.exposure).toBe(7n);
    expect(story.extend('a', 102, 102, usd(9))).toBe(102);
    expect(story.account.exposure).toBe(7n);
  });
});

describe('losses beyond the holds', () => {
  const small: RiskLimits = { lossPerHour: usd(100), exposure: usd(500), exposurePercent: 0n };

  test('do not count towards the hourly limit within the tolerated exposure', () => {
    const story = new Story(10_000);
    const lose = (holdId: string, price: number, absorbed?: string) => {
      story.hold(holdId, { riskLimits: small, stopPrice: usd(1) });
      story.settle(holdId, price, absorbed);
    };
    lose('a', 500); // 400 are not paid
    lose('b', 100, 'hold_used_up');
    lose('c', 110); // now 510 in all
    lose('d', 100, 'timeout');
    story.hold('e', { riskLimits: small, stopPrice: usd(1) });
    story.settle('e', 230);
    expect(story.reject(() => story.hold('f', { riskLimits: small }))).toBe('too_much_borne');
  });
  test('are tolerated up to a percentage of the balance, but of a large one only up to the hourly limit', () => {
    const large: RiskLimits = { lossPerHour: usd(100), exposure: usd(20), exposurePercent: 3n };
    const story = new Story(1_000_000);
    const lose = (price: number) => {
      story.hold('a', { riskLimits: large, stopPrice: usd(1), max: 100 });
      story.settle('a', price);
    };
    lose(100 + 214); // 100 are tolerated, and the limit is 100 and a twentieth of what was charged
    expect(story.reject(() => story.hold('b', { riskLimits: large }))).toBe('too_much_borne');
  });
  test('use up what is tolerated', () => {
    const story = new Story(1_000);
    story.hold('a', { stopPrice: usd(1) });
    story.settle('a', 120);
    story.hold('b', { waiting: 60, longPrice: usd(0) });
    // 20 of the 27 that are tolerated were lost, 50 are exposed already, and 700 are available after another hold.
    const enclave = (unheld: number) => ({ fixedLimitPrice: usd(100 + unheld), longPrice: usd(0) });
    expect(story.reject(() => story.hold('c', enclave(650 + 8)))).toBe('insufficient_balance for now');
    story.hold('c', enclave(650 + 7));
  });
  test('reduce what is tolerated to what the hourly limit leaves', () => {
    const story = new Story(10_000);
    story.hold('a', { riskLimits: small, stopPrice: usd(1) });
    story.settle('a', 100, 'timeout');
    story.hold('b', { riskLimits: small, waiting: 3_000, first: 5_000, minLimitPrice: usd(5_150) });
    const enclave = {
      fixedLimitPrice: usd(9_999),
      minLimitPrice: usd(9_999),
      riskLimits: small,
      stopPrice: usd(5_200),
    };
    expect(story.reject(() => story.hold('c', enclave))).toBe('insufficient_balance for now');
  });
});

const amount = fc.integer({ min: 0, max: 400 });
const id = fc.integer({ min: 0, max: 9 }).map((each) => `h${each}`);
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('hold' as const),
      id,
      first: amount,
      long: amount,
      stop: fc.option(amount),
      waiting: fc.option(fc.integer({ min: 0, max: 9 })),
      capped: fc.boolean(),
    }),
  },
  fc.record({ do: fc.constant('extend' as const), id, min: amount, more: amount }),
  fc.record({ do: fc.constant('settle' as const), id, price: amount }),
);

test('the exposure of several requests never exceeds the available and tolerated money, nor that of a key', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), amount, (steps, limit) => {
      const story = new Story(1_000, limit);
      for (const each of steps) {
        const before = story.account;
        const outcome = story.reject(() => {
          if (each.do === 'settle') return story.settle(each.id, each.price);
          if (each.do === 'extend') return story.extend(each.id, each.min, each.min + each.more);
          const stop = each.stop === null ? {} : { stopPrice: usd(each.stop) };
          const prices = { first: each.first, longPrice: usd(each.long), minLimitPrice: usd(each.long), ...stop };
          return story.hold(each.id, {
            ...prices,
            waiting: each.waiting ?? undefined,
            keyId: each.capped ? 'k' : null,
          });
        });
        if (outcome !== 'accepted' || each.do === 'settle') continue;
        const { account } = story;
        const excessOf = ({ exposure, available, held }: AccountState) => {
          const tolerance = money.max(usd(20), ((money.add(available, held) * 3n) / 100n) as PicoUsd);
          return exposure - available - tolerance;
        };
        const needing = account.holds.filter((hold) => calculateExposure(hold) > 0n || calculateReserve(hold) > 0n);
        if (needing.size > 1) expect(excessOf(account) <= 0n || excessOf(account) <= excessOf(before)).toBe(true);
      }
      const { account } = story;
      const holds = account.holds.toArray().map(([, hold]) => hold);
      const key = account.keys.get('k');
      expect(account.exposure).toBe(money.sum(holds.map(calculateExposure)));
      expect(account.reserve).toBe(money.sum(holds.map(calculateReserve)));
      const ofKey = holds.filter(({ keyId }) => keyId === 'k');
      expect(key?.exposure).toBe(money.sum(ofKey.map(calculateExposure)));
      expect(key?.reserve).toBe(money.sum(ofKey.map(calculateReserve)));
      const decoded = accountCodec.decode(JSON.parse(JSON.stringify(accountCodec.encode(account))) as never);
      expect(decoded.exposure).toBe(account.exposure);
      expect(decoded.holds.toJS()).toEqual(account.holds.toJS());
    }),
    { numRuns: 300 },
  );
});
