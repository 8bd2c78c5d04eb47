import { describe, expect, test } from '@jest/globals';
import { type AccountCommand, type AccountEvent, accountDecider } from '#domain';
import { parseUsd } from '#kernel';
import { createDeciderTest } from '#testing';

const given = createDeciderTest(accountDecider);

const at = '2026-11-20T12:00:00.000Z';
const key = {
  keyId: 'k1',
  name: 'Default',
  hash: 'h',
  secret: { key: 'x', box: 'y' },
  limit: null,
  resetPeriod: null,
  expireAt: null,
};
const pico = (dollars: string) => parseUsd(dollars).toString();

const opened: AccountEvent = { type: 'AccountOpened', data: { at } };
const keyed = (more: object = {}): AccountEvent => ({ type: 'KeyCreated', data: { ...key, ...more, at } });

describe('the settings of an API key', () => {
  const create = (more: object): AccountCommand => ({
    type: 'CreateKey',
    data: { key: { ...key, keyId: 'k2', name: 'ci', ...more }, at },
  });
  test.each([
    ['the name of another active key', { name: 'Default' }, 'key_name_taken'],
    ['a name of more than 25 characters', { name: 'x'.repeat(26) }, 'invalid_key_settings'],
    ['an empty name', { name: '' }, 'invalid_key_settings'],
    ['a limit below 0.01 USD', { limit: pico('0.009') }, 'invalid_key_settings'],
    ['a limit above 1,000,000,000 USD', { limit: pico('1000000001') }, 'invalid_key_settings'],
    ['a name with a control character', { name: 'a\u0000b' }, 'invalid_key_settings'],
    ['a name with a lone surrogate', { name: 'a\ud800' }, 'invalid_key_settings'],
    ['a reset period without a limit', { resetPeriod: 'daily' }, 'invalid_key_settings'],
    ['an expiry that is not in the future', { expireAt: at }, 'invalid_key_settings'],
  ])('are rejected with %s', (_, more, code) => {
    given(opened, keyed()).when(create(more)).thenRefused(code);
  });
  test('can reuse the name of a revoked key', () => {
    const revoked: AccountEvent = { type: 'KeyRevoked', data: { keyId: 'k1', at } };
    expect(
      given(opened, keyed(), revoked)
        .when(create({ name: 'Default' }))
        .events(),
    ).toHaveLength(1);
  });
  test('are not in the event of an update that omits them', () => {
    const change: AccountCommand = { type: 'UpdateKey', data: { keyId: 'k1', changes: { name: 'new' }, at } };
    given(opened, keyed())
      .when(change)
      .then({ type: 'KeyUpdated', data: { keyId: 'k1', name: 'new', at } });
  });
  test('cannot lose the limit without the reset period', () => {
    const change = (changes: object): AccountCommand => ({ type: 'UpdateKey', data: { keyId: 'k1', changes, at } });
    const past = [opened, keyed({ limit: pico('1'), resetPeriod: 'daily' })];
    given(...past)
      .when(change({ limit: null }))
      .thenRefused('invalid_key_settings');
    given(...past)
      .when(change({ limit: null, resetPeriod: null }))
      .then({ type: 'KeyUpdated', data: { keyId: 'k1', limit: null, resetPeriod: null, at } });
    given(...past)
      .when(change({ limit: null, resetPeriod: 'weekly' }))
      .thenRefused('invalid_key_settings');
  });
  test('allow one revocation of the key; a second one is rejected', () => {
    const revoke: AccountCommand = { type: 'RevokeKey', data: { keyId: 'k1', at } };
    given(opened, keyed())
      .when(revoke)
      .then({ type: 'KeyRevoked', data: { keyId: 'k1', at } });
    given(opened, keyed(), { type: 'KeyRevoked', data: { keyId: 'k1', at } })
      .when(revoke)
      .thenRefused('key_not_found');
  });
});
