import { describe, expect, test } from '@jest/globals';
import {
  type AccountCommand,
  type AccountEvent,
  accountCodec,
  accountDecider,
  type HoldLimits,
  UNRESTRICTED_ACCESS,
} from '#domain';
import { formatUsd, type PicoUsd, parseUsd, toPicoUsd, ZERO_USD } from '#kernel';
import { createCharge, createDeciderTest } from '#testing';

const given = createDeciderTest(accountDecider);

const at = '2026-11-20T12:00:00.000Z';
const later = '2026-11-20T12:20:00.000Z';
const tomorrow = '2026-11-21T00:00:00.000Z';
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const key = {
  keyId: 'k1',
  name: 'Default',
  hash: 'h',
  secret: { key: 'x', box: 'y' },
  ...UNRESTRICTED_ACCESS,
  limit: null,
  resetPeriod: null,
  expireAt: null,
};
const pico = (dollars: string) => parseUsd(dollars).toString();

const opened: AccountEvent = { type: 'AccountOpened', data: { at } };
const keyed = (more: object = {}): AccountEvent => ({ type: 'KeyCreated', data: { ...key, ...more, at } });
const credited = (dollars: string): AccountEvent => ({
  type: 'CreditAdded',
  data: { creditId: 'c1', method: 'btc-lightning', amount: pico(dollars), bonus: '0', at },
});
const held = (holdId: string, dollars: string, when = at, expiresAt = '2026-11-20T12:10:00.000Z'): AccountEvent => ({
  type: 'FundsHeld',
  data: { holdId, keyId: 'k1', amount: pico(dollars), expiresAt, query, at: when },
});
const charge = (dollars: string) => createCharge({ price: pico(dollars), cost: pico('0.01') });
const resolved = (holdId: string, dollars: string) => ({
  holdId,
  keyId: 'k1',
  held: pico(dollars),
  heldAt: at,
  query,
  at: later,
});
const settled = (holdId: string, dollars: string, price = dollars): AccountEvent => ({
  type: 'HoldSettled',
  data: { ...resolved(holdId, dollars), charged: pico(price), charge: charge(price) },
});
const expired = (holdId: string, dollars: string): AccountEvent => ({
  type: 'HoldExpired',
  data: resolved(holdId, dollars),
});

const hold = (amount: string, more: Partial<HoldLimits & { at: string }> = {}): AccountCommand => ({
  type: 'HoldFunds',
  data: {
    holdId: 'h1',
    keyId: 'k1',
    minAmount: parseUsd(amount),
    maxAmount: parseUsd(amount),
    expiresAt: later,
    query,
    at,
    ...more,
  },
});
const settle = (holdId: string, price: string): AccountCommand => ({
  type: 'SettleHold',
  data: { holdId, charge: charge(price), at: later },
});
const release = (holdId: string): AccountCommand => ({
  type: 'ReleaseHold',
  data: { holdId, errorCode: 'upstream_error', reason: 'it failed', attempts: [], at: later },
});

describe('opening an account', () => {
  test('creates the account with its first key', () => {
    given().when({ type: 'OpenAccount', data: { key, at } }).then(opened, keyed());
  });
  test('succeeds without events if repeated with the same key, and is rejected with another key', () => {
    given(opened, keyed()).when({ type: 'OpenAccount', data: { key, at } }).thenAlreadySo();
    given(opened, keyed())
      .when({ type: 'OpenAccount', data: { key: { ...key, keyId: 'k2' }, at } })
      .thenRefused('account_exists');
  });
  test('is required before money can be held', () => {
    given().when(hold('1')).thenRefused('account_not_found');
  });
});

describe('credit', () => {
  const credit = (amount: PicoUsd): AccountCommand => ({
    type: 'AddCredit',
    data: { creditId: 'c1', method: 'btc-lightning', amount, bonus: ZERO_USD, at },
  });
  test('is added only once for the same id', () => {
    given(opened)
      .when(credit(parseUsd('5')))
      .then(credited('5'));
    given(opened, credited('5'))
      .when(credit(parseUsd('5')))
      .thenAlreadySo();
  });
  test('is rejected if its id exists with a different amount', () => {
    given(opened, credited('5'))
      .when(credit(parseUsd('6')))
      .thenRefused('credit_conflict');
  });
});

