import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Charge, type ChargeItem, type DomainEvent, EVENT_SCHEMA } from '#domain';
import { type StoredEvent, type Upcaster, upcast } from '#kernel';
import { createCharge } from '#testing';
import { Auditor } from './auditor.ts';
import { reduceFraction, roundUpToInteger } from './fraction.ts';

const at = '2026-11-20T12:00:00.000Z';
const query = { model: 'a/model', type: 'chat_completion', source: 'api', online: false, free: false } as const;

/** An event as it was stored. */
interface Stored {
  readonly type: string;
  readonly data: unknown;
  /** 1 by default. */
  readonly version?: number;
  /** The stream of the account by default. */
  readonly stream?: string;
}

/** Audits events. @param readToday reads a stored event as the service does; upcasts it by default */
function audit(facts: readonly Stored[], readToday = (stored: StoredEvent) => upcast(stored, EVENT_SCHEMA)) {
  const differences: string[] = [];
  const auditor = new Auditor((difference) => void differences.push(difference));
  facts.forEach(({ type, data, version, stream = 'account-me' }, nr) => {
    const place = { id: '', stream, revision: nr, position: BigInt(nr), recordedAt: at };
    const stored = { ...place, type, data, metadata: version === undefined ? {} : { version } };
    auditor.auditEvent(stored, readToday(stored) as StoredEvent<DomainEvent>);
  });
  return { differences, summary: auditor.formatSummary() };
}

const credited: Stored = {
  type: 'CreditAdded',
  data: { creditId: 'topup', method: 'btc-lightning', amount: '95', bonus: '5', at },
};
const reversed: Stored = {
  type: 'CreditReversed',
  data: { reversalId: 'r', creditId: 'lnd/topup', method: 'btc-lightning', amount: '-95', bonus: '-5', why: '', at },
};
const adjusted = (adjustmentId: string, amount: string, more: object = {}): Stored => ({
  type: 'BalanceAdjusted',
  data: { adjustmentId, amount, reason: '', actor: { name: 'alice', isVerified: false }, ...more, at },
});
const held = (holdId: string, amount = '40'): Stored => ({
  type: 'FundsHeld',
  data: { holdId, keyId: null, amount, expiresAt: at, query, at },
});
const kept = (holdId: string): Stored => ({
  type: 'HoldKept',
  data: { holdId, owner: `video-${holdId}`, expiresAt: at },
});
const done = (charged: string): Stored => ({ type: 'VideoSettled', stream: 'video-1', data: { charged, at } });
const extended = (holdId: string, amount: string, by: string): Stored => ({
  type: 'HoldExtended',
  data: { holdId, keyId: null, amount, by, at },
});
const ended = (holdId: string) => ({ holdId, keyId: null, held: '40', heldAt: at, query, at });
const expired = (holdId: string): Stored => ({ type: 'HoldExpired', data: ended(holdId) });
const chargeReversed = (holdId: string, charged: string): Stored => ({
  type: 'ChargeReversed',
  data: { holdId, keyId: null, heldAt: at, query, charged, at },
});

