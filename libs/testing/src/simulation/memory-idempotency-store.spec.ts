import { expect, test } from '@jest/globals';
import { idempotencyStoreContract } from '../contracts/idempotency-store.ts';
import { MemoryIdempotencyStore } from './memory-idempotency-store.ts';

idempotencyStoreContract('in memory', async ({ confirmedLeaseMs, files }) => {
  let nowMs = 0;
  return {
    store: new MemoryIdempotencyStore(() => nowMs, confirmedLeaseMs, files),
    passTime: async (milliseconds) => {
      nowMs += milliseconds;
    },
  };
});

test('a lease and a lifetime end exactly on time', async () => {
  let nowMs = 1_000;
  const store = new MemoryIdempotencyStore(() => nowMs, 60_000);
  const claim = { payer: 'p', key: 'k', request: 'r', requestId: 'a', revision: 1, owner: 'a', lifetimeSeconds: 20 };
  await store.claim(claim);
  nowMs = 10_999;
  expect(await store.find(claim)).toMatchObject({ isRunning: true });
  nowMs = 11_000;
  expect(await store.find(claim)).toMatchObject({ isRunning: false });
  nowMs = 20_999;
  expect(await store.claim({ ...claim, owner: 'b' })).toBeUndefined();
  nowMs = 21_000;
  expect(await store.claim({ ...claim, owner: 'b' })).toBe(0);
});