describe('the reversal of a credit', () => {
  const reversal = (amount: PicoUsd, more: object = {}) => ({
    reversalId: 'r1',
    creditId: 'c1',
    method: 'btc-lightning',
    amount,
    bonus: ZERO_USD,
    why: 'refunded',
    at,
    ...more,
  });
  const reverse = (amount: PicoUsd, more: object = {}): AccountCommand => ({
    type: 'ReverseCredit',
    data: reversal(amount, more),
  });
  const reversed = (dollars: string): AccountEvent => ({
    type: 'CreditReversed',
    data: { ...reversal(ZERO_USD), amount: pico(dollars), bonus: '0' },
  });
  test('reduces the available amount only once for the same reversal id', () => {
    given(opened, credited('5'))
      .when(reverse(parseUsd('-5')))
      .then(reversed('-5'));
    given(opened, credited('5'), reversed('-5'))
      .when(reverse(parseUsd('-5')))
      .thenAlreadySo();
    given(opened, credited('5'), reversed('-5'))
      .when(reverse(parseUsd('-4')))
      .thenRefused('credit_conflict');
    expect(given(opened, credited('5'), reversed('-5')).state.available).toBe(ZERO_USD);
  });
  test('is rejected if the credit does not exist', () => {
    given(opened, credited('5'))
      .when(reverse(parseUsd('-5'), { creditId: 'c2' }))
      .thenRefused('credit_conflict');
  });
  test('can make the balance negative; then a hold of 1 USD is rejected, and one of at least 0 holds nothing', () => {
    const spent = [opened, keyed(), credited('5'), held('h0', '3'), settled('h0', '3', '3'), reversed('-5')];
    const below = given(...spent);
    expect(formatUsd(below.state.available)).toBe('-3');
    expect(below.when(hold('1')).thenRefused('insufficient_balance')).toMatchObject({ affordable: '0' });
    const [event] = below.when(hold('0', { maxAmount: parseUsd('1') })).events();
    expect(event).toMatchObject({ type: 'FundsHeld', data: { amount: '0' } });
    given(...spent, reversed('5'))
      .when(hold('2'))
      .then(held('h1', '2', at, later));
  });
});

describe('the loss that the operator absorbs for an account', () => {
  const limit = { riskLimits: { lossPerHour: parseUsd('1'), exposure: parseUsd('0'), exposurePercent: 0n } };
  const absorbed = (holdId: string, dollars: string): AccountEvent => ({
    type: 'ChargeAbsorbed',
    data: { holdId, charge: createCharge({ price: '0', cost: pico(dollars) }), at: later },
  });
  const lost = (holdId: string, dollars: string): readonly AccountEvent[] => {
    const why = { errorCode: 'upstream_error', reason: 'it failed', attempts: [] };
    return [
      held(holdId, '0.01'),
      { type: 'HoldReleased', data: { ...resolved(holdId, '0.01'), ...why } },
      absorbed(holdId, dollars),
    ];
  };
  const start = [opened, keyed(), credited('900'), held('a', '9'), held('b', '9'), held('c', '200')];
  const isHeld = (when: string, ...past: readonly AccountEvent[]) => {
    try {
      return (
        given(...start, ...past)
          .when(hold('1', { ...limit, at: when, expiresAt: tomorrow }))
          .events().length > 0
      );
    } catch {
      return false;
    }
  };

  test('is limited per hour to an amount plus 1/20 of the charges', () => {
    const much = [...lost('x', '1'), ...lost('y', '0.5')];
    expect([isHeld(later, ...lost('x', '1')), isHeld(later, ...much)]).toEqual([true, false]);
    const { until } = given(...start, ...much)
      .when(hold('1', { ...limit, at: later }))
      .thenRefused('too_much_borne');
    expect(until).toBe('2026-11-20T13:20:00.000Z');
    given(...start, ...much)
      .when(hold('1'))
      .then(held('h1', '1', at, later));
    expect(isHeld(later, ...much, settled('a', '9', '9'))).toBe(false);
    expect(isHeld(later, ...much, settled('c', '200'))).toBe(true);
    expect(isHeld(later, settled('c', '200'), ...much)).toBe(false); // the hour starts with the first loss
    expect([isHeld('2026-11-20T13:19:59.999Z', ...much), isHeld('2026-11-20T13:20:00.000Z', ...much)]).toEqual([
      false,
      true,
    ]);
  });

  test('includes the part of a price that exceeds its hold, and is restored from a snapshot', () => {
    const beyond = (dollars: string): AccountEvent => {
      const data = { ...resolved('a', '9'), charged: pico('9'), charge: charge(dollars) };
      return { type: 'HoldSettled', data };
    };
    expect([isHeld(later, beyond('10.4')), isHeld(later, beyond('10.5'))]).toEqual([true, false]);
    const { state } = given(...start, ...lost('x', '0.25'), beyond('10'));
    const unheld = parseUsd('1');
    expect(state.losses).toEqual({ since: later, borne: parseUsd('0.25'), unheld, charged: parseUsd('9') });
    const kept = JSON.parse(JSON.stringify(accountCodec.encode(state))) as never;
    expect(accountCodec.decode(kept).losses).toEqual(state.losses);
  });

  test('excludes a charge that arrives after its hold has expired', () => {
    expect(given(...start, expired('c', '200'), absorbed('c', '150')).state.losses).toBe(undefined);
  });
});

