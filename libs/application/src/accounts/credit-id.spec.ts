import { expect, test } from '@jest/globals';
import { createTestRuntime } from '#testing';
import { Secrets } from '../secrets.ts';
import { generateCreditId, toAccountIds } from './credit-id.ts';

const [older, newer] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];

test('derives an account id from a credit_id and a master key; the id is a UUID that is not a credential', () => {
  const creditId = generateCreditId(createTestRuntime());
  const secrets = new Secrets(createTestRuntime(), older);
  const [id, own, ...more] = toAccountIds(creditId, secrets);
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect([own, more]).toEqual([creditId, []]); // the id of an older account is its credential
  expect(toAccountIds(creditId, secrets)).toEqual([id, creditId]);
  expect(toAccountIds(id, secrets)).not.toContain(id);
  expect(toAccountIds(creditId, new Secrets(createTestRuntime(), newer))).not.toContain(id);
  expect(toAccountIds(generateCreditId(createTestRuntime()), secrets)).not.toContain(id);
});

test('returns an account id for each master key in the key ring', () => {
  const creditId = generateCreditId(createTestRuntime());
  const [id] = toAccountIds(creditId, new Secrets(createTestRuntime(), older));
  const switched = toAccountIds(creditId, new Secrets(createTestRuntime(), newer, [older]));
  expect(switched[1]).toBe(id);
  expect(toAccountIds(creditId, new Secrets(createTestRuntime(), older, [newer]))[0]).toBe(id);
  expect(toAccountIds(creditId, new Secrets(createTestRuntime(), newer))).toEqual([switched[0], creditId]);
});
