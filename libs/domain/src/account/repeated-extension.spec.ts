import { test } from '@jest/globals';
import { type AccountCommand, type AccountEvent, accountDecider, UNRESTRICTED_ACCESS } from '#domain';
import { type PicoUsd, parseUsd } from '#kernel';
import { createDeciderTest } from '#testing';

const given = createDeciderTest(accountDecider);

const at = '2026-11-20T12:00:00.000Z';
const expiresAt = '2026-11-20T12:10:00.000Z';
const query = { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false } as const;
const pico = (dollars: string) => parseUsd(dollars).toString();

const opened = (limit: string | null): readonly AccountEvent[] => [
  { type: 'AccountOpened', data: { at } },
  {
    type: 'KeyCreated',
    data: {
      keyId: 'k1',
      name: 'Default',
      hash: 'h',
      secret: { key: 'x', box: 'y' },
      ...UNRESTRICTED_ACCESS,
      limit: limit === null ? null : pico(limit),
      resetPeriod: null,
      expireAt: null,
      at,
    },
  },
];
const credited = (creditId: string, dollars: string): AccountEvent => ({
  type: 'CreditAdded',
  data: { creditId, method: 'btc-lightning', amount: pico(dollars), bonus: '0', at },
});
const held: AccountEvent = {
  type: 'FundsHeld',
  data: { holdId: 'h1', keyId: 'k1', amount: pico('2'), expiresAt, query, at },
};
const extended = (amount: string, by: string): AccountEvent => ({
  type: 'HoldExtended',
  data: { holdId: 'h1', keyId: 'k1', amount: pico(amount), by: pico(by), at },
});
const extend = (atLeast: string, knownAmount: PicoUsd = parseUsd('2')): AccountCommand => ({
  type: 'ExtendHold',
  data: { holdId: 'h1', minAmount: parseUsd(atLeast), targetAmount: parseUsd('9'), knownAmount, at },
});

const extendedToBalance = [...opened(null), credited('c1', '5'), held, extended('5', '3')];

test('an extension that took all that was available succeeds without events if it is repeated', () => {
  given(...extendedToBalance)
    .when(extend('4'))
    .thenAlreadySo();
  given(...opened('3'), credited('c1', '9'), held, extended('3', '1'))
    .when(extend('2.5'))
    .thenAlreadySo();
});

test('a repeated extension succeeds without events if the key was revoked in the meantime', () => {
  given(...extendedToBalance, { type: 'KeyRevoked', data: { keyId: 'k1', at } })
    .when(extend('4'))
    .thenAlreadySo();
});

test('a repeated extension takes what has become available in the meantime', () => {
  given(...extendedToBalance, credited('c2', '1'))
    .when(extend('4'))
    .then(extended('6', '1'));
});

test('an extension is rejected if the hold has not grown since it was requested, or has less than the minimum', () => {
  given(...extendedToBalance)
    .when(extend('4', parseUsd('5')))
    .thenRefused('insufficient_balance');
  given(...extendedToBalance)
    .when(extend('6'))
    .thenRefused('insufficient_balance');
});
