/**
 * Facts are for ever: what was appended years ago must still be read. This holds one example of every fact, as JSON,
 * against what the deciders state today. A difference means that the books of every installation would change their
 * meaning: add an optional field or a new type instead.
 */

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import {
  type AccountCommand,
  accountDecider,
  type DomainEvent,
  priceListDecider,
  type TopupCommand,
  topupDecider,
} from '#domain';
import { usd } from '#kernel';

const at = '2026-11-20T12:00:00.000Z';
const expiresAt = '2026-11-20T12:15:00.000Z';
const query = {
  model: 'openai/gpt-5-mini',
  type: 'chat_completion',
  source: 'api',
  online: false,
  free: false,
} as const;
const key = {
  keyId: '66f0c0ffee66f0c0ffee66f0',
  name: 'Default',
  hash: 'hash',
  secret: { key: 'a1b2c3', box: 'c2VhbGVk' },
  limit: usd('5').toString(),
  resetPeriod: 'daily',
  expireAt: '2027-01-01T00:00:00.000Z',
} as const;
const charge = {
  price: usd('0.0211').toString(),
  cost: usd('0.02').toString(),
  provider: 'openai',
  priceList: '0123456789abcdef',
  usage: { input: 100, cacheRead: 20, cacheWrite: 0, output: 30, reasoning: 10 },
  estimated: true,
  attempts: [
    { provider: 'openai', outcome: 'upstream_error', status: 500, milliseconds: 12 },
    { provider: 'openai', outcome: 'ok', milliseconds: 345 },
  ],
  errorCode: 'timeout',
};
const hold = (holdId: string): AccountCommand => ({
  type: 'HoldFunds',
  data: { holdId, keyId: key.keyId, atLeast: usd('0.1'), atMost: usd('0.1'), expiresAt, query, at },
});

const accountLife: readonly AccountCommand[] = [
  { type: 'OpenAccount', data: { key, at } },
  {
    type: 'UpdateKey',
    data: { keyId: key.keyId, changes: { name: 'ci', limit: null, resetPeriod: null, expireAt: null }, at },
  },
  {
    type: 'AddCredit',
    data: { creditId: 'payment', method: 'btc-lightning', amount: usd('5'), bonus: usd('0.25'), at },
  },
  hold('settled'),
  { type: 'SettleHold', data: { holdId: 'settled', charge, at } },
  hold('released'),
  {
    type: 'ReleaseHold',
    data: {
      holdId: 'released',
      errorCode: 'timeout',
      reason: 'The upstream took too long',
      attempts: charge.attempts,
      at,
    },
  },
  hold('expired'),
  { type: 'ExpireHolds', data: { at: expiresAt } },
  { type: 'SettleHold', data: { holdId: 'expired', charge, at: expiresAt } },
  { type: 'RevokeKey', data: { keyId: key.keyId, at } },
];

const topupLife: readonly TopupCommand[] = [
  {
    type: 'IssueInvoice',
    data: {
      accountId: '3f0e6c1e-7d51-4b0a-9a55-0c6f2a1c9e11',
      method: 'btc-lightning',
      requested: { amount: '5', currency: 'USD' },
      usd: usd('5').toString(),
      rate: '100000.00',
      rateSource: 'kraken',
      msat: '5000000',
      paymentHash: 'abcdef',
      invoice: 'lnbcrt50u1',
      expiresAt,
      at,
    },
  },
  { type: 'RecordPayment', data: { paymentId: 'abcdef', msat: 5_000_000n, paidAt: at, at } },
  { type: 'MarkCredited', data: { paymentId: 'abcdef', at } },
];

/** The compiler asks for every type of fact. */
const types: Record<DomainEvent['type'], true> = {
  AccountOpened: true,
  KeyCreated: true,
  KeyUpdated: true,
  KeyRevoked: true,
  CreditAdded: true,
  FundsHeld: true,
  HoldSettled: true,
  HoldReleased: true,
  HoldExpired: true,
  ChargeAbsorbed: true,
  InvoiceIssued: true,
  PaymentReceived: true,
  TopupCredited: true,
  PriceListPublished: true,
};

function stated(): DomainEvent[] {
  const events: DomainEvent[] = [];
  let account = accountDecider.initial();
  for (const command of accountLife) {
    for (const event of accountDecider.decide(command, account)) {
      account = accountDecider.evolve(account, event);
      events.push(event);
    }
  }
  let topup = topupDecider.initial();
  for (const command of topupLife) {
    for (const event of topupDecider.decide(command, topup)) {
      topup = topupDecider.evolve(topup, event);
      events.push(event);
    }
  }
  const rates = { input: '1', cacheRead: '2', cacheWrite: '3', output: '4', reasoning: '5', request: '6' };
  const published = { model: query.model, provider: 'openai', ...rates, marginBasisPoints: 10_550 };
  const data = { version: charge.priceList, rates: [published], at };
  const fee = { name: 'web_search', provider: 'exa', price: '8', cost: '7' };
  const variants = [{ when: { quality: 'high' }, amount: '10' }];
  const unit = { model: 'openai/gpt-image-1', provider: 'openai', unit: 'image', amount: '9', variants };
  const fuller = { ...data, version: 'fedcba9876543210', units: [{ ...unit, marginBasisPoints: 11_500 }], fees: [fee] };
  const lists = [data, fuller].flatMap((each) =>
    priceListDecider.decide({ type: 'PublishPriceList', data: each }, null),
  );
  return [...events, ...lists];
}

test('every fact reads today as it was written', () => {
  const golden = readFileSync(path.join(import.meta.dirname, 'events.golden.json'), 'utf8');
  expect(`${JSON.stringify(stated(), null, 2)}\n`).toBe(golden);
});

test('every type of fact has its example', () => {
  expect(new Set(stated().map(({ type }) => type))).toEqual(new Set(Object.keys(types)));
});