describe('an auditor', () => {
  const sold = { of: query.model, provider: 'a', creditor: 'router' };
  const published: Stored = {
    type: 'PriceListPublished',
    version: 2,
    data: {
      version: 'v1',
      lines: [
        {
          ...sold,
          prices: [
            { unit: 'input', per: 10, cost: '9', price: '12', when: { inputTokens: { above: 10 } } },
            { unit: 'input', per: 1, cost: '1', price: '1' },
            { unit: 'output', per: 2, cost: '4', price: '8' },
            { unit: 'image', per: 1, price: '7', when: { size: '2k' } },
          ],
        },
      ],
      at,
    },
  };
  /** Costs 10 × 1 + 5 × 2 pico-USD, and is sold for 10 × 1 + 5 × 4. */
  const item: ChargeItem = {
    ...sold,
    usage: { input: 10, output: 4, reasoning: 1 },
    estimated: false,
    cost: '20',
    price: '30',
  };
  const settled = (
    holdId: string,
    differing: Partial<ChargeItem> = {},
    money: object = {},
    rest: Partial<Charge> = {},
  ) => {
    const charge = createCharge({ ...item, ...differing }, { priceList: 'v1', ...rest });
    return { type: 'HoldSettled', version: 2, data: { ...ended(holdId), charged: '30', charge, ...money } };
  };

  test('reports no differences for correct events, and summarises them', () => {
    const { differences, summary } = audit([
      published,
      credited,
      held('1'),
      settled('1'),
      held('2', '30'),
      extended('2', '40', '10'),
      expired('2'),
      held('3'),
    ]);
    expect(differences).toEqual([]);
    expect(summary).toEqual([
      'trial balance: 18 lines, sum 0 USD',
      '1 accounts with postings, 1 holds open, 1 of them past their expiry',
      '0 challenges paid, 0 USD of them held or owed',
      '1 charges audited, 0 of them estimates',
    ]);
  });

  test('accepts a job that ends like its hold, and an invoiced cost of a failed job', () => {
    const closed = { of: 'a/model', provider: 'a', creditor: 'router', cost: '7', at };
    const facts: readonly Stored[] = [
      published,
      credited,
      held('1'),
      kept('1'),
      settled('1'),
      done('30'),
      held('2'),
      kept('2'),
      expired('2'),
      { type: 'VideoReleased', stream: 'video-2', data: { at } },
      { type: 'VideoReleased', stream: 'video-3', data: { at } },
      { type: 'VideoCostClosed', stream: 'video-3', data: closed },
    ];
    expect(audit(facts).differences).toEqual([]);
  });

  test('accepts that a charge is reversed once, and with its amount', () => {
    const charged = [published, credited, held('1'), settled('1')];
    expect(audit([...charged, chargeReversed('1', '30')]).differences).toEqual([]);
    const difference = 'a charge of 1 was reversed that it does not have';
    expect(audit([...charged, chargeReversed('1', '29')]).differences).toEqual([difference]);
    const twice = [chargeReversed('1', '30'), chargeReversed('1', '30')];
    expect(audit([...charged, ...twice]).differences).toEqual([difference]);
    expect(audit([published, credited, held('1'), expired('1'), chargeReversed('1', '30')]).differences).toEqual([
      difference,
    ]);
  });

  test('accepts the reversal of a credit that a hold uses, but no hold after the reversal', () => {
    const spent = [credited, held('1'), reversed];
    expect(audit(spent).differences).toEqual([]);
    expect(audit([...spent, held('2', '1')]).differences).toEqual(['account me is below zero at position 3']);
  });

  test('accepts credits and debits by the operator, and their reversals', () => {
    const reverse = (id: string, amount: string, reverses: string) => adjusted(id, amount, { reverses });
    const facts = [adjusted('a', '9'), adjusted('b', '-9'), reverse('c', '9', 'b'), reverse('d', '-9', 'c')];
    expect(audit(facts).differences).toEqual([]);
  });

  test.each<[string, Partial<ChargeItem>]>([
    ['for an input size that has its own price', { usage: { input: 11 }, cost: '10', price: '14' }],
    ['whose terms state the input size', { usage: { input: 11 }, terms: { inputTokens: 10 }, cost: '11', price: '11' }],
    [
      'for a unit that is sold but not invoiced',
      { usage: { image: 2 }, terms: { size: '2k' }, cost: '0', price: '14' },
    ],
    ['that the operator absorbs', { absorbed: 'it failed', price: '0' }],
  ])('accepts a charge %s', (_, differing) => {
    const charged = { charged: differing.price };
    expect(audit([published, credited, held('1'), settled('1', differing, charged)]).differences).toEqual([]);
  });

  test.each<[string, readonly Stored[], readonly string[]]>([
    ['a credit that was booked twice', [credited], ['credit lnd/topup was booked twice']],
    [
      'a credit that was booked twice, under its old id and its new one',
      [{ ...credited, version: 2, data: { ...(credited.data as object), creditId: 'lnd/topup' } }],
      ['credit lnd/topup was booked twice'],
    ],
    ['a reversal that was booked twice', [reversed, reversed], ['credit reversal r was booked twice']],
    [
      'an adjustment that was booked twice',
      [adjusted('a', '1'), adjusted('a', '1')],
      ['adjustment a was booked twice'],
    ],
    ['a debit below zero', [adjusted('a', '-101')], ['account me is below zero at position 2']],
    [
      'an adjustment that was reversed with another amount, and twice',
      [adjusted('a', '5'), adjusted('b', '-4', { reverses: 'a' }), adjusted('c', '-5', { reverses: 'a' })],
      ['adjustment b does not reverse the amount of a', 'adjustment a was reversed twice'],
    ],
    ['a hold that was placed twice', [held('1'), held('1')], ['hold 1 was placed twice']],
    ['a hold that ended twice', [held('1'), settled('1'), expired('1')], ['hold 1 ended without being open']],
    ['a hold that was never placed', [settled('1')], ['hold 1 ended without being open']],
    ['a transfer of a hold that is not open', [kept('1')], ['hold 1 was transferred to a job without being open']],
    [
      'a job that has ended before its hold',
      [held('1'), kept('1'), done('40')],
      ['video-1 has ended, but its hold is open'],
    ],
    [
      'a job that has ended with another charge than its hold',
      [held('1'), kept('1'), expired('1'), done('40')],
      ['video-1 has ended with 40 pico-USD, but its hold with 0'],
    ],
    ['an extension of a hold that is not open', [extended('1', '41', '1')], ['hold 1 was extended without being open']],
    [
      'an extension to an amount that does not add up',
      [held('1', '39'), extended('1', '41', '1')],
      ['hold 1 was extended by an amount that is not positive or does not add up'],
    ],
    ['a balance below zero', [held('1', '101')], ['account me is below zero at position 2']],
    [
      'a hold that ends with more than it held',
      [held('1', '39'), settled('1')],
      ['hold 1 ended with a different amount than it had'],
    ],
    [
      'a charge below the price',
      [held('1'), settled('1', {}, { charged: '29' })],
      ['29 pico-USD were charged for 1, but 30 were due'],
    ],
    [
      'a charge above the hold',
      [held('1', '29'), settled('1', {}, { held: '29' })],
      ['30 pico-USD were charged for 1, but 29 were due'],
    ],
    [
      'a price that is too high by one pico-USD',
      [held('1'), settled('1', { price: '31' }, { charged: '31' })],
      ['the charge of 1 does not follow from its usage and prices'],
    ],
    [
      'a cost that is too low by one pico-USD',
      [held('1'), settled('1', { cost: '19' })],
      ['the charge of 1 does not follow from its usage and prices'],
    ],
    [
      'usage that was changed afterwards',
      [held('1'), settled('1', { usage: { input: 10, output: 6 } })],
      ['the charge of 1 does not follow from its usage and prices'],
    ],
    [
      'an absorbed item that is charged nonetheless',
      [held('1'), settled('1', { absorbed: 'it failed' })],
      ['the charge of 1 does not follow from its usage and prices'],
    ],
    [
      'usage without a price',
      [held('1'), settled('1', { usage: { character: 5 } })],
      ['the charge of 1 has usage of a/model without a cost or price'],
    ],
    [
      'usage with only a price whose condition is not met',
      [held('1'), settled('1', { usage: { image: 1 }, terms: { size: '1k' } })],
      ['the charge of 1 has usage of a/model without a cost or price'],
    ],
    [
      'a charge with a price list that was never published',
      [held('1'), settled('1', {}, {}, { priceList: 'v2' })],
      ['the charge of 1 names price list v2, which has no a/model'],
    ],
    [
      'a charge with another creditor than the price list',
      [held('1'), settled('1', { creditor: 'another' })],
      ['the charge of 1 names price list v1, which has no a/model'],
    ],
    [
      'a charge that is not the sum of its items',
      [held('1'), settled('1', {}, { charged: '29' }, { price: '29' })],
      ['the charge of 1 is not the sum of its items', 'the entry at position 3 sums to -1 pico-USD'],
    ],
    [
      'an event version that the auditor cannot read',
      [{ ...held('1'), version: 2 }],
      [
        'the auditor does not know version 2 of FundsHeld',
        'the entry at position 2 has 40 as customer:available, but 0 are due',
        'the entry at position 2 has -40 as customer:held, but 0 are due',
      ],
    ],
  ])('reports %s', (_, facts, differences) => {
    const today = (stored: StoredEvent) => (stored.type === 'FundsHeld' ? stored : upcast(stored, EVENT_SCHEMA));
    expect(audit([published, credited, ...facts], today).differences).toEqual(differences);
  });

  test.each<[string, (stored: StoredEvent) => unknown, string]>([
    [
      'a posting to an incorrect account',
      ({ data }) => ({ ...(data as object), query: { ...query, type: 'response' } }),
      'the entry at position 3 has -30 as revenue:response, but 0 are due',
    ],
    [
      'a missing posting',
      ({ data }) => ({ ...(data as object), charge: createCharge({}, { price: '30' }) }),
      'the entry at position 3 has 0 as payable:router, but -20 are due',
    ],
  ])('reports that the postings of the service have %s', (_, changed, difference) => {
    const today = (stored: StoredEvent) =>
      stored.type === 'HoldSettled' ? { ...stored, data: changed(stored) } : upcast(stored, EVENT_SCHEMA);
    expect(audit([published, credited, held('1'), settled('1')], today).differences).toContain(difference);
  });
});