describe('a hold', () => {
  test('moves its amount from available to held', () => {
    const { state } = given(opened, keyed(), credited('5'), held('h1', '2'));
    expect([formatUsd(state.available), formatUsd(state.held)]).toEqual(['3', '2']);
  });
  test('is rejected if the balance is too small; the rejection has the required and the affordable amount', () => {
    const details = given(opened, keyed(), credited('5'), held('h0', '2'))
      .when(hold('3.5'))
      .thenRefused('insufficient_balance');
    expect(details).toEqual({ required: '3.5', affordable: '3', held: '2' });
  });
  test('takes the available amount if it is between the minimum and the maximum amount', () => {
    const [event] = given(opened, keyed(), credited('5'))
      .when(hold('9', { minAmount: parseUsd('1') }))
      .events();
    expect(event).toMatchObject({ data: { amount: pico('5') } });
  });
  describe('with partialHold', () => {
    const part = (first: string, share = 8n) => ({
      minAmount: parseUsd('0.1'),
      partialHold: { minAmount: parseUsd(first), divisor: share },
    });
    const amountOf = (past: readonly AccountEvent[], command: AccountCommand) => {
      const [event] = given(opened, keyed(), ...past)
        .when(command)
        .events();
      return event?.type === 'FundsHeld' ? formatUsd(toPicoUsd(BigInt(event.data.amount))) : undefined;
    };
    test('takes a share of the available amount, at least the minimum part, at most the maximum amount', () => {
      expect(amountOf([credited('80')], hold('20', part('1')))).toBe('10');
      expect(amountOf([credited('4')], hold('20', part('1')))).toBe('1');
      expect(amountOf([credited('800')], hold('20', part('1')))).toBe('20');
      expect(amountOf([credited('80')], hold('20', part('30')))).toBe('20');
    });
    test('takes minAmount if that is more than the minimum part and the share', () => {
      const atLeast = { ...part('1'), minAmount: parseUsd('3') };
      expect(amountOf([credited('4')], hold('20', atLeast))).toBe('3');
      expect(amountOf([credited('3')], hold('20', atLeast))).toBe('3');
    });
    test('is rejected if running requests hold so much that the minimum part is not available', () => {
      const details = given(opened, keyed(), credited('5'), held('h0', '4.5'))
        .when(hold('20', part('1')))
        .thenRefused('insufficient_balance');
      expect(details).toEqual({ required: '1', affordable: '0.5', held: '4.5' });
    });
    test('takes what is available, at least minAmount, if available plus held amount is below the minimum part', () => {
      expect(amountOf([credited('0.5')], hold('20', part('1')))).toBe('0.5');
      expect(amountOf([credited('0.5'), held('h0', '0.2')], hold('20', part('1')))).toBe('0.3');
      given(opened, keyed(), credited('0.05'))
        .when(hold('20', part('1')))
        .thenRefused('insufficient_balance');
    });
    test('takes a share of what the limit of its key still allows', () => {
      const capped = (...past: readonly AccountEvent[]) =>
        given(opened, keyed({ limit: pico('8') }), credited('800'), ...past);
      expect(
        capped()
          .when(hold('20', part('0.5')))
          .events(),
      ).toMatchObject([{ data: { amount: pico('1') } }]);
      expect(
        capped(held('h0', '7.6'))
          .when(hold('20', part('0.5')))
          .thenRefused('key_limit_exceeded'),
      ).toEqual({ required: '0.5', affordable: '0.4', held: '7.6' });
    });
  });
  test('is placed once for the same id and amount, and is rejected with a smaller amount', () => {
    given(opened, keyed(), credited('5'), held('h1', '2')).when(hold('2')).thenAlreadySo();
    given(opened, keyed(), credited('5'), held('h1', '2')).when(hold('1')).thenRefused('hold_conflict');
  });
  test('is rejected if a hold with its id has ended', () => {
    given(opened, keyed(), credited('5'), held('h1', '2'), settled('h1', '2'))
      .when(hold('2'))
      .thenRefused('hold_resolved');
  });
  test('without a key is not limited by the limit of any key', () => {
    const [event] = given(opened, keyed({ limit: pico('0.01') }), credited('5'))
      .when(hold('4', { keyId: null }))
      .events();
    expect(event).toMatchObject({ data: { keyId: null, amount: pico('4') } });
  });
});

