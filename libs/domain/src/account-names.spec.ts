import { expect, test } from '@jest/globals';
import { accountNameDecider, isAccountName, toAccountNameStreamId } from '#domain';
import { createDeciderTest } from '#testing';

const given = createDeciderTest(accountNameDecider);
const at = '2026-11-20T12:00:00.000Z';
const data = { name: 'team-a', accountId: 'a1', actor: { name: 'alice', isVerified: false }, at };

test('a name belongs to the first account that gets it', () => {
  const named = { type: 'AccountNamed', data } as const;
  given().when({ type: 'NameAccount', data }).then(named);
  given(named).when({ type: 'NameAccount', data }).then();
  given(named)
    .when({ type: 'NameAccount', data: { ...data, accountId: 'a2' } })
    .thenRefused('name_taken');
});

test.each([
  ['team-a', true],
  ['Team_A.2', true],
  ['t', true],
  ['a'.repeat(63), true],
  ['a'.repeat(64), false],
  ['', false],
  ['1team', false],
  ['-team', false],
  ['team a', false],
  ['team/a', false],
  ['größe', false],
  ['team\n', false],
  ['abcdef01-2345-4678-9abc-def012345678', false],
])('%j is a name of an account: %s', (text, isName) => {
  expect(isAccountName(text)).toBe(isName);
});

test('names that differ only in case have the same stream', () => {
  expect(toAccountNameStreamId('Team-A')).toBe(toAccountNameStreamId('team-a'));
});
