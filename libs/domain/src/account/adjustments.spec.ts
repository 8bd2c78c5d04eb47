import { describe, expect, test } from '@jest/globals';
import { type AccountCommand, type AccountEvent, accountDecider, isFunded } from '#domain';
import { fold, parseUsd } from '#kernel';
import { createDeciderTest } from '#testing';

const given = createDeciderTest(accountDecider);

const at = '2026-11-20T12:00:00.000Z';
const pico = (dollars: string) => parseUsd(dollars).toString();
const stated = { reason: 'Budget of November', actor: { name: 'alice', isVerified: false } };

const opened: AccountEvent = { type: 'AccountOpened', data: { at } };
const adjusted = (adjustmentId: string, dollars: string, more: object = {}): AccountEvent => ({
  type: 'BalanceAdjusted',
  data: { adjustmentId, ...stated, amount: pico(dollars), ...more, at },
});
const adjust = (adjustmentId: string, dollars: string, more: object = {}): AccountCommand => ({
  type: 'AdjustBalance',
  data: { adjustmentId, ...stated, amount: parseUsd(dollars), ...more, at },
});
const held: AccountEvent = {
  type: 'FundsHeld',
  data: {
    holdId: 'h',
    keyId: null,
    amount: pico('4'),
    expiresAt: at,
    at,
    query: { model: 'm', type: 'chat_completion', source: 'api', online: false, free: false },
  },
};

describe('an adjustment by the operator', () => {
  test('credits an account without a payment', () => {
    given(opened).when(adjust('a', '100')).then(adjusted('a', '100'));
  });

  test('is booked once for each id', () => {
    given(opened, adjusted('a', '100')).when(adjust('a', '100')).then();
    given(opened, adjusted('a', '100')).when(adjust('a', '99')).thenRefused('adjustment_conflict');
    given(opened, adjusted('a', '100'))
      .when(adjust('a', '100', { reverses: 'b' }))
      .thenRefused('adjustment_conflict');
  });

  test('debits at most what is available', () => {
    given(opened, adjusted('a', '10')).when(adjust('b', '-10')).then(adjusted('b', '-10'));
    given(opened, adjusted('a', '10')).when(adjust('b', '-10.000001')).thenRefused('insufficient_balance');
    given(opened, adjusted('a', '10'), held).when(adjust('b', '-6')).then(adjusted('b', '-6'));
    given(opened, adjusted('a', '10'), held).when(adjust('b', '-7')).thenRefused('insufficient_balance');
  });

  test('credits an account whose balance is negative after a reversed payment, also below zero', () => {
    const credit: AccountEvent = {
      type: 'CreditAdded',
      data: { creditId: 'c', method: 'card', amount: pico('5'), bonus: '0', at },
    };
    const reversal: AccountEvent = {
      type: 'CreditReversed',
      data: { reversalId: 'r', creditId: 'c', method: 'card', amount: pico('-5'), bonus: '0', why: 'disputed', at },
    };
    const spent = [opened, credit, adjusted('a', '1'), held, reversal] as const;
    given(...spent)
      .when(adjust('b', '1'))
      .then(adjusted('b', '1'));
    given(...spent)
      .when(adjust('b', '-1'))
      .thenRefused('insufficient_balance');
  });

  test('is reversed once and completely, and a reversal can be reversed', () => {
    const credited = [opened, adjusted('a', '10')] as const;
    given(...credited)
      .when(adjust('b', '-10', { reverses: 'a' }))
      .then(adjusted('b', '-10', { reverses: 'a' }));
    given(...credited)
      .when(adjust('b', '-9', { reverses: 'a' }))
      .thenRefused('adjustment_conflict');
    given(...credited)
      .when(adjust('b', '-10', { reverses: 'x' }))
      .thenRefused('adjustment_conflict');
    const reversed = [...credited, adjusted('b', '-10', { reverses: 'a' })] as const;
    given(...reversed)
      .when(adjust('c', '-10', { reverses: 'a' }))
      .thenRefused('adjustment_conflict');
    given(...reversed)
      .when(adjust('c', '10', { reverses: 'b' }))
      .then(adjusted('c', '10', { reverses: 'b' }));
  });

  test('of zero, or of an account that does not exist, is rejected', () => {
    given(opened).when(adjust('a', '0')).thenRefused('adjustment_conflict');
    given().when(adjust('a', '1')).thenRefused('account_not_found');
  });

  test('counts as funding only if it is a credit', () => {
    const state = (...events: readonly AccountEvent[]) =>
      fold(accountDecider, accountDecider.getInitialState(), events);
    expect(isFunded(state(opened))).toBe(false);
    expect(isFunded(state(opened, adjusted('b', '-1')))).toBe(false);
    expect(isFunded(state(opened, adjusted('a', '1'), adjusted('b', '-1', { reverses: 'a' })))).toBe(true);
  });
});