describe('extending a hold', () => {
  const extend = (to: string, atLeast = to, when = at, knownAmount = parseUsd('2')): AccountCommand => ({
    type: 'ExtendHold',
    data: { holdId: 'h1', targetAmount: parseUsd(to), minAmount: parseUsd(atLeast), knownAmount, at: when },
  });
  const extended = (amount: string, by: string): AccountEvent => ({
    type: 'HoldExtended',
    data: { holdId: 'h1', keyId: 'k1', amount: pico(amount), by: pico(by), at },
  });
  const past = [opened, keyed(), credited('5'), held('h1', '2')];
  test('holds more of the available amount, once for the same target amount', () => {
    given(...past)
      .when(extend('3'))
      .then(extended('3', '1'));
    const after = given(...past, extended('3', '1'));
    expect([formatUsd(after.state.available), formatUsd(after.state.held)]).toEqual(['2', '3']);
    after.when(extend('3')).thenAlreadySo();
    after.when(extend('2.5')).thenAlreadySo();
    const [event] = given(...past, extended('3', '1'))
      .when(settle('h1', '2.5'))
      .events();
    expect(event).toMatchObject({ type: 'HoldSettled', data: { held: pico('3'), charged: pico('2.5') } });
  });
  test('takes what is available, and is rejected if that is nothing or gives less than the minimum amount', () => {
    given(...past)
      .when(extend('9', '4'))
      .then(extended('5', '3'));
    given(...past)
      .when(extend('9', '6'))
      .thenRefused('insufficient_balance');
    const others = given(...past, held('h2', '3'))
      .when(extend('9', '2'))
      .thenRefused('insufficient_balance');
    expect(others).toEqual({ held: '3' });
  });
  test('respects the limit of its key, and is rejected for a revoked key', () => {
    const capped = [opened, keyed({ limit: pico('3') }), credited('9'), held('h1', '2')];
    given(...capped)
      .when(extend('9', '2'))
      .then(extended('3', '1'));
    given(...capped)
      .when(extend('9', '4'))
      .thenRefused('key_limit_exceeded');
    given(...past, { type: 'KeyRevoked', data: { keyId: 'k1', at } })
      .when(extend('3'))
      .thenRefused('key_revoked');
    expect(
      given(...past, { type: 'KeyRevoked', data: { keyId: 'k1', at } })
        .when(settle('h1', '2'))
        .events(),
    ).toHaveLength(1);
  });
  test('is rejected for a hold that has ended, has expired or does not exist', () => {
    given(...past, settled('h1', '2'))
      .when(extend('3'))
      .thenRefused('hold_resolved');
    given(...past)
      .when(extend('3', '3', later))
      .thenRefused('hold_resolved');
    given(opened, keyed(), credited('5')).when(extend('3')).thenRefused('hold_resolved');
  });
});

