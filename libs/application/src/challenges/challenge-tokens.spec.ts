import { expect, test } from '@jest/globals';
import macaroon from 'macaroon';
import { ChallengeTokens, Secrets } from '#application';
import { createTestRuntime } from '#testing';
import { matchesChallenge } from './challenge-tokens.ts';

const tokens = new ChallengeTokens(new Secrets(createTestRuntime(), Buffer.alloc(32, 1)));
const terms = {
  id: Buffer.alloc(32, 7).toString('base64url'),
  paymentHash: 'ab'.repeat(32),
  request: 'digest',
  usableUntil: 1_795_000_000_000,
};

test.each([
  ['short', 'gateway.example'],
  ['long', 'a'.repeat(200)],
])('for a %s host name creates a macaroon that the library reads and exports unchanged', (_, host) => {
  const bytes = Buffer.from(tokens.create(terms, host), 'base64');
  expect(Buffer.from(macaroon.importMacaroon(bytes).exportBinary()).equals(bytes)).toBe(true);
});

test('accepts a token only for its own challenge, and rejects added conditions and changes of what is signed', () => {
  const token = tokens.create(terms, 'gateway.example');
  const found = tokens.verify(token);
  expect(found).toMatchObject({ id: terms.id, paymentHash: terms.paymentHash });
  expect(found && matchesChallenge(found, terms)).toBe(true);
  for (const other of [{ request: 'other' }, { usableUntil: 0 }, { paymentHash: '' }, { id: '' }])
    expect(found && matchesChallenge(found, { ...terms, ...other })).toBe(false);
  expect(found && matchesChallenge({ ...found, conditions: [...found.conditions, 'account=mine'] }, terms)).toBe(false);
  const bytes = Buffer.from(token, 'base64');
  for (let at = 0; at < bytes.length; at += 3) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    const read = tokens.verify(changed.toString('base64'));
    // Only the location in the token is not signed.
    if (read) expect([read.id, read.conditions]).toEqual([found?.id, found?.conditions]);
  }
  expect(new ChallengeTokens(new Secrets(createTestRuntime(), Buffer.alloc(32, 2))).verify(token)).toBeUndefined();
});