describe('an auditor of events of version 1', () => {
  const rates = {
    model: query.model,
    provider: 'a',
    input: '1000000',
    output: '2000000',
    reasoning: '0',
    request: '3',
  };
  const media = { model: 'a/voice', provider: 'a', unit: 'minute', amount: '60000', marginBasisPoints: 15_000 };
  const fee = { name: 'web_search', provider: 'exa', price: '4', cost: '3' };
  const published: Stored = {
    type: 'PriceListPublished',
    data: {
      version: 'v1',
      rates: [{ ...rates, cacheRead: '0', cacheWrite: '0', marginBasisPoints: 15_000 }],
      units: [{ ...media, variants: [{ when: { language: 'multi' }, amount: '70000' }] }],
      fees: [fee],
      at,
    },
  };
  /** Costs 10 × 1 + 2 × 2 + 2 × 3 + 3 pico-USD. The price adds 50 % of the first 20, and 1 for the search. */
  const charge = {
    cost: '23',
    price: '34',
    provider: 'a',
    priceList: 'v1',
    fees: [fee],
    calls: 2,
    estimated: true,
    usage: { input: 10, cacheRead: 0, cacheWrite: 0, output: 2, reasoning: 0 },
    attempts: [],
  };
  const settled: Stored = { type: 'HoldSettled', data: { ...ended('1'), charged: '34', charge } };
  const absorbed: Stored = { type: 'ChargeAbsorbed', data: { holdId: '2', charge, at } };
  const released: Stored = {
    type: 'HoldReleased',
    data: { ...ended('2'), errorCode: 'timeout', reason: 'slow', attempts: [] },
  };
  const history = [published, credited, held('1'), settled, held('2'), released, absorbed];

  test('recomputes charges, and lists absorbed charges that name no model', () => {
    const { differences, summary } = audit(history);
    expect(differences).toEqual([]);
    expect(summary.slice(3)).toEqual([
      '2 charges audited, 2 of them estimates',
      '1 absorbed charges name no model and were not recomputed: 2',
    ]);
  });

  /** Returns how a build with a mistake in one of its upcasters reads a stored event. */
  function mistaken(type: string, mistake: Upcaster) {
    const right = EVENT_SCHEMA.upcasters[type]?.[0] as Upcaster;
    const upcasters = { ...EVENT_SCHEMA.upcasters, [type]: [(data: unknown) => mistake(right(data))] };
    return (stored: StoredEvent) => upcast(stored, { ...EVENT_SCHEMA, upcasters });
  }

  const changedIn = (change: (item: ChargeItem) => object) => (data: { readonly charge: Charge }) => ({
    ...data,
    charge: { ...data.charge, items: data.charge.items.map((item) => ({ ...item, ...change(item) })) },
  });
  test.each<[string, string, Upcaster]>([
    ['changes a price', 'HoldSettled', changedIn(({ price }) => ({ price: `${BigInt(price) + 1n}` }))],
    ['names another creditor', 'HoldSettled', changedIn(() => ({ creditor: 'another' }))],
    ['loses tokens', 'HoldSettled', changedIn(() => ({ usage: {} }))],
    ['loses the mark of an estimate', 'HoldSettled', changedIn(() => ({ estimated: false }))],
    ['names a model that was not requested', 'ChargeAbsorbed', changedIn(() => ({ of: 'a/model' }))],
    ['loses the mark of a search', 'ChargeAbsorbed', changedIn(() => ({ beside: undefined }))],
    ['changes the held amount', 'HoldReleased', (data) => ({ ...data, held: '41' })],
    ['changes the id of a credit', 'CreditAdded', (data) => ({ ...data, creditId: 'topup' })],
    ['loses prices', 'PriceListPublished', (data) => ({ ...data, lines: data.lines.slice(1) })],
    [
      'loses a margin',
      'PriceListPublished',
      (data) => ({
        ...data,
        lines: data.lines.map(({ prices, ...line }: { prices: readonly { cost: string }[] }) => ({
          ...line,
          prices: prices.map((each) => ({ ...each, price: each.cost })),
        })),
      }),
    ],
  ])('reports an upcaster that %s', (_, type, mistake) => {
    const { differences } = audit(history, mistaken(type, mistake));
    const position = history.findIndex((each) => each.type === type);
    expect(differences[0]).toBe(`the ${type} at position ${position} has another meaning after upcasting`);
  });

  test('reports a charge whose price was changed', () => {
    const dearer = { ...settled, data: { ...ended('1'), charged: '35', charge: { ...charge, price: '35' } } };
    const { differences } = audit([published, credited, held('1'), dearer]);
    expect(differences).toEqual(['the charge of 1 does not follow from its usage and prices']);
  });
});

test('a reduced fraction has the same value and is rounded up exactly; 6/4 is reduced to 3/2', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.bigInt({ min: 1n, max: 10n ** 12n }), (over, under) => {
      const fraction = reduceFraction(over, under);
      expect(fraction.numerator * under).toBe(over * fraction.denominator);
      expect(roundUpToInteger(fraction)).toBe((over + under - 1n) / under);
    }),
  );
  expect(reduceFraction(6n, 4n)).toEqual({ numerator: 3n, denominator: 2n });
});