describe('transferring a hold to a job', () => {
  const past = [opened, keyed(), credited('5'), held('h1', '2')];
  const keep = (when = at): AccountCommand => ({
    type: 'KeepHold',
    data: { holdId: 'h1', owner: 'video-1', at: when },
  });
  const kept: AccountEvent = {
    type: 'HoldKept',
    data: { holdId: 'h1', owner: 'video-1', expiresAt: '9999-12-31T23:59:59.999Z', at },
  };
  test('happens once; then the hold neither expires the next day nor ends when another owner dies', () => {
    given(...past)
      .when(keep())
      .then(kept);
    const after = given(...past, kept);
    after.when(keep(tomorrow)).thenAlreadySo();
    after.when({ type: 'ExpireHolds', data: { before: tomorrow, at: tomorrow } }).thenAlreadySo();
    after.when({ type: 'AbandonHolds', data: { owner: 'gateway-1', before: tomorrow, at: tomorrow } }).thenAlreadySo();
    const [event] = given(...past, kept)
      .when(settle('h1', '1.5'))
      .events();
    expect(event).toMatchObject({ type: 'HoldSettled', data: { held: pico('2'), charged: pico('1.5') } });
  });
  test('is rejected for a hold that has ended, has expired or does not exist', () => {
    given(...past, settled('h1', '2'))
      .when(keep())
      .thenRefused('hold_resolved');
    given(...past)
      .when(keep(later))
      .thenRefused('hold_resolved');
    given(opened, keyed(), credited('5')).when(keep()).thenRefused('hold_resolved');
  });
});

describe('settling', () => {
  const past = [opened, keyed(), credited('5'), held('h1', '2')];
  test('charges the price and makes the rest available again', () => {
    given(...past)
      .when(settle('h1', '0.5'))
      .then({
        type: 'HoldSettled',
        data: { ...resolved('h1', '2'), charged: pico('0.5'), charge: charge('0.5') },
      });
    const { state } = given(...past, settled('h1', '2', '0.5'));
    expect([formatUsd(state.available), formatUsd(state.held)]).toEqual(['4.5', '0']);
  });
  test('charges at most the held amount; the rest of the price is an overrun', () => {
    const [event] = given(...past)
      .when(settle('h1', '3'))
      .events();
    expect(event).toMatchObject({ data: { charged: pico('2'), charge: { price: pico('3') } } });
  });
  test('charges once if it is repeated', () => {
    given(...past, settled('h1', '2'))
      .when(settle('h1', '2'))
      .thenAlreadySo();
  });
  test('is rejected for a released hold', () => {
    const [event] = given(...past)
      .when(release('h1'))
      .events();
    given(...past, event as AccountEvent)
      .when(settle('h1', '1'))
      .thenRefused('hold_resolved');
  });
  test('records the charge of an expired hold once, as absorbed by the operator', () => {
    const absorbed = { type: 'ChargeAbsorbed', data: { holdId: 'h1', charge: charge('1'), at: later } } as const;
    given(...past, expired('h1', '2'))
      .when(settle('h1', '1'))
      .then(absorbed);
    given(...past, expired('h1', '2'), absorbed)
      .when(settle('h1', '1'))
      .thenAlreadySo();
  });
  test('is rejected for a hold that does not exist', () => {
    given(...past)
      .when(settle('h9', '1'))
      .thenRefused('hold_not_found');
  });
});

