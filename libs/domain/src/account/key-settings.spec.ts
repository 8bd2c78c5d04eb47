import { describe, expect, test } from '@jest/globals';
import { type AccountCommand, type AccountEvent, accountDecider, UNRESTRICTED_ACCESS } from '#domain';
import { parseUsd } from '#kernel';
import { createDeciderTest } from '#testing';

const given = createDeciderTest(accountDecider);

const at = '2026-11-20T12:00:00.000Z';
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
const createTags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`tag${i}`, 'x']));
const createModels = (count: number) => Array.from({ length: count }, (_, i) => `${i}`.padStart(200, 'x'));
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
    ['a time of 0 s for identical requests', { dedupeSeconds: 0 }, 'invalid_key_settings'],
    ['more than an hour for identical requests', { dedupeSeconds: 3_601 }, 'invalid_key_settings'],
    ['half a second for identical requests', { dedupeSeconds: 1.5 }, 'invalid_key_settings'],
    ['an empty list of models', { models: [] }, 'invalid_key_settings'],
    ['more than 100 models', { models: Array(101).fill('a/b') }, 'invalid_key_settings'],
    ['an empty pattern', { models: [''] }, 'invalid_key_settings'],
    ['a pattern with a space', { models: ['a b'] }, 'invalid_key_settings'],
    ['a pattern of more than 200 characters', { models: ['a'.repeat(201)] }, 'invalid_key_settings'],
    [
      'models and tags of more than 4,096 characters together',
      { models: createModels(20), metadata: { x: 'x'.repeat(100) } },
      'invalid_key_settings',
    ],
    ['more than 16 tags', { metadata: createTags(17) }, 'invalid_key_settings'],
    ['a tag without a name', { metadata: { '': 'x' } }, 'invalid_key_settings'],
    ['a tag with a name of more than 64 characters', { metadata: { ['x'.repeat(65)]: '' } }, 'invalid_key_settings'],
    ['a tag with a value of more than 512 characters', { metadata: { x: 'x'.repeat(513) } }, 'invalid_key_settings'],
    ['a tag with a control character', { metadata: { x: 'a\u0000b' } }, 'invalid_key_settings'],
  ])('are rejected with %s', (_, more, code) => {
    given(opened, keyed()).when(create(more)).thenRefused(code);
  });
  test('include up to 100 models and 16 tags', () => {
    const access = { models: Array(100).fill('a/*'), blocked: true, metadata: createTags(16) };
    given(opened, keyed())
      .when(create(access))
      .then(keyed({ keyId: 'k2', name: 'ci', ...access }));
  });
  test('are not changed by a command that states the same', () => {
    const access = { models: ['a/*'], blocked: true, metadata: { team: 'a' } };
    const change = (changes: object): AccountCommand => ({ type: 'UpdateKey', data: { keyId: 'k1', changes, at } });
    given(opened, keyed(access))
      .when(change(structuredClone(access)))
      .then();
    given(opened, keyed(access))
      .when(change({ models: ['a/*', 'b/*'] }))
      .then({ type: 'KeyUpdated', data: { keyId: 'k1', models: ['a/*', 'b/*'], at } });
    given(opened, keyed(access))
      .when(change({ metadata: {} }))
      .then({ type: 'KeyUpdated', data: { keyId: 'k1', metadata: {}, at } });
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
  test('lose the reset period with the limit', () => {
    const change = (changes: object): AccountCommand => ({ type: 'UpdateKey', data: { keyId: 'k1', changes, at } });
    const past = [opened, keyed({ limit: pico('1'), resetPeriod: 'daily' })];
    given(...past)
      .when(change({ limit: null }))
      .then({ type: 'KeyUpdated', data: { keyId: 'k1', limit: null, resetPeriod: null, at } });
    given(...past)
      .when(change({ limit: null, resetPeriod: null }))
      .then({ type: 'KeyUpdated', data: { keyId: 'k1', limit: null, resetPeriod: null, at } });
    given(...past)
      .when(change({ limit: null, resetPeriod: 'weekly' }))
      .thenRefused('invalid_key_settings');
    given(opened, keyed({ limit: pico('1') }))
      .when(change({ limit: null }))
      .then({ type: 'KeyUpdated', data: { keyId: 'k1', limit: null, at } });
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

describe('a hold by an API key', () => {
  const credited: AccountEvent = {
    type: 'CreditAdded',
    data: { creditId: 'c', method: 'm', amount: pico('10'), bonus: '0', at },
  };
  const updated = (changes: object): AccountEvent => ({ type: 'KeyUpdated', data: { keyId: 'k1', ...changes, at } });
  const hold = (model: string, amount = '1'): AccountCommand => ({
    type: 'HoldFunds',
    data: {
      holdId: 'h',
      keyId: 'k1',
      minAmount: parseUsd(amount),
      maxAmount: parseUsd(amount),
      query: { model, type: 'chat_completion', source: 'api', online: false, free: false },
      expiresAt: '2026-11-20T12:10:00.000Z',
      at,
    },
  });
  const isHeld = (command: AccountCommand, ...past: readonly AccountEvent[]) =>
    expect(
      given(opened, keyed(), credited, ...past)
        .when(command)
        .events()
        .map(({ type }) => type),
    ).toEqual(['FundsHeld']);

  test.each(['1', '0'])('of %s USD requires that its list of models permits the model', (amount) => {
    given(opened, keyed(), credited, updated({ models: ['a/x', 'b/*'] }))
      .when(hold('a/y', amount))
      .thenRefused('model_not_allowed');
    isHeld(hold('a/x', amount), updated({ models: ['a/x', 'b/*'] }));
    isHeld(hold('b/y', amount), updated({ models: ['a/x', 'b/*'] }));
    isHeld(hold('a/y', amount), updated({ models: ['a/x'] }), updated({ models: null }));
  });

  test.each(['1', '0'])('of %s USD is rejected while the key is blocked', (amount) => {
    given(opened, keyed(), credited, updated({ blocked: true }))
      .when(hold('a/x', amount))
      .thenRefused('key_blocked');
    isHeld(hold('a/x', amount), updated({ blocked: true }), updated({ blocked: false }));
  });

  test('is not extended while the key is blocked, apart from what was generated before', () => {
    const [held] = given(opened, keyed(), credited).when(hold('a/x')).events() as [AccountEvent];
    const extend = (isFinal: boolean): AccountCommand => ({
      type: 'ExtendHold',
      data: {
        holdId: 'h',
        minAmount: parseUsd('2'),
        targetAmount: parseUsd('2'),
        knownAmount: parseUsd('1'),
        isFinal,
        at,
      },
    });
    const past = [opened, keyed(), credited, held, updated({ blocked: true })] as const;
    given(...past)
      .when(extend(false))
      .thenRefused('key_blocked');
    expect(
      given(...past)
        .when(extend(true))
        .events(),
    ).toHaveLength(1);
  });
});