describe('releasing', () => {
  const past = [opened, keyed(), credited('5'), held('h1', '2')];
  test('makes the complete amount available again', () => {
    const [event] = given(...past)
      .when(release('h1'))
      .events();
    const { state } = given(...past, event as AccountEvent);
    expect([formatUsd(state.available), formatUsd(state.held)]).toEqual(['5', '0']);
  });
  test('records what the provider will invoice anyway as absorbed by the operator', () => {
    const absorbed = charge('1');
    const why = { errorCode: 'upstream_error', reason: 'it broke off', attempts: [] };
    given(...past)
      .when({ type: 'ReleaseHold', data: { holdId: 'h1', ...why, absorbed, at: later } })
      .then(
        { type: 'HoldReleased', data: { ...resolved('h1', '2'), ...why } },
        { type: 'ChargeAbsorbed', data: { holdId: 'h1', charge: absorbed, at: later } },
      );
  });
  test('records once what the provider will invoice if the hold has expired, even if a charge arrives as well', () => {
    const why = { errorCode: 'upstream_error', reason: 'it broke off', attempts: [] };
    const releaseAtCost: AccountCommand = {
      type: 'ReleaseHold',
      data: { holdId: 'h1', ...why, absorbed: charge('1'), at: later },
    };
    const absorbed = { type: 'ChargeAbsorbed', data: { holdId: 'h1', charge: charge('1'), at: later } } as const;
    given(...past, expired('h1', '2'))
      .when(releaseAtCost)
      .then(absorbed);
    const after = given(...past, expired('h1', '2'), absorbed);
    after.when(releaseAtCost).thenAlreadySo();
    after.when(settle('h1', '1')).thenAlreadySo();
    after.when(release('h1')).thenRefused('hold_resolved');
    expect(after.state.losses).toBe(undefined);
  });
  test('succeeds without events for a released or expired hold, and is rejected for a settled one', () => {
    const [event] = given(...past)
      .when(release('h1'))
      .events();
    given(...past, event as AccountEvent)
      .when(release('h1'))
      .thenAlreadySo();
    given(...past, expired('h1', '2'))
      .when(release('h1'))
      .thenAlreadySo();
    given(...past, settled('h1', '2'))
      .when(release('h1'))
      .thenRefused('hold_resolved');
  });
});

describe('expiry', () => {
  test('ends all holds whose expiry has passed and no others', () => {
    const past = [opened, keyed(), credited('5'), held('h1', '2'), held('h2', '1')];
    const stillOpen = held('h3', '1', at, tomorrow);
    const events = given(...past, stillOpen)
      .when({ type: 'ExpireHolds', data: { before: later, at: later } })
      .events();
    expect(events).toEqual([expired('h1', '2'), expired('h2', '1')]);
    given(...past, stillOpen, ...events)
      .when({ type: 'ExpireHolds', data: { before: later, at: later } })
      .thenAlreadySo();
  });
});

describe('a hold whose owner dies', () => {
  const owned = (holdId: string, owner: string): AccountEvent => {
    const fact = held(holdId, '1', at, tomorrow);
    return { ...fact, data: { ...fact.data, owner } } as AccountEvent;
  };
  const abandon = (owner: string): AccountCommand => ({
    type: 'AbandonHolds',
    data: { owner, before: later, at: later },
  });
  const past = [opened, keyed(), credited('5'), owned('h1', 'a'), owned('h2', 'b'), owned('h3', 'a')];
  const unowned = held('h4', '1', at, tomorrow);

  test('records its owner when it is placed', () => {
    given(opened, keyed(), credited('5'))
      .when(hold('1', { owner: 'a', expiresAt: tomorrow }))
      .then(owned('h1', 'a'));
  });
  test('ends before its expiry, unlike holds of other owners and holds without an owner', () => {
    const past2 = [...past, unowned];
    given(...past2)
      .when(abandon('a'))
      .then(expired('h1', '1'), expired('h3', '1'));
    const after = given(...past2, expired('h1', '1'), expired('h3', '1'));
    after.when(abandon('a')).thenAlreadySo();
    expect([formatUsd(after.state.available), formatUsd(after.state.held)]).toEqual(['3', '2']);
  });
  test('cannot be extended or charged later, even if its owner turns out to be alive', () => {
    const after = given(...past, expired('h1', '1'));
    after.when(settle('h1', '1')).then({
      type: 'ChargeAbsorbed',
      data: { holdId: 'h1', charge: charge('1'), at: later },
    });
    after
      .when({
        type: 'ExtendHold',
        data: { holdId: 'h1', minAmount: parseUsd('2'), targetAmount: parseUsd('2'), knownAmount: parseUsd('1'), at },
      })
      .thenRefused('hold_resolved');
    after.when(release('h1')).thenAlreadySo();
  });
  test('ends with its full amount if it was extended', () => {
    const more = { holdId: 'h1', keyId: 'k1', amount: pico('2'), by: pico('1'), at } as const;
    given(...past, { type: 'HoldExtended', data: more })
      .when(abandon('a'))
      .then(expired('h1', '2'), expired('h3', '1'));
  });
});

describe('an API key', () => {
  test('cannot hold money if it is revoked, unknown or expired', () => {
    const revoked: AccountEvent = { type: 'KeyRevoked', data: { keyId: 'k1', at } };
    given(opened, keyed(), credited('5'), revoked).when(hold('1')).thenRefused('key_revoked');
    given(opened, keyed(), credited('5'))
      .when(hold('1', { keyId: 'k9' }))
      .thenRefused('key_revoked');
    given(opened, keyed({ expireAt: at }), credited('5'))
      .when(hold('1'))
      .thenRefused('key_expired');
  });
  test('with a limit holds no more than its limit, including its open holds', () => {
    const past = [opened, keyed({ limit: pico('3') }), credited('9'), held('h0', '2')];
    const details = given(...past)
      .when(hold('1.5'))
      .thenRefused('key_limit_exceeded');
    expect(details).toEqual({ required: '1.5', affordable: '1', held: '2' });
    expect(
      given(...past)
        .when(hold('2', { minAmount: parseUsd('0.5'), partialHold: { minAmount: parseUsd('0.5'), divisor: 1n } }))
        .events(),
    ).toMatchObject([{ data: { amount: pico('1') } }]);
  });
  test('counts the charged amount of ended holds towards its limit, not the held amount', () => {
    const past = [opened, keyed({ limit: pico('3') }), credited('9'), held('h0', '3'), settled('h0', '3', '1')];
    expect(
      given(...past)
        .when(hold('2'))
        .events(),
    ).toHaveLength(1);
    given(...past)
      .when(hold('2.1'))
      .thenRefused('key_limit_exceeded');
  });
  test('has its complete limit again for a request in the next reset window', () => {
    const past = [
      opened,
      keyed({ limit: pico('3'), resetPeriod: 'daily' }),
      credited('9'),
      held('h0', '3'),
      settled('h0', '3'),
    ];
    given(...past)
      .when(hold('1'))
      .thenRefused('key_limit_exceeded');
    expect(
      given(...past)
        .when(hold('3', { at: tomorrow }))
        .events(),
    ).toHaveLength(1);
  });
  test('counts a charge in the window in which its hold was placed', () => {
    const past = [
      opened,
      keyed({ limit: pico('3'), resetPeriod: 'daily' }),
      credited('9'),
      held('h0', '3'),
      held('h2', '2', tomorrow),
    ];
    expect(
      given(...past, settled('h0', '3'))
        .when(hold('1', { at: tomorrow }))
        .events(),
    ).toHaveLength(1);
    given(...past, settled('h0', '3'))
      .when(hold('1.1', { at: tomorrow }))
      .thenRefused('key_limit_exceeded');
  });
  test('starts a new window when its reset period changes', () => {
    const change: AccountEvent = { type: 'KeyUpdated', data: { keyId: 'k1', resetPeriod: 'weekly', at } };
    const past = [opened, keyed({ limit: pico('3') }), credited('9'), held('h0', '3'), settled('h0', '3')];
    given(...past)
      .when(hold('3'))
      .thenRefused('key_limit_exceeded');
    expect(
      given(...past, change)
        .when(hold('3'))
        .events(),
    ).toHaveLength(1);
  });
});
